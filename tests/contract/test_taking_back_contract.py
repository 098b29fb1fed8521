"""Taking back means gone: a message with all that was made from it, over every backend."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import psycopg
import pytest

from lab.doubles.sentinel import tables_with
from memory.errors import NoteNotFound, TakenBack
from memory.models import MESSAGE_ORIGIN, Origin, OriginKind
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import NewButton, Withdrawals
from memory.tables.items import ItemStore
from memory.tables.notes import NoteStore
from memory.tables.sources import note_read_messages
from memory.tables.timers import TimerPlan, TimerStore
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    """A memory, and a database in which a word can be looked for."""

    rpc: Rpc
    database: psycopg.Connection
    word: str = field(default_factory=lambda: f"q{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        self.memory = MemoryStore(self.rpc)
        self.notes = NoteStore(self.rpc)
        self.items = ItemStore(self.rpc)

    async def turn(
        self,
        context: AgentMemoryContext,
        turn_id: str,
        said: str,
        answer: str,
        given: Sequence[str] = (),
        origin: Origin = MESSAGE_ORIGIN,
    ) -> None:
        """A whole turn; the card's message_id is `{turn_id}_card`."""
        await self.memory.begin_turn(context, turn_id=turn_id, content=said, origin=origin)
        await self.answer(context, turn_id, answer, given)

    async def answer(
        self, context: AgentMemoryContext, turn_id: str, answer: str, given: Sequence[str] = ()
    ) -> None:
        call = {"name": "echo", "arguments": {}, "result": answer, "ok": True, "ms": 0}
        button = NewButton(answer[:40], "follow_up", {"text": answer}, "group", 60)
        await self.memory.record_reply(
            context,
            turn_id=turn_id,
            cards=[answer],
            tool_calls=[call],
            buttons=[button],
            source_ids=given,
        )
        card = f"{turn_id}_card"
        await self.memory.mark_sent(
            context, turn_id=turn_id, chunk=0, content=answer, message_id=card
        )

    def found(self) -> set[str]:
        return tables_with(self.database, self.word)

    def to_withdraw(self) -> set[str]:
        rows = self.database.execute("select message_id from agent_withdrawals").fetchall()
        return {message_id for (message_id,) in rows}


@pytest.fixture
async def scene(backend: Backend) -> AsyncIterator[Scene]:
    async with backend.rpc() as rpc:
        with psycopg.connect(backend.database_url, autocommit=True) as database:
            yield Scene(rpc, database)


async def test_a_message_goes_with_its_answer_facts_notes_and_buttons(
    scene: Scene, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=f"My secret is {scene.word}")
    await scene.memory.merge_working_memory(
        alice, scope="user", patch={"secret": scene.word}, turn_id=turn_id
    )
    await scene.memory.merge_working_memory(
        alice, scope="chat", patch={"told": [scene.word]}, turn_id=turn_id
    )
    await scene.notes.create(alice, title="A note", body=scene.word, turn_id=turn_id)
    await scene.answer(alice, turn_id, f"Noted: {scene.word}")
    assert {"agent_messages", "agent_notes", "agent_working_memory", "agent_buttons"} <= (
        scene.found()
    )

    await scene.memory.take_back(turn_id, alice.chat_id)

    assert scene.found() == set()
    assert f"{turn_id}_card" in scene.to_withdraw()
    assert (await scene.memory.working_memory(alice)).user == {}


async def test_facts_and_notes_become_what_they_were(scene: Scene, group: Group) -> None:
    alice, first, second = group.turn(), group.message("first"), group.message("second")
    third = group.message("third")
    for turn_id in (first, second, third):
        await scene.memory.begin_turn(alice, turn_id=turn_id, content="Hello")
    await scene.memory.merge_working_memory(
        alice, scope="user", patch={"city": "Hangzhou", "cat": "Tom"}, turn_id=first
    )
    note = await scene.notes.create(alice, title="List", body="milk", tags=["a"], turn_id=first)
    await scene.memory.merge_working_memory(
        alice, scope="user", patch={"city": scene.word, "dog": scene.word}, turn_id=second
    )
    await scene.notes.update(alice, note.id, body=scene.word, add_tags=["b"], turn_id=second)
    await scene.memory.merge_working_memory(alice, scope="user", patch={"cat": "Jo"}, turn_id=third)
    await scene.notes.update(alice, note.id, title="Shopping", turn_id=third)

    await scene.memory.take_back(second, alice.chat_id)

    assert scene.found() == set()
    assert (await scene.memory.working_memory(alice)).user == {"city": "Hangzhou", "cat": "Jo"}
    left = await scene.notes.get(alice, note.id)
    assert (left.title, left.body, left.tags) == ("Shopping", "milk", ("a",))

    await scene.memory.take_back(third, alice.chat_id)
    assert (await scene.memory.working_memory(alice)).user == {"city": "Hangzhou", "cat": "Tom"}
    assert (await scene.notes.get(alice, note.id)).title == "List"

    await scene.memory.take_back(first, alice.chat_id)
    assert (await scene.memory.working_memory(alice)).user == {}
    with pytest.raises(NoteNotFound):
        await scene.notes.get(alice, note.id)


