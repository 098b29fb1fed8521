"""Every kind of reply lands in its conversation, and what follows under the answer knows it."""

from __future__ import annotations

from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, prompt_of

FACT = "the launch code is 7431"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"GROUP_TRANSCRIPT": "off"}  # nothing but the conversation's own history helps


def alone_with(world: World, who: str) -> str:
    """The p2p chat of that person."""
    chats = world.platform.state()["chats"]
    mine = (c for c in chats if c["mode"] == "p2p" and world.people[who] in c["members"])
    return str(next(mine)["chat_id"])


def conversation_of(world: World, question: str) -> str:
    world.settled(question)
    (turn,) = world.rows("select conversation_id from agent_turns where id = %s", question)
    return str(turn["conversation_id"])


def told_of(world: World, question: str, *, follow_up: dict[str, Any]) -> bool:
    """Whether the exchange that `question` began is in the history of a follow-up."""
    world.settled(question)
    world.model.forget()
    asked, _ = world.ask("Alice", "so what is it?", **follow_up)
    world.settled(asked)
    (request,) = [one for one in world.model.requests() if "so what is it?" in str(one["body"])]
    history = [text for role, text in prompt_of(request) if role != "system"]
    return any(FACT in text for text in history[:-1])


def card_of(world: World, question: str) -> str:
    return str(world.settled(question)[0]["message_id"])


KINDS = ["plain", "quote", "in a thread", "a quote in a thread"]


def asked_as(world: World, kind: str, chat: str) -> tuple[str, str]:
    """Tells the bot the fact in that way; the question, and the message it answers."""
    above = world.say("Bob" if chat == world.group else "Alice", "something", chat=chat)
    how: dict[str, Any] = {"chat": chat}
    if kind == "quote":
        how |= {"reply_to": above, "quote": True}
    elif kind == "in a thread":
        how |= {"reply_to": above}
    elif kind == "a quote in a thread":
        inside = world.say("Alice", "inside", chat=chat, reply_to=above)
        how |= {"reply_to": inside, "quote": True}
    return world.ask("Alice", FACT, **how)[0], above


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_group_the_thread_of_the_answer_goes_on_with_the_exchange(
    world: World, kind: str
) -> None:
    question, above = asked_as(world, kind, world.group)
    conversation = conversation_of(world, question)

    in_thread = "thread" in kind
    assert conversation == f"feishu:{world.group}:{above if in_thread else question}"
    under = {"reply_to": card_of(world, question)}
    assert told_of(world, question, follow_up=under)
    quoting_the_answer = {**under, "quote": True}
    assert told_of(world, question, follow_up=quoting_the_answer)
    turns = world.rows("select distinct conversation_id from agent_turns where chat_id = %s",
                       world.group)  # fmt: skip
    assert [one["conversation_id"] for one in turns] == [conversation]


@pytest.mark.parametrize("kind", KINDS)
def test_in_p2p_there_is_one_conversation_beside_those_of_threads(world: World, kind: str) -> None:
    chat = alone_with(world, "Alice")
    question, above = asked_as(world, kind, chat)
    conversation = conversation_of(world, question)

    in_thread = "thread" in kind
    assert conversation == f"feishu:{chat}:{above if in_thread else 'main'}"
    if in_thread:
        further: list[dict[str, Any]] = [{"reply_to": card_of(world, question), "chat": chat}]
    else:
        quoting = {"reply_to": card_of(world, question), "quote": True, "chat": chat}
        further = [{"chat": chat}, quoting, {"reply_to": card_of(world, question), "chat": chat}]
    for follow_up in further:
        assert told_of(world, question, follow_up=follow_up), follow_up


@pytest.mark.parametrize("with_thread_ids", [True, False])
@pytest.mark.parametrize("kind", [{"topics": True}, {"group_message_type": "thread"}])
def test_in_a_topic_group_the_topic_is_the_conversation(
    world: World, kind: dict[str, object], with_thread_ids: bool
) -> None:
    members = list(world.people.values())
    chat = world.platform.post("/chats", name="Topics", members=members, **kind)["chat_id"]
    known = "select 1 from chats where chat_id = %s and topics"
    eventually(lambda: world.rows(known, chat), what="the bot knows the group for one of topics")
    world.platform.post("/switches", topic_thread_ids=with_thread_ids)
    try:
        question, _ = world.ask("Alice", FACT, chat=chat)
        conversation = conversation_of(world, question)
        further = {"reply_to": card_of(world, question), "chat": chat}
        assert told_of(world, question, follow_up=further)
    finally:
        world.platform.post("/switches", topic_thread_ids=True)

    assert conversation == f"feishu:{chat}:{question}"
    turns = world.rows("select distinct conversation_id from agent_turns where chat_id = %s", chat)
    assert [one["conversation_id"] for one in turns] == [conversation]
