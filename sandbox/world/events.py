"""Event envelopes (schema 2.0) as the platform pushes them. Pure but for fresh ids and the clock.

Sources: open.feishu.cn, event subscription guide; im-v1 message, reaction and chat member events;
drive-v1 notice; cardkit-v1 "card callback communication" (whose create_time is in microseconds).
"""

import secrets
from typing import Any

from sandbox.world.entities import (
    USER,
    Chat,
    SandboxMessage,
    SandboxPerson,
    SandboxReaction,
    new_id,
)
from sandbox.world.state import World, stable_id
from sandbox.world.wire import event_message, user_ids

Envelope = dict[str, Any]

RECEIVED = "im.message.receive_v1"
COMMENTED = "drive.notice.comment_add_v1"
MENU_PRESSED = "application.bot.menu_v6"
TOKEN_REVOKED = "auth.user_access_token.revoked_v4"  # noqa: S105 (an event's name)


def envelope(world: World, event_type: str, event: dict[str, Any]) -> Envelope:
    """An event with a fresh event id."""
    return {
        "schema": "2.0",
        "header": {
            "event_id": secrets.token_hex(16),
            "event_type": event_type,
            "create_time": str(world.now_ms()),
            "token": world.config.verification_token,
            "app_id": world.config.app_id,
            "tenant_key": world.config.tenant_key,
        },
        "event": event,
    }


def with_new_event_id(original: Envelope) -> Envelope:
    """The same event under another event id, as Feishu sometimes sends."""
    header = {**original["header"], "event_id": secrets.token_hex(16)}
    return {**original, "header": header}


def received(world: World, message: SandboxMessage) -> Envelope:
    """im.message.receive_v1"""
    return envelope(world, RECEIVED, event_message(world, message))


def with_foreign_ids(original: Envelope) -> Envelope:
    """The message's event with the mentioned people's open ids of another app."""
    message = original["event"]["message"]
    mentions = [
        {**one, "id": {**one["id"], "open_id": stable_id("ou_", f"elsewhere:{one['key']}")}}
        for one in message.get("mentions", [])
    ]
    event = {**original["event"], "message": {**message, "mentions": mentions}}
    return {**original, "event": event}


def recalled(world: World, message: SandboxMessage, recall_type: str = "message_owner") -> Envelope:
    """im.message.recalled_v1"""
    event = {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "recall_time": str(world.now_ms()),
        "recall_type": recall_type,
    }
    return envelope(world, "im.message.recalled_v1", event)


def reacted(
    world: World, message: SandboxMessage, reaction: SandboxReaction, *, created: bool
) -> Envelope:
    """im.message.reaction.created_v1 or deleted_v1, by a person."""
    event = {
        "message_id": message.message_id,
        "reaction_type": {"emoji_type": reaction.emoji_type},
        "operator_type": "user",
        "user_id": user_ids(world.people[reaction.open_id]),
        "action_time": str(reaction.action_ms),
    }
    what = "created" if created else "deleted"
    return envelope(world, f"im.message.reaction.{what}_v1", event)


def bot_membership(world: World, chat: Chat, operator: SandboxPerson, *, added: bool) -> Envelope:
    """im.chat.member.bot.added_v1 or deleted_v1"""
    event = {
        "chat_id": chat.chat_id,
        "operator_id": user_ids(operator),
        "external": world.is_external(chat),
        "operator_tenant_key": world.tenant_of(operator),
        "name": chat.name,
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
    }
    what = "added" if added else "deleted"
    return envelope(world, f"im.chat.member.bot.{what}_v1", event)


def p2p_entered(world: World, chat: Chat, person: SandboxPerson) -> Envelope:
    """im.chat.access_event.bot_p2p_chat_entered_v1: somebody opens their chat with the bot."""
    event: dict[str, Any] = {"chat_id": chat.chat_id, "operator_id": user_ids(person)}
    if said := world.by_chat.get(chat.chat_id):
        last = world.messages[said[-1]]
        event["last_message_id"] = last.message_id
        event["last_message_create_time"] = str(last.create_ms)
    return envelope(world, "im.chat.access_event.bot_p2p_chat_entered_v1", event)


