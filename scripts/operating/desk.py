"""The operators' way in: the configured memory and queue, opened for a script and closed again."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

import psycopg

from bot.queue.connections import check_database, database_url, open_rpc, require_migrated
from bot.queue.looking import explain, looking
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from bot.text.languages import Sentence
from memory.rpc import Rpc
from memory.scope import FeishuPerson
from memory.store import MemoryStore
from memory.tables.directory import PeopleStore
from memory.tables.operations import Operations
from scripts.operating.names import NamedIds, NotKnown, names_of

# Operators read whole tables; the message path has limits of its own.
_TIMEOUT_S = 120.0
_PAGE = 1000
_SHOWN = 5
# Whoever locks one of these keeps every script waiting.
_READ_TABLES = b"""
select (select count(*) from (select from public.agent_turns limit 1) t),
       (select count(*) from (select from public.agent_messages limit 1) m),
       (select count(*) from (select from public.people limit 1) p),
       (select count(*) from (select from feishu_bot.jobs limit 1) j)
"""
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class OperatorDesk:
    """What an operator works with. `backend` names the memory's place without secrets, `url` is
    the queue's database."""

    settings: Settings
    backend: str
    url: str
    rpc: Rpc
    queue: QueueOperations

    @property
    def memory(self) -> MemoryStore:
        return MemoryStore(self.rpc)

    @property
    def people(self) -> PeopleStore:
        return PeopleStore(self.rpc)

    def since(self, text: str | None) -> str | None:
        """What `--since` was given, as ISO 8601."""
        return since(text, self.settings.zone) if text else None

    def shown(self, time: str | None, *, timespec: str = "minutes") -> str | None:
        """A stored time as people read it, in the zone of the settings."""
        if not time:
            return None
        moment = datetime.fromisoformat(time).astimezone(self.settings.zone)
        return moment.replace(tzinfo=None).isoformat(" ", timespec)

    def names_of(self, ids: Iterable[str]) -> Mapping[str, Sentence]:
        """The names of people and chats by id, as far as they are known."""
        return names_of(self.url, ids)

    def named(self, text: str) -> str:
        """English text with names before the ids in it."""
        return NamedIds("en", self.names_of).put(text)

    @property
    def operations(self) -> Operations:
        return Operations(self.rpc)


@asynccontextmanager
async def open_desk(settings: Settings) -> AsyncIterator[OperatorDesk]:
    """Connects as configured. Raises `NotConfigured`, `NotMigrated` and `DatabaseTrouble`."""
    check_database(settings)
    url = database_url(settings)
    try:
        require_migrated(url)
    except psycopg.Error as exc:
        raise explain(url, exc) from exc
    with looking(url) as connection:
        connection.execute(_READ_TABLES)
    rpc = await open_rpc(settings, url, size=2, timeout_s=_TIMEOUT_S, wait_s=10.0)
    try:
        yield OperatorDesk(settings, _backend(settings), url, rpc, QueueOperations(url))
    finally:
        await rpc.close()


def since(text: str, zone: tzinfo, now: datetime | None = None) -> str:
    """`2h`, `7d`, or an ISO 8601 date or time (in `zone`), as ISO 8601. Raises `ValueError`."""
    if relative := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip()):
        age = timedelta(**{_UNITS[relative[2]]: int(relative[1])})
        return ((now or datetime.now(UTC)) - age).isoformat()
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).isoformat()


def _backend(settings: Settings) -> str:
    if settings.supabase_url:
        return f"Supabase at {settings.supabase_url}"
    if settings.embedded_database:
        return f"embedded Postgres in {settings.data_dir}"
    return "Postgres at DATABASE_URL"


def script_user() -> str:
    """Who looks, as the audit keeps it."""
    try:
        return f"{getpass.getuser()} (script)"
    except (KeyError, OSError):
        return f"uid {os.getuid()} (script)"


async def person_meant(desk: OperatorDesk, text: str, tenant: str | None = None) -> str:
    """The open_id of the person meant. Raises `NotKnown` for nobody, or for more than one."""
    if text.startswith("ou_") and not text.endswith("…") and await _is_stored(desk, text, tenant):
        return text
    wanted, beginning = text.casefold(), text.rstrip("…")
    open_ids = [
        open_id
        for open_id, name in (await everybody(desk, tenant)).items()
        if name.casefold() == wanted
        or (beginning.startswith("ou_") and open_id.startswith(beginning))
    ]
    if len(open_ids) == 1:
        return open_ids[0]
    raise NotKnown(_several(text, sorted(open_ids)) if open_ids else _nobody(text))


async def everybody(desk: OperatorDesk, tenant: str | None = None) -> dict[str, str]:
    """Everybody's name by open_id, "" where it is not known."""
    names: dict[str, str] = {}
    after: FeishuPerson | None = None
    while True:
        page = await desk.people.listed(tenant_key=tenant, after=after, limit=_PAGE)
        names |= {one.person.open_id: one.name for one in page}
        if len(page) < _PAGE:
            return names
        after = page[-1].person


async def _is_stored(desk: OperatorDesk, open_id: str, tenant: str | None) -> bool:
    """Whether the memory or the queue holds anything of theirs."""
    counts = await desk.operations.count_person(open_id, tenant)
    return any(counts.values()) or bool(desk.queue.export(open_id))


def _nobody(text: str) -> Sentence:
    return Sentence(
        f"nothing is stored about {text!r}: scripts/check_memory lists whom the memory knows",
        f"没有关于 {text!r} 的任何内容：scripts/check_memory 会列出记忆中的成员",
    )


def _several(text: str, ids: list[str]) -> Sentence:
    listed = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    return Sentence(
        f"{len(ids)} people are meant by {text!r}: give one of {listed}",
        f"{text!r} 对应 {len(ids)} 个人：请指定其中之一：{listed}",
    )
