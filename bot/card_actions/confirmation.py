"""Does a confirmed action once, whether it was confirmed by a button, a typed yes or a reaction.

The action was stored with its tool, arguments, asker and expiry, and its card states all that will
be done (`bot.agents.tools.confirming`). A yes consents to that alone: without such an action it is
an ordinary message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import structlog

from bot.agents.mcp.servers import ActionAlreadyRun, ActionResult, ServerDown
from bot.agents.prompts.prompt import PendingAction, Prompt
from bot.agents.tool_types import ToolOutcome
from bot.agents.tools.confirming import SHARE_NOTE
from bot.agents.tools.note_texts import WORDING, closed_document_outcome, note_shared
from bot.agents.tools.tool_calls import store_failure_outcome
from bot.answering.answering import Answering, answer_question
from bot.answering.question import Turn, people_of, turn_language
from bot.answering.request_chat import own_thread
from bot.feishu import events
from bot.feishu.events import CardAction
from bot.feishu.other_events import Consent
from bot.hooks import PressTurn
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.outbox.live_card import redraw_card
from bot.services import Services
from bot.text.json_text import readable_lines
from bot.text.languages import Catalogue, Language
from memory.errors import StoreError, StoreUnavailable
from memory.models import OpenTurn, WorkingMemory
from memory.scope import AgentMemoryContext
from memory.tables.cards import ButtonStore, Click, PressResult
from memory.tables.notes import NoteStore, note_source

log = structlog.get_logger()
say = Catalogue(__file__).say
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


def press_name(press: PressResult) -> str:
    """The name by which a feature registers what the button does. It is "" for a button that asks a
    question or cancels."""
    payload = press.payload
    if press.kind == "confirm":
        return str(payload["tool"]) if payload["decision"] == "confirm" else ""
    if press.kind == "follow_up":
        return str(payload.get("tool") or "")
    return press.kind or ""


def answering_of(services: Services, press: PressResult, action: CardAction) -> Answering | None:
    """Returns what answers in place of the model, if anything does."""
    if press_name(press) in services.hooks.cards.presses:
        return partial(feature_press_reply, press=press, values=action.form_value)
    return partial(decision_reply, press=press) if press.kind == "confirm" else None


async def feature_press_reply(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    *,
    press: PressResult,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Reply:
    """Returns the reply of the feature that registered the button. It can be repeated after a
    crash."""
    reply_language = press.payload.get("language") or turn_language(services, turn, open_turn)
    beside_group = press.payload.get("beside", "")
    press_turn = PressTurn(
        turn.context,
        turn.chat_type,
        reply_language,
        turn.id,
        beside_group,
        press=press,
        values=values,
        attempts=open_turn.attempts,
        pressed_ms=turn.received_ms,
        asked_ms=turn.request.create_time_ms,
    )
    reply: Reply = await services.hooks.cards.presses[press_name(press)](services, press_turn)
    return reply


async def decision_reply(
    services: Services, turn: Turn, open_turn: OpenTurn, *, press: PressResult
) -> Reply:
    """Does a confirmed action at most once: after a crash in between it is not done again."""
    reply_language = cast(Language, press.payload["language"])
    if press.payload["decision"] != "confirm":
        return Reply(say("cancelled", reply_language))
    if open_turn.attempts > 1:
        return Reply(say("interrupted", reply_language))
    action = _action(press)
    if not await services.hooks.cards.may_show(services, turn.context, [press.turn_id]):
        return Reply(WORDING.tell(closed_document_outcome(), reply_language))
    if _opens_a_note(action):
        outcome = await _share_note(services, turn, str(action.arguments["note_id"]))
        record = _record(action, outcome.result, ok=outcome.ok)
        return Reply(WORDING.tell(outcome, reply_language), tool_calls=(record,))
    if performance := await _performed_here(services, turn, action, reply_language):
        outcome_text, record = performance
        return Reply(outcome_text, tool_calls=(record,))
    try:
        result = await _perform_outside(services, action)
    except ActionAlreadyRun:
        return Reply(say("interrupted", reply_language))
    except ServerDown:
        return Reply(say("no-such-action", reply_language))
    record = _record(action, result.text, ok=result.ok)
    return Reply(
        action_result_text(result.text, has_succeeded=result.ok, language=reply_language),
        tool_calls=(record,),
    )


def action_result_text(text: str, *, has_succeeded: bool, language: Language) -> str:
    """Tells how a confirmed action went, and the part of the tool's result that people can read."""
    lines = readable_lines(text).strip()
    if not lines:
        return say("done-without-words" if has_succeeded else "failed-without-words", language)
    result_text = f"\n{lines}" if "\n" in lines else lines
    return say("done" if has_succeeded else "failed", language, text=result_text)


