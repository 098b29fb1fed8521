"""What Feishu pushes, as frozen data. Parsers are total: they raise MalformedEvent or nothing.

Source: Feishu, "Receive message" (im.message.receive_v1), "Message recalled", "Card callback
communication" (card.action.trigger).
"""

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from bot.feishu.content import render_content
from bot.feishu.fields import (
    MENTION_ALL_KEY,
    Attachment,
    Mention,
    as_dict,
    as_text,
    key_pattern,
    milliseconds,
    parse_mentions,
    render_mentions,
)
from bot.text.slash_commands import STOP_WORDS
from memory.scope import document_chat

MESSAGE_RECEIVED = "im.message.receive_v1"
MESSAGE_RECALLED = "im.message.recalled_v1"
COMMENT_ADDED = "drive.notice.comment_add_v1"
TOKEN_REVOKED = "auth.user_access_token.revoked_v4"  # noqa: S105 - an event
CARD_ACTION = "card.action.trigger"

# What a message says that may end an answer: nothing else but mentions. Keys may be unlisted here,
# for at worst such a message does not wait for the turn before it.
_KEYS = r"\s*(?:@_(?:user_\d+|all)[\s,，:：]*)*"
_STOP = "|".join(
    re.escape(form).replace("\\ ", r"\s+")
    for form in ("/stop", "/停", "/停止", "／stop", "／停", "／停止", *STOP_WORDS)
)
_STOPS = re.compile(rf"{_KEYS}(?:{_STOP})[\s.!。！]*{_KEYS}", re.IGNORECASE)
_LONGEST_STOP = 1000  # characters of content; the edge reads no longer ones

_SEPARATORS = " \t\r\n\u3000\xa0,，、:："


class MalformedEvent(Exception):
    """The payload lacks the ids that make it an event; answer 400 and drop it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Header and body of one pushed event; `event` is the raw object."""

    event_id: str
    event_type: str
    create_time_ms: int
    tenant_key: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the edge needs to know of a push: its kind, and the ids by which it is routed.

    `key` is what makes a delivery the same one. For messages Feishu says to use message_id: a
    message may come twice under two event ids. The ids of the message are "" for other kinds, but
    `chat_id` is the thread of a comment.
    `stops`: the message may be what ends an answer.
    """

    event_type: str
    event_id: str
    key: str
    app_id: str = ""
    message_id: str = ""
    root_id: str = ""
    thread_id: str = ""
    chat_id: str = ""
    chat_type: str = ""
    stops: bool = False


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message someone sent. Absent ids are "". `template` is `text` with the mention keys still
    in place; `sender_type` is user or bot; `chat_type` is p2p or group.

    `tenant_key` is the tenant that has the bot; `sender_tenant` the sender's own, "" where it is
    that one. Every reply has a `root_id`; outside of threads it is only the first of the messages
    quoted.
    """

    message_id: str
    root_id: str
    parent_id: str
    thread_id: str
    chat_id: str
    chat_type: str
    message_type: str
    sender_open_id: str
    sender_type: str
    tenant_key: str
    create_time_ms: int
    mentions: tuple[Mention, ...]
    mentions_all: bool
    text: str
    template: str
    attachments: tuple[Attachment, ...]
    sender_tenant: str = ""


@dataclass(frozen=True, slots=True)
class CardAction:
    """A click in a card. Anyone in the chat can click, and `value` came through the client:
    check the operator and treat the value as an opaque id. The tenants are as in a
    `MessageEvent`."""

    event_id: str
    operator_open_id: str
    tenant_key: str
    value: dict[str, Any] | str
    open_message_id: str
    open_chat_id: str
    create_time_ms: int
    form_value: dict[str, Any] = field(default_factory=dict)
    operator_tenant: str = ""


@dataclass(frozen=True, slots=True)
class RetractedMessage:
    """A message was recalled; `chat_id` is "" where Feishu leaves it out."""

    message_id: str
    chat_id: str


def is_url_verification(payload: object) -> bool:
    """Whether this is the console's check of the address: answer `{"challenge": …}` within 1 s."""
    return as_dict(payload).get("type") == "url_verification"


