"""What a request was reported to cost corrects the estimate of the next one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from bot.agents.configured_models import Meter, MeteredModel
from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model import Request
from bot.agents.llm.requests import plain_messages
from bot.agents.tool_types import Toolbox, tool
from bot.answering.prompt_history import Scene, build_prompt
from memory.context import Calibration, estimate_tokens
from memory.models import OpenTurn, StoredMessage
from memory.scope import memory_context
from sandbox.model.model import ModelServer

pytestmark = pytest.mark.anyio

QUESTION = "什么时候发布？ And who takes care of the press release?"


@asynccontextmanager
async def model_of(meter, reported, answers=8):
    """A model whose endpoint reports `reported` prompt tokens for each of its answers."""
    server = ModelServer()
    usage = {"prompt_tokens": reported} if reported is not None else None
    server.playbook.load([{"text": "ok", **({"usage": usage} if usage else {})}] * answers)
    await server.start()
    endpoint = Endpoint("key", server.base_url, retries=0)
    try:
        yield MeteredModel(ChatModel(endpoint, "some-model"), meter)
    finally:
        await endpoint.close()
        await server.stop()


def asked(question=QUESTION, **fields):
    return Request(plain_messages("Be brief.", question), **fields)


async def test_reported_usage_moves_the_estimate() -> None:
    meter = Meter()
    async with model_of(meter, reported=60) as model:
        for _ in range(8):
            await model.respond(asked())

    assert meter.calibration.requests == 8
    assert meter.calibration.scale > 1.2


async def test_a_streamed_answer_is_learned_from_too() -> None:
    async def on_text(text: str) -> None: ...

    meter = Meter()
    async with model_of(meter, reported=60) as model:
        await model.respond(asked(), on_text)

    assert meter.calibration.requests == 1


async def test_the_schemas_of_tools_are_counted() -> None:
    async def find_the_press_release(deps, title: str, language: str = "zh") -> str:
        """Finds a press release by its title, in Chinese unless told otherwise.

        Args:
            title: What stands above it.
            language: zh or en.
        """
        return title + language

    bare, equipped = Meter(), Meter()
    async with model_of(bare, reported=40) as model:
        await model.respond(asked())
    async with model_of(equipped, reported=40) as model:
        await model.respond(asked(tools=Toolbox([tool(find_the_press_release)])))

    assert equipped.calibration.scale < bare.calibration.scale


async def test_a_picture_teaches_nothing() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}}
    meter = Meter()
    async with model_of(meter, reported=900) as model:
        await model.respond(asked([{"type": "text", "text": QUESTION}, picture]))

    assert meter.calibration == Calibration()


async def test_after_a_while_one_request_in_ten_is_looked_at() -> None:
    meter = Meter()
    looked_at = [meter.wants() for _ in range(60)]

    assert looked_at[:20] == [True] * 20
    assert sum(looked_at[20:]) == 4


def test_a_costly_vocabulary_gets_less_history_within_the_same_budget() -> None:
    said = tuple(
        StoredMessage(id=n, role="user", content=f"{n}: 我们下周三讨论预算和人员安排。" * 8)
        for n in range(40)
    )
    opened = OpenTurn(state="open", attempts=1, reply=(), history=said)
    scene = Scene("Bot", "Ada", {}, labelled=False, now=datetime(2026, 3, 1).astimezone())
    context = memory_context(
        chat_id="oc_1", root="om_1", subject="ou_1", actor="ou_1", tenant_key="t"
    )

    def history(calibration: Calibration) -> list[str]:
        prompt = build_prompt(
            opened,
            QUESTION,
            scene,
            context=context,
            turn_id="om_2",
            budget_tokens=2000,
            calibration=calibration,
        )
        return [message.content for message in prompt.history]

    plain, costly = history(Calibration()), history(Calibration(scale=1.6, requests=9))

    assert 0 < len(costly) < len(plain) < len(said) - 1
    assert plain[-1] == costly[-1] == said[-2].content
    assert estimate_tokens("".join(costly)) * 1.6 < 2000
