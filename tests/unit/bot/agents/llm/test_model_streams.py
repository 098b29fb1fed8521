"""What endpoints send, row by row, from the stand-in model: each answer is read once, whether a
stream was asked for or not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model import Request
from bot.agents.llm.requests import plain_messages
from bot.agents.tools.tool_calls import response_message
from sandbox.model.model import ModelServer
from tests.support.raw_endpoint import EVENTS, delta, events

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[4] / "data"
ROWS = [json.loads(line) for line in (DATA / "model_streams.jsonl").read_text("utf-8").splitlines()]


def event(sent: Any) -> Any:
    """A row shortens a chunk to the fields of its delta, and `finish`."""
    return sent if isinstance(sent, str) or "choices" in sent else delta(**sent)


def body(row: dict[str, Any]) -> Any:
    if "events" in row:
        return events(*map(event, row["events"])).decode()
    return row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])


@pytest.mark.parametrize("way", ["plain", "stream"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['kind']}: {row['name']}")
async def test_an_answer_is_read_once_however_it_is_sent(row: dict[str, Any], way: str) -> None:
    server = ModelServer()
    server.playbook.load([{"body": body(row), "content_type": row.get("type", EVENTS)}])
    await server.start()
    endpoint = Endpoint("key", server.base_url, timeout_s=10, retries=0)
    texts: list[str] = []

    async def on_text(text: str) -> None:
        texts.append(text)

    try:
        model = ChatModel(endpoint, "m")
        asked = Request(plain_messages("", "which city?"))
        response = await model.respond(asked, on_text if way == "stream" else None)
    finally:
        await endpoint.close()
        await server.stop()

    assert response.text.strip() == row.get("text", "")
    calls = response_message(response)["tool_calls"]
    assert [json.loads(one["function"]["arguments"]) for one in calls] == row.get("calls", [])
    assert len(server.received) == 1
