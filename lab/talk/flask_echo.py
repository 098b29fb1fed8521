"""The least that answers a mention: bare Flask, a thread for each question, nothing kept.

It verifies and decrypts the event, acknowledges it, asks the model and replies in a card. What the
bot costs is told as a multiple of this, measured in the same run.
"""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from flask import Flask, Response, abort, jsonify, request

from bot.feishu import crypto

_PLACES = 128


def create_app() -> Flask:
    """The web process; `FEISHU_DOMAIN`, `FEISHU_ENCRYPT_KEY` and `OPENAI_BASE_URL` say where."""
    app, pool = Flask(__name__), ThreadPoolExecutor(_PLACES)
    key = os.environ["FEISHU_ENCRYPT_KEY"]

    @app.get("/readyz")
    def ready() -> Response:
        return jsonify(ready=True)

    @app.post("/webhook/event")
    def event() -> Response:
        body, headers = request.get_data(), request.headers
        genuine = crypto.verify_signature(
            timestamp=headers.get("X-Lark-Request-Timestamp"),
            nonce=headers.get("X-Lark-Request-Nonce"),
            given=headers.get("X-Lark-Signature"),
            encrypt_key=key,
            body=body,
        )
        if not genuine:
            abort(401)
        message = json.loads(crypto.decrypt(key, json.loads(body)["encrypt"]))["event"]["message"]
        if message.get("mentions"):
            pool.submit(_answer, message)
        return jsonify(code=0)

    return app


_local = threading.local()


def _answer(message: dict[str, Any]) -> None:
    session: requests.Session | None = getattr(_local, "session", None)
    if session is None:
        session = _local.session = requests.Session()
    question = json.loads(message["content"])["text"]
    asked = {"model": "echo", "messages": [{"role": "user", "content": question}]}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    answer = session.post(url, json=asked, timeout=60).json()
    text = answer["choices"][0]["message"]["content"]
    card = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": text}]}}
    reply = {"msg_type": "interactive", "content": json.dumps(card), "uuid": message["message_id"]}
    place = f"/open-apis/im/v1/messages/{message['message_id']}/reply"
    session.post(f"{os.environ['FEISHU_DOMAIN']}{place}", json=reply, timeout=60)