def parse_delivery(payload: object) -> Delivery:
    """The ids of a decrypted push and nothing else of it. Raises MalformedEvent without them."""
    top = as_dict(payload)
    event = as_dict(top.get("event"))
    header = as_dict(top.get("header")) or _first_schema(top, event)
    event_id, event_type = (
        _required_field(header, "event_id"),
        _required_field(header, "event_type"),
    )
    app_id = as_text(header.get("app_id"))
    if event_type == COMMENT_ADDED:
        return _of_comment(event, event_id, app_id)
    if event_type != MESSAGE_RECEIVED:
        return Delivery(event_type, event_id, f"event:{event_id}", app_id)
    message = as_dict(event.get("message"))
    message_id = _required_field(message, "message_id")
    return Delivery(
        event_type,
        event_id,
        f"message:{message_id}",
        app_id,
        message_id=message_id,
        root_id=as_text(message.get("root_id")),
        thread_id=as_text(message.get("thread_id")),
        chat_id=_required_field(message, "chat_id"),
        chat_type=as_text(message.get("chat_type")),
        stops=_may_stop(message),
    )


def _of_comment(event: dict[str, Any], event_id: str, app_id: str) -> Delivery:
    """A comment may come twice under two event ids, as a message may."""
    comment_id = _required_field(event, "comment_id")
    reply_id = as_text(event.get("reply_id")) or comment_id
    file_token = _required_field({**event, **as_dict(event.get("notice_meta"))}, "file_token")
    place = document_chat(file_token, comment_id)
    key = f"comment:{file_token}:{comment_id}:{reply_id}"
    return Delivery(COMMENT_ADDED, event_id, key, app_id, chat_id=place)


def _may_stop(message: dict[str, Any]) -> bool:
    content = as_text(message.get("content"))
    if len(content) > _LONGEST_STOP:
        return False
    kind = as_text(message.get("message_type")) or "text"
    return kind in ("text", "post") and bool(
        _STOPS.fullmatch(render_content(kind, content).template)
    )


def storable_push(payload: dict[str, Any]) -> dict[str, Any]:
    """The push as the queue keeps it: unchanged but for the verification token, which nobody needs
    again, and for the characters that Postgres refuses. Raises MalformedEvent."""
    fields = {name: value for name, value in payload.items() if name != "token"}
    if isinstance(header := payload.get("header"), dict):
        fields["header"] = {name: value for name, value in header.items() if name != "token"}
    return as_dict(_storable(fields))


def parse_envelope(payload: object) -> Envelope:
    """Envelope of a decrypted push, schema 2.0 or the older 1.0. Raises MalformedEvent."""
    top = as_dict(payload)
    event = as_dict(top.get("event"))
    header = as_dict(top.get("header")) or _first_schema(top, event)
    return Envelope(
        event_id=_required_field(header, "event_id"),
        event_type=_required_field(header, "event_type"),
        create_time_ms=milliseconds(header.get("create_time")),
        tenant_key=as_text(header.get("tenant_key")),
        event=event,
    )


def _first_schema(top: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    return {
        "event_id": top.get("uuid"),
        "event_type": event.get("type"),
        "create_time": top.get("ts"),
        "app_id": event.get("app_id"),
        "tenant_key": event.get("tenant_key"),
    }


def _storable(value: object) -> object:
    """`value` without the characters Postgres refuses in JSON (NUL, lone surrogates)."""
    if _is_storable(value):
        return value
    try:
        return _clean_value(value)
    except RecursionError:
        raise MalformedEvent("The payload is nested too deeply to be an event.") from None


def _is_storable(value: object) -> bool:
    """Whether there is nothing to clean, as nearly always; told in a tenth of the time."""
    try:
        return b"\\u0000" not in orjson.dumps(value)
    except TypeError:  # a lone surrogate; a number beyond 64 bits; nested deeply
        return False


def _clean_value(value: object) -> object:
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, dict):
        return {as_text(key): _clean_value(item) for key, item in value.items()}
    return [_clean_value(item) for item in value] if isinstance(value, list) else value


