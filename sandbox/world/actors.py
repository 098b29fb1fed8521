"""What people (and other bots) do in the simulated tenant, and the events it makes.

Feishu pushes a group message to the app only if it @-s the bot, or the app has the scope
im:message.group_msg; never the bot's own messages; other bots' messages only with the
`include_bot` scopes. Edits are not pushed.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.cards.card_check import CardInvalid
from sandbox.world import events, scopes
from sandbox.world.content import CheckedContent, card_of_others
from sandbox.world.entities import (
    BOT,
    P2P,
    USER,
    Chat,
    Resource,
    SandboxMention,
    SandboxMessage,
    SandboxPerson,
    SandboxReaction,
    new_id,
)
from sandbox.world.events import Envelope
from sandbox.world.messaging import MAX_EDITS, add_reaction, compose
from sandbox.world.push import Pusher
from sandbox.world.state import World
from sandbox.world.voice import spoken
from sandbox.world.wire import card_of

# A 1 x 1 pixel, for image messages that bring no picture of their own.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA"
    "fFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_MOST_MADE_S = 150.0
MERGED_FORWARD = "Merged and Forwarded Message"
_KEY = re.compile(r"(@_user_\d+|@_all(?!\w))")
_ALL = re.compile(r"@(?:all|所有人)(?![A-Za-z0-9_])")


class ControlRefused(Exception):
    """The control interface was asked for something that makes no sense; the message says what."""


@dataclass(frozen=True)
class Speech:
    """A message that somebody writes.

    `foreign_ids`: its event names whom it mentions by ids of another app, as Feishu does when a bot
    mentions somebody by an id of its own app.

    `text` with `@Name` of members (unless `raw`); or `content`, the raw JSON string of the
    message. Of a voice message (`audio`), `text` is what is said in it, within `seconds` at least.
    `mentions` are open ids for keys `@_user_1`, `@_user_2` … that stand in the text.
    """

    speaker: str
    chat_id: str
    text: str = ""
    msg_type: str = "text"
    content: str = ""
    mentions: tuple[str, ...] = ()
    raw: bool = False
    reply_to: str = ""
    quote: bool = False
    file_base64: str = ""
    file_name: str = ""
    mime: str = "image/png"
    count: int = 1
    new_event_ids: bool = False
    foreign_ids: bool = False
    seconds: float = 0.0


class Actors:
    """The people of the tenant, as remote-controlled by the page or a test."""

    def __init__(self, world: World, pusher: Pusher) -> None:
        self._world = world
        self._pusher = pusher
        self._received: dict[str, Envelope] = {}

    def say(self, speech: Speech) -> SandboxMessage:
        """Write a message and push it to the app as often as `count` says."""
        try:
            base64.b64decode(speech.file_base64, validate=True)
        except ValueError:
            raise ControlRefused("'file_base64' is not base64") from None
        with self._world.lock:
            chat = self._present(speech.speaker, speech.chat_id)
            parent = self.message(speech.reply_to) if speech.reply_to else None
            in_thread = parent is not None and not speech.quote
            message = compose(
                self._world,
                chat.chat_id,
                speech.speaker,
                (speech.msg_type, self._content(speech, chat)),
                parent=parent,
                in_thread=in_thread,
            )
            self._keep_file(speech, message)
            message = self._keep_voice(speech, message)
            envelope = events.received(self._world, message)
            if speech.foreign_ids:
                envelope = events.with_foreign_ids(envelope)
            self._received[message.message_id] = envelope
            wanted = self._is_delivered(message, chat)
        if wanted:
            self._deliver(envelope, message, speech.count, speech.new_event_ids)
        return message

    def forward(self, speaker: str, chat_id: str, message_ids: Sequence[str]) -> SandboxMessage:
        """Forward one message as a copy, several as one merged forward."""
        with self._world.lock:
            chat = self._present(speaker, chat_id)
            found = [self.message(one) for one in message_ids]
            if not found or any(one.deleted for one in found):
                raise ControlRefused("forward one message or more that nobody has recalled")
            body = _merged(found) if len(found) > 1 else self._copy(found[0])
            message = compose(self._world, chat_id, speaker, body)
            envelope = events.received(self._world, message)
            self._received[message.message_id] = envelope
            wanted = self._is_delivered(message, chat)
        if wanted:
            self._deliver(envelope, message, 1, fresh=False)
        return message

    def _copy(self, message: SandboxMessage) -> tuple[str, CheckedContent]:
        card = card_of(self._world, message)
        content = json.dumps(card, ensure_ascii=False) if card else message.content
        return message.msg_type, CheckedContent(
            content, message.mentions, forwarded=message.forwarded
        )

    def redeliver(self, message_id: str, times: int, *, new_event_id: bool) -> None:
        """Push the event of a message again, as Feishu sometimes does."""
        with self._world.lock:
            message = self.message(message_id)
            envelope = self._received.get(message_id) or events.received(self._world, message)
        if new_event_id:
            envelope = events.with_new_event_id(envelope)
        self._deliver(envelope, message, times, new_event_id)

    def edit(self, message_id: str, open_id: str, text: str) -> SandboxMessage:
        """The author writes a text anew. No event: Feishu tells no app."""
        with self._world.lock:
            message = self.message(message_id)
            if open_id != message.sender or message.deleted:
                raise ControlRefused("people edit their own messages, until they recall them")
            if message.msg_type not in ("text", "post"):
                raise ControlRefused("only text is edited")
            if message.edits >= MAX_EDITS:
                raise ControlRefused(f"a message is edited {MAX_EDITS} times at most")
            speech = Speech(open_id, message.chat_id, text, message.msg_type)
            written = self._content(speech, self._present(open_id, message.chat_id))
            return self._world.change(
                message,
                content=written.content,
                mentions=written.mentions,
                updated=True,
                edits=message.edits + 1,
                update_ms=self._world.now_ms(),
            )

    def recall(self, message_id: str, open_id: str) -> SandboxMessage:
        """The author (or, as in Feishu, the owner of the group) withdraws a message."""
        with self._world.lock:
            message = self.message(message_id)
            if message.deleted:
                raise ControlRefused("the message is recalled already")
            own = open_id == message.sender
            recalled = self._world.change(message, deleted=True, update_ms=self._world.now_ms())
            kind = "message_owner" if own else "group_owner"
            envelope = events.recalled(self._world, recalled, kind)
        self._pusher.push(envelope, message_id=message_id)
        return recalled

    def react(self, message_id: str, open_id: str, emoji_type: str) -> SandboxReaction:
        """Put an emoji on a message; a second time takes it away."""
        with self._world.lock:
            message = self.message(message_id)
            person = self.person(open_id)
            mine = [
                one
                for one in message.reactions
                if one.open_id == open_id and one.emoji_type == emoji_type
            ]
            if mine:
                left = tuple(one for one in message.reactions if one not in mine)
                self._world.change(message, reactions=left)
            reaction = mine[0] if mine else self._add(message, person, emoji_type)
            envelope = events.reacted(self._world, message, reaction, created=not mine)
        self._pusher.push(envelope, message_id=message_id)
        return reaction

    def add_person(
        self, name: str, kind: str = USER, en_name: str = "", tenant_key: str = ""
    ) -> SandboxPerson:
        """A new person, or another bot (`kind` bot), with a p2p chat if human; `tenant_key` is that
        of somebody external."""
        if not name or kind not in (USER, BOT):
            raise ControlRefused("a person needs a name, and kind user or bot")
        with self._world.lock:
            person = SandboxPerson(new_id("ou_"), name, kind, en_name, tenant_key=tenant_key)
            self._world.put(person)
            if kind == USER:
                self._world.p2p_chat(person.open_id)
        return person

    def message(self, message_id: str) -> SandboxMessage:
        """Raises Refusal when there is no such message."""
        found = self._world.messages.get(message_id)
        if found is None:
            raise ControlRefused(f"there is no message {message_id!r}")
        return found

    def person(self, open_id: str) -> SandboxPerson:
        """Raises Refusal when there is no such person."""
        found = self._world.people.get(open_id)
        if found is None:
            raise ControlRefused(
                f"there is no person {open_id!r}; GET /sandbox/api/state lists them"
            )
        return found

    def chat(self, chat_id: str) -> Chat:
        """Raises Refusal when there is no such chat."""
        found = self._world.chats.get(chat_id)
        if found is None:
            raise ControlRefused(f"there is no chat {chat_id!r}; GET /sandbox/api/state lists them")
        return found

    def _present(self, open_id: str, chat_id: str) -> Chat:
        chat = self.chat(chat_id)
        if chat.dissolved:
            raise ControlRefused("the chat is dissolved")
        if self.person(open_id).open_id not in chat.members:
            raise ControlRefused(f"{open_id!r} is not in that chat")
        if open_id == self._world.bot.open_id:
            raise ControlRefused("the app speaks for its own bot; pick somebody else")
        return chat

    def _content(self, speech: Speech, chat: Chat) -> CheckedContent:
        mentions = tuple(
            SandboxMention(f"@_user_{number}", self.person(open_id).open_id)
            for number, open_id in enumerate(speech.mentions, start=1)
        )
        if speech.msg_type == "interactive" and not mentions:
            return _card(speech.content, chat)
        if speech.content:
            return CheckedContent(speech.content, mentions)
        if speech.msg_type in ("image", "file"):
            return CheckedContent(json.dumps(_file_content(speech)), mentions)
        if speech.msg_type == "audio":
            content = {"file_key": new_id("file_v3_", 32), "duration": 0}
            return CheckedContent(json.dumps(content))
        if not speech.text.strip():
            raise ControlRefused("text is empty")
        text = speech.text
        if not mentions and not speech.raw:
            text, mentions = with_mentions(text, self._world.member_names(chat))
            if self._world.switches.tight_mentions:
                text = re.sub(r"(@_user_\d+) ", r"\1", text)
        if speech.msg_type == "post":
            names = {one.key: self.person(one.open_id).name for one in mentions}
            paragraphs = [_paragraph(line, names) for line in text.split("\n")]
            value: dict[str, Any] = {"title": "", "content": paragraphs}
            return CheckedContent(json.dumps(value, ensure_ascii=False), mentions)
        return CheckedContent(json.dumps({"text": text}, ensure_ascii=False), mentions)

    def _keep_file(self, speech: Speech, message: SandboxMessage) -> None:
        try:
            content = json.loads(message.content)
        except ValueError:
            return
        if not isinstance(content, dict) or speech.msg_type not in ("image", "file"):
            return
        key = content.get("image_key") or content.get("file_key")
        name = str(content.get("file_name", ""))
        data = speech.file_base64 or ("" if speech.file_name else PIXEL)
        self._world.put(Resource(str(key), speech.mime, data, message.message_id, name))

    def _keep_voice(self, speech: Speech, message: SandboxMessage) -> SandboxMessage:
        """The sound of a voice message. Of a very long one only the beginning is made; its length
        is what it says."""
        if speech.msg_type != "audio" or speech.content:
            return message
        data, duration_ms = spoken(speech.text, min(speech.seconds, _MOST_MADE_S))
        content = json.loads(message.content)
        content["duration"] = max(duration_ms, int(speech.seconds * 1000))
        sound = base64.b64encode(data).decode()
        key = content["file_key"]
        self._world.put(Resource(key, "audio/ogg", sound, message.message_id, spoken=speech.text))
        return self._world.change(message, content=json.dumps(content))

    def _is_delivered(self, message: SandboxMessage, chat: Chat) -> bool:
        """As the scopes say (Feishu: im.message.receive_v1, “Notes”)."""
        bot, may = self._world.bot.open_id, self._world.may
        if bot not in chat.members:
            return False
        if chat.mode == P2P:
            return may(scopes.PRIVATE_MESSAGES)
        mentioned = any(one.open_id == bot for one in message.mentions)
        if self._world.people[message.sender].kind == BOT:
            every, mention = [scopes.MESSAGES_OF_BOTS], [scopes.MENTIONS_BY_BOTS]
            return may([*every, *mention] if mentioned else every)
        return may(scopes.MENTIONS if mentioned else scopes.GROUP_MESSAGES)

    def _deliver(
        self, envelope: Envelope, message: SandboxMessage, times: int, fresh: bool
    ) -> None:
        for number in range(times):
            again = events.with_new_event_id(envelope) if fresh and number else envelope
            self._pusher.push(again, message_id=message.message_id)

    def _add(
        self, message: SandboxMessage, person: SandboxPerson, emoji_type: str
    ) -> SandboxReaction:
        return add_reaction(self._world, message, person.open_id, emoji_type)


def _card(content: str, chat: Chat) -> CheckedContent:
    try:
        return card_of_others(content, chat.members.__contains__)
    except CardInvalid:
        raise ControlRefused("'content' must be the JSON of a card") from None


def _merged(messages: Sequence[SandboxMessage]) -> tuple[str, CheckedContent]:
    ids = tuple(one.message_id for one in messages)
    return "merge_forward", CheckedContent(MERGED_FORWARD, forwarded=ids)


def with_mentions(
    text: str, members: list[SandboxPerson]
) -> tuple[str, tuple[SandboxMention, ...]]:
    """`@Name` of a member becomes a mention key, longest name first; `@all` becomes `@_all`.

    A Latin name ends at a word boundary, so `@Bob` does not eat `@Bobby`.
    """
    by_name = {one.name.casefold(): one.open_id for one in members}
    names = sorted(by_name, key=len, reverse=True)
    if not names:
        return text, ()
    ends = (re.escape(one) + (r"(?![A-Za-z0-9_])" if one[-1:].isascii() else "") for one in names)
    found: list[SandboxMention] = []

    def to_key(match: re.Match[str]) -> str:
        found.append(SandboxMention(f"@_user_{len(found) + 1}", by_name[match[1].casefold()]))
        return found[-1].key

    pattern = re.compile(r"(?<![A-Za-z0-9_.])@(" + "|".join(ends) + ")", re.I)
    return _ALL.sub("@_all", pattern.sub(to_key, text)), tuple(found)


def _paragraph(line: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """A line of a post. A mention in it is an element of its own, with the mention's key."""
    row: list[dict[str, Any]] = []
    for part in _KEY.split(line):
        if part in names or part == "@_all":
            name = names.get(part, "all")
            row.append({"tag": "at", "user_id": part, "user_name": name, "style": []})
        elif part:
            row.append({"tag": "text", "text": part, "style": []})
    return row


def _file_content(speech: Speech) -> dict[str, str]:
    if speech.msg_type == "image":
        return {"image_key": new_id("img_v3_", 32)}
    return {"file_key": new_id("file_v3_", 32), "file_name": speech.file_name or "file.txt"}
