"""Taking hold of an answer while it is written: Stop, by whom, when, and what stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown, prompt_of
from tests.support import profiles
from tests.support.pages import browser

pytestmark = pytest.mark.slow

WORDS = "The launch is on 3 March and everything else waits until then. " * 12
CHUNK_DELAY_S = 0.5  # of some sixty chunks: on a busy machine, too, the press comes in time
NOTE = {"tool_calls": [{"name": "create_note", "arguments": {"title": "Launch"}}]}
ENDING = "Stopped on request"
_HAS_MORE = "than => document.querySelector('.card.streaming').textContent.length > than"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.STREAMING


@pytest.fixture
def slow(world: World) -> Iterator[World]:
    """A model that writes for half a minute."""
    world.platform.post("/switches", **{"cardkit:card:write": True})
    answers = [{"text": WORDS, "chunk_delay_s": CHUNK_DELAY_S}] * 3
    world.model.control("script", {"steps": answers})
    yield world
    for worker in world.bot.workers:
        if worker.popen.poll() is None:
            world.platform.forget_faults()


def running(world: World, question: str) -> dict[str, Any]:
    """The card of the answer once some of it is there."""

    def begun() -> list[dict[str, Any]]:
        found = [m for m in world.answers(question) if m["streaming"]]
        return found if found and "launch" in markdown(found[0]) else []

    return dict(eventually(begun, what="the card streams")[0])


def press(world: World, who: str, card: dict[str, Any]) -> str:
    """Presses the first button; what the person is told."""
    body = {"as": world.people[who], "message_id": card["message_id"], "index": 0}
    shown = world.platform.post("/click", **body)
    assert shown["code"] == 0, shown
    return str(shown["toast"]["content"])


def value_of(card: dict[str, Any]) -> dict[str, Any]:
    (button,) = buttons(card)
    return dict(button["behaviors"][0]["value"])


def buttons(card: dict[str, Any]) -> list[dict[str, Any]]:
    return [e for e in card["card"]["body"]["elements"] if e["tag"] == "button"]


def notice(card: dict[str, Any]) -> str:
    """The line below the answer on why it ended."""
    elements = card["card"]["body"]["elements"]
    return "".join(e["text"]["content"] for e in elements if e.get("element_id") == "notice")


def assert_stopped(world: World, question: str) -> dict[str, Any]:
    (row,) = world.settled(question)
    (card,) = [m for m in world.answers(question) if m["card_id"]]
    assert not card["streaming"]
    assert row["content"] == markdown(card)
    assert ENDING not in row["content"]
    assert ENDING in notice(card)
    assert len(row["content"]) < len(WORDS)
    assert "Stop" not in [b["text"]["content"] for b in buttons(card)]
    assert "stage" not in json.dumps(card["card"])
    return row


def test_the_asker_stops_the_answer_and_what_was_written_stays(slow: World) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    card = running(slow, question)
    assert set(value_of(card)) == {"b"}
    assert "Stopping" in press(slow, "Alice", card)
    row = assert_stopped(slow, question)
    assert row["content"].startswith(f"<at id={slow.people['Alice']}></at> The launch")

    body = {"as": slow.people["Alice"], "message_id": card["message_id"], "value": value_of(card)}
    late = slow.platform.post("/click", **body)
    assert "Already finished" in late["toast"]["content"]

    slow.model.forget()
    slow.model.control("mode", {"mode": "echo"})
    slow.ask("Alice", "what did you say?", root_id=question)
    told = [text for role, text in prompt_of(slow.model.requests()[0]) if role == "assistant"]
    assert "The launch" in "".join(told)
    assert ENDING not in json.dumps(slow.model.requests()[0]["body"])


def test_only_who_asked_or_is_meant_can_stop_it(slow: World) -> None:
    ids = [slow.people["Bob"]]
    question = slow.platform.say(
        slow.people["Alice"], slow.group, f"@{slow.bot_name} @Bob when is the launch?"
    )
    card = running(slow, question)
    (turn,) = slow.rows("select * from agent_turns where id = %s", question)
    assert turn["user_id"] in ids
    assert "Only the person who asked" in press(slow, "陈晨", card)
    assert [m["streaming"] for m in slow.answers(question)] == [True]
    assert "Stopping" in press(slow, "Bob", card)
    assert_stopped(slow, question)


def test_pressed_twice_at_once_it_stops_once(slow: World) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    card = running(slow, question)
    with ThreadPoolExecutor(3) as hands:
        told = list(hands.map(lambda _: press(slow, "Alice", card), range(3)))
    assert sum("Stopping" in one for one in told) == 1, told
    assert_stopped(slow, question)


def test_what_tools_did_stays_recorded(slow: World) -> None:
    steps = [NOTE, {"text": WORDS, "chunk_delay_s": CHUNK_DELAY_S}]
    slow.model.control("script", {"steps": steps})
    question = slow.say("Alice", f"@{slow.bot_name} keep a note")
    press(slow, "Alice", running(slow, question))
    row = assert_stopped(slow, question)
    assert [call["name"] for call in row["tool_calls"]] == ["create_note"]


def test_a_worker_killed_after_the_press_is_followed_by_one_that_stops(slow: World) -> None:
    """The press is kept before it has an effect: frozen, the worker does not hear of it."""
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    card = running(slow, question)
    worker = slow.bot.workers[-1]
    worker.popen.send_signal(19)  # SIGSTOP
    assert "Stopping" in press(slow, "Alice", card)
    worker.kill()
    asked = len(slow.model.requests())
    slow.bot.start_worker()

    (row,) = slow.settled(question)
    (shown,) = slow.answers(question)
    assert row["content"] == markdown(shown)
    assert "Stopped before there was an answer." in row["content"]
    assert len(slow.model.requests()) == asked, "the model was asked again"
    assert slow.rows("select count(*) n from feishu_bot.stops where turn_id = %s", question) == [
        {"n": 1}
    ]


def test_what_was_done_stays_listed_when_the_worker_that_did_it_is_killed(slow: World) -> None:
    slow.model.control("script", {"steps": [NOTE, {"text": WORDS, "chunk_delay_s": CHUNK_DELAY_S}]})
    question = slow.say("Alice", f"@{slow.bot_name} keep a note")
    card = running(slow, question)
    worker = slow.bot.workers[-1]
    worker.popen.send_signal(19)  # SIGSTOP
    press(slow, "Alice", card)
    worker.kill()
    slow.bot.start_worker()

    (row,) = slow.settled(question)
    assert row["content"].endswith("Done so far: create_note")


def decided(world: World, message: str) -> tuple[bool, str]:
    """Whether the bot speaks to a message, and why."""

    def found() -> list[dict[str, Any]]:
        return world.rows(
            "select respond, reason from agent_decisions where message_id = %s", message
        )

    (row,) = eventually(found, what="a decision")
    return row["respond"], row["reason"]


def test_a_plain_word_in_the_thread_stops_it_when_who_asked_says_so(slow: World) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    running(slow, question)
    for who, text in (("Bob", "stop"), ("Alice", "@Bob 停一下")):
        said = slow.say(who, text, root_id=question)
        assert decided(slow, said)[1] != "stop", text
    aside = slow.say("Alice", "停")
    assert decided(slow, aside) == (False, "no_trigger"), "it stands in no thread of an answer"
    assert [m["streaming"] for m in slow.answers(question) if m["card_id"]] == [True]

    stop = slow.say("Alice", "停一下。", root_id=question)
    assert decided(slow, stop) == (True, "stop")
    assert "正在停止" in slow.settled(stop)[0]["content"]
    assert_stopped(slow, question)
    late = slow.say("Alice", "停一下", root_id=question)
    assert decided(slow, late)[1] != "stop", "nothing is written any more"


def test_said_to_the_bot_it_stops_in_the_whole_chat_or_is_a_message_like_others(
    slow: World,
) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    running(slow, question)
    _, said = slow.ask("Alice", "Please stop!")
    assert "Stopping" in said
    assert_stopped(slow, question)
    slow.model.control("mode", {"mode": "echo"})
    _, said = slow.ask("Alice", "不用了")
    assert "不用了" in said, "it went to the model"


def test_the_command_stops_what_runs_in_the_same_thread_without_waiting_for_it(
    slow: World,
) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    running(slow, question)
    other, said = slow.ask("Bob", "/stop", root_id=question)
    assert "not writing an answer for you" in said
    assert [m["streaming"] for m in slow.answers(question) if m["card_id"]] == [True]
    command, said = slow.ask("Alice", "/停止", root_id=question)
    assert "正在停止" in said
    assert_stopped(slow, question)
    for one in (other, command):
        slow.settled(one)


@pytest.mark.parametrize("kind", ["text", "post"])
def test_a_stop_that_touches_the_mention_does_not_wait(slow: World, kind: str) -> None:
    slow.platform.post("/switches", tight_mentions=True)
    try:
        question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
        running(slow, question)
        command, said = slow.ask("Alice", "/stop", root_id=question, message_type=kind)
    finally:
        slow.platform.post("/switches", tight_mentions=False)
    assert "Stopping" in said
    assert_stopped(slow, question)
    slow.settled(command)


def test_the_card_says_how_long_it_takes(slow: World) -> None:
    question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
    card = running(slow, question)

    def stage() -> str:
        (shown,) = slow.answers(question)
        small = [e["text"]["content"] for e in shown["card"]["body"]["elements"] if "text" in e]
        return str(small[0])

    first = eventually(lambda: stage().startswith("Answering · ") and stage())
    eventually(lambda: stage() != first, what="the seconds move on")
    press(slow, "Alice", card)
    assert_stopped(slow, question)


def test_a_press_on_the_page_holds_while_the_answer_goes_on(slow: World) -> None:
    """The button stays the same one, in its place and in its focus, through the frames."""
    with browser() as launched:
        page = launched.new_page(locale="en-GB")
        page.goto(f"{slow.platform.url}/#/{slow.group}/{slow.people['Alice']}")
        question = slow.say("Alice", f"@{slow.bot_name} when is the launch?")
        running(slow, question)
        button = page.locator(".card.streaming button", has_text="Stop")
        button.focus()
        page.keyboard.down(" ")
        shown = page.locator(".card.streaming").text_content()
        page.wait_for_function(_HAS_MORE, arg=len(shown) + 20)
        page.keyboard.up(" ")
        assert_stopped(slow, question)
        page.wait_for_selector(".card:not(.streaming):has-text('Stopped on request')")