async def test_a_later_value_stays_when_the_one_before_it_is_taken_back(
    scene: Scene, group: Group
) -> None:
    alice, first, second = group.turn(), group.message("first"), group.message("second")
    for turn_id, city in ((first, scene.word), (second, "Hangzhou")):
        await scene.memory.begin_turn(alice, turn_id=turn_id, content="Hello")
        await scene.memory.merge_working_memory(
            alice, scope="user", patch={"city": city}, turn_id=turn_id
        )

    await scene.memory.take_back(first, alice.chat_id)
    assert (await scene.memory.working_memory(alice)).user == {"city": "Hangzhou"}
    assert scene.found() == set()

    await scene.memory.take_back(second, alice.chat_id)
    assert (await scene.memory.working_memory(alice)).user == {}


async def test_later_answers_that_repeat_it_go_too(scene: Scene, group: Group) -> None:
    alice, turn_id, later = group.turn(), group.message("said"), group.message("later")
    await scene.turn(alice, turn_id, f"{scene.word}", "Fine")
    await scene.turn(alice, later, "what was it?", f"I remember: {scene.word}.", [turn_id])
    given = [turn_id, f"{later}_card"]
    await scene.turn(alice, group.message("other"), "and else?", "Nothing else", given)

    await scene.memory.take_back(turn_id, alice.chat_id)

    assert scene.found() == set()
    assert {f"{turn_id}_card", f"{later}_card"} <= scene.to_withdraw()
    assert f"{group.message('other')}_card" not in scene.to_withdraw()
    opened = await scene.memory.begin_turn(alice, turn_id=group.message("next"), content="so?")
    assert [m.content for m in opened.history] == [
        "what was it?",
        "and else?",
        "Nothing else",
        "so?",
    ]


async def test_what_was_asked_by_its_buttons_goes_and_so_does_what_tools_told(
    scene: Scene, group: Group
) -> None:
    alice, bob, turn_id = group.turn(), group.turn("bob"), group.message("said")
    await scene.turn(alice, turn_id, scene.word, f"More about {scene.word}?")
    [button] = scene.database.execute(
        "select id from agent_buttons where turn_id = %s", [turn_id]
    ).fetchall()
    pressed = Origin("button", turn_id, button[0])
    question = f"More about {scene.word}?"
    await scene.turn(bob, pressed.turn_id, question, "A lot", origin=pressed)
    later = group.message("later")
    await scene.memory.begin_turn(alice, turn_id=later, content="and my facts?")
    call = {"name": "read_working_memory", "arguments": {}, "result": scene.word, "ok": True}
    await scene.memory.record_reply(
        alice, turn_id=later, cards=["None."], tool_calls=[call], source_ids=[turn_id]
    )
    await scene.memory.mark_sent(
        alice, turn_id=later, chunk=0, content="None.", message_id=f"{later}_card"
    )

    await scene.memory.take_back(turn_id, alice.chat_id)

    assert scene.found() == set()
    assert f"{pressed.turn_id}_card" in scene.to_withdraw()
    opened = await scene.memory.begin_turn(alice, turn_id=group.message("next"), content="so?")
    assert [m.content for m in opened.history] == ["and my facts?", "None.", "so?"]
    assert opened.history[1].tool_calls[0]["result"] == "What this told was taken back."


