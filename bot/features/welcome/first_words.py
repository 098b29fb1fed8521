"""The bot's first words in a chat: when it was added to a group, and when somebody first opens
their chat with it.

Once: the memory knows for which event they are, however many come, until the bot has left; Feishu
recognises a repeated send by the uuid made of that. When it may have forgotten the uuid, nothing is
sent: nobody waits for first words.
"""

from __future__ import annotations

import structlog

from bot.features.help.capabilities import set_up
from bot.features.help.group_access import hears_all
from bot.features.welcome.texts import welcome_text
from bot.feishu import markup
from bot.feishu.chat_events import ChatNews
from bot.feishu.errors import FeishuError
from bot.listening.chat_rules import languages_of, rules_of
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.finding import doubt_of
from bot.outbox.notices import say
from bot.queue.consumer import Lease
from bot.services import Services
from memory.tables.chats import ChatStore, ChatType

log = structlog.get_logger()

WELCOMED = frozenset({"entered", "opened"})


async def welcome(services: Services, news: ChatNews, lease: Lease) -> None:
    """Says the first words that the chat is owed, if any. Raises what is worth another attempt."""
    chats = ChatStore(services.rpc)
    chat_type: ChatType = "p2p" if news.what == "opened" else "group"
    owed_since_ms = await chats.begin_welcome(
        news.tenant_key, news.chat_id, chat_type, at_ms=news.at_ms
    )
    if owed_since_ms is None:
        return
    outcome = "sent"
    if doubt_of(services, lease.job.maybe_sent_ms).is_old:
        outcome = "unknown"
    else:
        text = await _text(services, news, chat_type)
        try:
            await say(
                services,
                Target("", news.chat_id, in_thread=False),
                text,
                key=f"welcome:{news.chat_id}",
                number=owed_since_ms,
                lease=lease,
            )
        except Undeliverable as exc:
            outcome = f"refused: {exc.reason}"
        except FeishuError as exc:
            if exc.action.may_pass:
                raise
            outcome = f"refused: feishu {exc.code}"
    await chats.end_welcome(news.chat_id, owed_since_ms)
    lease.unsure = False
    log.info("welcome", chat_id=news.chat_id, chat_type=chat_type, outcome=outcome)


async def _text(services: Services, news: ChatNews, chat_type: ChatType) -> str:
    settings = services.settings
    params = {"p_chat_id": news.chat_id, "p_tenant_key": news.tenant_key}
    rules = await services.rpc.call("get_chat_rules", params, None)
    bot = await services.own_person.look_up()
    here = set_up(settings, chat_type, rules, hears=await hears_all(services, chat_type))
    lark = "larksuite" in settings.domain
    return "\n\n---\n\n".join(
        welcome_text(markup.card_markdown(bot.name), here, language)
        for language in languages_of(rules_of(rules, settings).language, news.name, lark=lark)
    )
