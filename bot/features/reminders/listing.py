"""`/reminders`: what is still to come in a chat, each with a button that cancels it."""

from __future__ import annotations

from dataclasses import replace

from bot.features.feature import FeatureTurn, PressTurn
from bot.features.managers import learn_managers
from bot.features.reminders import texts
from bot.outbox.buttons import Reply, decision
from bot.services import Services
from memory.errors import AccessDenied
from memory.tables.buttons import NewButton, new_id
from memory.tables.timers import Timer, TimerStore

CANCEL_REMINDER = "reminder.cancel"
_SHOWN = 20


async def show_reminders(services: Services, here: FeatureTurn) -> Reply:
    """The reminders of the chat, the next one first. Raises `StoreUnavailable`."""
    timers = await TimerStore(services.rpc).list(here.context)
    names = services.people.of(here.context.tenant_key)
    await names.look_up({one for timer in timers for one in texts.named_in(timer)})
    list_text = texts.listed(
        timers[:_SHOWN], len(timers), names.name, services.now(), here.language
    )
    entries = range(min(len(timers), _SHOWN), 0, -1)  # counted from the last
    buttons = (_button(entry, one, here) for entry, one in zip(entries, timers, strict=False))
    return Reply(list_text, tuple(buttons))


async def press_reminder(services: Services, here: PressTurn) -> Reply:
    """Cancels the reminder of the pressed button, if who pressed may. Cancelling again after a
    crash finds nothing to cancel, and says so."""
    language, id = here.language, here.press.payload["arguments"]["reminder_id"]
    try:
        cancelled_timer = await _cancel(services, here, id)
    except AccessDenied:
        return Reply(texts.say("not-yours", language))
    receipt = (
        texts.cancelled(cancelled_timer, language)
        if cancelled_timer
        else texts.say("gone-already", language)
    )
    left = await show_reminders(services, here)
    return replace(left, text=f"{receipt}\n\n{left.text}")


async def _cancel(services: Services, here: FeatureTurn, id: str) -> Timer | None:
    """Whether somebody manages the chat is asked of Feishu only where it matters."""
    timers = TimerStore(services.rpc)
    try:
        return await timers.cancel(here.context, id)
    except AccessDenied:
        await learn_managers(services, here.context, here.chat_type)
        return await timers.cancel(here.context, id)


def _button(entry: int, timer: Timer, here: FeatureTurn) -> NewButton:
    payload = {
        "tool": CANCEL_REMINDER,
        "arguments": {"reminder_id": timer.id},
        "description": timer.plan.content,
        "entry": entry,
    }
    return decision(
        texts.say("cancel", here.language),
        payload,
        "confirm",
        group_id=new_id(),
        chat_type=here.chat_type,
        language=here.language,
    )