def _record(action: PendingAction, result: str, *, ok: bool) -> Mapping[str, Any]:
    return {
        "name": action.tool,
        "arguments": dict(action.arguments),
        "result": result,
        "ok": ok,
    }


async def _performed_here(
    services: Services, turn: Turn, action: PendingAction, language: Language
) -> tuple[str, Mapping[str, Any]] | None:
    """Calls one of our own tools on the presser's memory. Returns the text for people and the
    record of the call, or None if the tool is not ours."""
    prompt = Prompt(
        bot_name=turn.bot.name,
        question=turn.question,
        history=(),
        subject=turn.names.name(turn.context.user_id),
        working_memory=WorkingMemory(),
        now=services.now(),
        written_at=services.asked_at(action.asked_ms),
        people=turn.names.roster(people_of(turn)),
        context=turn.context,
        turn_id=turn.id,
    )
    return await services.manager.perform(action, prompt, language)


def _opens_a_note(action: PendingAction) -> bool:
    return action.tool == SHARE_NOTE and bool(action.arguments.get("shared", True))


async def _perform_outside(services: Services, action: PendingAction) -> ActionResult:
    """Returns the outcome of the action on an outside server. Raises `ActionAlreadyRun` and
    `ServerDown`."""
    if services.perform is None:
        raise ServerDown("No outside servers are configured.")
    return await services.perform(action)


async def _share_note(services: Services, turn: Turn, note_id: str) -> ToolOutcome:
    """Shares the presser's note with the chat in which they pressed, if everybody there can open
    the documents behind it."""
    sources = [note_source(note_id)]
    if not await services.hooks.cards.may_show(services, turn.context, sources):
        return closed_document_outcome()
    try:
        note = await NoteStore(services.rpc).share(turn.context, note_id)
    except StoreUnavailable:
        raise
    except StoreError as exc:
        return replace(store_failure_outcome(exc), result=str(exc))
    return note_shared(note)


def _action(press: PressResult) -> PendingAction:
    return PendingAction(
        id=press.payload["id"],
        tool=press.payload["tool"],
        arguments=press.payload["arguments"],
        description=press.payload["description"],
        actor_id=press.actor_id,
        conversation_id=press.conversation_id,
        asked_ms=press.payload.get("asked_ms", 0),
    )


def _repeated_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{words}){_FOLLOWED_BY}){{1,3}}", re.IGNORECASE)


_SAYS: Mapping[Consent, re.Pattern[str]] = {
    "yes": _repeated_words(_YES),
    "no": _repeated_words(_NO),
}


def consent_of(text: str) -> Consent | None:
    """Returns yes or no if `text` says nothing else. Pure."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    return next((consent for consent, says in _SAYS.items() if says.fullmatch(text)), None)


async def consent_to_pending(services: Services, request: TurnRequest) -> Answering | None:
    """Returns the function that answers a typed yes or no by pressing the author's pending button;
    None if the message is anything else, or no button is pending."""
    if len(request.text) > 10 * _LONGEST or request.attachments:
        return None
    bot = await services.own_person.look_up()
    if any(not one.is_bot and one.open_id != bot.open_id for one in request.mentions):
        return None
    consent = consent_of(events.question_text(request, bot.open_id))
    if consent is None:
        return None
    chat = await own_thread(services, request)
    asker = chat.context_about(request.sender_open_id)
    return await consent_answering(
        services, asker, consent, event_id=request.id, card_id=request.quotes
    )


async def consent_answering(
    services: Services, asker: AgentMemoryContext, consent: Consent, *, event_id: str, card_id: str
) -> Answering | None:
    """Returns the function that answers by pressing the pending action of `asker`; None if there is
    none, or if the memory is away."""
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
    return partial(_consent_reply, click=click)


async def _consent_reply(
    services: Services, turn: Turn, open_turn: OpenTurn, *, click: Click
) -> Reply:
    """Presses the button. If somebody else pressed it first, the model answers the message."""
    press = await ButtonStore(services.rpc).press(click)
    log.info("consent", button_id=click.button_id, verdict=press.verdict)
    if press.verdict != "accepted":
        return await answer_question(services, turn, open_turn)
    act = (
        feature_press_reply if press_name(press) in services.hooks.cards.presses else decision_reply
    )
    reply = await act(services, turn, open_turn, press=press)
    await redraw_card(services, click.message_id, click.tenant_key)
    return reply
