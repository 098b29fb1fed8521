"""Whatever model answers: endpoints without tools, slow ones, and those that break off."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown, prompt_of
from tests.support.patience import limit_s

pytestmark = pytest.mark.slow

OLLAMA = {"error": {"message": "registry.ollama.ai/library/gemma3:270m does not support tools",
                    "type": "api_error", "param": None, "code": None}}  # fmt: skip
LIMIT_S = 5
WORDS = "The launch is on 3 March and all else waits until then. " * 3


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"STREAM_REPLIES": "true", "MODEL_TIMEOUT_SECONDS": str(LIMIT_S)}


@pytest.fixture
def live(world: World) -> World:
    world.platform.post("/switches", **{"cardkit:card:write": True})
    return world


def answer_with(world: World, *replies: dict[str, Any], mode: str = "script") -> None:
    script = {"steps": list(replies)} if mode == "script" else {"rules": list(replies)}
    world.model.control("script", script)


def shown(world: World, question: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The stored answer, and its card."""
    (row,) = world.settled(question)
    (card,) = [m for m in world.answers(question) if not m["deleted"]]
    assert row["content"] == markdown(card)
    assert not card["streaming"]
    return row, card


def notice(card: dict[str, Any]) -> str:
    elements = card["card"]["body"]["elements"]
    return "".join(e["text"]["content"] for e in elements if e.get("element_id") == "notice")


def frames(world: World) -> list[str]:
    calls = world.platform.calls("/open-apis/cardkit/")
    streamed = [c for c in calls if c["path"].endswith("/content") and "/stage/" not in c["path"]]
    return [c["body"]["content"] for c in streamed]


def assert_in_no_prompt(world: World, question: str, line: str) -> None:
    world.model.forget()
    world.model.control("mode", {"mode": "echo"})
    world.ask("Alice", "what did you say?", root_id=question)
    assert line not in json.dumps(world.model.requests()[0]["body"], ensure_ascii=False)


@pytest.mark.parametrize(("pause_s", "chunks"), [(0.5, 12), (1.5, 4)])
def test_an_answer_that_flows_is_not_ended_by_the_limit_for_its_first_word(
    live: World, pause_s: float, chunks: int
) -> None:
    text = WORDS[: 12 * chunks]
    answer_with(live, {"text": text, "chunk_delay_s": pause_s})
    began = time.monotonic()
    question, _ = live.ask("Alice", "when is the launch?")
    row, card = shown(live, question)

    assert time.monotonic() - began > LIMIT_S
    assert row["content"].endswith(text.strip())
    assert notice(card) == ""


def test_what_people_read_stays_when_the_connection_breaks(live: World) -> None:
    answer_with(live, {"text": WORDS, "chunk_delay_s": 0.3, "fault": "cut"})
    question, _ = live.ask("Alice", "when is the launch?")
    row, card = shown(live, question)

    assert "The launch is on 3 March" in row["content"]
    assert len(row["content"]) < len(WORDS)
    assert row["content"].startswith(frames(live)[-1].rstrip()[:40])
    assert "the connection to the model was lost" in notice(card)
    assert '"Again"' in json.dumps(card["card"])
    assert len(live.model.requests()) == 1
    assert_in_no_prompt(live, question, notice(card))


def test_what_people_read_stays_when_the_model_stops_writing(live: World) -> None:
    """It says nothing more, and does not end either."""
    answer_with(live, {"text": WORDS, "chunk_delay_s": 0.0, "fault": "pause"})
    question, _ = live.ask("Alice", "when is the launch?")
    row, card = shown(live, question)

    assert "The launch is on 3 March" in row["content"]
    assert "the model took too long" in notice(card)
    assert_in_no_prompt(live, question, notice(card))


def test_an_answer_at_the_models_length_limit_says_so_below_itself(live: World) -> None:
    answer_with(live, {"text": "The launch is on", "finish_reason": "length"})
    question, _ = live.ask("陈晨", "发布日是哪天？")
    row, card = shown(live, question)

    assert row["content"].endswith("The launch is on")
    assert "达到模型的长度上限" in notice(card)
    assert_in_no_prompt(live, question, notice(card))


def test_nothing_said_in_time_is_still_an_honest_card(live: World) -> None:
    answer_with(live, {"fault": "hang"})
    began = time.monotonic()
    question, _ = live.ask("Alice", "when is the launch?")
    row, _ = shown(live, question)
    assert "Sorry, I couldn't answer just now" in row["content"]
    assert time.monotonic() - began < limit_s(4 * LIMIT_S)


def test_json_that_is_no_completion_is_called_that(live: World) -> None:
    live.model.control("script", {"rules": [{"reply": {"body": {"message": {"content": "hi"}}}}]})
    question, _ = live.ask("Alice", "when is the launch?")
    row, _ = shown(live, question)
    assert "doesn't respond like a chat model" in row["content"]
    lines = live.bot.workers[-1].output().splitlines()
    failed = [json.loads(line) for line in lines if '"model.unavailable"' in line][-1]
    assert failed["reason"] == "no_completion"
    assert "OPENAI_BASE_URL" in failed["next_step"]


def test_without_tools_the_bot_answers_and_remembers(live: World) -> None:
    live.model.control("mode", {"mode": "echo", "refuses": [{"feature": "tools", "body": OLLAMA}]})
    question, card = live.ask("Alice", "hello there")
    assert "echo: " in card
    assert "hello there" in card

    _, card = live.ask("Alice", "remember that the launch is on 3 March", root_id=question)
    assert "Got it, I'll remember: “the launch is on 3 March”" in card
    facts = live.rows("select content from agent_working_memory where conversation_id like %s",
                      f"%{question}")  # fmt: skip
    assert "3 March" in json.dumps(facts)

    live.model.forget()
    live.ask("Alice", "when is it?", root_id=question)
    (request,) = eventually(live.model.requests, what="the model is asked once")
    assert "tools" not in request["body"]
    assert any("3 March" in text for role, text in prompt_of(request) if role == "system")

    _, card = live.ask("Alice", "tomorrow at 3 pm remind me to call Bob", root_id=question)
    assert "call Bob" in card
    assert live.rows("select 1 from agent_timers where content = 'call Bob'")
