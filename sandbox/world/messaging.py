"""What an app can do to messages, with Feishu's rules. Raises ApiError.

Sources: open.feishu.cn, im-v1/message create, reply, patch, update, delete, get, list;
im-v1/message-reaction; im-v1/message/intro for root, parent and thread ids.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from sandbox.cards.card_check import notified_by, parse_card
from sandbox.errors import (
    ApiError,
    card_refused,
    invalid,
    not_an_option,
    not_played,
    scope_missing_for_group,
)
from sandbox.world.cardkit import sendable_card
from sandbox.world.content import CheckedContent, Known, check_outgoing
from sandbox.world.entities import P2P, Card, Chat, SandboxMessage, SandboxReaction, new_id
from sandbox.world.history import Container, HistoryQuery, read_query
from sandbox.world.limits import Limiter
from sandbox.world.scopes import ALL_GROUP_MESSAGES
from sandbox.world.state import World, new_message_id, root_of_thread

UPDATE_WINDOW_MS = 14 * 24 * 3600 * 1000
MAX_EDITS = 20
PER_CHAT = 5
PER_MESSAGE = 5
_RECEIVERS = ("open_id", "user_id", "union_id", "email", "chat_id")

_EMOJI = re.compile(r"[A-Za-z0-9_]{1,40}\Z")


@dataclass(frozen=True)
class Draft:
    """A message that the app wants to send; `request_bytes` is the size of the whole body."""

    msg_type: object
    content: object
    uuid: object = ""
    request_bytes: int = 0


class Messenger:
    """The message operations of the app's own bot. Call under `world.lock`."""

    def __init__(self, world: World, limiter: Limiter) -> None:
        self._world = world
        self._limiter = limiter
        self._by_uuid: dict[str, str] = {}
        for message in world.messages.values():
            if message.uuid:
                self._by_uuid[message.uuid] = message.message_id

    def send(self, receive_id: str, receive_id_type: str, draft: Draft) -> SandboxMessage:
        """Post into a chat, or to a person (`open_id`)."""
        if receive_id_type not in _RECEIVERS:
            raise not_an_option("receive_id_type", receive_id_type, _RECEIVERS)
        if receive_id_type not in ("open_id", "chat_id"):
            raise not_played(f"receive_id_type={receive_id_type}")
        if (first := self._first(draft.uuid)) is not None:
            return first
        chat = self._receiver(receive_id, receive_id_type)
        return self._post(chat, draft)

    def reply(self, message_id: str, draft: Draft, *, reply_in_thread: object) -> SandboxMessage:
        """Answer a message: in its thread, in a new thread, or as a quote."""
        if not isinstance(reply_in_thread, bool):
            raise invalid("reply_in_thread is not a boolean")
        if (first := self._first(draft.uuid)) is not None:
            return first
        parent = self.living(message_id)
        chat = self.open_chat(parent.chat_id)
        return self._post(chat, draft, parent=parent, in_thread=reply_in_thread)

    def patch(self, message_id: str, content: object, request_bytes: int) -> SandboxMessage:
        """Replace the card of an own message; both cards are shared (`update_multi`)."""
        message = self._own(message_id, ApiError(230001))
        if message.msg_type != "interactive" or message.card_id:
            raise ApiError(230054)
        self._limit("patch", message_id, PER_MESSAGE)
        outgoing = check_outgoing("interactive", content, request_bytes, self.known(message))
        for card in (parse_card(message.content), parse_card(outgoing.content)):
            if card.get("config", {}).get("update_multi") is not True:
                raise invalid("update_multi must be declared true before and after")
        return self._replace_content(message, outgoing)

    def recall(self, message_id: str) -> SandboxMessage:
        """Withdraw an own message."""
        message = self._own(message_id, ApiError(230026))
        return self._world.change(message, deleted=True, update_ms=self._world.now_ms())

    def react(self, message_id: str, emoji_type: object) -> SandboxReaction:
        """Put the bot's emoji on a message. A second time returns the first reaction."""
        if not isinstance(emoji_type, str) or not _EMOJI.match(emoji_type):
            raise ApiError(231001)
        message = self._world.shared(message_id)
        if message is None or message.deleted:
            raise ApiError(231003)
        return add_reaction(self._world, message, self._world.bot.open_id, emoji_type)

    def unreact(self, message_id: str, reaction_id: str) -> SandboxReaction:
        """Take the bot's own emoji away again."""
        message = self._world.messages.get(message_id)
        if message is None or message.deleted:
            raise ApiError(231003)
        found = [one for one in message.reactions if one.reaction_id == reaction_id]
        if not found:
            raise ApiError(231011)
        if found[0].open_id != self._world.bot.open_id:
            raise ApiError(231007)
        left = tuple(one for one in message.reactions if one.reaction_id != reaction_id)
        self._world.change(message, reactions=left)
        return found[0]

    def history(self, query: dict[str, str]) -> tuple[list[SandboxMessage], str]:
        """One page of a chat or thread and the token of the next (empty at the end).

        A chat holds the first messages of threads only, not the replies in them.
        """
        asked = read_query(query)
        ids, token = self._container(asked).page(asked)
        return [self._world.messages[one] for one in ids], token

    def living(self, message_id: str) -> SandboxMessage:
        """The message, unless it is unknown or recalled."""
        message = self._world.shared(message_id)
        if message is None:
            raise invalid("message_id is invalid")
        if message.deleted:
            raise ApiError(230011)
        return message

    def open_chat(self, chat_id: str) -> Chat:
        """The chat, if it exists and the bot is in it."""
        chat = self._world.chats.get(chat_id)
        if chat is None:
            raise invalid("chat_id is invalid")
        if chat.dissolved:
            raise ApiError(232009)
        if self._world.bot.open_id not in chat.members:
            raise ApiError(230002)
        return chat

    def readable_chat(self, chat_id: str, *, single: bool = False) -> Chat:
        """The chat, if the app may read its messages; `single`: one message, not the history."""
        chat, switches = self.open_chat(chat_id), self._world.switches
        if chat.mode == P2P:
            return chat
        if not (single and switches.lenient_get) and not self._world.may([ALL_GROUP_MESSAGES]):
            raise scope_missing_for_group(ALL_GROUP_MESSAGES)
        if switches.secret_chats and not single:
            raise ApiError(231203)
        return chat

    def known(self, message: SandboxMessage) -> Known:
        """Who may be @-ed in the chat of `message`, and which images exist."""
        return self._known(self._world.chats[message.chat_id])

    def _known(self, chat: Chat) -> Known:
        return Known(
            person=lambda open_id: open_id in chat.members,
            image=lambda key: key in self._world.resources,
            file=self._file_name,
        )

    def _file_name(self, key: str) -> str | None:
        found = self._world.resources.get(key)
        return found.name if found and found.name else None

    def _attach(self, message: SandboxMessage) -> None:
        """What an image or file message shows can be loaded under its id."""
        if message.msg_type not in ("image", "file"):
            return
        content = json.loads(message.content)
        found = self._world.resources.get(content.get("image_key") or content.get("file_key"))
        if found and not found.message_id:
            self._world.put(replace(found, message_id=message.message_id))

    def _first(self, uuid: object) -> SandboxMessage | None:
        if not uuid:
            return None
        if not isinstance(uuid, str) or len(uuid) > 50:
            raise invalid("uuid must be a string of at most 50 characters")
        message = self._world.messages.get(self._by_uuid.get(uuid, ""))
        life_ms = self._world.config.uuid_life_s * 1000
        if message is None or self._world.now_ms() - message.create_ms >= life_ms:
            return None
        return message

    def _receiver(self, receive_id: str, receive_id_type: str) -> Chat:
        if receive_id_type == "chat_id":
            if receive_id not in self._world.chats:
                raise ApiError(230034)
            return self.open_chat(receive_id)
        if receive_id not in self._world.people:
            raise ApiError(230034)
        return self._world.p2p_chat(receive_id)

    def _post(
        self,
        chat: Chat,
        draft: Draft,
        *,
        parent: SandboxMessage | None = None,
        in_thread: bool = False,
    ) -> SandboxMessage:
        known = self._known(chat)
        outgoing = check_outgoing(draft.msg_type, draft.content, draft.request_bytes, known)
        card = sendable_card(self._world, outgoing.card_id) if outgoing.card_id else None
        if card is not None:
            self._check_mentions(card.body, known)
        self._check_mention_of_all(chat, str(draft.msg_type), outgoing, card)
        self._limit("chat", chat.chat_id, PER_CHAT)
        message = compose(
            self._world,
            chat.chat_id,
            self._world.bot.open_id,
            (str(draft.msg_type), outgoing),
            parent=parent,
            in_thread=in_thread,
            uuid=str(draft.uuid or ""),
        )
        self._attach(message)
        if message.uuid:
            self._by_uuid[message.uuid] = message.message_id
        if card is not None:
            self._world.put(replace(card, message_id=message.message_id))
        return message

    def _check_mention_of_all(
        self, chat: Chat, msg_type: str, outgoing: CheckedContent, card: Card | None
    ) -> None:
        """Where only a group's owner mentions everybody, who is whoever came first."""
        if not self._world.switches.all_by_owner or chat.mode == P2P:
            return
        body = card.body if card else json.loads(outgoing.content)
        called = notified_by(body) if msg_type == "interactive" else []
        everybody = "all" in called or "@_all" in outgoing.content
        if everybody and chat.members[:1] != (self._world.bot.open_id,):
            raise ApiError(11235)

    @staticmethod
    def _check_mentions(card: dict[str, Any], known: Known) -> None:
        for one in notified_by(card):
            if one != "all" and not known.person(one):
                reason = "There is an invalid user resource(at/person) in your card"
                raise card_refused(100290, reason, one)

    def _own(self, message_id: str, refusal: ApiError) -> SandboxMessage:
        message = self.living(message_id)
        self.open_chat(message.chat_id)
        if message.sender != self._world.bot.open_id:
            raise refusal
        if self._world.now_ms() - message.create_ms > UPDATE_WINDOW_MS:
            raise ApiError(230031)
        return message

    def _replace_content(self, message: SandboxMessage, outgoing: CheckedContent) -> SandboxMessage:
        return self._world.change(
            message,
            content=outgoing.content,
            mentions=outgoing.mentions,
            updated=True,
            update_ms=self._world.now_ms(),
        )

    def _limit(self, kind: str, key: str, limit: int) -> None:
        if self._world.switches.rate_limits and not self._limiter.allow(kind, key, limit):
            raise ApiError(230020)

    def _container(self, asked: HistoryQuery) -> Container:
        world = self._world
        if asked.kind == "chat":
            chat = self.readable_chat(asked.container_id)
            return world.containers.get(chat.chat_id, Container())
        found = world.containers.get(asked.container_id)
        if found is None or not asked.container_id.startswith("omt_"):
            raise invalid("container_id is invalid")
        said = [world.messages[one] for *_, one in found.entries]
        chat = self.readable_chat(said[0].chat_id)
        if world.switches.history_hidden and not self._has_seen(chat, said):
            raise ApiError(230073)
        return found

    def _has_seen(self, chat: Chat, said: list[SandboxMessage]) -> bool:
        """Whether the bot was there when the thread began, or was mentioned in it."""
        bot = self._world.bot.open_id
        mentioned = any(one.open_id == bot for message in said for one in message.mentions)
        return mentioned or said[0].create_ms >= chat.bot_since_ms


