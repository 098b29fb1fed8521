"""Names by open_id: learned, asked for in tens, kept for a while, never waited for long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.feishu.client import FeishuClient
from bot.feishu.content import Mention
from bot.feishu.errors import Unreachable
from bot.mentions import Person
from bot.people.membership import NameKeeper
from bot.people.people_directory import Names, People
from memory.errors import StoreUnavailable
from memory.tables.directory import KnownName, PeopleStore, Sighting

pytestmark = pytest.mark.anyio


class Directory:
    """Feishu's names, as the client answers them."""

    def __init__(self, names: dict[str, str]) -> None:
        self.known = names
        self.calls: list[list[str]] = []
        self.failure: Exception | None = None
        self.answering = asyncio.Event()
        self.answering.set()

    async def names(self, open_ids: Iterable[str]) -> dict[str, str]:
        asked = list(open_ids)
        self.calls.append(asked)
        await self.answering.wait()
        if self.failure:
            raise self.failure
        return {i: self.known[i] for i in asked if i in self.known}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def people(directory: Directory, clock: Clock | None = None) -> Names:
    return People(directory, clock=clock or Clock()).of("tenant")  # type: ignore[arg-type]


async def test_a_name_is_asked_for_once_and_again_when_it_is_old() -> None:
    directory, clock = Directory({"ou_a": "Alice"}), Clock()
    known = people(directory, clock)
    await known.look_up(["ou_a", "ou_a", ""])
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert directory.calls == [["ou_a"]]

    directory.known["ou_a"] = "Alice Lee"
    clock.now += 7 * 3600
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice Lee"


async def test_whoever_asks_at_once_shares_calls_of_ten() -> None:
    directory = Directory({f"ou_{n}": f"Person {n}" for n in range(25)})
    known = people(directory)
    await asyncio.gather(*(known.look_up([f"ou_{n}"]) for n in range(25)))
    assert known.name("ou_24") == "Person 24"
    assert [len(call) for call in directory.calls] == [10, 10, 5]


async def test_a_slow_directory_is_not_waited_for_and_its_answer_is_kept() -> None:
    directory = Directory({"ou_a": "Alice"})
    directory.answering.clear()
    known = people(directory)
    await known.look_up(["ou_a"], wait_s=0.01)
    assert known.name("ou_a") == "ou_a"

    directory.answering.set()
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert len(directory.calls) == 1


async def test_a_failure_keeps_the_old_name_and_is_not_repeated_at_once() -> None:
    directory, clock = Directory({}), Clock()
    known = people(directory, clock)
    known.learn([("ou_a", "Alice"), ("ou_b", "")])
    clock.now += 7 * 3600
    directory.failure = Unreachable("timeout")
    await known.look_up(["ou_a"])
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert len(directory.calls) == 1


class Table:
    """The table `people`, or a memory that is away."""

    def __init__(self, *known: KnownName) -> None:
        self.known = {one.open_id: one for one in known}
        self.asked: list[list[str]] = []
        self.writes: list[list[Sighting]] = []
        self.away = False
        self.written = asyncio.Event()

    async def named(self, tenant_key: str, open_ids: Iterable[str]) -> tuple[KnownName, ...]:
        asked = list(open_ids)
        self.asked.append(asked)
        if self.away:
            raise StoreUnavailable("away")
        return tuple(self.known[i] for i in asked if i in self.known)

    async def remember(self, sightings: Sequence[Sighting]) -> int:
        self.writes.append(list(sightings))
        self.written.set()
        if self.away:
            raise StoreUnavailable("away")
        return len(sightings)


@contextlib.asynccontextmanager
async def kept_people(
    directory: Directory, table: Table, clock: Clock | None = None, *, gather_s: float = 0
) -> AsyncIterator[People]:
    store = cast(PeopleStore, table)
    keeper = NameKeeper(store, gather_s=gather_s, retry_first_s=0)
    yield People(cast(FeishuClient, directory), table=store, keeper=keeper, clock=clock or Clock())
    await keeper.close()


def said(sender: str = "ou_a", *mentions: Mention, at_ms: int = 1_000_000, **more: str) -> Any:
    """What `People.meet` reads of an event."""
    about = {"sender_open_id": sender, "sender_type": "user", "tenant_key": "tenant"}
    about |= {"sender_tenant": "", **more}
    return SimpleNamespace(mentions=mentions, create_time_ms=at_ms, **about)


