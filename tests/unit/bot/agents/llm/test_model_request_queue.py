"""Requests wait in line while a model has as many as it takes: against the stand-in endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.agents.llm import endpoint
from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint, ModelRequestQueue
from bot.agents.llm.model import ModelFailed, Request
from bot.agents.llm.requests import plain_messages
from bot.agents.running_turns import paused_time_limits, time_limit
from bot.process.concurrency import ConcurrencySlots
from sandbox.model.model import ModelServer

pytestmark = pytest.mark.anyio

ASKED = Request(plain_messages("Be brief.", "when?"))


@asynccontextmanager
async def model_server(at_once: int | None = None) -> AsyncIterator[tuple[ModelServer, Endpoint]]:
    server = ModelServer()
    server.delay_s = 0.05
    server.at_once = at_once
    await server.start()
    endpoint = Endpoint("k", server.base_url)
    try:
        yield server, endpoint
    finally:
        await endpoint.close()
        await server.stop()


async def test_what_is_refused_waits_and_everybody_is_answered_within_time_for_one() -> None:
    async with model_server(at_once=5) as (server, endpoint):
        model = ChatModel(endpoint, "m", first_s=20)
        answers = await asyncio.gather(*(model.respond(ASKED) for _ in range(60)))

        assert all(answer.text for answer in answers)
        assert server._refused < 200


async def test_models_of_one_endpoint_have_lines_of_their_own() -> None:
    async with model_server() as (_, endpoint), endpoint.queue("full").admit() as request:
        assert request.note_refusal(60)
        waits = asyncio.create_task(ChatModel(endpoint, "full").respond(ASKED))
        assert (await ChatModel(endpoint, "other").respond(ASKED)).text
        assert not waits.done()
        waits.cancel()


async def test_the_chats_take_turns() -> None:
    line, order = ModelRequestQueue(), list[str]()
    places = ConcurrencySlots(9)

    async def ask(chat: str) -> None:
        with places.hold(chat):
            async with line.admit():
                order.append(chat)
                await asyncio.sleep(0)

    async with line.admit() as first:
        assert first.note_refusal(0)
        asked = [asyncio.create_task(ask(chat)) for chat in "aaaab"]
        await asyncio.sleep(0)
    await asyncio.gather(*asked)

    assert order == ["a", "b", "a", "a", "a"]


async def test_who_waits_too_long_is_told_so_and_leaves_the_line() -> None:
    line = ModelRequestQueue()
    async with line.admit() as first:
        assert first.note_refusal(5)
        with pytest.raises(ModelFailed, match="rate_limited"):
            async with line.admit(0.05):
                pass
    assert line._in_flight == 0
    assert not line._line


async def test_a_limit_is_raised_while_nothing_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoint, "_LOOK_EVERY_S", 0.02)
    now = 1000.0
    queue = ModelRequestQueue(clock=lambda: now)
    admitted = asyncio.Event()

    async def wait() -> None:
        async with queue.admit():
            admitted.set()

    async with queue.admit() as first:
        first.note_answer()
        queue._limit.note_refusal(1, now)
        queue._limit.note_refusal(1, now)
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.05)
        assert not admitted.is_set()
        now += 1
        await admitted.wait()
        await waiting


@pytest.mark.parametrize("retry_after", [None, 0, 0.1])
async def test_who_is_always_refused_without_a_time_to_wait_is_told_in_time(
    retry_after: float | None,
) -> None:
    async with model_server() as (server, endpoint):
        reply = {"status": 429, "retry_after": retry_after}
        refused = {"when": {"contains": "now?"}, "reply": reply}
        server.playbook.load({"rules": [refused, {"reply": {"text": "ok"}}]})
        loop, waits = asyncio.get_running_loop(), list[float]()

        async def others() -> None:
            while True:
                began = loop.time()
                await ChatModel(endpoint, "m", first_s=20).respond(ASKED)
                waits.append(loop.time() - began)
                await asyncio.sleep(0.1)

        talking = asyncio.create_task(others())
        began = loop.time()
        with pytest.raises(ModelFailed, match="rate_limited"):
            await ChatModel(endpoint, "m", first_s=2).respond(Request(plain_messages("", "now?")))
        assert loop.time() - began < 4
        talking.cancel()
        assert max(waits) < 1.5, "nobody else waits for them"


@pytest.mark.parametrize("busy", [0, 5])
async def test_one_refusal_holds_up_nobody_else_and_is_told_in_time(busy: int) -> None:
    """An endpoint answers one request with 429 and asks it to come back in half a minute."""
    async with model_server() as (server, endpoint):
        refused = {"when": {"contains": "now?"}, "times": 1,
                   "reply": {"status": 429, "retry_after": 30}}  # fmt: skip
        server.playbook.load({"rules": [refused, {"reply": {"text": "ok", "delay_s": 0.3}}]})
        model = ChatModel(endpoint, "m", first_s=20)
        under_way = [asyncio.create_task(model.respond(ASKED)) for _ in range(busy)]
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        with pytest.raises(ModelFailed, match="rate_limited"):
            await model.respond(Request(plain_messages("", "now?")))
        assert asyncio.get_running_loop().time() - began < 1, "it could not wait for so long"
        answers = await asyncio.gather(*under_way, *(model.respond(ASKED) for _ in range(12)))
        assert all(answer.text == "ok" for answer in answers)
        assert asyncio.get_running_loop().time() - began < 6


async def test_who_was_refused_waits_as_long_as_the_endpoint_says_and_alone() -> None:
    async with model_server() as (server, endpoint):
        refused = {"when": {"contains": "now?"}, "times": 2,
                   "reply": {"status": 429, "retry_after": 2}}  # fmt: skip
        server.playbook.load({"rules": [refused, {"reply": {"text": "ok"}}]})
        model = ChatModel(endpoint, "m", first_s=20)
        began = asyncio.get_running_loop().time()
        waits = asyncio.create_task(model.respond(Request(plain_messages("", "now?"))))
        await asyncio.sleep(0.2)
        assert (await model.respond(ASKED)).text == "ok"
        assert asyncio.get_running_loop().time() - began < 1.9
        assert (await waits).text == "ok"
        assert asyncio.get_running_loop().time() - began >= 4


async def test_time_limits_stand_still_in_line_and_run_on_afterwards() -> None:
    async with time_limit(0.2) as outer, time_limit(0.1) as inner:
        with paused_time_limits():
            assert inner.when() is None
            await asyncio.sleep(0.3)
        assert outer.when() is not None

    async def take_too_long() -> None:
        async with time_limit(0.05):
            with paused_time_limits():
                pass
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await take_too_long()


async def test_a_stop_ends_a_request_that_waits_in_line() -> None:
    async def wait_in_line() -> None:
        async with time_limit(60) as limit:
            with paused_time_limits():
                limit.reschedule(0)
                await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await wait_in_line()
