"""The memory port, turn by turn, over every backend."""

from __future__ import annotations

import asyncio

import pytest

from memory.errors import AccessDenied, IdentityMissing, TurnUnknown
from memory.models import StoredCard
from memory.scope import memory_context
from memory.store import MemoryStore
from tests.support.exchanges import deliver, exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def test_a_new_turn_is_open_and_its_history_is_the_question(
    memory: MemoryStore, group: Group
) -> None:
    turn = await memory.begin_turn(
        group.turn(), turn_id=group.message("q1"), content="when is our launch?", actor_name="Alice"
    )

    assert (turn.state, turn.attempts, turn.reply) == ("open", 1, ())
    [question] = turn.history
    assert (question.role, question.content) == ("user", "when is our launch?")
    assert (question.actor_id, question.actor_name) == (group.person("alice"), "Alice")
    assert question.message_id == group.message("q1")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, ["Q4"]),
        (2, ["A3", "Q4"]),
        (3, ["Q3", "A3", "Q4"]),
        (4, ["A2", "Q3", "A3", "Q4"]),
        (7, ["Q1", "A1", "Q2", "A2", "Q3", "A3", "Q4"]),
        (10, ["Q1", "A1", "Q2", "A2", "Q3", "A3", "Q4"]),
    ],
)
async def test_the_history_is_all_of_the_last_messages_and_no_other(
    memory: MemoryStore, group: Group, limit: int, expected: list[str]
) -> None:
    for number in (1, 2, 3):
        await exchange(memory, group.turn(), f"Q{number}", f"A{number}")

    turn = await memory.begin_turn(
        group.turn(), turn_id=group.message("q4"), content="Q4", history_limit=limit
    )

    assert texts(turn) == expected
    assert [one.role == "user" for one in turn.history] == [one[0] == "Q" for one in expected]