def mention(open_id: str, name: str, *, is_bot: bool = False, tenant: str = "tenant") -> Mention:
    return Mention("@_user_1", open_id, name, is_bot, tenant)


BOT = Person("ou_bot", "Memo", is_bot=True)


async def test_the_table_is_asked_once_for_everybody_and_feishu_for_the_rest() -> None:
    directory = Directory({f"ou_{n}": f"Person {n}" for n in range(30)})
    table = Table(*(KnownName(f"ou_{n}", f"Person {n}", 900_000) for n in range(18)))
    async with kept_people(directory, table) as people:
        names = people.of("tenant")
        await names.look_up([f"ou_{n}" for n in range(30)])
    assert [len(call) for call in table.asked] == [30]
    assert [len(call) for call in directory.calls] == [10, 2]
    assert names.name("ou_0") == "Person 0"
    assert names.name("ou_29") == "Person 29"


async def test_a_name_of_the_table_is_shown_at_once_and_checked_with_feishu_later() -> None:
    clock, directory = Clock(), Directory({"ou_a": "Alice Lee"})
    clock.now = 1_000_000.0
    async with kept_people(directory, Table(KnownName("ou_a", "Alice", 1)), clock) as people:
        names = people.of("tenant")
        await names.look_up(["ou_a"])
        assert (names.name("ou_a"), directory.calls) == ("Alice", [])
        clock.now += 601
        await names.look_up(["ou_a"])
    assert names.name("ou_a") == "Alice Lee"


async def test_a_memory_that_is_away_costs_no_name() -> None:
    directory, table = Directory({"ou_a": "Alice"}), Table()
    table.away = True
    async with kept_people(directory, table) as people:
        await people.of("tenant").look_up(["ou_a"])
        assert people.of("tenant").name("ou_a") == "Alice"


async def test_only_what_is_new_or_changed_is_written_many_in_one_call() -> None:
    directory = Directory({"ou_a": "Alice", "ou_b": "Bob"})
    table = Table(KnownName("ou_a", "Alice", 999_000))
    async with kept_people(directory, table, gather_s=3600) as people:
        await people.of("tenant").look_up(["ou_a", "ou_b"])
        people.meet(said("ou_a", mention("ou_c", "Carol")), BOT)
        people.meet(said("ou_a", mention("ou_c", "Carol")), BOT)
        people.meet(said("ou_a", mention("ou_a", "Alice")), BOT)
    assert table.writes == [
        [
            Sighting("tenant", "ou_b", "Bob", 1_000_000, met=False),
            Sighting("tenant", "ou_c", "Carol", 1_000_000),
        ]
    ]


async def test_whoever_is_met_after_a_look_up_is_written_as_met() -> None:
    directory, table = Directory({"ou_b": "Bob"}), Table()
    async with kept_people(directory, table, gather_s=0) as people:
        await people.of("tenant").look_up(["ou_b"])
        for _ in range(20):
            await asyncio.sleep(0)
        assert table.writes
        people.meet(said("ou_b"), BOT)
    assert [[one.met for one in batch] for batch in table.writes] == [[False], [True]]


async def test_a_new_name_is_written_and_an_older_sighting_is_not() -> None:
    clock, table = Clock(), Table(KnownName("ou_a", "Alice", 500_000))
    async with kept_people(Directory({}), table, clock) as people:
        names = people.of("tenant")
        await names.look_up(["ou_a"])
        people.meet(said("ou_b", mention("ou_a", "Alice Lee"), at_ms=900_000), BOT)
        people.meet(said("ou_b", mention("ou_a", "Alice"), at_ms=600_000), BOT)
        assert names.name("ou_a") == "Alice Lee"
    written = {s.open_id: s for batch in table.writes for s in batch}
    assert written["ou_a"] == Sighting("tenant", "ou_a", "Alice Lee", 900_000)


async def test_what_could_not_be_written_waits_for_the_memory() -> None:
    table = Table()
    table.away = True
    async with kept_people(Directory({}), table) as people:
        people.meet(said("ou_a", mention("ou_b", "Bob")), BOT)
        await asyncio.wait_for(table.written.wait(), 60)
        table.away = False
    assert {s.open_id for s in table.writes[-1]} == {"ou_a", "ou_b"}


