"""Presses in the menu of the bot's private chats. Pure. Source: Feishu, "Bot custom menu events"
(application.bot.menu_v6): the event names no chat, and nobody but the one who pressed."""

from __future__ import annotations

from dataclasses import dataclass

from bot.feishu.events import Envelope, MalformedEvent, milliseconds
from bot.feishu.fields import as_dict, as_text

MENU_PRESSED = "application.bot.menu_v6"


@dataclass(frozen=True, slots=True)
class MenuPress:
    """Somebody pressed the item `key`. `cause` tells their presses of it apart: the second in which
    it was, as Feishu says it, or the event's id."""

    open_id: str
    tenant_key: str
    key: str
    cause: str
    at_ms: int

    @property
    def item(self) -> str:
        """The item in that person's menu."""
        return f"menu:{self.open_id}:{self.key}"


def parse_menu_press(envelope: Envelope) -> MenuPress:
    """The press of such an event. Raises MalformedEvent without its person or item."""
    event = envelope.event
    person = as_dict(as_dict(event.get("operator")).get("operator_id"))
    open_id, key = as_text(person.get("open_id")), as_text(event.get("event_key"))
    if not (open_id and key):
        raise MalformedEvent("The event has no open_id or event_key; check the event's version.")
    at = event.get("timestamp")
    at_ms = milliseconds(at)
    cause = str(at) if at_ms else envelope.event_id
    return MenuPress(open_id, envelope.tenant_key, key, cause, at_ms or envelope.create_time_ms)
