"""The operators' way in: the configured memory and queue, opened for a script and closed again."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from bot.queue.connections import check_database, database_url, open_rpc, require_migrated
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from bot.text.languages import Sentence
from memory.rpc import Rpc
from memory.store import MemoryStore
from memory.tables.directory import PeopleStore
from memory.tables.operations import Operations
from scripts.operating.names import NamedIds, names_of

# Operators read whole tables; the message path has limits of its own.
_TIMEOUT_S = 120.0
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
    """Connects as configured. Raises `NotConfigured` and `NotMigrated`."""
    check_database(settings)
    url = database_url(settings)
    require_migrated(url)
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
