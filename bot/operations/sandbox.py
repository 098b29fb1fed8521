"""Sandbox mode: the simulated group of `sandbox/`, mounted beside the bot it talks to."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from bot.features.help import (
    available_commands,
    message_beginning,
    set_up,
    short_explanation,
)
from bot.features.own_memory.texts import item_line
from bot.feishu.manifest import MENU
from bot.feishu.markup import with_marks
from bot.settings import Settings
from bot.text.catalogues import Catalogue
from bot.text.languages import LANGUAGES, Sentence, join_list
from bot.text.quotations import quote
from memory.backends.connections import prepare_threshold
from memory.scope import ChatType
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.extras import BothLanguages, Extras, Offered

_OWN = ("/webhook", "/healthz", "/readyz", "/metrics", "/console")


def mount_sandbox(app: Flask, settings: Settings, url: str) -> None:
    """Puts the simulated platform and its page on every path that is not the bot's."""
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
        config, inspector=lambda chat_id: inspect_chat(url, chat_id), extras=_extras(settings)
    )
    bot = app.wsgi_app
    keep_prefix = {path: _with_prefix(bot, path) for path in _OWN}
    app.wsgi_app = DispatcherMiddleware(platform, keep_prefix)  # type: ignore[method-assign]


_TEXTS = Catalogue(__file__)
_LINKS = (
    ("link-console", "/console"),
    ("link-conversations", "/console/turns"),
    ("link-set-up-check", "/console/setup"),
    ("link-queue", "/console/queue"),
)


def _offered(settings: Settings, kind: ChatType) -> list[Offered]:
    """The commands of a kind of chat, `/help` first, because a menu shows the first ones only."""
    known = available_commands(set_up(settings, kind, {}))
    offered: list[Offered] = [{"word": _both(word), "about": _both(about)} for word, about in known]
    return sorted(offered, key=lambda one: one["word"]["en"] != "/help")


def _extras(settings: Settings) -> Extras:
    kinds: tuple[ChatType, ...] = ("group", "p2p")
    commands: dict[str, list[Offered]] = {kind: _offered(settings, kind) for kind in kinds}
    return Extras(
        commands,
        [{"title": _both(_TEXTS.both(key)), "href": page} for key, page in _LINKS],
        [{"key": one.key.value, "name": _both(one.name)} for one in MENU],
    )


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


def inspect_chat(url: str, chat_id: str) -> dict[str, Any]:
    """What the bot remembers of a chat, newest first, for the page's side panel."""
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=prepare_threshold(url)
    ) as connection:
        row = connection.execute("select public.inspect_chat(%s)", [chat_id]).fetchone()
    report: dict[str, Any] = row[0] if row else {}
    report["working_memory"] = [[who, _kept_text(said)] for who, said in report["working_memory"]]
    report["decisions"] = [
        [who, _decision_text_of(said, words)] for who, said, words in report["decisions"]
    ]
    return {
        "sections": [
            {"title": _both(_TEXTS.both(f"title-{one}")), "rows": report[one]} for one in _SECTIONS
        ]
    }


def _kept_text(content: str) -> BothLanguages:
    """Facts as `/memory` shows them, without keys where the values say the same."""
    facts = json.loads(content)
    en, zh = (
        join_list(
            (with_marks(item_line("fact", key, value, language)) for key, value in facts.items()),
            language,
        )
        for language in LANGUAGES
    )
    return _both(Sentence(en, zh))


def _decision_text_of(default_text: str, words: str) -> BothLanguages:
    """The message's words, and `answered: explicit_trigger: mention` in words; a reason that is not
    known any more as it stands."""
    how, _, why = default_text.partition(": ")
    reason, _, cue = why.partition(": ")
    decision_text = short_explanation(how == "answered", reason, cue)
    decision_text = decision_text or Sentence(default_text, default_text)
    quotation = f"{quote(message_beginning(words))} · " if words.strip() else ""
    return {"en": quotation + decision_text.en, "zh": quotation + decision_text.zh}
