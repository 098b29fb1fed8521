"""What goes over the wire to a Chat Completions endpoint is what the plain SDK would send."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from bot.agents.completions import PlainChatModel, PlainOpenAI

pytestmark = pytest.mark.anyio

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}


def _completion(message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }  # fmt: skip


class Endpoint:
    """Asks for one tool call, then answers; keeps the requests."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        if body.get("stream"):
            chunk = {
                "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}],
            }  # fmt: skip
            text = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
            return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})
        if len(self.bodies) == 1:
            asking = {"role": "assistant", "content": None, "tool_calls": [CALL]}
            return httpx.Response(200, json=_completion(asking, "tool_calls"))
        return httpx.Response(200, json=_completion({"role": "assistant", "content": "3"}, "stop"))


def _agent(client: type[AsyncOpenAI], endpoint: Endpoint) -> Agent[None, str]:
    http = httpx.AsyncClient(transport=httpx.MockTransport(endpoint))
    made = client(api_key="k", base_url="http://model/v1", http_client=http)  # type: ignore[arg-type]
    provider = OpenAICompatibleProvider("openai-compatible", openai_client=made)
    agent = Agent(OpenAIChatModel("some-model", provider=provider))

    @agent.tool_plain
    def add(a: int, b: int = 0, tags: list[str] | None = None) -> int:
        """Adds.

        Args:
            a: One.
            b: Other.
            tags: Labels.
        """
        return a + b

    return agent


async def test_a_run_with_a_tool_call_sends_the_same_requests() -> None:
    plain, ours = Endpoint(), Endpoint()
    expected = await _agent(AsyncOpenAI, plain).run("1 + 2?", instructions="Be brief. 请简短。")
    answer = await _agent(PlainOpenAI, ours).run("1 + 2?", instructions="Be brief. 请简短。")

    assert answer.output == expected.output == "3"
    assert ours.bodies == plain.bodies
    assert len(ours.bodies) == 2
    assert ours.bodies[0]["tools"]


async def test_a_streamed_run_sends_the_same_request() -> None:
    bodies = []
    for client in (AsyncOpenAI, PlainOpenAI):
        endpoint = Endpoint()
        async with _agent(client, endpoint).run_stream("hello") as streamed:
            assert await streamed.get_output() == "hi"
        bodies.append(endpoint.bodies)

    assert bodies[0] == bodies[1]


async def test_a_client_with_other_options_stays_the_same_kind() -> None:
    client = PlainOpenAI(api_key="k", base_url="http://model/v1")
    assert isinstance(client.with_options(max_retries=0), PlainOpenAI)


async def test_tools_are_sent_as_they_are_now_however_often_they_were_sent_before() -> None:
    def titled(title: str, tags: list[str] | None = None) -> str:
        """Finds by title."""
        return title

    def numbered(title: int) -> int:
        """Finds by number."""
        return title

    sent = []
    for kind in (OpenAIChatModel, PlainChatModel):
        endpoint = Endpoint()
        endpoint.bodies.append({})  # so that it answers at once
        http = httpx.AsyncClient(transport=httpx.MockTransport(endpoint))
        client = PlainOpenAI(api_key="k", base_url="http://model/v1", http_client=http)
        provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)
        model = kind("some-model", provider=provider)
        for find in (titled, titled, numbered, titled):
            await Agent(model, tools=[Tool(find, name="find")]).run("go")
        sent.append([body["tools"] for body in endpoint.bodies[1:]])

    assert sent[0] == sent[1]
    assert sent[0][0] == sent[0][1] == sent[0][3] != sent[0][2]
