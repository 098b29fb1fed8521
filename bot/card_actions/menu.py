"""A press in the bot's menu, in the worker: it starts what its command starts, where the person who
pressed alone reads. The key of an item is the name of a command."""

from __future__ import annotations

from functools import partial

import structlog

from bot.answering.question import Turn, language
from bot.card_actions.pressed_message import Place, Saying, as_said
from bot.card_actions.texts import say
from bot.feishu import manifest, markup
from bot.feishu.menu import MenuPress
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.slash_commands import WORDS
from bot.turn import handle_request
from memory.errors import StoreUnavailable
from memory.models import OpenTurn
from memory.origins import Origin
from memory.scope import private_context
from memory.tables.private import PrivateStore

log = structlog.get_logger()

_KEY_CHARS = 30  # Feishu's own limit


async def handle_menu_press(
    services: Services, press: MenuPress, received_ms: int, lease: Lease
) -> None:
    """Answers a press once, however often Feishu tells of it. Raises what is worth another attempt.
    Who presses an item that has no command is told which have one."""
    key = press.key.strip().lstrip("/／").lower()
    is_command = key in WORDS
    log.info("menu", event_key=press.key[:_KEY_CHARS], known=is_command)
    request = await _request(services, press, f"/{key}")
    answering = None if is_command else partial(_no_such_item, key=press.key)
    await handle_request(services, request, received_ms, answering=answering, lease=lease)


async def _request(services: Services, press: MenuPress, text: str) -> TurnRequest:
    """In their p2p chat, or their own place where that is not known yet."""
    place = private_context(press.open_id, press.tenant_key)
    try:
        place = await PrivateStore(services.rpc).place(place)
    except StoreUnavailable as exc:
        log.info("menu.place_unknown", error=type(exc).__name__)
    return await as_said(
        services,
        Saying(press.open_id, press.tenant_key, press.at_ms),
        Origin("button", press.item, press.cause),
        Place(place.chat_id, "p2p", ""),
        text,
    )


async def _no_such_item(services: Services, turn: Turn, open_turn: OpenTurn, *, key: str) -> Reply:
    reply_language = language(services, turn, open_turn)
    key_words = markup.as_words(key[:_KEY_CHARS])
    keys = ", ".join(f"`{one.key}`" for one in manifest.MENU)
    return Reply(say("no-such-item", reply_language, key=key_words, keys=keys))