def user_membership(world: World, chat: Chat, person: SandboxPerson, what: str) -> Envelope:
    """im.chat.member.user.added_v1, deleted_v1 or withdrawn_v1, by `what`."""
    user = {
        "name": person.name,
        "tenant_key": world.tenant_of(person),
        "user_id": user_ids(person),
    }
    event = {
        "chat_id": chat.chat_id,
        "operator_id": user_ids(person),
        "external": world.is_external(chat),
        "operator_tenant_key": world.tenant_of(person),
        "users": [user],
        "name": chat.name,
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
    }
    return envelope(world, f"im.chat.member.user.{what}_v1", event)


def operator(world: World, chat: Chat) -> dict[str, Any]:
    """The owner, who changes the group."""
    owner = world.people[chat.members[0]] if chat.members else world.bot
    return {"operator_id": user_ids(owner), "operator_tenant_key": world.tenant_of(owner)}


def renamed(world: World, before: Chat, after: Chat) -> Envelope:
    """im.chat.updated_v1"""
    event = {
        "chat_id": after.chat_id,
        **operator(world, after),
        "external": world.is_external(after),
        "after_change": {"name": after.name},
        "before_change": {"name": before.name},
        "moderator_list": {"added_member_list": [], "removed_member_list": []},
    }
    return envelope(world, "im.chat.updated_v1", event)


def commented(
    world: World,
    person: SandboxPerson,
    *,
    file: tuple[str, str],
    comment: tuple[str, str],
    notice_type: str,
    is_mentioned: bool,
) -> Envelope:
    """drive.notice.comment_add_v1: token and kind of the `file`, ids of the `comment` and of what
    was said in it. `is_mentioned`: it mentions somebody, who need not be the app."""
    (token, kind), (comment_id, reply_id) = file, comment
    notice = {
        "file_type": kind,
        "file_token": token,
        "from_user_id": user_ids(person),
        "from_user_type": "user" if person.kind == USER else "bot",
        "to_user_id": user_ids(world.bot),
        "notice_type": notice_type,
    }
    event = {
        "notice_meta": notice,
        "comment_id": comment_id,
        "reply_id": reply_id,
        "is_mentioned": is_mentioned,
    }
    return envelope(world, COMMENTED, event)


def menu_pressed(world: World, person: SandboxPerson, event_key: str) -> Envelope:
    """application.bot.menu_v6: somebody presses an item of the bot's menu. No chat is named; the
    person's name needs a scope that the app does not have; the time is in seconds."""
    event = {
        "operator": {"operator_id": user_ids(person)},
        "event_key": event_key,
        "timestamp": world.now_ms() // 1000,
    }
    return envelope(world, MENU_PRESSED, event)


def token_revoked(world: World, person: SandboxPerson, kind: str, reason: str) -> Envelope:
    """auth.user_access_token.revoked_v4: somebody's tokens ended; `kind` says which."""
    event = {"revoke_token_type": kind, "revoke_reason": reason, **user_ids(person)}
    return envelope(world, TOKEN_REVOKED, event)


def clicked(
    world: World, message: SandboxMessage, person: SandboxPerson, action: dict[str, Any]
) -> Envelope:
    """card.action.trigger; `event.token` allows two later updates of the card."""
    event = {
        "operator": {"tenant_key": world.tenant_of(person), **user_ids(person)},
        "token": new_id("c-", 40),
        "action": {"timezone": world.config.timezone, **action},
        "host": "im_message",
        "context": {"open_message_id": message.message_id, "open_chat_id": message.chat_id},
    }
    made = envelope(world, "card.action.trigger", event)
    made["header"]["create_time"] = str(world.now_ms() * 1000)
    return made
