"""Which model answers: the configured one, the fallback behind it, or nobody in time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.agents.configured_models import Fallback, Models
from bot.agents.llm.model import Declined, ModelFailed, Request
from bot.agents.llm.requests import plain_messages
from bot.agents.manager import Manager, ModelUnavailable, Prompt
from bot.agents.offline.model import OfflineModel
from bot.agents.running_turns import OnProgress, Stop
from bot.agents.summaries import build_summariser
from bot.answering.request_rate import build_judge
from bot.listening.decisions import IncomingMessage
from bot.process.usage import UsageCounter
from bot.settings import Settings
from memory.models import WorkingMemory
from memory.summary import SummaryLine
from tests.support.models import Scripted
from tests.support.patience import limit_s
from tests.support.raw_endpoint import RawEndpoint, Wire, as_json, delta, events, serving, whole

pytestmark = pytest.mark.anyio

ASKED = Request(plain_messages("", "when?"))
PROMPT = Prompt("Bot", "when?", (), "Alice", WorkingMemory(), datetime(2026, 11, 20, tzinfo=UTC))
HANGS = Wire(hangs=True)
FAILS = as_json({"error": {"message": "SECRET"}}, 400)


@asynccontextmanager
async def managed(*answers: Wire, **settings: Any) -> AsyncIterator[tuple[Manager, RawEndpoint]]:
    """A manager as the settings make it."""
    async with serving(*answers) as endpoint:
        given = {"openai_api_key": "k", "openai_base_url": endpoint.base_url, **settings}
        models = Models(Settings(**given))
        try:
            yield Manager(models.main()), endpoint
        finally:
            await models.close()


async def nobody_reads(_: object) -> None: ...


def asked_models(endpoint: RawEndpoint) -> list[str]:
    return [body["model"] for body in endpoint.bodies]


async def test_without_a_key_every_model_is_the_offline_one() -> None:
    models = Models(Settings(openai_fallback_model="other"))
    assert isinstance(models.main(), OfflineModel)
    assert isinstance(models.model_of("any"), OfflineModel)
    await models.close()


async def test_judge_and_summaries_are_counted_by_kind_and_answers_are_not() -> None:
    tally = UsageCounter()
    said = [whole(content="YES"), whole(content="They meet."), whole(content="at three")]
    async with serving(*said) as endpoint:
        given = {"openai_api_key": "k", "openai_base_url": endpoint.base_url, "use_llm_judge": True}
        settings = Settings(**given)
        models = Models(settings, tally=tally)
        judge = build_judge(models.judge())
        assert judge is not None
        assert await judge((), IncomingMessage("om_1", "Alice", "ou_1", "and then?", 1000)) == "YES"
        await build_summariser(settings, models)(
            "", [SummaryLine("Alice", "we meet", "2026-11-20")]
        )
        await models.main().respond(ASKED)
        await models.close()

    assert [(one.name, one.calls) for one in tally.take()] == [("judge", 1), ("summary", 1)]


@pytest.mark.parametrize(
    ("first", "timeout_s"),
    [([FAILS] * 2, 40), ([Wire([b"<html>"], "text/html")], 40), ([HANGS], 2)],
    ids=["refuses", "a page", "hangs"],
)
async def test_the_fallback_model_answers_when_the_first_does_not(
    first: list[Wire], timeout_s: float
) -> None:
    options = {"openai_model": "first", "openai_fallback_model": "second"}
    answers = [*first, whole(content="from the second")]
    async with managed(*answers, model_timeout_seconds=timeout_s, **options) as (manager, endpoint):
        answer = await manager.answer(PROMPT, timeout_s=40)

    assert answer.text == "from the second"
    assert asked_models(endpoint) == [*["first"] * len(first), "second"]


@pytest.mark.parametrize("watched", [nobody_reads, None], ids=["card", "no_card"])
async def test_a_first_model_that_writes_slowly_keeps_the_turn(watched: OnProgress | None) -> None:
    said = [delta(content=word) for word in ("The ", "launch ", "is ", "on ", "3 ", "March.")]
    slow = Wire([events(one, done=False) for one in said] + [events()], pause_s=0.4)
    options = {"openai_fallback_model": "second", "model_timeout_seconds": 2}
    async with managed(slow, **options) as (manager, endpoint):
        answer = await manager.answer(PROMPT, timeout_s=2, flows_for_s=60, on_progress=watched)
    assert answer.text == "The launch is on 3 March."
    assert len(endpoint.bodies) == 1


async def test_an_answer_that_never_ends_is_ended_and_stays() -> None:
    words = [events(delta(content=f"word{n} "), done=False) for n in range(100)]
    async with managed(Wire(words, pause_s=0.2), model_timeout_seconds=1) as (manager, endpoint):
        began = asyncio.get_running_loop().time()
        answer = await manager.answer(PROMPT, timeout_s=1, flows_for_s=3, on_progress=nobody_reads)
        took = asyncio.get_running_loop().time() - began
        async with asyncio.timeout(60):
            await endpoint.all_closed.wait()
    assert answer.text.startswith("word0 word1 word2")
    assert answer.end_reason == "time"
    assert 2.5 < took < limit_s(8)


async def test_a_stop_before_the_first_word_is_not_undone_by_it() -> None:
    stop = Stop()

    async def on_progress(_: object) -> None:
        stop.ask()

    words = [events(delta(content=f"word{n} "), done=False) for n in range(100)]
    async with managed(Wire(words, pause_s=0.1), model_timeout_seconds=5) as (manager, _):
        async with asyncio.timeout(60):
            answer = await manager.answer(
                PROMPT, timeout_s=5, flows_for_s=60, on_progress=on_progress, stop=stop
            )
    assert answer.end_reason == "stopped"


async def test_who_declines_is_not_gone_around() -> None:
    with pytest.raises(Declined):
        await Fallback(Scripted(Declined("")), Scripted("never")).respond(ASKED)


async def test_when_both_fail_the_second_says_why() -> None:
    first, second = Scripted(ModelFailed("timeout")), Scripted(ModelFailed("wrong_key"))
    with pytest.raises(ModelFailed, match="wrong_key"):
        await Fallback(first, second).respond(ASKED)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("fallback", ["", "second"])
async def test_an_endpoint_that_hangs_ends_in_time_and_holds_nothing(
    streamed: bool, fallback: str
) -> None:
    hangs = Wire([events(delta(content=""), done=False)], hangs=True) if streamed else HANGS
    async with managed(*[hangs] * 4, openai_fallback_model=fallback) as (manager, endpoint):
        began = asyncio.get_running_loop().time()
        with pytest.raises(ModelUnavailable, match="timeout"):
            await manager.answer(
                PROMPT, timeout_s=0.5, on_progress=nobody_reads if streamed else None
            )
        assert asyncio.get_running_loop().time() - began < 2
        async with asyncio.timeout(60):
            await endpoint.all_closed.wait()


async def test_a_worker_loads_no_heavy_package_before_it_needs_one() -> None:
    """An answer needs none of them."""
    code = (
        "import asyncio, sys, bot.worker, bot.wiring\n"
        "from bot.agents.llm.chat_completions import ChatModel\n"
        "from bot.agents.llm.endpoint import Endpoint\n"
        "from bot.agents.llm.model import Request\n"
        "model = ChatModel(Endpoint('key', sys.argv[1]), 'm')\n"
        "response = asyncio.run(model.respond(Request([{'role': 'user', 'content': 'Hi'}])))\n"
        "assert response.text == 'Hello.', response\n"
        "heavy = {'openai', 'mcp', 'httpx2', 'rich', 'pydantic'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    async with serving(whole(content="Hello.")) as endpoint:
        found = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code, endpoint.base_url],
            capture_output=True,
            text=True,
        )
    assert found.returncode == 0, found.stderr
