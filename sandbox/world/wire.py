"""Shapes on the wire: REST messages, event messages, and what the page is shown. Pure.

Sources: open.feishu.cn, im-v1/message (reply, get, list) and im-v1/message/events/receive.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from sandbox.cards.card_check import notified_by
from sandbox.world import received
from sandbox.world.entities import (
    BOT,
    GROUP,
    P2P,
    Card,
    Chat,
    SandboxMention,
    SandboxMessage,
    SandboxPerson,
)
from sandbox.world.state import World, stable_id
from sandbox.world.system_messages import system_text

RECALLED = "This message was recalled"
NOBODY = SandboxPerson("", "", union_id="")


def rest_message(
    world: World, message: SandboxMessage, *, original_card: bool = False
) -> dict[str, Any]:
    """A message as the REST interface returns it; absent ids are absent keys."""
    shape: dict[str, Any] = {
        "message_id": message.message_id,
        **_thread_ids(message),
        "msg_type": message.msg_type,
        "create_time": str(message.create_ms),
        "update_time": str(message.update_ms),
        "deleted": message.deleted,
        "updated": message.updated,
        "chat_id": message.chat_id,
        "sender": _rest_sender(world, message),
        "body": {"content": _rest_content(world, message, original_card)},
    }
    if world.switches.message_positions and not message.thread_id:
        shape["message_position"] = world.containers[message.chat_id].number_of(message)
    if message.mentions and not message.deleted:
        shape["mentions"] = [
            {
                "key": one.key,
                "id": one.open_id,
                "id_type": "open_id",
                "name": _name(world, one.open_id),
                "tenant_key": world.tenant_of(world.people[one.open_id]),
            }
            for one in message.mentions
        ]
    return shape


def rest_messages(
    world: World, message: SandboxMessage, *, original_card: bool = False
) -> list[dict[str, Any]]:
    """The message, and what it forwards, flat; `upper_message_id` says which forward holds it."""
    items = [rest_message(world, message, original_card=original_card)]
    for message_id in message.forwarded:
        inner = rest_messages(world, world.messages[message_id], original_card=original_card)
        inner[0]["upper_message_id"] = message.message_id
        items += inner
    return items


def event_message(world: World, message: SandboxMessage) -> dict[str, Any]:
    """The `event` object of im.message.receive_v1."""
    sender = world.people[message.sender]
    chat = world.chats[message.chat_id]
    ids = _thread_ids(message)
    if chat.has_topics and not world.switches.topic_thread_ids:
        ids.pop("thread_id", None)
    shape: dict[str, Any] = {
        "message_id": message.message_id,
        **ids,
        "create_time": str(message.create_ms),
        "update_time": str(message.update_ms),
        "chat_id": message.chat_id,
        "chat_type": P2P if chat.mode == P2P else GROUP,
        "message_type": message.msg_type,
        "content": _event_content(world, message),
    }
    if message.mentions:
        shape["mentions"] = [
            {
                "key": one.key,
                "id": user_ids(world.people[one.open_id]),
                "mentioned_type": world.people[one.open_id].kind,
                "name": _name(world, one.open_id),
                "tenant_key": world.tenant_of(world.people[one.open_id]),
            }
            for one in message.mentions
        ]
    return {
        "sender": {
            "sender_id": user_ids(sender),
            "sender_type": sender.kind,
            "tenant_key": world.tenant_of(sender),
        },
        "message": shape,
    }


def user_ids(person: SandboxPerson) -> dict[str, str]:
    """The id object of events. `user_id` is empty without contact:user.employee_id:readonly."""
    return {"union_id": person.union_id, "user_id": person.user_id, "open_id": person.open_id}


def card_of(world: World, message: SandboxMessage) -> dict[str, Any] | None:
    """The card that the message shows, or None when it is not a card."""
    if message.msg_type != "interactive" or message.deleted:
        return None
    if message.card_id:
        return world.cards[message.card_id].body
    card: dict[str, Any] = json.loads(message.content)
    return card


def message_view(world: World, message: SandboxMessage) -> dict[str, Any]:
    """A message for the page and for tests: names resolved, the card opened."""
    card = card_of(world, message)
    return {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "root_id": message.root_id,
        "parent_id": message.parent_id,
        "thread_id": message.thread_id,
        "sender": person_view(world.people.get(message.sender, NOBODY)),
        "msg_type": message.msg_type,
        "content": RECALLED if message.deleted else message.content,
        "text": "" if message.deleted else plain_text(world, message),
        "spoken": "" if message.deleted else _spoken(world, message),
        "mentions": [
            {"key": one.key, "open_id": one.open_id, "name": _name(world, one.open_id)}
            for one in message.mentions
        ],
        "notifies": notifies(world, message),
        "card": card,
        "card_id": message.card_id,
        "streaming": is_streaming(world, world.cards.get(message.card_id)),
        "sequence": world.cards[message.card_id].sequence if message.card_id else 0,
        "reactions": [
            {
                "reaction_id": one.reaction_id,
                "open_id": one.open_id,
                "name": _name(world, one.open_id),
                "emoji_type": one.emoji_type,
            }
            for one in message.reactions
        ],
        "deleted": message.deleted,
        "updated": message.updated,
        "uuid": message.uuid,
        "visible_to": message.visible_to,
        "unseen": message.unseen,
        "create_ms": message.create_ms,
        "update_ms": message.update_ms,
        "position": message.position,
        "version": message.version,
    }


def _spoken(world: World, message: SandboxMessage) -> str:
    """What is said in a voice message."""
    if message.msg_type != "audio":
        return ""
    resource = world.resources.get(str(json.loads(message.content).get("file_key")))
    return resource.spoken if resource else ""


def notifies(world: World, message: SandboxMessage) -> list[str]:
    """Open ids, or `all`, that the message notifies."""
    if message.deleted:
        return []
    card = card_of(world, message)
    if card is not None:
        return notified_by(card)
    everybody = ["all"] if "@_all" in message.content else []
    return [one.open_id for one in message.mentions] + everybody


def plain_text(world: World, message: SandboxMessage) -> str:
    """The text of a text message with names in place of mention keys, that of a system message with
    its names; otherwise empty."""
    if message.msg_type == "system":
        return system_text(message.content)
    if message.msg_type != "text":
        return ""
    try:
        text = str(json.loads(message.content)["text"])
    except (ValueError, KeyError, TypeError):
        return message.content
    names = {one.key: _name(world, one.open_id) for one in message.mentions}
    return _keys(message.mentions).sub(lambda found: f"@{names.get(found[0], found[0][1:])}", text)


def _keys(mentions: Sequence[SandboxMention]) -> re.Pattern[str]:
    """The message's keys, the longest first: text may follow one directly."""
    keys = sorted((one.key for one in mentions), key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, keys), "@_all"]))