def _required_field(source: dict[str, Any], name: str) -> str:
    value = as_text(source.get(name))
    if not value:
        raise MalformedEvent(f"The event has no {name}; check the event's version in the console.")
    return value


def parse_message(envelope: Envelope) -> MessageEvent:
    """The message of an im.message.receive_v1 event. Raises MalformedEvent without its ids."""
    message = as_dict(envelope.event.get("message"))
    sender = as_dict(envelope.event.get("sender"))
    mentions = parse_mentions(message.get("mentions"))
    kind = as_text(message.get("message_type"))
    content = render_content(kind, message.get("content"), mentions)
    return MessageEvent(
        message_id=_required_field(message, "message_id"),
        root_id=as_text(message.get("root_id")),
        parent_id=as_text(message.get("parent_id")),
        thread_id=as_text(message.get("thread_id")),
        chat_id=_required_field(message, "chat_id"),
        chat_type=as_text(message.get("chat_type")),
        message_type=kind,
        sender_open_id=as_text(as_dict(sender.get("sender_id")).get("open_id")),
        sender_type=as_text(sender.get("sender_type")),
        tenant_key=envelope.tenant_key or as_text(sender.get("tenant_key")),
        create_time_ms=milliseconds(message.get("create_time")) or envelope.create_time_ms,
        mentions=mentions,
        mentions_all=_mentions_all(content.template, mentions),
        text=render_mentions(content.template, mentions),
        template=content.template,
        attachments=content.attachments,
        sender_tenant=_own_tenant(sender, envelope),
    )


def _own_tenant(person: dict[str, Any], envelope: Envelope) -> str:
    """The tenant of somebody external; "" for people of the tenant that has the bot."""
    own = as_text(person.get("tenant_key"))
    return own if own != envelope.tenant_key and envelope.tenant_key else ""


def _mentions_all(template: str, mentions: tuple[Mention, ...]) -> bool:
    """@all may come with no mention, or with one whose ids are empty."""
    mentions_all = any(mention.key == MENTION_ALL_KEY for mention in mentions)
    return mentions_all or MENTION_ALL_KEY in key_pattern(mentions).findall(template)


class KeyedText(Protocol):
    """A text with the mention keys still in it, and what they stand for."""

    @property
    def mentions(self) -> tuple[Mention, ...]: ...

    @property
    def template(self) -> str: ...


def question_text(text: KeyedText, bot_open_id: str) -> str:
    """The text without the bot's own mentions at its start; everyone else stays as @Name.

    Works on the mention keys, so that names which prefix each other cannot be confused.
    """
    own = {m.key for m in text.mentions if bot_open_id and m.open_id == bot_open_id}
    keys = key_pattern(text.mentions)
    rest = text.template.lstrip(_SEPARATORS) if own else text.template
    while (match := keys.match(rest)) and match.group() in own:
        rest = rest[match.end() :].lstrip(_SEPARATORS)
    return render_mentions(rest, text.mentions).strip()


def parse_card_action(envelope: Envelope) -> CardAction:
    """The click of a card.action.trigger callback; what is absent is "" or {}."""
    event = envelope.event
    action, context = as_dict(event.get("action")), as_dict(event.get("context"))
    operator, value = as_dict(event.get("operator")), action.get("value")
    return CardAction(
        event_id=envelope.event_id,
        operator_open_id=as_text(operator.get("open_id")),
        tenant_key=envelope.tenant_key or as_text(operator.get("tenant_key")),
        value=value if isinstance(value, str) else as_dict(value),
        open_message_id=as_text(context.get("open_message_id")),
        open_chat_id=as_text(context.get("open_chat_id")),
        create_time_ms=envelope.create_time_ms,
        form_value=as_dict(action.get("form_value")),
        operator_tenant=_own_tenant(operator, envelope),
    )


def parse_retraction(envelope: Envelope) -> RetractedMessage:
    """The message of an im.message.recalled_v1 event. Raises MalformedEvent without its id."""
    return RetractedMessage(
        message_id=_required_field(envelope.event, "message_id"),
        chat_id=as_text(envelope.event.get("chat_id")),
    )