@pytest.mark.parametrize("kind", ["again", "retry", "private_answer"])
async def test_a_question_takes_along_whatever_answers_it_once_more(
    scene: Scene, group: Group, kind: OriginKind
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.turn(alice, turn_id, scene.word, "Noted")
    second = Origin(kind, turn_id)
    third = Origin("again", second.turn_id)
    for origin in (second, third):
        await scene.turn(alice, origin.turn_id, scene.word, scene.word, origin=origin)

    await scene.memory.take_back(turn_id, alice.chat_id)

    assert scene.found() == set()
    cards = {f"{one}_card" for one in (turn_id, second.turn_id, third.turn_id)}
    assert cards <= scene.to_withdraw()


async def test_what_comes_of_a_turn_that_was_taken_back_meanwhile_is_not_begun(
    scene: Scene, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.turn(alice, turn_id, scene.word, "Noted")
    await scene.memory.take_back(turn_id, alice.chat_id)
    again = Origin("again", turn_id)

    opened = await scene.memory.begin_turn(
        alice, turn_id=again.turn_id, content=scene.word, origin=again
    )
    assert opened.state == "cancelled"
    assert scene.found() == set()


async def test_a_question_that_was_taken_back_before_its_turn_begins_is_not_begun(
    scene: Scene, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.take_back(turn_id, alice.chat_id)

    opened = await scene.memory.begin_turn(alice, turn_id=turn_id, content=scene.word)

    assert opened.state == "cancelled"
    assert scene.found() == set()


async def test_the_card_of_a_turn_that_is_written_after_it_was_taken_back_is_withdrawn(
    scene: Scene, group: Group
) -> None:
    """It was answered while the memory was away, which heard of the taking back before."""
    alice, turn_id = group.turn(), group.message("said")
    card = {"chunk": 0, "content": scene.word, "status": "sent", "message_id": f"{turn_id}_card"}
    pending = {"chunk": 1, "content": scene.word, "status": "pending", "message_id": None}
    await scene.memory.take_back(turn_id, alice.chat_id)

    restored = await scene.rpc.call(
        "restore_turn",
        {
            "p_turn_id": turn_id, **alice.identity(), "p_chat_id": alice.chat_id,
            "p_root_id": alice.root_id, "p_actor_name": "Alice", "p_tenant_key": alice.tenant_key,
            "p_content": scene.word, "p_cards": json.dumps([card, pending]), "p_tool_calls": "[]",
            "p_error": None, "p_asked_at": "2026-03-01T00:00:00Z", "p_answered_at": None,
        },
        alice,
    )  # fmt: skip

    assert restored == {"state": "cancelled"}
    assert scene.found() == set()
    assert f"{turn_id}_card" in scene.to_withdraw()


async def test_a_running_turn_stores_nothing_any_more(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=scene.word)
    await scene.memory.record_reply(alice, turn_id=turn_id, cards=[f"Noted: {scene.word}"])

    assert await scene.memory.take_back(turn_id, alice.chat_id) == "cancelled"

    with pytest.raises(TakenBack):
        await scene.memory.merge_working_memory(
            alice, scope="user", patch={"word": scene.word}, turn_id=turn_id
        )
    with pytest.raises(TakenBack):
        await scene.notes.create(alice, title=scene.word, turn_id=turn_id)
    state, _ = await scene.memory.mark_sent(
        alice, turn_id=turn_id, chunk=0, content=scene.word, message_id=group.message("late")
    )
    assert state == "cancelled"
    assert group.message("late") in scene.to_withdraw()
    assert scene.found() == set()


async def test_a_card_of_ours_that_somebody_withdraws_is_not_kept(
    scene: Scene, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.turn(alice, turn_id, "Hello", f"Here is {scene.word}")

    await scene.memory.take_back(f"{turn_id}_card", alice.chat_id)

    assert scene.found() == set()
    opened = await scene.memory.begin_turn(alice, turn_id=group.message("next"), content="so?")
    assert [m.content for m in opened.history] == ["Hello", "so?"]


async def test_answers_to_others_that_tell_it_go_if_they_were_given_it(
    scene: Scene, group: Group
) -> None:
    alice, bob = group.turn("alice", thread="one"), group.turn("bob", thread="two")
    elsewhere = group.turn("cid", thread="three", chat="elsewhere")
    scene.database.execute(
        "insert into chat_members (tenant_key, chat_id, open_id) values ('tenant', %s, %s)",
        [alice.chat_id, bob.user_id],
    )
    said = f"The launch code is {scene.word}"
    await scene.turn(alice, group.message("said"), f"@Bob {said}. Thanks!", "Noted.")
    for name, context in (("bob", bob), ("alone", group.p2p("bob")), ("cid", elsewhere)):
        given = [group.message("said")] if name != "cid" else []
        await scene.turn(context, group.message(name), "What is the code?", f"> {said}", given)
    given = [group.message("said"), group.message("bob")]
    await scene.turn(bob, group.message("other"), "Thanks!", "Thanks! You are welcome.", given)

    await scene.memory.take_back(group.message("said"), alice.chat_id)

    cards = {name: f"{group.message(name)}_card" for name in ("bob", "alone", "cid", "other")}
    gone = {name for name, card in cards.items() if card in scene.to_withdraw()}
    assert gone == {"bob", "alone"}, "elsewhere somebody else said it"


async def test_of_hundreds_of_lines_an_answer_was_given_none_is_forgotten(
    scene: Scene, group: Group
) -> None:
    alice, bob = group.turn("alice", thread="one"), group.turn("bob", thread="two")
    await scene.turn(alice, group.message("said"), f"The code is {scene.word}", "Noted.")
    lines = [f"om_{number:032x}" for number in range(600)]
    given = [*lines, f"a-{scene.word}", group.message("said")]
    await scene.turn(bob, group.message("asked"), "What is it?", f"> {scene.word}", given)

    await scene.memory.take_back(group.message("said"), alice.chat_id)

    assert f"{group.message('asked')}_card" in scene.to_withdraw()


async def test_a_card_on_its_way_is_looked_for(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=scene.word)
    await scene.memory.record_reply(alice, turn_id=turn_id, cards=[f"Noted: {scene.word}"])

    await scene.memory.take_back(turn_id, alice.chat_id)

    taken = [one for _ in range(50) for one in await Withdrawals(scene.rpc).take()]
    due = next(one for one in taken if one.question == turn_id)
    assert due.chat_id == alice.chat_id
    assert due.since_ms > 0
    await Withdrawals(scene.rpc).drop(due)


async def test_a_withdrawal_is_taken_once_and_comes_again_later(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.turn(alice, turn_id, "Hello", "Hi")
    await scene.memory.take_back(turn_id, alice.chat_id)
    card, withdrawals = f"{turn_id}_card", Withdrawals(scene.rpc)

    taken = [one for _ in range(50) for one in await withdrawals.take()]
    due = next(one for one in taken if one.id == card)  # a slow machine takes it again
    again = "update agent_withdrawals set due_at = now() - interval '1 s' where message_id = %s"
    scene.database.execute(again, [card])
    assert card in {one.id for one in await withdrawals.take()}
    await withdrawals.drop(due)
    assert card not in scene.to_withdraw()


async def test_one_fact_is_deleted_for_good_by_its_author_or_subject(
    scene: Scene, group: Group
) -> None:
    alice, turn_id, asks = group.turn(), group.message("said"), group.message("asks")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=f"I live in {scene.word}")
    for city in (scene.word, "Hangzhou", scene.word):
        await scene.memory.merge_working_memory(
            alice, scope="user", patch={"city": city, "cat": "Tom"}, turn_id=turn_id
        )
    await scene.answer(alice, turn_id, f"Noted: {scene.word}")
    bob = group.turn("bob")
    await scene.memory.begin_turn(bob, turn_id=group.message("bobs"), content="Hello")
    own = group.p2p()
    await scene.memory.begin_turn(own, turn_id=asks, content=f"forget {scene.word}")
    _, items = await scene.items.list(alice)
    [city] = [one for one in items if one.key == "city"]
    assert (city.turn_id, city.actor_id, city.chat_id) == (turn_id, alice.actor_id, alice.chat_id)

    assert await scene.items.forget(bob, "fact", city.id, "city") is None
    gone = await scene.items.forget(own, "fact", city.id, "city", turn_id=asks)

    assert gone
    assert gone.value == scene.word
    assert scene.found() <= {"agent_messages", "agent_chats"}, "but the request"
    await scene.answer(own, asks, f"Forgotten: {scene.word}")
    await Withdrawals(scene.rpc).forget_turns()
    assert scene.found() == set()
    assert f"{turn_id}_card" in scene.to_withdraw()
    assert f"{asks}_card" not in scene.to_withdraw(), "the receipt stays"
    assert (await scene.memory.working_memory(alice)).user == {"cat": "Tom"}
    assert await scene.items.forget(own, "fact", city.id, "city") is None


async def test_only_the_author_corrects_and_the_subject_may_delete(
    scene: Scene, group: Group
) -> None:
    said = group.turn("alice", sender="bob")
    turn_id = group.message("said")
    await scene.memory.begin_turn(said, turn_id=turn_id, content=f"@Alice {scene.word}")
    await scene.memory.merge_working_memory(
        said, scope="chat", patch={"about": scene.word}, turn_id=turn_id
    )
    alice, bob = group.turn("alice"), group.turn("bob")
    total, [item] = await scene.items.list(alice)
    assert (total, item.actor_id) == (1, group.person("bob"))
    assert (await scene.items.list(group.turn("carol")))[0] == 0

    assert await scene.items.correct(alice, "fact", item.id, "about", value="x") is None
    corrected = await scene.items.correct(bob, "fact", item.id, "about", value="y")
    assert corrected
    assert corrected.value == scene.word
    assert (await scene.items.list(alice))[1][0].value == "y"
    assert await scene.items.forget(alice, "fact", item.id, "about")
    assert (await scene.items.list(bob))[0] == 0
    assert scene.found() == set()


async def test_a_list_that_shows_what_is_taken_back_goes_and_one_from_before_stays(
    scene: Scene, group: Group
) -> None:
    own = group.p2p()
    before, said, after = (group.message(name) for name in ("before", "said", "after"))
    for turn_id in (before, said, after):
        await scene.memory.begin_turn(own, turn_id=turn_id, content="/memory")
        if turn_id != said:
            await scene.items.list(own, turn_id=turn_id)
        await scene.answer(own, turn_id, "Your facts")
    await Withdrawals(scene.rpc).forget_turns()

    await scene.memory.take_back(said, own.chat_id)

    assert scene.to_withdraw() >= {f"{said}_card", f"{after}_card"}
    assert f"{before}_card" not in scene.to_withdraw()


async def test_what_was_noted_of_a_turn_goes_with_its_words(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.turn(alice, turn_id, f"Remember {scene.word}", f"Noted: {scene.word}")
    place = "conversation_id, user_id, actor_id, tenant_key, chat_id"
    for statement in (
        f"insert into agent_feedback (turn_id, {place}, source, helpful)"
        f" select id, {place}, 'button', true from agent_turns where id = %(turn)s",
        "insert into agent_turn_records (turn_id, short) values (%(turn)s, %(word)s)",
        "insert into agent_decisions (message_id, chat_id, actor_id, respond, reason, tier, cue)"
        " select id, chat_id, actor_id, true, 'explicit', 'none', %(word)s from agent_turns"
        " where id = %(turn)s",
        "update agent_turns set shown = jsonb_build_object('heard', %(word)s::text)"
        " where id = %(turn)s",
    ):
        scene.database.execute(statement.encode(), {"turn": turn_id, "word": scene.word})

    await scene.memory.take_back(turn_id, alice.chat_id)

    assert scene.found() == set()
    assert scene.database.execute("select from agent_feedback").fetchall() == []
    outcome = "select outcome from agent_turns where id = %s"
    assert scene.database.execute(outcome, [turn_id]).fetchone() == ("taken_back",)


async def test_cards_that_only_the_caller_knows_are_withdrawn(scene: Scene, group: Group) -> None:
    params = {"p_message_id": group.message("said"), "p_chat_id": group.chat()}
    card = group.message("card")
    await scene.rpc.call("recall_message", {**params, "p_cards": json.dumps([card])}, None)
    assert card in scene.to_withdraw()


async def test_a_note_is_deleted_with_what_it_was_made_from(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=f"Note that {scene.word}")
    note = await scene.notes.create(alice, title="Plan", body=scene.word, turn_id=turn_id)
    await scene.answer(alice, turn_id, f"Noted: {scene.word}")

    assert await scene.items.forget(group.turn("bob"), "note", note.id) is None
    gone = await scene.items.forget(alice, "note", note.id)

    assert gone
    assert (gone.key, gone.value) == ("Plan", scene.word)
    assert scene.found() == set()


async def test_in_p2p_everything_of_the_person_is_listed_and_pages_go_on(
    scene: Scene, group: Group
) -> None:
    own = group.p2p()
    for number in range(7):
        turn_id = group.message(f"n{number}")
        await scene.memory.begin_turn(own, turn_id=turn_id, content="Hello")
        await scene.memory.merge_working_memory(
            own, scope="user", patch={f"fact {number}": number}, turn_id=turn_id
        )

    total, first = await scene.items.list(own, limit=5)
    _, rest = await scene.items.list(own, offset=5, limit=5)

    assert total == 7
    assert [one.value for one in (*first, *rest)] == [6, 5, 4, 3, 2, 1, 0]
    assert first[0].chat_type == "p2p"


_TELLING = [
    ("We decided: launch on the 14th of March", "When is the launch?", "It launches March 14."),
    ("The vendor is Acme", "Who do we buy from?", "From Acme, as far as I know."),
    ("我们选了极光作为供应商", "供应商是谁？", "供应商是极光。"),
    ("发布改到三月十四号", "什么时候发布？", "三月十四日发布。"),
]
_OTHERWISE = [
    ("I am late tomorrow, stuck in traffic", "When is the review?", "The review is tomorrow at 3."),
    ("The vendor is Acme", "What does Acme sell?", "Acme sells paint."),
    ("The vendor is Acme", "Which colour did we take?", "Blue, like last year."),
    ("我们选了极光作为供应商", "谁负责订餐？", "小王负责订餐。"),
    ("thanks everybody!", "Who helped?", "Everybody did, thanks to Bob."),
]


@pytest.mark.parametrize(
    ("said", "asked", "told", "goes"),
    [*((*one, True) for one in _TELLING), *((*one, False) for one in _OTHERWISE)],
)
async def test_an_answer_that_tells_a_message_of_its_prompt_in_other_words_goes_with_it(
    scene: Scene, group: Group, said: str, asked: str, told: str, goes: bool
) -> None:
    """Only where it was given it, and what it says stood nowhere else."""
    source, other = group.message("source"), group.message("other")
    await scene.turn(group.turn("alice", thread="a"), source, said, "I see.")
    await scene.turn(
        group.turn("carol", thread="c"), other, "The review was moved by a week", "Ok."
    )
    for who, given in (("bob", [source, other]), ("dora", [other])):
        context, question = group.turn(who, thread=who), group.message(who)
        await scene.memory.begin_turn(context, turn_id=question, content=asked)
        await scene.memory.record_reply(context, turn_id=question, cards=[told], source_ids=given)
        await scene.memory.mark_sent(
            context, turn_id=question, chunk=0, content=told, message_id=f"{question}_card"
        )
    await scene.memory.take_back(source, group.chat())

    withdrawn = scene.to_withdraw()
    assert (group.message("bob") + "_card" in withdrawn) is goes
    assert group.message("dora") + "_card" not in withdrawn, "she was not given it"
    bob = await scene.memory.begin_turn(
        group.turn("bob", thread="bob"), turn_id=group.message("bob"), content=asked
    )
    assert [card.content for card in bob.reply] == ([] if goes else [told])


@pytest.mark.parametrize("conversation", ["goes on", "is over"])
async def test_talk_that_nobody_addressed_to_the_bot_counts_too(
    scene: Scene, group: Group, conversation: str
) -> None:
    said, question, bob = group.message("talk"), group.message("asked"), group.turn("bob")
    started = "insert into chat_conversations (tenant_key, chat_id) values (%s, %s)"
    scene.database.execute(started, ["tenant", group.chat()])
    scene.database.execute(
        "insert into chat_transcript (chat_id, tenant_key, message_id, author, author_id, content,"
        " is_bot, timestamp) values (%s, 'tenant', %s, 'Alice', %s, 'The vendor is Acme', false,"
        " (extract(epoch from now()) * 1000)::bigint)",
        [group.chat(), said, group.person("alice")],
    )
    await scene.memory.begin_turn(bob, turn_id=question, content="Who do we buy from?")
    await scene.memory.record_reply(bob, turn_id=question, cards=["From Acme."], source_ids=[said])
    await scene.memory.mark_sent(
        bob, turn_id=question, chunk=0, content="From Acme.", message_id=f"{question}_card"
    )
    if conversation == "is over":  # the next one takes its place
        scene.database.execute("select begin_conversation(%s, 'tenant', 1, '[]')", [group.chat()])
    await scene.memory.take_back(said, group.chat())

    assert f"{question}_card" in scene.to_withdraw()


async def test_what_was_heard_and_never_answered_leaves_the_transcript(
    scene: Scene, group: Group
) -> None:
    said = group.message("talk")
    started = "insert into chat_conversations (tenant_key, chat_id) values (%s, %s)"
    scene.database.execute(started, ["tenant", group.chat()])
    for message, words in ((said, scene.word), (group.message("other"), "Good morning")):
        scene.database.execute(
            "insert into chat_transcript (chat_id, tenant_key, message_id, author, author_id,"
            " content, is_bot, timestamp) values (%s, 'tenant', %s, 'Alice', %s, %s, false, 1)",
            [group.chat(), message, group.person("alice"), words],
        )

    await scene.memory.take_back(said, group.chat())

    assert scene.found() == set()
    left = "select content from chat_transcript where chat_id = %s"
    assert scene.database.execute(left, [group.chat()]).fetchall() == [("Good morning",)]


async def test_an_answer_is_made_again_when_its_prompt_held_what_was_taken_back_meanwhile(
    scene: Scene, group: Group
) -> None:
    source, question, bob = group.message("source"), group.message("asked"), group.turn("bob")
    await scene.turn(group.turn("alice", thread="a"), source, "The vendor is Acme", "I see.")
    await scene.memory.begin_turn(bob, turn_id=question, content="Who do we buy from?")
    await scene.memory.take_back(source, group.chat())

    button = NewButton("More?", "follow_up", {"text": "More?"}, "group", 60)
    state, stored = await scene.memory.record_reply(
        bob, turn_id=question, cards=["From Acme."], buttons=[button], source_ids=[source]
    )
    assert (state, stored) == ("open", ())
    state, stored = await scene.memory.record_reply(bob, turn_id=question, cards=["I do not know."])
    assert (state, [card.content for card in stored]) == ("pending", ["I do not know."])


async def test_an_answer_is_made_again_when_an_answer_in_its_prompt_went_meanwhile(
    scene: Scene, group: Group
) -> None:
    source, question, bob = group.message("source"), group.message("asked"), group.turn("bob")
    await scene.turn(group.turn("alice", thread="a"), source, "The vendor is Acme", "Acme it is.")
    await scene.memory.begin_turn(bob, turn_id=question, content="Who do we buy from?")
    await scene.memory.take_back(source, group.chat())

    state, stored = await scene.memory.record_reply(
        bob, turn_id=question, cards=["From Acme."], source_ids=[f"{source}_card"]
    )

    assert (state, stored) == ("open", ())


async def test_an_answer_is_made_again_when_a_note_in_its_prompt_lost_a_part_once_more(
    scene: Scene, group: Group
) -> None:
    first, second, question = (group.message(name) for name in ("first", "second", "asked"))
    alice, bob = group.turn(), group.turn("bob")
    made = group.message("made")
    await scene.memory.begin_turn(alice, turn_id=made, content="Make a list")
    note = await scene.notes.create(alice, title="List", body="milk", turn_id=made)
    for turn_id, body in ((first, "tea"), (second, "beer")):
        await scene.memory.begin_turn(alice, turn_id=turn_id, content=f"Add {body}")
        await scene.notes.update(alice, note.id, body=body, turn_id=turn_id)
    await scene.memory.take_back(first, group.chat())
    await scene.memory.begin_turn(bob, turn_id=question, content="What is on the list?")
    await scene.memory.take_back(second, group.chat())

    state, stored = await scene.memory.record_reply(
        bob, turn_id=question, cards=["Beer."], source_ids=[f"note:{note.id}"]
    )

    assert (state, stored) == ("open", ())


@pytest.mark.parametrize("where", ["in the question itself", "in a quoted message"])
async def test_what_only_a_picture_told_goes_at_second_hand(
    scene: Scene, group: Group, where: str
) -> None:
    """Of a picture nobody has the words: they are those that its answers had from nothing else."""
    question = group.message("asked")
    picture = question if where == "in the question itself" else group.message("picture")
    alice, bob = group.turn("alice", thread="a"), group.turn("bob", thread="b")
    await scene.memory.begin_turn(alice, turn_id=question, content="Which plant is this?")
    quoted = [picture] if picture != question else []
    assert await note_read_messages(scene.rpc, alice, question, quoted, {picture: ""})
    await scene.answer(alice, question, "It is a calathea.")
    told = group.message("told"), group.message("other")
    for message, answer in zip(told, ("A calathea.", "I am not sure."), strict=True):
        await scene.memory.begin_turn(bob, turn_id=message, content="And what was it?")
        await scene.memory.record_reply(bob, turn_id=message, cards=[answer], source_ids=[question])
        await scene.memory.mark_sent(
            bob, turn_id=message, chunk=0, content=answer, message_id=f"{message}_card"
        )

    await scene.memory.take_back(picture, group.chat())

    assert {f"{question}_card", f"{told[0]}_card"} <= scene.to_withdraw()
    assert f"{told[1]}_card" not in scene.to_withdraw()


async def test_an_answer_to_a_quoted_answer_goes_with_that(scene: Scene, group: Group) -> None:
    source, question, third = (group.message(one) for one in ("source", "asked", "third"))
    await scene.turn(group.turn("alice", thread="a"), source, "How do we get in?", "By the window.")
    bob, carol = group.turn("bob", thread="b"), group.turn("carol", thread="c")
    for turn, message, quoted in ((bob, question, source), (carol, third, question)):
        await scene.memory.begin_turn(turn, turn_id=message, content="Go on")
        assert await note_read_messages(scene.rpc, turn, message, [f"{quoted}_card"])
        await scene.answer(turn, message, f"Open it first, {message}")

    await scene.memory.take_back(source, group.chat())

    assert {f"{source}_card", f"{question}_card", f"{third}_card"} <= scene.to_withdraw()
    again = await scene.memory.begin_turn(bob, turn_id=question, content="Go on")
    assert (again.reply, again.state) == ((), "sent"), "the question is Bob's"


async def test_a_card_that_tells_it_and_is_not_sent_yet_is_not_sent(
    scene: Scene, group: Group
) -> None:
    source, question, bob = group.message("source"), group.message("asked"), group.turn("bob")
    await scene.turn(group.turn("alice", thread="a"), source, f"Use the key {scene.word}", "Ok.")
    await scene.memory.begin_turn(bob, turn_id=question, content="What do we use?")
    await scene.memory.record_reply(
        bob, turn_id=question, cards=[f"Use the key {scene.word}"], source_ids=[source]
    )

    await scene.memory.take_back(source, group.chat())

    assert scene.found() == set()
    again = await scene.memory.begin_turn(bob, turn_id=question, content="What do we use?")
    assert (again.state, again.reply) == ("cancelled", ())
    await scene.memory.mark_sent(
        bob, turn_id=question, chunk=0, content="it was on its way", message_id=f"{question}_late"
    )
    assert f"{question}_late" in scene.to_withdraw()


async def test_a_file_that_is_made_of_it_goes_too(scene: Scene, group: Group) -> None:
    source, question, bob = group.message("source"), group.message("asked"), group.turn("bob")
    said = f"The vendor is {scene.word}"
    await scene.turn(group.turn("alice", thread="a"), source, said, "I see.")
    await scene.memory.begin_turn(bob, turn_id=question, content="Make a table of it")
    file = {"name": "it.csv", "kind": "table", "content": f"who,what\nAlice,{said}"}
    arguments = {"name": "it.csv", "kind": "table", "content": file["content"]}
    call = {"name": "send_file", "arguments": arguments, "result": "", "ok": True, "ms": 0}
    await scene.memory.record_reply(
        bob,
        turn_id=question,
        cards=["Here it is."],
        files=[{"content": "[file: it.csv]", "file": file}],
        tool_calls=[call],
        source_ids=[source],
    )
    for chunk, content in enumerate(("Here it is.", "[file: it.csv]")):
        await scene.memory.mark_sent(
            bob, turn_id=question, chunk=chunk, content=content, message_id=f"{question}_{chunk}"
        )

    await scene.memory.take_back(source, group.chat())

    assert f"{question}_1" in scene.to_withdraw()
    assert scene.found() == set()


@pytest.mark.parametrize("how", ["first hand", "own", "second hand", "never given"])
async def test_what_others_had_kept_of_it_goes_unless_they_said_it_themselves(
    scene: Scene, group: Group, how: str
) -> None:
    own = how == "own"
    source, question, bob = group.message("source"), group.message("asked"), group.turn("bob")
    said = f"The vendor of the lamps is {scene.word}"
    await scene.turn(group.turn("alice", thread="a"), source, said, "I see.")
    asks = f"Keep that the lamps' vendor is {scene.word}" if own else "Keep what Alice said"
    await scene.memory.begin_turn(bob, turn_id=question, content=asks)
    told = f"lamps: {scene.word}"
    between, carol = group.message("between"), group.turn("carol", thread="c")
    await scene.turn(carol, between, "Who sells them?", f"{scene.word} does.", [source])
    await scene.memory.merge_working_memory(
        bob, scope="user", patch={"vendor": told}, turn_id=question
    )
    await scene.notes.create(bob, title="Vendor", body=told, turn_id=question)
    at = datetime(2030, 1, 1, 10, tzinfo=UTC)
    plan = TimerPlan(told, at, "UTC", due_ms=int(at.timestamp() * 1000), for_all=True)
    await TimerStore(scene.rpc).set(bob, question, plan)
    given = {"second hand": [f"{between}_card"], "never given": []}.get(how, [source])
    await scene.memory.record_reply(bob, turn_id=question, cards=["Kept."], source_ids=given)
    await scene.memory.mark_sent(
        bob, turn_id=question, chunk=0, content="Kept.", message_id=f"{question}_card"
    )
    kept = {"agent_working_memory", "agent_notes", "agent_timers"}
    assert kept <= scene.found()

    await scene.memory.take_back(source, group.chat())

    assert scene.found() & kept == (kept if how in ("own", "never given") else set())
    assert f"{question}_card" not in scene.to_withdraw(), "it tells nothing"


async def test_what_is_answered_anew_has_kept_nothing(scene: Scene, group: Group) -> None:
    question, before, bob = group.message("asked"), group.message("before"), group.turn("bob")
    await scene.turn(bob, before, "Hello", "Hi.")
    await scene.memory.merge_working_memory(
        bob, scope="user", patch={"vendor": "Acme"}, turn_id=before
    )
    await scene.memory.undo_kept(bob, before)  # which is answered, and stays so
    await scene.memory.begin_turn(bob, turn_id=question, content="Keep what Alice said")
    await scene.memory.merge_working_memory(
        bob, scope="user", patch={"vendor": scene.word}, turn_id=question
    )
    await scene.notes.create(bob, title="Vendor", body=scene.word, turn_id=question)

    await scene.memory.undo_kept(bob, question)

    assert scene.found() == set()
    assert (await scene.memory.working_memory(bob)).user == {"vendor": "Acme"}


async def test_a_reminder_goes_with_the_message_that_changed_its_text(
    scene: Scene, group: Group
) -> None:
    alice, first, second = group.turn(), group.message("first"), group.message("second")
    at = datetime(2030, 1, 1, 10, tzinfo=UTC)
    plan = TimerPlan("Water the plants", at, "UTC", due_ms=int(at.timestamp() * 1000), for_all=True)
    timers = TimerStore(scene.rpc)
    await scene.memory.begin_turn(alice, turn_id=first, content="Remind us of the plants")
    timer = await timers.set(alice, first, plan)
    await scene.memory.begin_turn(alice, turn_id=second, content=f"Say {scene.word} instead")
    await timers.change(alice, timer.id, replace(plan, content=scene.word), second)
    assert "agent_timers" in scene.found()

    await scene.memory.take_back(second, alice.chat_id)

    assert scene.found() == set()
