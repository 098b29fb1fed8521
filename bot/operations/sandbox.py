"""Sandbox mode: the simulated group of `sandbox/`, mounted beside the bot it talks to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from bot.feishu.manifest import MENU
from bot.feishu.markup import unescape, with_marks
from bot.hooks import PageTexts
from bot.settings import Settings
from bot.text.languages import LANGUAGES, Catalogue, Sentence, join_list
from memory.backends.connections import prepare_threshold
from memory.scope import ChatType
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.extras import BothLanguages, Extras, Offered

_OWN = ("/webhook", "/healthz", "/readyz", "/metrics", "/console")


def mount_sandbox(
    app: Flask, settings: Settings, url: str, load_texts: Callable[[], PageTexts]
) -> None:
    """Puts the simulated platform and its page on every path that is not the bot's. `load_texts` is
    called when somebody opens the page: it loads the features."""
    webhook_url = f"http://127.0.0.1:{settings.port}/webhook/event"
    config = SandboxConfig(
        webhook_url=webhook_url,
        card_webhook_url=f"http://127.0.0.1:{settings.port}/webhook/card",
        app_id=settings.feishu_app_id,
        app_secret=settings.feishu_app_secret,
        encrypt_key=settings.feishu_encrypt_key,
        verification_token=settings.feishu_verification_token,
        timezone=settings.zone.key,
        offline_model=not settings.openai_api_key,
        journal=settings.data_dir / "sandbox.jsonl",
    )
    platform = create_sandbox(
        config,
        inspector=lambda chat_id: inspect_chat(url, chat_id, load_texts()),
        extras=lambda: _extras(settings, load_texts()),
    )
    bot = app.wsgi_app
    keep_prefix = {path: _with_prefix(bot, path) for path in _OWN}
    app.wsgi_app = DispatcherMiddleware(platform, keep_prefix)  # type: ignore[method-assign]


_TEXTS = Catalogue(__file__)
_KINDS: tuple[ChatType, ...] = ("group", "p2p")
_LINKS = (
    ("link-console", "/console"),
    ("link-conversations", "/console/turns"),
    ("link-set-up-check", "/console/setup"),
    ("link-queue", "/console/queue"),
)


def _extras(settings: Settings, texts: PageTexts) -> Extras:
    return Extras(
        {kind: _menu(texts.commands(settings, kind)) for kind in _KINDS},
        [{"title": _both(_TEXTS.both(key)), "href": page} for key, page in _LINKS],
        [{"key": one.key.value, "name": _both(one.name)} for one in MENU],
    )


def _menu(commands: Sequence[tuple[Sentence, Sentence]]) -> list[Offered]:
    """The slash menu, `/help` first, because a menu shows the first ones only."""
    items: list[Offered] = [
        {"word": _both(word), "about": _both(about)} for word, about in commands
    ]
    return sorted(items, key=lambda one: one["word"]["en"] != "/help")


def _both(sentence: Sentence) -> BothLanguages:
    return {"en": sentence.en, "zh": sentence.zh}


def _with_prefix(application: Any, prefix: str) -> Any:
    """The dispatcher strips the prefix; the bot's routes want it back."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        environ["PATH_INFO"] = prefix + environ.get("PATH_INFO", "")
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "").removesuffix(prefix)
        return application(environ, start_response)

    return call


_SECTIONS = ("working_memory", "notes", "summaries", "decisions", "messages")


def inspect_chat(url: str, chat_id: str, texts: PageTexts) -> dict[str, Any]:
    """What the bot remembers of a chat, newest first, for the page's side panel."""
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=prepare_threshold(url)
    ) as connection:
        row = connection.execute("select public.inspect_chat(%s)", [chat_id]).fetchone()
    report: dict[str, Any] = row[0] if row else {}
    report["working_memory"] = [
        [who, _fact_lines(content, texts)] for who, content in report["working_memory"]
    ]
    report["decisions"] = [
        [who, _both(texts.decision(decision, words))]
        for who, decision, words in report["decisions"]
    ]
    report["messages"] = [[who, unescape(words)] for who, words in report["messages"]]
    return {
        "sections": [
            {"title": _both(_TEXTS.both(f"title-{one}")), "rows": report[one]} for one in _SECTIONS
        ]
    }


def _fact_lines(content: str, texts: PageTexts) -> BothLanguages:
    facts = json.loads(content)
    en, zh = (
        join_list(
            (with_marks(texts.fact(key, value, language)) for key, value in facts.items()),
            language,
        )
        for language in LANGUAGES
    )
    return _both(Sentence(en, zh))
