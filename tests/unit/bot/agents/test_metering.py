"""What a request was reported to cost corrects the estimate of the next one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from bot.agents.completions import PlainOpenAI
from bot.agents.metering import Meter, MeteredChatModel
from bot.answer.prompting import Scene, build_prompt
from memory.models import OpenTurn, StoredMessage
from memory.scope import memory_context
from memory.tokens import Calibration, estimate_tokens
from sandbox.model.model import ModelServer

pytestmark = pytest.mark.anyio

QUESTION = "什么时候发布？ And who takes care of the press release?"


@asynccontextmanager
async def agent_of(meter, reported, answers=8):
    """An agent whose endpoint reports `reported` prompt tokens for each of its answers."""
    server = ModelServer()
    usage = {"prompt_tokens": reported} if reported is not None else None
    server.playbook.load([{"text": "ok", **({"usage": usage} if usage else {})}] * answers)
    await server.start()
    client = PlainOpenAI(base_url=server.base_url, api_key="key", max_retries=0)
    provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)
    try:
        async with client:
            yield Agent(MeteredChatModel("some-model", provider=provider, meter=meter))
    finally:
        await server.stop()


async def test_reported_usage_moves_the_estimate() -> None:
    meter = Meter()
    async with agent_of(meter, reported=60) as agent:
        for _ in range(8):
            await agent.run(QUESTION, instructions="Be brief.")

    assert meter.calibration.requests == 8
    assert meter.calibration.scale > 1.2


async def test_a_streamed_answer_is_learned_from_too() -> None:
    meter = Meter()
    async with agent_of(meter, reported=60) as agent, agent.run_stream(QUESTION) as streamed:
        await streamed.get_output()

    assert meter.calibration.requests == 1


async def test_the_schemas_of_tools_are_counted() -> None:
    bare, equipped = Meter(), Meter()
    for meter in (bare, equipped):
        async with agent_of(meter, reported=40) as agent:
            if meter is equipped:

                @agent.tool_plain
                def find_the_press_release(title: str, language: str = "zh") -> str:
                    """Finds a press release by its title, in Chinese unless told otherwise."""
                    return title + language

            await agent.run(QUESTION)

    assert equipped.calibration.scale < bare.calibration.scale


async def test_a_picture_teaches_nothing() -> None:
    meter = Meter()
    async with agent_of(meter, reported=900) as agent:
        await agent.run([QUESTION, BinaryContent(b"\x89PNG", media_type="image/png")])

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
            transcript="",
            recalled="",
            budget_tokens=2000,
            calibration=calibration,
        )
        return [message.content for message in prompt.history]

    plain, costly = history(Calibration()), history(Calibration(scale=1.6, requests=9))

    assert 0 < len(costly) < len(plain) < len(said) - 1
    assert plain[-1] == costly[-1] == said[-2].content
    assert estimate_tokens("".join(costly)) * 1.6 < 2000
