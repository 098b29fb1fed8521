"""Cards that one member of a group sees, with Feishu's rules. Raises ApiError.

Source: open.feishu.cn, im-v1/message-card, "Send message cards that are only visible to certain
people" and "Delete …": ordinary groups only, cards only, 40 a second for each group, no thread, no
uuid; a client that is offline when it is sent never shows it. The pages name one code (18051);
18053 is what apps report of topic groups and p2p chats. What Feishu says of somebody who is not in
the group is not documented: here it is a bad parameter.
"""

import json
from typing import Any

from sandbox.errors import ApiError, invalid
from sandbox.world.content import Known, check_outgoing
from sandbox.world.entities import GROUP, SandboxMessage
from sandbox.world.limits import Limiter
from sandbox.world.messaging import Messenger, compose
from sandbox.world.state import World

PER_GROUP = 40


class Ephemeral:
    """What the app's bot shows to one person. Call under `world.lock`."""

    def __init__(self, world: World, messenger: Messenger, limiter: Limiter) -> None:
        self._world = world
        self._messenger = messenger
        self._limiter = limiter

    def send(self, body: dict[str, Any], request_bytes: int) -> SandboxMessage:
        """`{chat_id, open_id, msg_type: interactive, card: object}`"""
        card, open_id = body.get("card"), str(body.get("open_id") or "")
        if body.get("msg_type") != "interactive" or not isinstance(card, dict):
            raise invalid("msg_type must be interactive, and card an object")
        chat = self._messenger.open_chat(str(body.get("chat_id") or ""))
        if chat.mode != GROUP:
            raise ApiError(18053)
        if open_id not in chat.members or open_id == self._world.bot.open_id:
            raise invalid("open_id is not in the chat")
        world = self._world
        content = json.dumps(card, ensure_ascii=False)
        known = Known(chat.members.__contains__, world.resources.__contains__)
        outgoing = check_outgoing("interactive", content, request_bytes, known)
        if outgoing.card_id:
            raise invalid("a card entity cannot be shown to one person")
        limited = world.switches.rate_limits
        if limited and not self._limiter.allow("ephemeral", chat.chat_id, PER_GROUP):
            raise ApiError(230020)
        sender = world.bot.open_id
        return compose(
            world,
            chat.chat_id,
            sender,
            ("interactive", outgoing),
            visible_to=open_id,
            unseen=not world.switches.viewers_online,
        )

    def delete(self, message_id: object) -> SandboxMessage:
        """Takes such a card away; nothing is left of it."""
        message = self._world.messages.get(str(message_id))
        if message is None or not message.visible_to:
            raise invalid("message_id is invalid")
        if message.deleted:
            raise ApiError(18051)
        self._messenger.open_chat(message.chat_id)
        return self._world.change(message, deleted=True, update_ms=self._world.now_ms())
