"""Sandbox mode: the simulated group of `sandbox/`, mounted beside the bot it talks to."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from bot.settings import Settings
from memory.postgres import prepare_threshold
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig

_OWN = ("/webhook", "/healthz", "/readyz", "/metrics")


def mount(app: Flask, settings: Settings, url: str) -> None:
    """Puts the simulated platform and its page on every path that is not the bot's."""
    webhook_url = f"http://127.0.0.1:{settings.port}/webhook/event"
    config = SandboxConfig(
        webhook_url=webhook_url,
        card_webhook_url=f"http://127.0.0.1:{settings.port}/webhook/card",
        app_id=settings.feishu_app_id,
        app_secret=settings.feishu_app_secret,
        encrypt_key=settings.feishu_encrypt_key,
        verification_token=settings.feishu_verification_token,
        journal=settings.data_dir / "sandbox.jsonl",
    )
    platform = create_sandbox(config, inspector=lambda chat_id: inspect(url, chat_id))
    bot = app.wsgi_app
    keep_prefix = {path: _with_prefix(bot, path) for path in _OWN}
    app.wsgi_app = DispatcherMiddleware(platform, keep_prefix)  # type: ignore[method-assign]


def _with_prefix(application: Any, prefix: str) -> Any:
    """The dispatcher strips the prefix; the bot's routes want it back."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        environ["PATH_INFO"] = prefix + environ.get("PATH_INFO", "")
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "").removesuffix(prefix)
        return application(environ, start_response)

    return call


def inspect(url: str, chat_id: str) -> dict[str, Any]:
    """What the bot remembers of a chat, for the page's side panel: sections of rows or text."""
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=prepare_threshold(url)
    ) as connection:
        memory = connection.execute(
            "select user_id, scope, content from public.agent_working_memory"
            " where content <> '{}' and (chat_id = %s or scope = 'user') order by updated_at desc",
            [chat_id],
        ).fetchall()
        messages = connection.execute(
            "select user_id, role, status, content from public.agent_messages"
            " where chat_id = %s order by id desc limit 30",
            [chat_id],
        ).fetchall()
    return {
        "sections": [
            {
                "title": "Working memory",
                "rows": [
                    [user, scope, json.dumps(c, ensure_ascii=False)] for user, scope, c in memory
                ],
            },
            {
                "title": "Stored messages (whose memory, role, state, text)",
                "rows": [list(row) for row in reversed(messages)],
            },
        ]
    }
