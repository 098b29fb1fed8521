"""Sends the bot's first words, once, when it is added to a group or somebody first opens their
chat with it.

The memory knows for which event they are, however many arrive, until the bot has left; Feishu
recognises a repeated send by the uuid. When it may have forgotten the uuid, nothing is sent:
nobody waits for first words."""

from __future__ import annotations

import structlog

from bot.features.feature import Feature, SetUp
from bot.features.help import hears_all, set_up
from bot.features.help import say as say_help
from bot.feishu import markup
from bot.feishu.errors import FeishuError
from bot.feishu.events import Envelope
from bot.feishu.other_events import CHAT_EVENTS, ChatNews, parse_chat_news
from bot.listening.chat_rules import languages_of, rules_of
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.finding import doubt_of
from bot.outbox.sending import send_notice
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.languages import Catalogue, Language
from memory.tables.directory import ChatStore, ChatType

log = structlog.get_logger()
WELCOME_EVENTS = frozenset({"entered", "opened"})

say = Catalogue(__file__).say


async def handle_chat_event(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    """Welcomes a group that the bot entered, or a person who opened their chat with it."""
    news = parse_chat_news(envelope, received_ms)
    if services.membership and news.what in WELCOME_EVENTS:
        await welcome(services, news, lease)


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
        text = await _first_words(services, news, chat_type)
        try:
            await send_notice(
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


async def _first_words(services: Services, news: ChatNews, chat_type: ChatType) -> str:
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


def welcome_text(bot: str, here: SetUp, language: Language) -> str:
    """What it can do, whose memory it keeps, who can see it. `bot` is a name, safe in Markdown."""
    sharing = "shared" if here.shares else "apart"
    mode = here.mode if here.follows else "mention"
    text = say(
        "in-group" if here.in_group else "in-p2p",
        language,
        bot=bot,
        speaks=say(f"speaks-{mode}", language),
        whose=say(f"whose-{sharing}", language),
        seen=say(f"seen-{sharing}", language),
        also=say(f"also-{sharing}", language),
    )
    if here.in_group and here.imports:
        text += say("imports", language, bot=bot)
    return text if here.hears else f"{text}\n\n{say_help('mentions-only', language)}"


WELCOME = Feature(name="welcome", events=dict.fromkeys(CHAT_EVENTS, handle_chat_event))
