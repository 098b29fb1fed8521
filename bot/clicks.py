"""Clicks on buttons, in the worker: a follow-up is a message of whoever clicked, a confirmed action
is done once.

The press is what counts (`memory.kept.buttons`): a click that was refused at the edge, forged or
double, ends here. A follow-up then goes the way of every message, under the click's own turn id; a
model wrote it, so what it would change waits for a confirmation (`bot.agents.tools.recording`).
What is shown and shared privately is in `bot.private`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import structlog

from bot.agents.mcp.servers import ActionAlreadyRun, ActionResult, ServerDown
from bot.agents.outcomes import told
from bot.agents.prompt import PendingAction, Prompt
from bot.agents.tools.confirming import SHARE_NOTE
from bot.answer.pressed import (
    Place,
    Saying,
    as_message,
    as_said,
    asked_there,
    in_conversation,
    turn_id,
    turn_of,
    under_card,
)
from bot.answer.question import Turn, people_of
from bot.commands import items, reminders, rule_texts
from bot.commands import texts as texts
from bot.commands.chat_rules import save_settings
from bot.commands.doing import FORGET_PERSON, FORGET_THREAD
from bot.feishu import cards
from bot.feishu.errors import FeishuError
from bot.feishu.events import CardAction
from bot.languages import Language
from bot.mentions import Person
from bot.private.answering import Shown, answer_privately, published
from bot.reply.buttons import Reply, click_of, touch_of
from bot.reply.delivery import Target, Undeliverable, deliver
from bot.reply.redrawing import redraw
from bot.services import Services
from bot.turn import Answering, handle_message
from memory.errors import StoreError, StoreUnavailable
from memory.kept.buttons import ButtonStore, Click, Press
from memory.kept.handles import HandleStore, Touch
from memory.kept.notes import NoteStore
from memory.kept.operations import Operations
from memory.kept.proactive import ProactiveStore
from memory.models import OpenTurn, WorkingMemory
from memory.scope import MAIN_ROOT, memory_context

log = structlog.get_logger()

_FORGETTING = (FORGET_THREAD, FORGET_PERSON)
_LOOK_UP_S = 2.0


async def handle_click(services: Services, action: CardAction, received_ms: int) -> None:
    """Does what the pressed button is for. Raises what is worth another attempt."""
    if touch := touch_of(action):
        await _again(services, action, touch, received_ms)
        return
    click = click_of(action)
    if click is None:
        return
    press = await ButtonStore(services.rpc).press(click)
    log.info("click", button_id=click.button_id, verdict=press.verdict, kind=press.kind)
    if press.verdict != "accepted":
        return
    confirmed = press.payload.get("decision") == "confirm"
    if press.kind == "confirm" and confirmed and press.payload["tool"] in _FORGETTING:
        await redraw(services, click.message_id, click.tenant_key)
        await _forget(services, click, press)
        return
    if press.kind == "show":
        await _show(services, action, click, press, received_ms)
        return
    place = asked_there(press) if press.kind == "share" else under_card(services, click, press)
    turn = turn_of(click, press)
    event = await as_message(services, action, click, place, _words(press), turn=turn)
    answered = handle_message(
        services, event, received_ms, reply_to=place.message_id, answering=_answering(press, action)
    )
    if "form" in press.payload:  # drawn anew, it would forget what was chosen
        await answered
        return
    await asyncio.gather(answered, redraw(services, click.message_id, click.tenant_key))


async def _again(services: Services, action: CardAction, touch: Touch, received_ms: int) -> None:
    """Answers the question of the card once more, in a turn of its own. A press that was begun
    before a crash goes on: then its turn is there already, and `used`."""
    if touch.handle != "again":
        return  # the edge has kept it
    found = await HandleStore(services.rpc).press(touch)
    log.info("again", verdict=found.verdict, turn_id=found.turn_id)
    if found.verdict not in ("accepted", "used") or not found.question:
        return
    _, chat_id, root = found.conversation_id.split(":", 2)
    kind = found.chat_type or "group"
    place = in_conversation(services, chat_id, root, kind, touch.message_id)
    saying = Saying(touch.operator_id, touch.tenant_key, action.event_id, action.create_time_ms)
    event = await as_said(
        services, saying, found.turn_id, place, found.question, about=found.subject
    )
    await asyncio.gather(
        handle_message(services, event, received_ms, reply_to=touch.message_id),
        redraw(services, touch.message_id, touch.tenant_key, again=False),
    )


def _answering(press: Press, action: CardAction) -> Answering | None:
    """What takes the place of the model."""
    match press.kind:
        case "confirm" if press.payload["decision"] == "confirm" and (
            press.payload["tool"] in items.PRESSES
        ):
            return partial(_item_pressed, press=press)
        case "confirm" if press.payload["decision"] == "confirm" and (
            press.payload["tool"] in reminders.PRESSES
        ):
            return partial(_reminder_pressed, press=press)
        case "confirm":
            return partial(_decided, press=press)
        case "follow_up" if "form" in press.payload:
            return partial(_settings_saved, press=press, values=action.form_value)
        case "follow_up" if press.payload.get("stops") == "proactive":
            return partial(_proactive_stopped, press=press)
        case "share":
            where = press.payload
            return partial(published, asked_in=where["turn_id"], answer_id=where["answer_id"])
        case _:
            return None


async def _show(
    services: Services, action: CardAction, click: Click, press: Press, received_ms: int
) -> None:
    """Asks the question of the group again, in the presser's own place."""
    where = press.payload
    shown = Shown(where, beside=click.chat_id == where["chat_id"], card_id=click.message_id)
    group = memory_context(
        chat_id=where["chat_id"],
        root=where["root_id"],
        subject=click.operator_id,
        actor=click.operator_id,
        tenant_key=click.tenant_key,
        chat_type="group",
    )
    asked = await services.store.said(group, where["turn_id"])
    if asked is None:  # taken back just now
        log.info("private.question_gone", button_id=click.button_id)
        return
    place = Place(click.operator_id, "p2p", where["turn_id"])
    event = await as_message(services, action, click, place, asked.content)
    await answer_privately(services, event, received_ms, shown)


