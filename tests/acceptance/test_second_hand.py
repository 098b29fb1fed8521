"""What is taken back goes from every answer that tells it, at any hand; nothing else goes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot
from tests.acceptance.test_files_read import send
from tests.acceptance.test_own_memory import private_chat
from tests.acceptance.test_taking_back import take_back, where

pytestmark = pytest.mark.slow


@pytest.fixture
def word() -> str:
    """A value nobody else names."""
    return f"7{uuid.uuid4().int % 10**8:08d}"


def tells(world: World, word: str) -> None:
    """The model tells the value wherever its prompt holds it."""
    rules = [
        {"when": [{"contains": word, "in": "prompt"}], "reply": {"text": f"A day costs {word}."}},
        {"reply": {"text": "Nobody told me."}},
    ]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    world.model.forget()


def still_shown(world: World, chat: str, word: str) -> list[dict[str, Any]]:
    messages = [m for m in world.platform.messages(chat) if is_from_bot(m) and not m["deleted"]]
    return [m for m in messages if word in json.dumps(m)]


def in_p2p(world: World, who: str, question: str) -> str:
    """Asks alone with the bot; returns what it answers."""
    chat = private_chat(world, who)
    message = world.say(who, question, chat=chat)
    (row,) = world.settled(message)
    return str(row["content"])


def in_group(world: World, who: str, question: str, **more: Any) -> str:
    message, _ = world.ask(who, question, **more)
    (row,) = world.settled(message)
    return str(row["content"])


def is_known_to_be_in(world: World, who: str) -> bool:
    known = "select 1 from chat_members where chat_id = %s and open_id = %s and left_at is null"
    return bool(world.rows(known, world.group, world.people[who]))


def test_second_hand_answers_go_with_a_file(world: World, word: str) -> None:
    file = send(world, "Alice", "rates.txt", f"The day rate is {word} euros.".encode())
    tells(world, word)
    told = [in_group(world, "Bob", "what is the day rate?", reply_to=file, quote=True)]
    eventually(lambda: is_known_to_be_in(world, "Bob"), what="who is in the group")
    eventually(lambda: is_known_to_be_in(world, "Alice"), what="who is in the group")
    told += [in_group(world, "Alice", "what was the day rate again?")]
    told += [in_group(world, "Bob", "the day rate once more?")]
    told += [in_p2p(world, who, "what was the day rate?") for who in ("Bob", "Alice")]
    assert [word in one for one in told] == [True] * 5, told

    take_back(world, "Alice", file)

    chats = [world.group, private_chat(world, "Bob"), private_chat(world, "Alice")]
    eventually(lambda: not where(world, word), what="the value is gone everywhere")
    eventually(
        lambda: not any(still_shown(world, chat, word) for chat in chats), what="no card shows it"
    )
    assert word not in in_group(world, "Bob", "what was the day rate again, please?")
    assert word not in in_p2p(world, "Alice", "and what was the day rate again?")
    assert word not in json.dumps([one["body"] for one in world.model.requests()[-2:]])


def forward(world: World, who: str, chat: str, said: str) -> str:
    """Somebody forwards what was said elsewhere; returns the message_id."""
    asked = {"as": world.people[who], "chat_id": chat, "message_ids": [said]}
    return str(world.platform.post("/forward", **asked)["message_id"])


def test_second_hand_answers_go_with_a_forward(world: World, word: str) -> None:
    alone = private_chat(world, "Alice")
    tells(world, word)
    elsewhere = world.in_a_new_group().group  # where the bot has said nothing, and hears nothing
    said = world.say("Alice", f"The day rate is {word} euros.", chat=elsewhere)
    message = forward(world, "Alice", alone, said)
    (row,) = world.settled(message)
    told = [str(row["content"])]
    told += [in_p2p(world, "Alice", one) for one in ("the day rate?", "and once more?")]
    assert [word in one for one in told] == [True] * 3, told

    take_back(world, "Alice", message)

    eventually(lambda: not where(world, word), what="the value is gone everywhere")
    eventually(lambda: not still_shown(world, alone, word), what="no card shows it")
    assert word not in in_p2p(world, "Alice", "what was the day rate, again?")


def test_an_answer_that_was_given_a_file_and_tells_nothing_of_it_stays(
    world: World, word: str
) -> None:
    file = send(world, "Alice", "rates.txt", f"The day rate is {word} euros.".encode())
    tells(world, word)
    told = in_group(world, "Bob", "what is the day rate?", reply_to=file, quote=True)
    assert word in told
    world.model.control("script", {"rules": [{"reply": {"text": "The room is on floor three."}}]})
    question, _ = world.ask("Bob", "which floor?")
    world.settled(question)
    (turn,) = world.rows(
        "select bot_private.given_ids(given_messages, given) as given"
        " from agent_turns where id = %s",
        question,
    )
    assert file in turn["given"]

    take_back(world, "Alice", file)

    eventually(lambda: not where(world, word), what="the value is gone everywhere")
    assert world.stored(question)
    assert not world.rows("select 1 from recalled_messages where message_id = %s",
                          f"answer:{question}")  # fmt: skip


def test_an_answer_that_was_never_given_it_stays(world: World) -> None:
    world.settled(world.ask("Alice", "我们聊聊")[0])
    said = world.ask("Alice", "下周三下午？")[0]
    world.settled(said)
    text = "季度评审在下周三下午三点，地点在大会议室。"
    world.model.control("script", {"rules": [{"reply": {"text": text}}]})
    world.model.control("mode", {"mode": "rules"})
    chat = private_chat(world, "Bob")
    questions = [
        (world.say("Alice", f"@{world.bot_name} 谁订会议室？", chat=world.kitchen), world.kitchen),
        (world.say("Bob", "评审什么时候开始", chat=chat), chat),
    ]
    cards = []
    for question, _ in questions:
        (row,) = world.settled(question)
        cards.append(row["message_id"])

    take_back(world, "Alice", said)

    gone = "select 1 from agent_messages where turn_id = %s"
    eventually(lambda: not world.rows(gone, said), what="the message is gone")
    eventually(lambda: not world.rows("select 1 from agent_withdrawals"), what="it is over")
    left = "select message_id from agent_messages where message_id = any(%s)"
    assert {row["message_id"] for row in world.rows(left, cards)} == set(cards)
    assert set(cards) <= {m["message_id"] for _, place in questions for m in _shown(world, place)}


def _shown(world: World, chat: str) -> list[dict[str, Any]]:
    return [m for m in world.platform.messages(chat) if not m["deleted"]]
