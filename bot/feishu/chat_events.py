"""What Feishu pushes about chats themselves: who joined or left, the bot among them. Pure.

Source: Feishu, "Users added to / removed from a group", "Adding users is revoked", "Bot added to /
removed from a group", "User enters the chat with the bot", "Group disbanded", "Group settings
changed" (im.chat.*). The parser is total: it raises MalformedEvent or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.feishu.events import Envelope, MalformedEvent
from bot.feishu.fields import as_dict, as_list, as_text
from memory.identity import FeishuPerson

Happening = Literal["joined", "left", "entered", "opened", "gone", "renamed"]

HAPPENINGS: Mapping[str, Happening] = {
    "im.chat.member.user.added_v1": "joined",
    "im.chat.member.user.deleted_v1": "left",
    "im.chat.member.user.withdrawn_v1": "left",  # an invitation is taken back: they are out
    "im.chat.member.bot.added_v1": "entered",
    "im.chat.access_event.bot_p2p_chat_entered_v1": "opened",
    "im.chat.member.bot.deleted_v1": "gone",
    "im.chat.disbanded_v1": "gone",
    "im.chat.updated_v1": "renamed",
}


@dataclass(frozen=True, slots=True)
class ChatNews:
    """Something happened to a chat at `at_ms`, ms since epoch: `people` joined or left it, the bot
    entered it, somebody opened theirs with the bot, it is gone for the bot, or its settings
    changed. `tenant_key` is the bot's; `name` is the chat's, "" where it is not told."""

    what: Happening
    chat_id: str
    tenant_key: str
    at_ms: int
    people: tuple[FeishuPerson, ...] = ()
    name: str = ""
    operator: str = ""  # open_id of who did it
    topics: bool | None = None  # whether it now consists of topics; None: as before


def parse_chat_news(envelope: Envelope, received_ms: int) -> ChatNews:
    """The news of an event whose type is in `HAPPENINGS`; without a time of its own it is of when
    it was received. Raises MalformedEvent without its chat."""
    event = envelope.event
    chat_id = as_text(event.get("chat_id"))
    if not chat_id:
        raise MalformedEvent("The event has no chat_id; check the event's version in the console.")
    new_values = as_dict(event.get("after_change"))
    form = as_text(new_values.get("group_message_type"))
    return ChatNews(
        HAPPENINGS[envelope.event_type],
        chat_id,
        envelope.tenant_key,
        envelope.create_time_ms or received_ms,
        people=_people(event, envelope.tenant_key),
        name=as_text((new_values or event).get("name")),
        operator=as_text(as_dict(event.get("operator_id")).get("open_id")),
        topics=form == "thread" if form else None,
    )


def _people(event: dict[str, Any], tenant_key: str) -> tuple[FeishuPerson, ...]:
    users = [as_dict(user) for user in as_list(event.get("users"))]
    people = (
        FeishuPerson(
            as_text(user.get("tenant_key")) or tenant_key,
            as_text(as_dict(user.get("user_id")).get("open_id")),
        )
        for user in users
    )
    return tuple(person for person in people if person.open_id)
