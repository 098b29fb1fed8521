"""The manager while it streams: what is reported, and a stream that breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.manager import Manager, ModelUnavailable
from bot.agents.prompts.prompt import AgentAnswer, Image, Prompt, without_knowledge
from bot.agents.running_turns import Progress
from memory.models import WorkingMemory
from sandbox.model.model import ModelServer

pytestmark = pytest.mark.anyio

TEXT = "The launch is on 3 March, as you said yesterday."


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


class Answered:
    """An answer and what was reported on the way."""

    def __init__(self, answer: AgentAnswer, reports: list[Progress]) -> None:
        self.answer = answer
        self.reports = reports

    @property
    def texts(self) -> list[str]:
        return [report.text for report in self.reports]


async def ask(server: ModelServer, *steps: Any, images: tuple[Image, ...] = ()) -> Answered:
    """The answer of a model that plays `steps`."""
    server.playbook.load(list(steps))
    endpoint = Endpoint("k", server.base_url, retries=0)
    try:
        return await answered(Manager(ChatModel(endpoint, "m")), images)
    finally:
        await endpoint.close()


async def answered(manager: Manager, images: tuple[Image, ...] = ()) -> Answered:
    reports: list[Progress] = []

    async def on_progress(progress: Progress) -> None:
        reports.append(progress)

    prompt = Prompt(
        bot_name="Bot",
        question="when?",
        history=(),
        subject="Alice",
        working_memory=WorkingMemory(),
        now=datetime(2026, 11, 20, tzinfo=UTC),
        images=images,
    )
    async with asyncio.timeout(60):
        answer = await manager.answer(prompt, timeout_s=15, on_progress=on_progress)
    return Answered(answer, reports)


@pytest.mark.parametrize(
    "reply",
    [
        {"text": TEXT, "reasoning": "SECRET thoughts of some length"},
        {"text": f"<think>SECRET thoughts of some length</think>\n\n{TEXT}"},
    ],
)
async def test_thoughts_are_neither_reported_nor_answered(
    server: ModelServer, reply: dict[str, str]
) -> None:
    said = await ask(server, reply)

    assert said.answer.text == TEXT
    assert not any("SECRET" in text or "<" in text for text in said.texts)


async def test_a_refusal_without_a_reason_is_asked_once_more_with_less(server: ModelServer) -> None:
    said = await ask(server, {"status": 400}, {"text": TEXT})
    first, second = (request["body"] for request in server.received)

    assert said.answer.text == TEXT
    assert "stream_options" in first
    assert set(second) == {"model", "messages", "stream"}
    with pytest.raises(ModelUnavailable):
        await ask(server, {"status": 400}, {"status": 400}, {"text": "never asked for"})


async def test_pictures_go_to_the_model_with_the_question(server: ModelServer) -> None:
    await ask(server, {"text": TEXT}, images=(Image(b"\x89PNG", "image/png"),))

    content = server.received[0]["body"]["messages"][-1]["content"]
    assert content[0]["type"] == "text"
    assert without_knowledge(content[0]["text"])[1] == "when?"
    assert content[1]["image_url"]["url"].startswith("data:image/png;base64,")
