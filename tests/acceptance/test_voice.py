"""Voice messages: heard with Feishu's recognition, answered as if they had been written."""

from __future__ import annotations

from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown, prompt_of
from tests.acceptance.test_menu import p2p_of

OWN_PROCESSES = True
pytestmark = pytest.mark.slow

PATH = "/open-apis/speech_to_text"


def say(world: World, who: str, text: str, *, chat: str = "", **more: Any) -> str:
    return world.say(who, text, chat=chat or p2p_of(world, who), message_type="audio", **more)


def card(world: World, question: str, who: str) -> dict[str, Any]:
    found = eventually(
        lambda: world.answers(question, chat=p2p_of(world, who)), what="an answer", within_s=60
    )
    world.settled(question)
    return next(one for one in found if is_from_bot(one))


def test_a_voice_message_is_answered_as_what_was_said_and_the_card_shows_what_was_heard(
    world: World,
) -> None:
    question = say(world, "Alice", "when do we launch the zeppelin?")
    shown = card(world, question, "Alice")

    _, asked = prompt_of(world.model.requests()[-1])[-1]
    assert str(asked).endswith("when do we launch the zeppelin?")
    assert "Heard: “when do we launch the zeppelin?”" in str(shown["card"])
    (kept,) = world.rows(
        "select content from agent_messages where turn_id = %s and role = 'user'", question
    )
    assert kept["content"] == "when do we launch the zeppelin?"

    world.platform.post("/recall", message_id=question, **{"as": world.people["Alice"]})
    left = "select 1 from agent_turns where shown::text like '%%zeppelin%%' and id = %s"
    eventually(lambda: not world.rows(left, question), what="what was heard goes with the message")


def test_more_than_a_minute_is_heard_in_pieces_and_ten_minutes_are_not(world: World) -> None:
    words = " ".join(f"zinnia{n}" for n in range(8))
    before = len(world.platform.calls(PATH))
    question = say(world, "Bob", words, seconds=75)
    card(world, question, "Bob")
    _, asked = prompt_of(world.model.requests()[-1])[-1]
    assert str(asked).endswith(words)
    assert len(world.platform.calls(PATH)) == before + 2

    long = say(world, "Bob", "hello", seconds=600)
    assert "up to 5 minutes" in markdown(card(world, long, "Bob"))
    assert len(world.platform.calls(PATH)) == before + 2


def test_without_the_scope_one_sentence_says_what_an_administrator_can_do(world: World) -> None:
    world.platform.post("/switches", **{"speech_to_text:speech": False})
    try:
        question = say(world, "Alice", "hello there")
        assert "`speech_to_text:speech`" in markdown(card(world, question, "Alice"))
        again = say(world, "Alice", "hello again")
        assert "administrator" in markdown(card(world, again, "Alice"))
    finally:
        world.platform.post("/switches", **{"speech_to_text:speech": True})

    def is_heard() -> bool:  # what is granted is looked up once in five seconds
        return "Heard: " in str(card(world, say(world, "Alice", "and now?"), "Alice")["card"])

    eventually(is_heard, what="the scope is granted again")
    silence = say(world, "Alice", "")
    assert "couldn't make out any words" in markdown(card(world, silence, "Alice"))


def test_in_a_group_it_is_a_line_without_a_mention(world: World) -> None:
    here = world.in_a_new_group()
    here.say("Bob", "what is the plan for the zeppelin?", message_type="audio")
    question, _ = here.ask("Alice", "when is the launch?")
    follow_up = here.say("Alice", "and when is the party?", message_type="audio", reply_to=question)
    eventually(lambda: len(here.under(question)) == 2, what="the follow-up is answered")

    decided = world.rows(
        "select message_id, respond from agent_decisions where chat_id = %s", here.group
    )
    assert {one["message_id"]: one["respond"] for one in decided}[follow_up]
    assert len([one for one in here.platform.messages(here.group) if is_from_bot(one)]) == 2


def test_a_voice_message_that_is_quoted_is_heard(world: World) -> None:
    here = world.in_a_new_group()
    said = here.say("Bob", "the zeppelin leaves on Friday", message_type="audio")
    here.ask("Alice", "what does he say?", reply_to=said, quote=True)

    _, asked = prompt_of(world.model.requests()[-1])[-1]
    assert "> the zeppelin leaves on Friday" in str(asked)