async def test_nothing_is_written_in_the_way_of_a_turn() -> None:
    table = Table()
    async with kept_people(Directory({"ou_a": "Alice"}), table, gather_s=3600) as people:
        await people.meet(said("ou_a"), BOT).look_up(["ou_a"])
        assert table.writes == []
    assert [s.name for s in table.writes[0]] == ["Alice"]


async def test_a_name_of_one_tenant_is_not_shown_in_another() -> None:
    table = Table()
    async with kept_people(Directory({}), table) as people:
        people.meet(said("ou_b", mention("ou_a", "Alice")), BOT)
        people.meet(said("ou_b", mention("ou_a", "Anne"), tenant_key="other"), BOT)
        assert people.of("tenant").known == {"ou_a": "Alice"}
        assert people.of("third").name("ou_a") == "ou_a"


async def test_bots_and_mentioned_guests_of_other_tenants_are_shown_and_not_kept() -> None:
    table = Table()
    robot = mention("ou_robot", "Robot", is_bot=True)
    guest = mention("ou_guest", "Guest", tenant="other")
    async with kept_people(Directory({}), table) as people:
        names = people.meet(said("ou_a", robot, guest, mention("ou_bot", "Memo")), BOT)
        people.meet(said("ou_app", sender_type="app"), BOT)
        assert set(names.known) == {"ou_robot", "ou_guest", "ou_bot"}
    assert [s.open_id for batch in table.writes for s in batch] == ["ou_a"]


async def test_a_guest_is_kept_in_their_own_tenant_once_they_write() -> None:
    table = Table()
    async with kept_people(Directory({}), table) as people:
        people.meet(said("ou_a", mention("ou_guest", "Guest", tenant="other")), BOT)
        people.meet(said("ou_guest", sender_tenant="other"), BOT)
    kept = {(s.tenant_key, s.open_id, s.name) for batch in table.writes for s in batch}
    assert kept == {("tenant", "ou_a", ""), ("other", "ou_guest", "Guest")}


async def test_a_guest_who_speaks_is_called_by_the_name_known_in_their_own_tenant() -> None:
    table = Table()
    async with kept_people(Directory({}), table) as people:
        people.of("other").learn([("ou_guest", "Gus")])
        spoken = said("ou_guest", sender_tenant="other")
        names = people.meet(spoken, BOT)
        await people.look_up_sender(spoken)
        assert names.name("ou_guest") == "Gus"
    assert {s.tenant_key for batch in table.writes for s in batch} == {"other"}


async def test_somebody_forgotten_is_not_written_afterwards() -> None:
    table = Table()
    async with kept_people(Directory({}), table, gather_s=3600) as people:
        names = people.meet(said("ou_a", mention("ou_b", "Bob")), BOT)
        names.forget("ou_b")
        assert names.name("ou_b") == "ou_b"
    assert [s.open_id for batch in table.writes for s in batch] == ["ou_a"]


async def test_a_name_that_postgres_cannot_hold_stops_no_other() -> None:
    table = Table()
    async with kept_people(Directory({}), table) as people:
        people.of("tenant").learn([("ou_a", "A\x00l\ud800ice"), ("ou_b", "b" * 500)])
    assert [s.name for s in table.writes[0]] == ["Alice", "b" * 200]


def test_people_of_one_name_are_told_apart_as_long_as_there_are_two() -> None:
    known = people(Directory({}))
    known.learn([("ou_b_1111", "Bob"), ("ou_a_3333", "Alice")])
    assert known.label("ou_b_1111") == "Bob"

    known.learn([("ou_b_2222", "ＢＯＢ ")])
    assert known.label("ou_b_1111") == "Bob (…1111)"
    assert known.label("ou_b_2222") == "ＢＯＢ (…2222)"
    assert known.label("ou_a_3333") == "Alice"

    known.learn([("ou_b_2222", "Robert")])
    assert known.label("ou_b_1111") == "Bob"


def test_a_stored_name_is_told_apart_from_somebody_who_is_known() -> None:
    known = people(Directory({}))
    known.learn([("ou_b_1111", "Bob")])

    assert known.label("ou_x_4444", "Bob") == "Bob (…4444)"
    assert known.label("ou_x_4444", "Carol\nBob") == "Carol Bob"
    assert known.label("ou_x_4444") == "someone (…4444)"


def test_nobody_takes_a_name_that_looks_told_apart() -> None:
    known = people(Directory({}))
    known.learn([("ou_m_9999", "Bob (…1111)")])

    assert known.label("ou_m_9999") == "Bob (…1111) (…9999)"
