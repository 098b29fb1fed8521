"""Tells a person, alone, that words which they had deleted stay where they said them once more."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bot.feishu import markup
from bot.feishu.errors import FeishuFailure
from bot.outbox.delivery import Aside, Undeliverable
from bot.outbox.notices import say
from bot.outbox.texts import CATALOGUE
from bot.services import Services
from bot.text.languages import Language, join_list
from memory.errors import StoreError
from memory.tables.said import Elsewhere, SaidStore

log = structlog.get_logger()

_NAMED = 10


async def find_same_words(services: Services, messages: Sequence[str]) -> Elsewhere | None:
    """Where their author said the same, asked before they are deleted. Never raises."""
    try:
        return await SaidStore(services.rpc).elsewhere(messages)
    except StoreError as exc:
        log.info("same_words.unknown", error=type(exc).__name__)
        return None


async def tell_same_words(services: Services, elsewhere: Elsewhere | None, key: str) -> None:
    """Tells them in p2p, once per `key`, whoever else reads along where it was deleted. Never
    raises."""
    if elsewhere is None:
        return
    text = "\n\n".join(_text(elsewhere, language) for language in ("zh", "en"))
    try:
        await say(services, Aside(elsewhere.person), text, key=f"same words {key}")
    except (FeishuFailure, Undeliverable) as exc:
        log.info("same_words.untold", error=type(exc).__name__)


def _text(elsewhere: Elsewhere, language: Language) -> str:
    unnamed_chat = CATALOGUE.say("another-chat", language)
    names = dict.fromkeys(markup.verbatim(name) or unnamed_chat for name in elsewhere.chats)
    return CATALOGUE.say("same-words-stay", language, chats=join_list([*names][:_NAMED], language))
