"""One call of each method of the Feishu client, and what it puts on the wire."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from bot.feishu.client import FeishuClient
from tests.support.feishu_api import Answer, Asked, FeishuApi, feishu_api

ANSWER = {
    "code": 0,
    "msg": "ok",
    "tenant_access_token": "t-1",
    "expire": 7200,
    "bot": {"open_id": "ou_1", "app_name": "Memo"},
    "data": {
        "message_id": "om_1", "card_id": "7", "reaction_id": "r_1", "items": [], "users": [],
        "file_key": "f_1", "image_key": "i_1",
    },
}  # fmt: skip
CARD = {"schema": "2.0", "body": {"elements": []}}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

CALLS: dict[str, Callable[[FeishuClient], Awaitable[Any]]] = {
    "reply": lambda c: c.reply(
        "om_1",
        chat_id="oc_1",
        msg_type="interactive",
        content="{}",
        uuid="u",
        reply_in_thread=True,
    ),
    "send": lambda c: c.send("oc_1", "chat_id", msg_type="text", content="{}", uuid="u"),
    "patch_card": lambda c: c.patch_card("om_1", "{}"),
    "get_message": lambda c: c.get_message("om_1"),
    "list_messages": lambda c: c.list_messages(
        "chat", "oc_1", start_s=1, end_s=2, descending=True, page_size=9
    ),
    "history_page": lambda c: c.history_page(
        "chat", "oc_1", page_token="p", start_s=1, end_s=2, page_size=9
    ),
    "delete_message": lambda c: c.delete_message("om_1"),
    "add_reaction": lambda c: c.add_reaction("om_1", "Typing"),
    "delete_reaction": lambda c: c.delete_reaction("om_1", "r_1"),
    "names": lambda c: c.names(["ou_1"]),
    "chat_info": lambda c: c.chat_info("oc_1"),
    "chat_members": lambda c: c.chat_members("oc_1"),
    "member_names": lambda c: c.member_names("oc_1"),
    "download_resource": lambda c: c.download_resource("om_1", "f_1", "image", 999),
    "create_card": lambda c: c.create_card(CARD),
    "stream_text": lambda c: c.stream_text("7", "answer", "x", 1, "u"),
    "card_settings": lambda c: c.card_settings("7", {"config": {}}, 2, "u"),
    "batch_update_card": lambda c: c.batch_update_card("7", [{"action": "a"}], 4, "u"),
    "update_card": lambda c: c.update_card("7", CARD, 3, "u"),
    "bot_info": lambda c: c.bot_info(),
    "granted_scopes": lambda c: c.granted_scopes(),
    "send_ephemeral": lambda c: c.send_ephemeral("oc_1", "ou_1", CARD),
    "delete_ephemeral": lambda c: c.delete_ephemeral("om_1"),
    "upload_file": lambda c: c.upload_file("a.txt", b"words"),
    "upload_image": lambda c: c.upload_image(PIXEL),
}


METHODS = {
    name
    for name, made in inspect.getmembers(FeishuClient, inspect.iscoroutinefunction)
    if not name.startswith("_") and name != "close"
}


def answering_api() -> FeishuApi:
    """An API that answers everything with success."""
    api = FeishuApi()
    api.otherwise = Answer(json.dumps(ANSWER).encode())
    return api


def sent_by(name: str, api: FeishuApi | None = None) -> Asked:
    """What that method sends."""

    async def call(domain: str) -> None:
        client = FeishuClient(domain, "cli_1", "s")
        await CALLS[name](client)
        await client.close()

    if api is not None:
        asyncio.run(call(api.url))
        return api.asked[-1]
    with feishu_api(answering_api()) as running:
        return sent_by(name, running)
