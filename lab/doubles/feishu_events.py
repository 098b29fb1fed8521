"""What Feishu pushes when somebody mentions the bot: encrypted, signed, over kept connections."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from lab.doubles.minimal_feishu import BOT, BOT_NAME
from sandbox.world.push import encrypt, signature

CREDENTIALS = {
    "FEISHU_APP_ID": "cli_bench00000000",
    "FEISHU_APP_SECRET": "bench-app-secret",
    "FEISHU_ENCRYPT_KEY": "bench-encrypt-key",
    "FEISHU_VERIFICATION_TOKEN": "bench-verification-token",
}
_TENANT = "bench-tenant"


@dataclass(frozen=True, slots=True)
class TalkMention:
    """Somebody asks the bot in a group; `root_id` is the thread's root, empty for a new one. One
    that is not `to_bot` names nobody: a line that the bot overhears."""

    message_id: str
    chat_id: str
    person: str
    question: str
    root_id: str = ""
    to_bot: bool = True

    @property
    def text(self) -> str:
        """As Feishu writes it."""
        return f"@_user_1 {self.question}" if self.to_bot else self.question


def delivery(mention: TalkMention) -> bytes:
    """The whole HTTP request to `/webhook/event`."""
    plain = json.dumps(_envelope(mention), ensure_ascii=False).encode()
    key = CREDENTIALS["FEISHU_ENCRYPT_KEY"]
    body = json.dumps({"encrypt": encrypt(key, plain)}).encode()
    timestamp, nonce = str(int(time.time())), secrets.token_hex(8)
    head = (
        "POST /webhook/event HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json; charset=utf-8\r\n"
        f"X-Lark-Request-Timestamp: {timestamp}\r\nX-Lark-Request-Nonce: {nonce}\r\n"
        f"X-Lark-Signature: {signature(timestamp, nonce, key, body)}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _envelope(mention: TalkMention) -> dict[str, Any]:
    now_ms = str(int(time.time() * 1000))
    header = {
        "event_id": secrets.token_hex(16),
        "event_type": "im.message.receive_v1",
        "create_time": now_ms,
        "token": CREDENTIALS["FEISHU_VERIFICATION_TOKEN"],
        "app_id": CREDENTIALS["FEISHU_APP_ID"],
        "tenant_key": _TENANT,
    }
    message: dict[str, Any] = {
        "message_id": mention.message_id,
        "create_time": now_ms,
        "update_time": now_ms,
        "chat_id": mention.chat_id,
        "chat_type": "group",
        "message_type": "text",
        "content": json.dumps({"text": mention.text}, ensure_ascii=False),
    }
    if mention.to_bot:
        message["mentions"] = [_THE_BOT]
    if mention.root_id:
        message |= {
            "root_id": mention.root_id,
            "parent_id": mention.root_id,
            "thread_id": f"omt_{mention.root_id}",
        }
    sender = {
        "sender_id": _ids(mention.person),
        "sender_type": "user",
        "tenant_key": _TENANT,
    }
    return {"schema": "2.0", "header": header, "event": {"sender": sender, "message": message}}


def _ids(open_id: str) -> dict[str, str]:
    return {"open_id": open_id, "union_id": open_id.replace("ou_", "on_"), "user_id": ""}


_THE_BOT = {
    "key": "@_user_1",
    "id": _ids(BOT),
    "mentioned_type": "bot",
    "name": BOT_NAME,
    "tenant_key": _TENANT,
}


class TalkLine:
    """One kept connection to the webhook; opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> float:
        """Seconds until the acknowledgement was read. Raises ConnectionError unless it is 200."""
        started = time.perf_counter()
        try:
            status = await self._exchange(request)
        except (OSError, asyncio.IncompleteReadError):  # kept too long: once more, on a new one
            self.close()
            status = await self._exchange(request)
        if status != 200:
            raise ConnectionError(f"the webhook answered {status}, not 200: see web.log")
        return time.perf_counter() - started

    async def get(self, path: str) -> int:
        """The status of a GET."""
        return await self._exchange(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def close(self) -> None:
        if self._writer:
            self._writer.close()
        self._reader = self._writer = None

    async def _exchange(self, request: bytes) -> int:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = head.split(b"content-length:")[1].split(b"\r\n")[0]
        await self._reader.readexactly(int(length))
        return int(head.split(b" ")[1])