def _words(press: Press) -> str:
    if press.kind in ("follow_up", "share"):
        return press.label  # what is asked is what is shown
    description = press.payload["description"]
    return f"{press.label}: {description}" if description else press.label


async def _decided(services: Services, turn: Turn, opened: OpenTurn, *, press: Press) -> Reply:
    """A confirmed action is done at most once: after a crash in between it is not done again."""
    language = cast(Language, press.payload["language"])
    if press.payload["decision"] != "confirm":
        return Reply(texts.CANCELLED[language])
    if opened.attempts > 1:
        return Reply(texts.INTERRUPTED[language])
    action = _action(press)
    if record := await _performed_here(services, turn, action):
        said = told(action.tool, record["result"], ok=record["ok"], language=language)
        return Reply(said, tool_calls=(record,))
    try:
        result = await _perform(services, turn, action)
    except ActionAlreadyRun:
        return Reply(texts.INTERRUPTED[language])
    except ServerDown:
        return Reply(texts.NO_SUCH_ACTION[language])
    record = {
        "name": action.tool,
        "arguments": dict(action.arguments),
        "result": result.text,
        "ok": result.ok,
    }
    return Reply(texts.result(result.text, done=result.ok, language=language), tool_calls=(record,))


async def _performed_here(
    services: Services, turn: Turn, action: PendingAction
) -> Mapping[str, Any] | None:
    """The record of a call of one of our tools on the memory of whoever pressed; None: the action
    is of another kind."""
    if _opens_a_note(action):
        return None
    prompt = Prompt(
        bot_name=turn.bot.name,
        question=turn.question,
        history=(),
        subject=turn.names.name(turn.context.user_id),
        working_memory=WorkingMemory(),
        now=services.now(),
        people=turn.names.roster(people_of(turn)),
        context=turn.context,
        turn_id=turn.id,
    )
    return await services.manager.perform(action, prompt)


def _opens_a_note(action: PendingAction) -> bool:
    return action.tool == SHARE_NOTE and bool(action.arguments.get("shared", True))


