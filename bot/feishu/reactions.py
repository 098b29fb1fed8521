"""Reactions as Feishu pushes them. Pure. Source: Feishu, "Message reaction added"
(im.message.reaction.created_v1) and "deleted" (deleted_v1), "Emojis" (their names)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.feishu.events import Envelope, MalformedEvent, milliseconds
from bot.feishu.fields import as_dict, as_text

REACTION_ADDED = "im.message.reaction.created_v1"
REACTION_REMOVED = "im.message.reaction.deleted_v1"
KINDS = frozenset({REACTION_ADDED, REACTION_REMOVED})

Consent = Literal["yes", "no"]
_YES = frozenset("thumbsup ok yes done checkmark lgtm jiayi get onit".split())
_NO = frozenset("thumbsdown no crossmark".split())
_HELPFUL = {"thumbsup": True, "jiayi": True, "thumbsdown": False}


@dataclass(frozen=True, slots=True)
class Reaction:
    """Somebody put the emoji of that name on a message, or took it away (`gone`); `open_id` is ""
    when an app did."""

    event_id: str
    message_id: str
    emoji: str
    open_id: str
    tenant_key: str
    at_ms: int
    gone: bool = False

    @property
    def consent(self) -> Consent | None:
        """What it says to a question that yes or no answers."""
        name = self.emoji.lower()
        return "yes" if name in _YES else "no" if name in _NO else None

    @property
    def helpful(self) -> bool | None:
        """What it says of an answer: whether that helped."""
        return _HELPFUL.get(self.emoji.lower())


def parse_reaction(envelope: Envelope) -> Reaction:
    """The reaction of such an event. Raises MalformedEvent without its message."""
    event = envelope.event
    message_id = as_text(event.get("message_id"))
    if not message_id:
        raise MalformedEvent("The event has no message_id; check the event's version.")
    by_app = event.get("operator_type") == "app"
    return Reaction(
        event_id=envelope.event_id,
        message_id=message_id,
        emoji=as_text(as_dict(event.get("reaction_type")).get("emoji_type")),
        open_id="" if by_app else as_text(as_dict(event.get("user_id")).get("open_id")),
        tenant_key=envelope.tenant_key,
        at_ms=milliseconds(event.get("action_time")) or envelope.create_time_ms,
        gone=envelope.event_type == REACTION_REMOVED,
    )
