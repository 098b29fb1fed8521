"""A yes or no, typed or as a reaction, presses the one action that waits for the asker.

The action was stored with its tool, arguments, asker and expiry, and its card says all that will be
done (`bot.agents.tools.confirming`). A yes is consent to that and to nothing else: without such an
action it is an ordinary message, and gives no authority to what the bot wrote before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import structlog

from bot.answering.answering import Answering
from bot.answering.chat_state import root_of, within_topic
from bot.answering.question import Turn, kind_of
from bot.card_actions.confirmation import decided, pressed
from bot.features.dispatch import answer as answer_question
from bot.features.registry import PRESSES, press_name
from bot.feishu import events
from bot.feishu.reactions import Consent
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.outbox.redrawing import redraw
from bot.services import Services
from memory.errors import StoreUnavailable
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext, memory_context
from memory.tables.buttons import ButtonStore, Click

log = structlog.get_logger()

_LONGEST = 40
_YES = (
    r"yes|yep|yeah|yup|y|sure(?: thing)?|ok|okay|fine|please(?: do)?|do (?:it|that|so)"
    r"|go (?:ahead|for it)|confirm(?:ed)?|correct|right|exactly|of course|absolutely"
    r"|sounds good|approved?|agreed"
    r"|👍|✅|👌|是|是的|对|对的|好|好的|好啊|好呀|行|可以|嗯{1,4}|要|没问题|同意|确认|确定|当然|执行吧?|就这样"
)
_NO = (
    r"no|nope|nah|n|don['’]?t(?: do (?:it|that))?|do not|cancel(?: (?:it|that))?"
    r"|never ?mind|rather not|👎|❌|不|不要|不用|不行|不是|不对|算了|别|取消|否|先不"
)
_FOLLOWED_BY = r"(?:,? (?:please|thanks|thank you)|，?谢谢|吧|了|的)?[\s,.!，。！~～]{0,5}"


def _saying(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{words}){_FOLLOWED_BY}){{1,3}}", re.IGNORECASE)


_SAYS: Mapping[Consent, re.Pattern[str]] = {"yes": _saying(_YES), "no": _saying(_NO)}


def consent_of(text: str) -> Consent | None:
    """What `text` says if it is a mere yes or no. Pure."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    return next((consent for consent, says in _SAYS.items() if says.fullmatch(text)), None)


async def consent_to_pending(services: Services, request: TurnRequest) -> Answering | None:
    """Returns what answers a typed yes or no by pressing what waits for its author; None if the
    message is anything else, or nothing waits."""
    if len(request.text) > 10 * _LONGEST or request.attachments:
        return None
    bot = await services.own_person.look_up()
    if any(not one.is_bot and one.open_id != bot.open_id for one in request.mentions):
        return None
    consent = consent_of(events.question_text(request, bot.open_id))
    if consent is None:
        return None
    request = await within_topic(services, request)
    asker = memory_context(
        chat_id=request.chat_id,
        root=root_of(request, reply_in_thread=services.settings.reply_in_thread),
        subject=request.sender_open_id,
        actor=request.sender_open_id,
        tenant_key=request.tenant_key,
        chat_type=kind_of(request),
        actor_tenant=request.sender_tenant,
    )
    return await pressing(services, asker, consent, event_id=request.id, card_id=request.quotes)


async def pressing(
    services: Services, asker: AgentMemoryContext, consent: Consent, *, event_id: str, card_id: str
) -> Answering | None:
    """Returns what answers by pressing the action that waits for `asker`; None if none does, or if
    the memory is away."""
    try:
        pending = await ButtonStore(services.rpc).pending(asker, event_id=event_id, card_id=card_id)
    except StoreUnavailable as exc:
        log.info("consent.unknown", error=type(exc).__name__)
        return None
    if pending is None:
        return None
    click = Click(
        button_id=pending.confirm if consent == "yes" else pending.cancel,
        chat_id=asker.chat_id,
        message_id=pending.message_id,
        operator_id=asker.actor_id,
        tenant_key=asker.tenant_key,
        event_id=event_id,
    )
    return partial(_press, click=click)


async def _press(services: Services, turn: Turn, open_turn: OpenTurn, *, click: Click) -> Reply:
    """Presses the button, unless somebody was faster: then the words go to the model."""
    press = await ButtonStore(services.rpc).press(click)
    log.info("consent", button_id=click.button_id, verdict=press.verdict)
    if press.verdict != "accepted":
        return await answer_question(services, turn, open_turn)
    act = pressed if press_name(press) in PRESSES else decided
    reply = await act(services, turn, open_turn, press=press)
    await redraw(services, click.message_id, click.tenant_key)
    return reply
