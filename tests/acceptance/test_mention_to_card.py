"""From an encrypted, signed mention to a stored card, through the real processes."""

from __future__ import annotations

import itertools
import json
from typing import Any

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown, prompt_of


def test_the_stored_row_is_byte_for_byte_the_card_that_was_sent(world: World) -> None:
    question, card = world.ask("Alice", "hello <at id=all></at> & **you** 你好")

    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    assert row["content"].encode() == card.encode() == markdown(sent).encode()
    assert row["message_id"] == sent["message_id"]
    assert row["status"] == "sent"
    assert row["user_id"] == world.people["Alice"]
    assert card.startswith(f"<at id={world.people['Alice']}></at> ")
    assert "<at id=all>" not in card


def test_a_follow_up_sees_the_first_question_and_answer_in_order(world: World) -> None:
    first, answer = world.ask("Alice", "remember that our launch is on 3 March")
    world.model.forget()
    world.ask("Alice", "when is our launch?", root_id=first)

    (request,) = world.model.requests()
    spoken = [(role, text) for role, text in prompt_of(request) if role != "system"]
    assert [role for role, _ in spoken] == ["user", "assistant", "user"]
    assert "remember that our launch is on 3 March" in spoken[0][1]
    assert spoken[1][1] == answer.replace(f"<at id={world.people['Alice']}></at>", "@Alice")
    assert spoken[2][1].endswith("when is our launch?")


def test_a_second_prompt_is_for_the_most_part_the_beginning_of_the_first(world: World) -> None:
    """Providers charge less for a beginning that they have seen; tools come first, then rules."""
    first, _ = world.ask("Alice", "remember that our launch is on 3 March")
    world.ask("Alice", "when is our launch?", root_id=first)
    world.ask("Bob", "why is the sky blue?")

    one, *others = (sent_text(request) for request in world.model.requests())
    assert len(others) == 2
    for other in others:
        pairs = zip(one, other, strict=False)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        assert shared >= 0.8 * len(other)


def sent_text(request: dict[str, Any]) -> str:
    body = request["body"]
    assert next(iter(body)) == "tools", "what never changes stands first in the request"
    return json.dumps([body["tools"], body["messages"]], ensure_ascii=False)


def test_a_thread_knows_what_anybody_said_there_and_no_other_thread_does(world: World) -> None:
    first, _ = world.ask("Alice", "my secret word is apricot")
    world.ask("Bob", "what do you know?", root_id=first)
    elsewhere = world.say("Bob", "see you all tomorrow")
    world.ask("Alice", "what do you know?", root_id=elsewhere)

    requests = world.model.requests()
    assert len(requests) == 3
    assert "Alice: my secret word is apricot" in json.dumps(requests[1]["body"])
    assert "apricot" not in json.dumps(requests[2]["body"]), "another thread was given them"


def test_mentioning_a_third_person_works_on_that_persons_thread_memory(world: World) -> None:
    first, _ = world.ask("Bob", "I prefer the blue design")
    world.model.forget()
    question, _ = world.ask("Alice", "@Bob which design was it?", root_id=first)

    (request,) = world.model.requests()
    assert "I prefer the blue design" in json.dumps(request["body"])
    (row,) = world.rows(
        "select user_id, actor_id from agent_messages where turn_id = %s and role = 'user'",
        question,
    )
    assert row == {"user_id": world.people["Bob"], "actor_id": world.people["Alice"]}


def test_five_deliveries_give_one_reply(world: World) -> None:
    question, _ = world.ask("Alice", "once, please", count=5, new_event_ids=True)
    world.platform.post("/redeliver", message_id=question, times=3, new_event_id=True)
    world.settled(question)

    deliveries = world.platform.get("/deliveries", message_id=question, wait_s=10)["items"]
    assert len(deliveries) == 8
    world.ask("Alice", "a later question")
    assert len(world.answers(question)) == 1
    assert len(world.stored(question)) == 1
    assert len(world.model.requests()) == 2


def test_messages_to_others_are_left_alone(world: World) -> None:
    world.say("Alice", "@Bob lunch?")
    world.say("Bob", "yes")
    world.say("Alice", "@all the build is green", raw=True)
    world.ask("陈晨", "你好")

    bot_messages = [m for m in world.platform.messages(world.group) if is_from_bot(m)]
    assert len(bot_messages) == 1


def test_a_p2p_chat_is_one_conversation_and_nobody_is_addressed(world: World) -> None:
    state = world.platform.state()
    chat = next(
        c["chat_id"]
        for c in state["chats"]
        if c["mode"] == "p2p" and world.people["Alice"] in c["members"]
    )
    first = world.say("Alice", "I like tea", chat=chat)
    card = world.answer(first, chat=chat)
    assert not card.startswith(("<at", "@"))
    world.model.forget()
    second = world.say("Alice", "what do I like?", chat=chat)
    world.answer(second, chat=chat)

    (request,) = world.model.requests()
    assert "I like tea" in json.dumps(request["body"])
    (row,) = world.rows("select conversation_id from agent_turns where id = %s", second)
    assert row["conversation_id"] == f"feishu:{chat}:main"


def test_the_processes_say_what_they_are_doing(world: World) -> None:
    question, _ = world.ask("Alice", "a very particular sentence")
    world.settled(question)

    worker = world.bot.workers[-1]
    eventually(lambda: question in worker.output(), what="a line of the turn")
    log = worker.output()
    assert "a very particular sentence" not in log + world.bot.web.output()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    turn = next(line for line in lines if line["event"] == "turn")
    assert turn["outcome"] == "answered"
