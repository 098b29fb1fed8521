"""Summaries over every backend: what a fold is given, who wins, and what takes a summary away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC

import psycopg
import pytest

from bot.agents.summaries import extractive_summary
from bot.answering.between_turns import fold_messages
from memory.models import ANSWERED_BY_COMMAND, OpenTurn
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.summary import SummaryLine
from memory.tables.derived import Summaries, SummaryFold
from memory.tables.operations import Operations
from tests.support.backends import Backend
from tests.support.exchanges import deliver, exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio

WINDOW = 4
DUE = 3


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


@pytest.fixture
def memory(rpc: Rpc) -> MemoryStore:
    return MemoryStore(rpc)


@pytest.fixture
def summaries(rpc: Rpc) -> Summaries:
    return Summaries(rpc)


async def nobody(open_ids: Sequence[str]) -> dict[str, str]:
    """Knows no names."""
    return {}


async def talk(
    memory: MemoryStore, context: AgentMemoryContext, count: int, first: int = 1
) -> None:
    """`count` exchanges Q1 A1 Q2 A2 …"""
    for number in range(first, first + count):
        await exchange(memory, context, f"Q{number}", f"A{number}")


async def ask(memory: MemoryStore, context: AgentMemoryContext, turn_id: str) -> OpenTurn:
    return await memory.begin_turn(
        context, turn_id=turn_id, content="?", history_limit=WINDOW, fold_after=DUE
    )


async def save(
    summaries: Summaries,
    context: AgentMemoryContext,
    begun: SummaryFold,
    content: str,
    count: int = 100,
) -> int | None:
    return await summaries.save(
        context, begun, content=content, references=["Alice"], messages=begun.messages[:count]
    )


def contents(begun: SummaryFold) -> list[str]:
    return [message.content for message in begun.messages]


async def test_a_short_thread_has_no_summary_and_nothing_to_fold(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 2)

    opened = await ask(memory, alice, group.message("q"))
    begun = await summaries.open_fold(alice, window=WINDOW)

    assert (opened.summary, opened.fold_due) == (None, False)
    assert begun.messages[0].content == "Q1"  # five messages are stored, four are in the window
    assert len(begun.messages) == 1


async def test_a_fold_is_due_when_enough_is_outside_the_window(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn()
    due = []
    for number in range(1, 6):
        opened = await ask(memory, alice, group.message(f"q{number}"))
        due.append(opened.fold_due)
        await memory.record_reply(alice, turn_id=group.message(f"q{number}"), cards=["A"])

    # 1, 3, 5, 7 and 9 messages are stored; with seven, three lie before the window
    assert due == [False, False, False, True, True]


async def test_without_a_threshold_neither_summary_nor_fold_is_looked_for(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 6)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "in short")

    opened = await memory.begin_turn(
        alice, turn_id=group.message("q"), content="?", history_limit=WINDOW
    )

    assert (opened.summary, opened.fold_due) == (None, False)


async def test_the_summary_stands_in_for_what_the_window_no_longer_shows(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    begun = await summaries.open_fold(alice, window=WINDOW - 1)
    version = await save(summaries, alice, begun, "Q1 to Q3 in short")

    opened = await ask(memory, alice, group.message("q"))

    assert contents(begun) == ["Q1", "A1", "Q2", "A2", "Q3"]
    assert texts(opened) == ["A3", "Q4", "A4", "?"]
    assert opened.summary is not None
    assert (opened.summary.content, opened.summary.messages) == ("Q1 to Q3 in short", 5)
    assert opened.summary.version == version == 1
    assert not opened.fold_due
    assert len(await memory.list_messages(alice.conversation_id)) == 9, "the raw messages stay"


async def test_commands_are_folded_away_and_stand_in_no_summary(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    for number in range(3):
        await exchange(memory, alice, f"/help {number}", "what I can do", means=ANSWERED_BY_COMMAND)
    begun = await summaries.open_fold(alice, window=0)
    told: list[SummaryLine] = []

    async def summarise(earlier: str, lines: Sequence[SummaryLine]) -> str:
        told.extend(lines)
        return "\n".join(line.text for line in lines)

    folded = await fold_messages(summaries, summarise, alice, window=0, names=nobody, zone=UTC)
    assert (folded, told) == (len(begun.messages), [])

    await exchange(memory, alice, "Tea?", "yes")
    await exchange(memory, alice, "/why", "because", means=ANSWERED_BY_COMMAND)
    assert await fold_messages(summaries, summarise, alice, window=0, names=nobody, zone=UTC) == 4
    assert [line.text for line in told] == ["Tea?", "yes"]
    assert (await summaries.open_fold(alice, window=0)).content == "Tea?\nyes"


async def test_the_next_fold_goes_on_where_the_last_one_ended(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "first", count=3)

    begun = await summaries.open_fold(alice, window=WINDOW)
    version = await save(summaries, alice, begun, "second")

    assert (begun.content, begun.references, begun.folded) == ("first", ("Alice",), 3)
    assert contents(begun) == ["A2"]
    assert version == 2
    assert (await summaries.open_fold(alice, window=WINDOW)).messages == ()


async def test_nothing_is_given_unless_enough_has_come_together(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)

    assert (await summaries.open_fold(alice, window=WINDOW, least=5)).messages == ()
    assert len((await summaries.open_fold(alice, window=WINDOW, least=4)).messages) == 4


async def test_of_two_folds_at_once_one_is_stored_and_the_other_is_told(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 6)

    for expected in (1, 2):
        both = [await summaries.open_fold(alice, window=WINDOW) for _ in range(2)]
        versions = await asyncio.gather(
            *(save(summaries, alice, begun, f"by {n}", count=3) for n, begun in enumerate(both))
        )
        assert sorted(versions, key=str) == [expected, None]

    opened = await ask(memory, alice, group.message("q"))
    assert opened.summary is not None
    assert (opened.summary.version, opened.summary.messages) == (2, 6)


async def test_two_folders_that_run_at_once_leave_every_message_folded_once(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 8)
    seen: list[str] = []

    async def summarise(earlier: str, lines: Sequence[SummaryLine]) -> str:
        seen.extend(line.text for line in lines)
        return await extractive_summary(earlier, lines)

    folded = await asyncio.gather(
        *(
            fold_messages(summaries, summarise, alice, window=WINDOW, names=nobody, zone=UTC)
            for _ in range(2)
        )
    )

    opened = await ask(memory, alice, group.message("q"))
    assert sum(folded) == 12
    assert opened.summary is not None
    assert opened.summary.messages == 12
    assert opened.summary.content.count("Q1") == 1


async def test_an_answer_of_several_cards_is_one_message(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await exchange(memory, alice, "Q1", "part one", "part two")
    await talk(memory, alice, 2, first=2)

    begun = await summaries.open_fold(alice, window=WINDOW)

    assert contents(begun) == ["Q1", "part one\n\npart two"]
    assert len(begun.messages[1].rows) == 2


async def test_ids_of_notes_are_given_and_nothing_else_of_a_tool_s_result(
    rpc: Rpc, memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("noted")
    note, listed = "note_abcdefghij", "note_klmnopqrst"
    calls = [
        {"name": "create_note", "result": f"Created (ID: {note}) about a secret salary"},
        {"name": "list_notes", "result": f"(ID: {listed})"},
    ]
    await memory.begin_turn(alice, turn_id=turn_id, content="keep this")
    await memory.record_reply(alice, turn_id=turn_id, cards=["Done"], tool_calls=calls)
    await deliver(memory, alice, turn_id, ["Done"])
    await talk(memory, alice, 2)

    begun = await summaries.open_fold(alice, window=WINDOW)
    await fold_messages(summaries, extractive_summary, alice, window=WINDOW, names=nobody, zone=UTC)

    assert [message.note_ids for message in begun.messages] == [(), (note,)]
    assert "salary" not in repr(begun)
    opened = await ask(memory, group.turn(sender="bob"), group.message("q"))
    assert opened.summary is not None
    assert note in opened.summary.content
    assert "salary" not in opened.summary.content


async def test_a_fresh_start_leaves_the_old_summary_behind(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "the old days")
    await memory.start_afresh(alice)

    opened = await ask(memory, alice, group.message("q"))
    await talk(memory, alice, 4, first=5)
    begun = await summaries.open_fold(alice, window=WINDOW)
    version = await save(summaries, alice, begun, "the new days")
    after = await ask(memory, alice, group.message("q2"))

    assert (opened.summary, opened.fold_due) == (None, False)
    assert (begun.content, begun.references, begun.folded) == ("", (), 0)
    assert contents(begun) == ["?", "Q5", "A5", "Q6", "A6"]
    assert version == 2
    assert after.summary is not None
    assert (after.summary.content, after.summary.messages) == ("the new days", 5)


async def test_a_fold_of_what_was_before_a_fresh_start_is_not_given(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    begun = await summaries.open_fold(alice, window=WINDOW)
    await memory.start_afresh(alice)
    await save(summaries, alice, begun, "the old days")

    assert (await ask(memory, alice, group.message("q"))).summary is None


async def test_words_that_were_taken_back_during_a_fold_are_not_stored(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, recalled = group.turn(), group.message("recalled")
    await memory.begin_turn(alice, turn_id=recalled, content="a secret")
    await talk(memory, alice, 4)
    begun = await summaries.open_fold(alice, window=WINDOW)
    await memory.take_back(recalled, alice.chat_id)

    assert await save(summaries, alice, begun, "Alice has a secret") is None
    assert (await ask(memory, alice, group.message("q"))).summary is None


async def test_an_earlier_summary_whose_words_were_taken_back_is_not_carried_on(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, recalled = group.turn(), group.message("recalled")
    await memory.begin_turn(alice, turn_id=recalled, content="a secret")
    await talk(memory, alice, 4)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "secret", count=2)
    begun = await summaries.open_fold(alice, window=WINDOW)
    await memory.take_back(recalled, alice.chat_id)
    await fold_messages(
        summaries, extractive_summary, alice, window=WINDOW, names=nobody, zone=UTC
    )  # version 1 again

    assert await save(summaries, alice, begun, "Alice has a secret") is None
    opened = await ask(memory, alice, group.message("q"))
    assert opened.summary is not None
    assert "secret" not in opened.summary.content


async def test_a_card_that_was_taken_back_takes_the_summary_with_it(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await exchange(memory, alice, "Q1", "part one", "part two")
    await talk(memory, alice, 2, first=2)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "in short")

    await memory.take_back(f"om_Q1_{alice.chat_id}_card1", alice.chat_id)

    assert (await ask(memory, alice, group.message("q"))).summary is None


async def test_a_forgotten_conversation_cannot_be_folded_any_more(
    rpc: Rpc, memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    begun = await summaries.open_fold(alice, window=WINDOW)
    await save(summaries, alice, begun, "in short", count=2)
    late = await summaries.open_fold(alice, window=WINDOW)

    await Operations(rpc).forget_conversation(alice.conversation_id)

    assert await save(summaries, alice, late, "in short, again") is None
    assert (await summaries.open_fold(alice, window=0)).messages == ()


async def test_export_gives_a_person_s_own_summary_and_forgetting_removes_it(
    backend: Backend, rpc: Rpc, apart: MemoryStore, group: Group
) -> None:
    alice, operations = group.turn(), Operations(rpc)
    await talk(apart, alice, 4)
    async with backend.rpc(sharing="person") as own:
        summaries = Summaries(own)
        await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "in short")

    exported = [row async for row in operations.export_person(alice.user_id)]
    counts = await operations.forget_person(alice.user_id)

    [summary] = [row for table, row in exported if table == "agent_summaries"]
    assert summary["content"] == "in short"
    assert counts["agent_summaries"] == 1
    assert await operations.count_person(alice.user_id) == dict.fromkeys(counts, 0)


async def test_retention_takes_the_summary_of_old_messages(
    backend: Backend, rpc: Rpc, memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn()
    await talk(memory, alice, 4)
    await save(summaries, alice, await summaries.open_fold(alice, window=WINDOW), "in short")
    with psycopg.connect(backend.database_url, autocommit=True) as connection:
        connection.execute(
            "update agent_turns set created_at = now() - interval '400 days' where id = %s",
            [f"om_Q1_{alice.chat_id}"],
        )

    await Operations(rpc).apply_retention(300)

    opened = await ask(memory, alice, group.message("q"))
    assert opened.summary is None
    assert len(await memory.list_messages(alice.conversation_id)) == 7


async def test_a_thread_of_300_lines_has_one_summary_of_what_anybody_said(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, bob, carl = (group.turn(name) for name in ("alice", "bob", "carl"))
    await exchange(memory, bob, "Shall we begin?", "Yes.")
    await exchange(memory, alice, "Remember that the handover is on 3 March.", "Noted.")
    await talk(memory, carl, 148)
    await ask(memory, bob, group.message("before"))
    await memory.record_reply(bob, turn_id=group.message("before"), cards=[])

    folded = await fold_messages(
        summaries, extractive_summary, bob, window=WINDOW, names=nobody, zone=UTC
    )

    opened = [await ask(memory, who, group.message(who.user_id)) for who in (bob, carl)]
    assert folded == 297
    assert not any("3 March" in text for one in opened for text in texts(one))
    for one in opened:
        assert one.summary is not None
        assert "handover is on 3 March" in one.summary.content
    elsewhere = group.turn("bob", thread="another")
    await talk(memory, elsewhere, 4, first=500)
    assert (await ask(memory, elsewhere, group.message("there"))).summary is None


async def test_where_people_are_kept_apart_everyone_has_a_summary_of_their_own(
    backend: Backend, apart: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    for who in (alice, bob):
        for number in range(4):
            await exchange(apart, who, f"{who.user_id} {number}", "noted")
    await fold_messages(summaries, extractive_summary, bob, window=WINDOW, names=nobody, zone=UTC)
    assert (await ask(apart, alice, group.message("before"))).summary is None
    async with backend.rpc(sharing="person") as rpc:
        for who in (alice, bob):
            await fold_messages(
                Summaries(rpc), extractive_summary, who, window=WINDOW, names=nobody, zone=UTC
            )

    for who, other in ((alice, bob), (bob, alice)):
        opened = await ask(apart, who, group.message(f"q {who.user_id}"))
        assert opened.summary is not None
        assert who.user_id in opened.summary.content
        assert other.user_id not in opened.summary.content
    assert (await ask(apart, group.turn("carl"), group.message("carl"))).summary is None


async def test_a_fresh_start_hides_the_summary_from_that_person_only(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    await exchange(memory, bob, "Tea is at four.", "Noted.")
    await talk(memory, alice, 4)
    await fold_messages(summaries, extractive_summary, alice, window=WINDOW, names=nobody, zone=UTC)
    await memory.start_afresh(alice)
    await talk(memory, bob, 3, first=10)
    await fold_messages(summaries, extractive_summary, bob, window=WINDOW, names=nobody, zone=UTC)

    about_bob = group.turn("bob", sender="alice")
    for who, shown in ((alice, False), (about_bob, False), (bob, True)):
        opened = await ask(memory, who, group.message(f"{who.user_id} {who.actor_id}"))
        assert (opened.summary is not None) == shown

    await memory.start_afresh(bob)
    await talk(memory, alice, 4, first=20)
    await fold_messages(summaries, extractive_summary, alice, window=WINDOW, names=nobody, zone=UTC)
    again = [await ask(memory, who, group.message(who.user_id)) for who in (alice, bob)]
    assert [one.summary is None for one in again] == [False, True], "it holds words of before his"
    assert again[0].summary is not None
    assert "Tea" not in again[0].summary.content


async def test_long_lines_are_folded_when_the_windows_of_others_have_no_room_for_them(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice = group.turn("alice")
    for number in range(2):
        await exchange(memory, alice, f"{number} " + "long " * 190, "ok")

    begun = await summaries.open_fold(alice, window=WINDOW)

    opened = await ask(memory, group.turn("bob"), group.message("q"))
    assert [one.content[:6] for one in begun.messages] == ["0 long"]
    assert [text[:6] for text in texts(opened)] == ["ok", "1 long", "ok", "?"]


async def test_an_answer_that_nobody_has_seen_is_not_folded(
    memory: MemoryStore, summaries: Summaries, group: Group
) -> None:
    alice, unseen = group.turn("alice"), group.message("unseen")
    await memory.begin_turn(alice, turn_id=unseen, content="Q0")
    await memory.record_reply(alice, turn_id=unseen, cards=["A0"])
    await talk(memory, alice, 4)

    assert contents(await summaries.open_fold(alice, window=WINDOW))[:2] == ["Q0", "Q1"]
    await deliver(memory, alice, unseen, ["A0"])
    assert contents(await summaries.open_fold(alice, window=WINDOW))[:2] == ["Q0", "A0"]