async def _perform(services: Services, turn: Turn, action: PendingAction) -> ActionResult:
    """What came of the action. Raises `ActionAlreadyRun` and `ServerDown`."""
    if _opens_a_note(action):
        return await _share_note(services, turn, str(action.arguments["note_id"]))
    if services.perform is None:
        raise ServerDown("No outside servers are configured.")
    return await services.perform(action)


async def _share_note(services: Services, turn: Turn, note_id: str) -> ActionResult:
    """Shares a note of whoever pressed with the chat in which they pressed."""
    try:
        note = await NoteStore(services.rpc).share(turn.context, note_id)
    except StoreUnavailable:
        raise
    except StoreError as exc:
        return ActionResult(False, str(exc))
    return ActionResult(True, f'everyone in this chat can read "{note.title}".')


async def _item_pressed(services: Services, turn: Turn, opened: OpenTurn, *, press: Press) -> Reply:
    """Deleting again after a crash finds nothing to delete, and says so."""
    language = cast(Language, press.payload["language"])
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id)
    return await items.press_item(services, looking, press.payload)


async def _reminder_pressed(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press
) -> Reply:
    """Cancelling again after a crash finds nothing to cancel, and says so."""
    language = cast(Language, press.payload["language"])
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id)
    return await reminders.press_reminder(services, looking, press.payload)


async def _settings_saved(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press, values: Mapping[str, Any]
) -> Reply:
    """Saving again after a crash finds it saved, and says so."""
    language = cast(Language, press.payload["language"])
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id)
    return await save_settings(services, looking, press.payload["form"], values)


async def _proactive_stopped(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press
) -> Reply:
    """Any member of the group stops what the bot says there unasked."""
    language = cast(Language, press.payload["language"])
    await ProactiveStore(services.rpc).stop(turn.context)
    return Reply(rule_texts.PROACTIVE_STOPPED[language])


def _action(press: Press) -> PendingAction:
    return PendingAction(
        id=press.payload["id"],
        tool=press.payload["tool"],
        arguments=press.payload["arguments"],
        description=press.payload["description"],
        actor_id=press.actor_id,
        conversation_id=press.conversation_id,
    )


async def _forget(services: Services, click: Click, press: Press) -> None:
    """Says that it forgets, forgets, and then says that it is done.

    Nothing of this is stored: a turn would be the first thing to remember. The notice goes out
    before, under a uuid of its own, so that an attempt after a crash finishes the same message.
    """
    language = cast(Language, press.payload["language"])
    tool = press.payload["tool"]
    in_thread = press.chat_type == "group" and press.root_id != MAIN_ROOT
    target = Target(click.message_id, click.chat_id, in_thread)
    notice = ""
    with contextlib.suppress(Undeliverable):
        sent = await deliver(
            services.feishu,
            target,
            turn_id=turn_id(click.button_id),
            chunk=0,
            content=_to(click, texts.FORGETTING[language], press),
            names=services.people.of(click.tenant_key).known,
        )
        notice = sent.message_id
    await _delete(services, click, press, tool)
    log.info("forgotten", what=tool, chat_id=click.chat_id)
    if notice:
        card = cards.answer_card(_to(click, texts.FORGOTTEN[language][tool], press))
        try:
            await services.feishu.patch_card(notice, cards.card_content(card))
        except FeishuError as exc:
            log.warning("forgotten.notice", code=exc.code, log_id=exc.log_id)


async def _delete(services: Services, click: Click, press: Press, tool: str) -> None:
    """The queue first: after the memory, the button itself is gone and no attempt can follow."""
    of_thread = tool == FORGET_THREAD
    if services.queue is not None:
        thread = press.conversation_id if of_thread else None
        await asyncio.to_thread(
            services.queue.forget, open_id=click.operator_id, conversation_id=thread
        )
    operations = Operations(services.rpc)
    if of_thread:
        await operations.forget_conversation(
            press.conversation_id, click.operator_id, keep_notes=True
        )
    else:
        services.people.of(click.tenant_key).forget(click.operator_id)
        await operations.forget_person(click.operator_id)  # whatever tenant they wrote under


def _to(click: Click, text: str, press: Press) -> str:
    """In a group the person is addressed."""
    tag = Person(click.operator_id, click.operator_id).at_tag
    return f"{tag} {text}" if tag and press.chat_type == "group" else text
