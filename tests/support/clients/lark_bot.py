"""A bot as the official samples are written, on lark-oapi's own long connection:

`python lark_bot.py DOMAIN APP_ID APP_SECRET`

It answers each message in its thread with a card that has a button, and a press with a toast.
"""

import json
import sys
from typing import Any

import lark_oapi as lark
from lark_oapi.api.im.v1 import ReplyMessageRequest, ReplyMessageRequestBody

domain, app_id, app_secret = sys.argv[1:4]
client = lark.Client.builder().app_id(app_id).app_secret(app_secret).domain(domain).build()


def answer(event: Any) -> None:
    said = event.event.message
    button = {"tag": "button", "text": {"tag": "plain_text", "content": "Press"}}
    button["behaviors"] = [{"type": "callback", "value": {"to": said.message_id}}]
    text = {"tag": "markdown", "content": f"heard {json.loads(said.content)['text']}"}
    card = {"schema": "2.0", "body": {"elements": [text, button]}}
    body = ReplyMessageRequestBody.builder().msg_type("interactive").content(json.dumps(card))
    request = ReplyMessageRequest.builder().message_id(said.message_id)
    request = request.request_body(body.reply_in_thread(True).build()).build()
    assert client.im.v1.message.reply(request).success()


def toast(pressed: Any) -> dict[str, Any]:
    return {"toast": {"type": "info", "content": f"to {pressed.event.action.value['to']}"}}


handler = (
    lark.EventDispatcherHandler.builder("", "")
    .register_p2_im_message_receive_v1(answer)
    .register_p2_card_action_trigger(toast)
    .build()
)
lark.ws.Client(app_id, app_secret, event_handler=handler, domain=domain).start()
