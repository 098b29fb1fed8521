"""The least of Feishu that a mention needs, in the benchmark's own process.

The strict stand-in (`python -m sandbox`) checks every card, which would cost the machine more than
the bot does. This one only answers, counts connections and notes when a reply came: an ordinary
card with its message, a CardKit card with its last update, which puts the final text in.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from bot.feishu.cards import is_answer_id
from sandbox.model.model_http import (
    Closed,
    HttpError,
    ModelHttpRequest,
    read_request,
    response_head,
)

BOT = "ou_bench_bot"
BOT_NAME = "Memo"
_EARLIER = 5


class StandIn:
    """Answers Feishu's calls on a loopback port. For one event loop."""

    def __init__(self) -> None:
        self.requests = 0
        self.unknown: set[str] = set()
        self._replies: dict[str, asyncio.Future[float]] = {}
        self._shown: dict[str, str] = {}  # card_id → message_id of the question it answers
        self._numbers = itertools.count(1)
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server:
            self._server.close()
        for connection in self._open:
            connection.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def expect(self, message_id: str) -> asyncio.Future[float]:
        """Done with the time (`time.perf_counter`) at which the reply to `message_id` is here."""
        future = asyncio.get_running_loop().create_future()
        self._replies[message_id] = future
        return future

    def forget(self, message_id: str) -> None:
        self._replies.pop(message_id, None)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(Closed, ConnectionError, HttpError):
            while True:
                request = await read_request(reader)
                self.requests += 1
                body = json.dumps({"code": 0, "msg": "ok", **self._answer(request)}).encode()
                writer.write(response_head(200, len(body)) + body)
        writer.close()

    def _answer(self, request: ModelHttpRequest) -> dict[str, Any]:
        match request.path.split("/")[2:]:
            case ["auth", *_]:
                return {"tenant_access_token": "t-bench", "expire": 7200}
            case ["bot", *_]:
                return {"bot": {"open_id": BOT, "app_name": BOT_NAME, "activate_status": 2}}
            case ["contact", *_]:
                wanted = json.loads(request.body)["user_ids"]
                users = [{"user_id": one, "name": f"Person {one[-4:]}"} for one in wanted]
                return {"data": {"users": users}}
            case ["im", "v1", "messages", question, "reply"]:
                return {"data": self.replied(question, json.loads(request.body))}
            case ["cardkit", "v1", "cards", *steps]:
                return {"data": self._card(request.method, steps)}
            case ["im", "v1", "messages"]:
                return {"data": {"has_more": False, "items": _said_before(request)}}
            case ["im", "v1", "messages", _]:
                return {"data": {"items": []}}
            case ["im", "v1", "chats", _, "members"]:
                return {"data": {"items": [], "has_more": False}}
            case ["im", "v1", "chats", _]:
                return {"data": {"name": "Bench", "chat_mode": "group"}}
            case ["im", "v1", "messages", _, "reactions", *_]:
                return {"data": {"reaction_id": f"r_{next(self._numbers)}"}}
            case _:
                self.unknown.add(f"{request.method} {request.path}")
                return {"data": {}}

    def replied(self, question: str, reply: Mapping[str, str]) -> dict[str, str]:
        """A reply to that message is here, as it was posted; its message_id."""
        card = json.loads(reply["content"])
        if card.get("type") == "card":
            self._shown[card["data"]["card_id"]] = question
        else:
            self._done(question)
        return {"message_id": f"om_reply_{next(self._numbers)}", "create_time": _now_ms()}

    def _card(self, method: str, steps: list[str]) -> dict[str, str]:
        """One operation of CardKit; `steps` is the path below `cards`."""
        match method, steps:
            case "POST", []:
                return {"card_id": str(next(self._numbers))}
            case ("PUT", [card_id]) | ("POST", [card_id, "batch_update"]):
                self._done(self._shown.pop(card_id, ""))
        return {}

    def _done(self, question: str) -> None:
        waiting = self._replies.get(question)
        if waiting and not waiting.done():
            waiting.set_result(time.perf_counter())


def text_of(message: Mapping[str, Any]) -> str:
    """Returns the answer on a card, or the words of a plain text."""
    card = message["card"]
    if not card:
        return str(message["text"])
    elements = card["body"]["elements"]
    return str(next(e["content"] for e in elements if is_answer_id(e.get("element_id", ""))))


def _said_before(request: ModelHttpRequest) -> list[dict[str, Any]]:
    """What the list of a chat's messages shows: a handful that people wrote to each other."""
    place = request.query.get("container_id", "")
    return [
        {
            "message_id": f"om_before_{place}_{number}",
            "msg_type": "text",
            "create_time": _now_ms(),
            "sender": {"id": f"ou_other_{number}", "id_type": "open_id", "sender_type": "user"},
            "body": {"content": json.dumps({"text": f"about point {number} of the plan"})},
        }
        for number in range(_EARLIER)
    ]


def _now_ms() -> str:
    return str(int(time.time() * 1000))