def compose(
    world: World,
    chat_id: str,
    sender: str,
    body: tuple[str, CheckedContent],
    *,
    parent: SandboxMessage | None = None,
    in_thread: bool = False,
    uuid: str = "",
    visible_to: str = "",
    unseen: bool = False,
) -> SandboxMessage:
    """Store a message of `body` (msg_type, content), placed under `parent`.

    In a thread root and parent are the thread's root; a quote keeps the root of its parent. In a
    topic group everything is in a thread, which its first message begins. A card for one person is
    in none.
    """
    now = world.now_ms()
    root_id = parent_id = thread_id = ""
    topics = world.chats[chat_id].has_topics
    if parent is None and topics:
        thread_id = new_id("omt_", 16)
    elif parent is not None and (in_thread or topics or parent.thread_id):
        root = root_of_thread(world, parent)
        if not root.thread_id:
            root = world.change(root, thread_id=new_id("omt_", 16))
        root_id = parent_id = root.message_id
        thread_id = root.thread_id
    elif parent is not None:
        root_id, parent_id = parent.root_id or parent.message_id, parent.message_id
    message = SandboxMessage(
        message_id=new_message_id(),
        chat_id=chat_id,
        sender=sender,
        msg_type=body[0],
        content=body[1].content,
        create_ms=now,
        update_ms=now,
        root_id=root_id,
        parent_id=parent_id,
        thread_id=thread_id,
        mentions=body[1].mentions,
        uuid=uuid,
        card_id=body[1].card_id,
        visible_to=visible_to,
        unseen=unseen,
        forwarded=body[1].forwarded,
        position=len(world.messages) + 1,
    )
    world.put(message)
    return message


def add_reaction(
    world: World, message: SandboxMessage, open_id: str, emoji_type: str
) -> SandboxReaction:
    """The reaction of that person with that emoji, made if it is not there yet."""
    for one in message.reactions:
        if one.open_id == open_id and one.emoji_type == emoji_type:
            return one
    reaction = SandboxReaction(new_id("", 24), open_id, emoji_type, world.now_ms())
    world.change(message, reactions=(*message.reactions, reaction))
    return reaction
