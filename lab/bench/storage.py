"""The size of a message on disk: growth of the database over real turns, by table and index."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lab.bench.checkouts import Checkout
from lab.bench.people import GroupPeople
from lab.bench.processes import MODEL_S, NotMeasured, Setting, database_url, running_bot
from lab.bench.speech import CHATS, groups, written_discussions
from lab.figures import Figure

_PEOPLE = 50
_ROUND_S = 5.0
_SETTLES_S = 2.0
_LINES_OF_A_TRANSCRIPT = 225  # at most; two of them are of one turn
_LEAST_SHOWN = 3.0  # bytes a message
_BAR_KB = 0.8
_RELATIONS = """
select case when n.nspname in ('pg_catalog', 'information_schema') then 'catalogue'
            when owner.relname is not null then owner.relname || ': long values'
            when c.relkind = 'i' then t.relname || ': ' || c.relname
            else c.relname || ': rows' end,
       sum(pg_relation_size(c.oid, fork))
from unnest('{main,fsm,vm,init}'::text[]) fork, pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_index i on i.indexrelid = c.oid
left join pg_class t on t.oid = i.indrelid
left join pg_class owner on owner.reltoastrelid in (c.oid, i.indrelid)
where c.relkind in ('r', 'i', 't', 'm', 'S')
group by 1
"""
_SIZE = """
select pg_database_size(current_database()), count(*), coalesce(sum(octet_length(content)), 0)
from agent_messages
"""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """A database after a vacuum: bytes, rows of `agent_messages`, bytes of their text."""

    size: int
    messages: int
    text: int
    relations: Mapping[str, int]


async def measure_storage(
    setting: Setting, checkout: Checkout, turns: int, progress: Callable[[str], object]
) -> list[Figure]:
    """People ask in twenty groups that go on. The beginning does not count: transcripts fill first,
    and small tables and indexes grow by whole pages."""
    folder = setting.folder / f"storage-{checkout.label}"
    first = max(turns // 4, min(turns, CHATS * _LINES_OF_A_TRANSCRIPT // 2))
    said = [" ".join(text for _, text in one.lines) for one in written_discussions()]
    answers = itertools.islice(itertools.cycle(said), 3 * (turns + first))
    await setting.script_model({"steps": [{"text": text} for text in answers]})
    async with running_bot(setting, checkout, folder) as (_, port):
        people = GroupPeople(setting.platform, port, groups("storage"), MODEL_S)
        await _ask(people, first, progress)
        before = await asyncio.to_thread(_look, folder)
        await _ask(people, turns, progress)
        after = await asyncio.to_thread(_look, folder)
    people.close()
    return storage_figures(before, after)


def storage_figures(before: DiskUse, after: DiskUse) -> list[Figure]:
    """Divides the growth by the new messages. Raises `NotMeasured` if there are none."""
    messages = after.messages - before.messages
    if messages <= 0:
        raise NotMeasured("no message was stored: see web.log")
    text = (after.text - before.text) / messages
    size = (after.size - before.size) / messages
    grown = {
        name: (amount - before.relations.get(name, 0)) / messages
        for name, amount in after.relations.items()
    }
    shown = {name: amount for name, amount in grown.items() if amount >= _LEAST_SHOWN}
    rest = size - sum(shown.values())
    note = f"{messages:,} messages of {text:.0f} bytes of text"
    return [
        Figure("storage beyond the text", (size - text) / 1000, "KB/message", _BAR_KB, note=note),
        *(
            Figure(f"storage: {name}", amount, "bytes/message")
            for name, amount in sorted(shown.items(), key=lambda one: -one[1])
        ),
        Figure("storage: the rest", round(rest, 3), "bytes/message"),
    ]


async def _ask(people: GroupPeople, turns: int, progress: Callable[[str], object]) -> None:
    until = len(people.heard.answers) + turns
    while (answered := len(people.heard.answers)) < until:
        await people.ask_in_turn(_PEOPLE, _ROUND_S)
        if len(people.heard.answers) == answered:
            raise NotMeasured("nothing was answered: see web.log")
        progress(f"storage: {len(people.heard.answers):,} of {until:,} turns")
    await asyncio.sleep(_SETTLES_S)


def _look(data_dir: Path) -> DiskUse:
    with psycopg.connect(database_url(data_dir), autocommit=True) as connection:
        return disk_use(connection)


def disk_use(connection: psycopg.Connection) -> DiskUse:
    """Measures the connected database after a vacuum."""
    connection.execute("vacuum")
    size, messages, text = connection.execute(_SIZE).fetchone() or (0, 0, 0)
    relations = {name: int(grown) for name, grown in connection.execute(_RELATIONS)}
    return DiskUse(size, messages, int(text), relations)