async def test_a_redelivered_question_is_stored_once_and_its_attempts_are_counted(
    memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    turns = [
        await memory.begin_turn(context, turn_id=group.message("q"), content="Q") for _ in range(3)
    ]

    assert [turn.attempts for turn in turns] == [1, 2, 3]
    assert [texts(turn) for turn in turns] == [["Q"]] * 3
    assert len(await memory.list_messages(context.conversation_id)) == 1


async def test_a_resumed_turn_does_not_see_what_was_asked_after_it(
    memory: MemoryStore, group: Group
) -> None:
    await memory.begin_turn(group.turn(), turn_id=group.message("q1"), content="Q1")
    await memory.begin_turn(group.turn(), turn_id=group.message("q2"), content="Q2")

    resumed = await memory.begin_turn(group.turn(), turn_id=group.message("q1"), content="Q1")

    assert texts(resumed) == ["Q1"]


async def test_five_deliveries_at_once_store_one_question(
    memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    turns = await asyncio.gather(
        *(memory.begin_turn(context, turn_id=group.message("q"), content="Q") for _ in range(5))
    )

    assert sorted(turn.attempts for turn in turns) == [1, 2, 3, 4, 5]
    assert len(await memory.list_messages(context.conversation_id)) == 1


async def test_a_turn_goes_from_open_over_pending_to_sent(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await memory.begin_turn(context, turn_id=turn_id, content="Q")

    state, cards = await memory.record_reply(context, turn_id=turn_id, cards=["A"])
    assert (state, cards) == ("pending", (StoredCard(0, "A", "pending"),))

    resumed = await memory.begin_turn(context, turn_id=turn_id, content="Q")
    assert (resumed.state, resumed.reply, resumed.history) == ("pending", cards, ())

    state, _ = await memory.mark_sent(
        context, turn_id=turn_id, chunk=0, content="A", message_id="om_card"
    )
    assert state == "sent"
    again = await memory.begin_turn(context, turn_id=turn_id, content="Q")
    assert (again.state, again.reply) == ("sent", (StoredCard(0, "A", "sent", "om_card"),))


@pytest.mark.parametrize("plain", [False, True])
async def test_a_turn_is_over_with_its_card_whether_or_not_more_is_looked_for(
    memory: MemoryStore, group: Group, plain: bool
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await memory.begin_turn(context, turn_id=turn_id, content="Q")
    await memory.record_reply(context, turn_id=turn_id, cards=["A"])

    sent = await memory.mark_sent(
        context, turn_id=turn_id, chunk=0, content="A", message_id="om_card", plain=plain
    )

    assert sent == ("sent", None)
    again = await memory.begin_turn(context, turn_id=turn_id, content="Q")
    assert (again.state, again.reply) == ("sent", (StoredCard(0, "A", "sent", "om_card"),))


async def test_of_two_workers_with_different_replies_both_get_the_one_that_is_stored(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await memory.begin_turn(context, turn_id=turn_id, content="Q")

    replies = await asyncio.gather(
        *(memory.record_reply(context, turn_id=turn_id, cards=[f"A{n}"]) for n in range(6))
    )

    assert len(set(replies)) == 1
    [stored] = replies[0][1]
    rows = await memory.list_messages(context.conversation_id)
    assert [row["content"] for row in rows] == ["Q", stored.content]


async def test_an_answer_of_several_cards_is_sent_card_by_card_and_read_as_one_message(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["part 1", "part 2", "part 3"])

    states = [
        await memory.mark_sent(
            context, turn_id=turn_id, chunk=n, content=f"part {n + 1}", message_id=f"om_{n}"
        )
        for n in range(3)
    ]
    following = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")
    short = await memory.begin_turn(
        context, turn_id=group.message("q3"), content="Q3", history_limit=3
    )

    assert [state for state, _ in states] == ["pending", "pending", "sent"]
    assert texts(following) == ["Q1", "part 1\n\npart 2\n\npart 3", "Q2"]
    assert texts(short) == ["part 1\n\npart 2\n\npart 3", "Q2", "Q3"]


async def test_a_turn_killed_between_two_cards_knows_which_card_is_still_to_send(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await memory.begin_turn(context, turn_id=turn_id, content="Q")
    await memory.record_reply(context, turn_id=turn_id, cards=["one", "two"])
    await deliver(memory, context, turn_id, ["one"])

    resumed = await memory.begin_turn(context, turn_id=turn_id, content="Q")

    assert resumed.state == "pending"
    assert [(card.content, card.status) for card in resumed.reply] == [
        ("one", "sent"),
        ("two", "pending"),
    ]


async def test_what_is_stored_is_the_text_that_was_finally_sent(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["<at id=ou_gone></at> hello"])

    await deliver(memory, context, turn_id, ["@Gone hello"])
    following = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")

    assert texts(following) == ["Q1", "@Gone hello", "Q2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  leading and trailing \n\n",
        "你好，世界 🌏 👩‍👩‍👧",
        "quotes ' \" ` $1 %s {} \\n \\u0041",
        "tab\tcarriage\r\nreturn \x01 control",
        "\u2028line\u2029separators\ufeff\u200b",
        "a long text " * 8_000,
        "null",
        '{"role": "system"}',
    ],
    ids=lambda text: repr(text[:16]),
)
async def test_texts_come_back_character_by_character(
    memory: MemoryStore, group: Group, text: str
) -> None:
    context = group.turn()
    await exchange(memory, context, "before", text)

    turn = await memory.begin_turn(context, turn_id=group.message("q"), content=text)

    assert texts(turn) == ["before", text, text]


async def test_tool_calls_come_back_with_the_answer_they_led_to(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    calls = [{"name": "create_note", "args": {"title": "鱼"}, "result": '{"id": "n1"}'}]
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["A", "B"], tool_calls=calls)

    turn = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")

    assert [list(message.tool_calls) for message in turn.history] == [[], calls, []]


async def test_an_undelivered_answer_is_kept_for_operators_and_hidden_from_the_model(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["A1", "A2"])

    await memory.mark_failed(context, turn_id=turn_id, error="230002 bot not in chat")
    again = await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    following = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")

    assert again.state == "failed"
    assert texts(following) == ["Q1", "Q2"]
    rows = await memory.list_messages(context.conversation_id)
    assert [(row["content"], row["error"]) for row in rows if row["status"] == "failed"] == [
        ("A1", "230002 bot not in chat"),
        ("A2", "230002 bot not in chat"),
    ]


async def test_only_the_cards_that_were_delivered_stay_in_a_failed_answer(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["read", "never seen"])
    await deliver(memory, context, turn_id, ["read"])

    await memory.mark_failed(context, turn_id=turn_id, error="230049 chat gone")
    following = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")

    assert texts(following) == ["Q1", "read", "Q2"]


async def test_a_note_stands_once_before_the_first_card_and_never_before_a_sent_one(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q1")
    await memory.begin_turn(context, turn_id=turn_id, content="Q1")
    await memory.record_reply(context, turn_id=turn_id, cards=["A1", "A2"])

    for _ in range(2):
        noted = await memory.preface_reply(context, turn_id=turn_id, note="> late\n\n")
        assert [card.content for card in noted] == ["> late\n\nA1", "A2"]
    await deliver(memory, context, turn_id, ["> late\n\nA1"])
    sent = await memory.preface_reply(context, turn_id=turn_id, note="> later\n\n")
    theirs = await memory.preface_reply(group.turn("bob"), turn_id=turn_id, note="> theirs\n\n")

    assert [card.content for card in sent] == ["> late\n\nA1", "A2"]
    assert "> theirs" not in str(theirs)


async def test_a_failed_turn_cannot_be_failed_into_a_sent_one(
    memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    await exchange(memory, context, "Q", "A")
    turn_id = f"om_Q_{context.chat_id}"

    await memory.mark_failed(context, turn_id=turn_id, error="too late")

    assert (await memory.begin_turn(context, turn_id=turn_id, content="Q")).state == "sent"


async def test_a_turn_that_was_never_opened_takes_no_reply(
    memory: MemoryStore, group: Group
) -> None:
    with pytest.raises(TurnUnknown):
        await memory.record_reply(group.turn(), turn_id=group.message("none"), cards=["A"])
    with pytest.raises(TurnUnknown):
        await memory.mark_sent(
            group.turn(), turn_id=group.message("none"), chunk=0, content="A", message_id="om_x"
        )


async def test_a_card_that_was_never_recorded_cannot_be_sent(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await memory.begin_turn(context, turn_id=turn_id, content="Q")
    await memory.record_reply(context, turn_id=turn_id, cards=["A"])

    with pytest.raises(TurnUnknown):
        await memory.mark_sent(context, turn_id=turn_id, chunk=1, content="B", message_id="om_x")


@pytest.mark.parametrize("other", ["another person", "another thread", "another chat"])
async def test_the_turn_of_another_conversation_is_refused(
    memory: MemoryStore, group: Group, other: str
) -> None:
    turn_id = group.message("q")
    await memory.begin_turn(group.turn(), turn_id=turn_id, content="mine")
    context = {
        "another person": group.turn("bob"),
        "another thread": group.turn(thread="elsewhere"),
        "another chat": group.turn(chat="there"),
    }[other]

    with pytest.raises(AccessDenied):
        await memory.begin_turn(context, turn_id=turn_id, content="theirs")
    with pytest.raises(TurnUnknown):
        await memory.record_reply(context, turn_id=turn_id, cards=["theirs"])

    rows = await memory.list_messages(group.turn().conversation_id)
    assert [row["content"] for row in rows] == ["mine"]
    assert await memory.list_conversations(user_id=group.person("bob")) == ()
    assert len(await memory.list_conversations(user_id=group.person("alice"))) == 1


@pytest.mark.parametrize(("subject", "sender"), [("", "ou_a"), ("ou_a", ""), ("", "")])
async def test_without_an_identity_nothing_is_read_or_written(
    memory: MemoryStore, group: Group, subject: str, sender: str
) -> None:
    context = memory_context(
        chat_id=group.chat(), root=group.message("t"), subject=subject, actor=sender
    )
    turn_id = group.message("q")
    for call in (
        memory.begin_turn(context, turn_id=turn_id, content="Q"),
        memory.record_reply(context, turn_id=turn_id, cards=["A"]),
        memory.mark_sent(context, turn_id=turn_id, chunk=0, content="A", message_id="om_x"),
        memory.mark_failed(context, turn_id=turn_id, error="1"),
        memory.working_memory(context),
        memory.merge_working_memory(context, scope="chat", patch={"a": 1}),
        memory.clear_working_memory(context, scope="chat"),
    ):
        with pytest.raises(IdentityMissing):
            await call

    assert await memory.list_conversations(chat_id=group.chat()) == ()


async def test_what_postgres_cannot_keep_is_left_out_whichever_way_it_comes(
    memory: MemoryStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    odd, kept = "a\x00b\ud83dc", "ab?c"
    opened = await memory.begin_turn(context, turn_id=turn_id, content=odd, actor_name=odd)
    assert texts(opened) == [kept]
    await memory.record_reply(context, turn_id=turn_id, cards=[odd])
    again = await memory.begin_turn(context, turn_id=turn_id, content=odd)
    assert [card.content for card in again.reply] == [kept]
