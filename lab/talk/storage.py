"""What a message takes on disk: growth of the database over real turns, by table and index."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import requests

from lab.benchmark.bot_processes import bot
from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import Figure
from lab.benchmark.load import Askers
from lab.benchmark.processes import NotMeasured, socket_folder
from lab.benchmark.setting import Setting, address
from lab.talk.people import going_on
from lab.talk.speech import CHATS, groups, written_discussions

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
    """Bytes of a database after a vacuum, rows of `agent_messages` and the bytes of their text."""

    size: int
    messages: int
    text: int
    relations: Mapping[str, int]


async def measure_storage(
    setting: Setting, checkout: Checkout, turns: int, progress: Callable[[str], object]
) -> list[Figure]:
    """People ask in twenty groups that go on. What comes before does not count: until transcripts
    are full, and a fourth as many turns, because empty tables and indexes grow by whole pages."""
    folder = setting.folder / "storage"
    before_that = max(turns // 4, 0 if setting.quick else CHATS * _LINES_OF_A_TRANSCRIPT // 2)
    await asyncio.to_thread(_script_answers, setting, turns + before_that)
    async with bot(setting, checkout, folder) as started:
        questions = going_on(groups("storage"))
        people = Askers(setting.platform, started.port, questions=questions)
        await _ask(people, before_that, progress)
        before = await asyncio.to_thread(_look, folder)
        await _ask(people, turns, progress)
        after = await asyncio.to_thread(_look, folder)
    return storage_figures(before, after)


def storage_figures(before: DiskUse, after: DiskUse) -> list[Figure]:
    """Growth over the messages that came in between. Raises `NotMeasured` without any."""
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


def _script_answers(setting: Setting, turns: int) -> None:
    """Answers of people's words, each another one, so that their words are found as in life."""
    said = [" ".join(text for _, text in one.lines) for one in written_discussions()]
    answers: Sequence[str] = list(itertools.islice(itertools.cycle(said), 3 * turns))
    url = setting.model_url.removesuffix("/v1") + "/control/script"
    script = {"steps": [{"text": text} for text in answers]}
    requests.post(url, json=script, timeout=60).raise_for_status()


async def _ask(people: Askers, turns: int, progress: Callable[[str], object]) -> None:
    answered = 0
    while answered < turns:
        seen = await people.talk(_PEOPLE, _ROUND_S)
        if not seen.replies:
            raise NotMeasured("nothing was answered: see web.log")
        answered += len(seen.replies)
        progress(f"storage: {answered:,} of {turns:,} turns")
    await asyncio.sleep(_SETTLES_S)


def _look(data_dir: Path) -> DiskUse:
    with psycopg.connect(address(socket_folder(data_dir)), autocommit=True) as connection:
        return disk_use(connection)


def disk_use(connection: psycopg.Connection) -> DiskUse:
    """Of the database it is connected to, after a vacuum."""
    connection.execute("vacuum")
    size, messages, text = connection.execute(_SIZE).fetchone() or (0, 0, 0)
    relations = {name: int(grown) for name, grown in connection.execute(_RELATIONS)}
    return DiskUse(size, messages, int(text), relations)
