"""A bot on nonebot2 and its Feishu adapter's long connection:

`python nonebot_bot.py DOMAIN APP_ID APP_SECRET`

It answers each mention in its thread with a card that has a button. The adapter acknowledges a
press and has no way to answer it.
"""

import json
import socket
import sys

import nonebot
from nonebot.adapters.feishu import Adapter, Bot, GroupMessageEvent

domain, app_id, app_secret = sys.argv[1:4]
app = {"app_id": app_id, "app_secret": app_secret, "verification_token": "", "protocol": "ws"}
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]  # the driver always serves; nobody asks it
nonebot.init(
    driver="~fastapi+~httpx+~websockets",
    host="127.0.0.1",
    port=port,
    feishu_bots=[{**app, "api_base": domain}],
)
nonebot.get_driver().register_adapter(Adapter)
matcher = nonebot.on_message()


@matcher.handle()
async def answer(bot: Bot, event: GroupMessageEvent) -> None:
    assert event.is_tome()
    button = {"tag": "button", "text": {"tag": "plain_text", "content": "Press"}}
    button["behaviors"] = [{"type": "callback", "value": {"to": event.message_id}}]
    text = {"tag": "markdown", "content": f"heard {event.get_plaintext()}"}
    card = {"schema": "2.0", "body": {"elements": [text, button]}}
    await bot.call_api(
        f"im/v1/messages/{event.message_id}/reply",
        method="POST",
        body={"msg_type": "interactive", "content": json.dumps(card), "reply_in_thread": True},
    )


nonebot.run()