def is_streaming(world: World, card: Card | None) -> bool:
    """Whether the card still streams; streaming ends by itself after its life."""
    if card is None or not card.streaming_since_ms:
        return False
    return world.now_ms() - card.streaming_since_ms < world.config.stream_life_s * 1000


def person_view(person: SandboxPerson) -> dict[str, Any]:
    """A person for the page."""
    return {
        "open_id": person.open_id,
        "name": person.name,
        "kind": person.kind,
        "tenant_key": person.tenant_key,
    }


def chat_view(chat: Chat) -> dict[str, Any]:
    """A chat for the page."""
    return {
        "chat_id": chat.chat_id,
        "name": chat.name,
        "mode": chat.mode,
        "members": list(chat.members),
        "dissolved": chat.dissolved,
    }


def _thread_ids(message: SandboxMessage) -> dict[str, str]:
    ids = {
        "root_id": message.root_id,
        "parent_id": message.parent_id,
        "thread_id": message.thread_id,
    }
    return {name: value for name, value in ids.items() if value}


def _rest_sender(world: World, message: SandboxMessage) -> dict[str, str]:
    if message.sender == NOBODY.open_id:
        return {"id": "", "id_type": "", "sender_type": "", "tenant_key": ""}
    tenant = world.tenant_of(world.people[message.sender])
    if message.sender == world.bot.open_id:
        app_id = world.config.app_id
    elif world.people[message.sender].kind == BOT:
        app_id = stable_id("cli_", message.sender, 16)
    else:
        return {
            "id": message.sender,
            "id_type": "open_id",
            "sender_type": "user",
            "tenant_key": tenant,
        }
    return {"id": app_id, "id_type": "app_id", "sender_type": "app", "tenant_key": tenant}


def _rest_content(world: World, message: SandboxMessage, original_card: bool) -> str:
    if message.deleted:
        return RECALLED
    card = card_of(world, message)
    if card is None:
        return message.content
    return json.dumps(_card_form(world, message, card, original_card), ensure_ascii=False)


def _card_form(
    world: World, message: SandboxMessage, card: dict[str, Any], original_card: bool
) -> dict[str, Any]:
    """A card as its own app gets it back, or as any other app does."""
    if not original_card:
        return received.simplified(card, message.mentions)
    if message.sender == world.bot.open_id:
        return card
    theirs = _foreign(card, message)
    return received.wrapped(theirs) if received.is_version_2(card) else theirs


def _event_content(world: World, message: SandboxMessage) -> str:
    card = card_of(world, message)
    if card is None:
        return message.content
    version_2 = received.is_version_2(card)
    return json.dumps(
        received.wrapped(_foreign(card, message))
        if version_2
        else received.simplified(card, message.mentions),
        ensure_ascii=False,
    )


def _foreign(card: dict[str, Any], message: SandboxMessage) -> dict[str, Any]:
    return received.foreign(
        card, message.mentions, lambda open_id: stable_id("ou_", f"elsewhere:{open_id}")
    )


def _name(world: World, open_id: str) -> str:
    person = world.people.get(open_id)
    return person.name if person else ""
