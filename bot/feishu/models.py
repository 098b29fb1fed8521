"""Defines what Feishu's API answers, and reads the texts of messages that it returns. Pure.

A merged forward comes with its children, flat, linked by `upper_message_id`. Feishu returns a
card as it was sent, below `user_dsl` and with ids of its own in at-tags, so at-tags are
compared as such. Source: Feishu, "Get message"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.feishu.card_text import original_card
from bot.feishu.cards import holds_answer, join_entries
from bot.feishu.content import render_content
from bot.feishu.errors import Unintelligible, Unreachable
from bot.feishu.fields import (
    Attachment,
    Mention,
    as_dict,
    as_list,
    as_text,
    milliseconds,
    parse_mentions,
    render_mentions,
)
from memory.scope import FeishuPerson
from memory.text import labelled_text, speaker_label

MOST_FORWARDED = 50

# Feishu, "Get resource in message": it does not give resources of forwarded messages.
NOT_FETCHED_TEXT = "(the files and pictures named above were not read)"
RETRACTED_TEXT = "(this message was taken back)"

_AT = re.compile(r"<at\b[^<>]*>[^<>]*</at>")


@dataclass(frozen=True, slots=True)
class BotInfo:
    """The bot itself; `open_id` is how mentions name it."""

    open_id: str
    app_name: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message Feishu accepted."""

    message_id: str


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A stored message. `content` is as Feishu keeps it: a JSON string, or bare text for recalled
    messages and merged forwards; `sender_type` is user, app, anonymous or unknown. Where Feishu
    tells them (its SDK's model, not its pages): `sender_name`, also of apps, and `position`, the
    number of the message in its chat, else 0."""

    message_id: str
    root_id: str
    parent_id: str
    thread_id: str
    chat_id: str
    message_type: str
    sender_id: str
    sender_id_type: str
    sender_type: str
    create_time_ms: int
    deleted: bool
    content: str
    mentions: tuple[Mention, ...]
    sender_name: str = ""
    position: int = 0
    edited: bool = False


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Messages of a chat or thread, the oldest first; `next_token` is "" on the last page."""

    messages: tuple[RawMessage, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """`chat_mode` is group, topic or p2p; `group_message_type` is chat or thread.

    `managers` are the open ids of its owner and managers, as far as Feishu names them."""

    name: str
    chat_mode: str
    group_message_type: str
    managers: tuple[str, ...] = ()

    @property
    def topics(self) -> bool:
        """Whether it consists of topics (Feishu, "Overview of topics": two kinds of group do)."""
        return has_topics(self.chat_mode, self.group_message_type)


def has_topics(chat_mode: str, group_message_type: str) -> bool:
    return chat_mode in ("topic", "topic_group") or group_message_type == "thread"


def required_text(data: dict[str, Any], name: str) -> str:
    """The text under `name`. Raises Unreachable: without it the outcome is not known."""
    value = as_text(data.get(name))
    if not value:
        raise Unreachable(f"the answer has no {name}")
    return value


def sent_message(data: dict[str, Any]) -> SentMessage:
    return SentMessage(required_text(data, "message_id"))


def raw_message(item: dict[str, Any]) -> RawMessage:
    sender = as_dict(item.get("sender"))
    return RawMessage(
        message_id=as_text(item.get("message_id")),
        root_id=as_text(item.get("root_id")),
        parent_id=as_text(item.get("parent_id")),
        thread_id=as_text(item.get("thread_id")),
        chat_id=as_text(item.get("chat_id")),
        message_type=as_text(item.get("msg_type")),
        sender_id=as_text(sender.get("id")),
        sender_id_type=as_text(sender.get("id_type")),
        sender_type=as_text(sender.get("sender_type")),
        create_time_ms=milliseconds(item.get("create_time")),
        deleted=item.get("deleted") is True,
        content=as_text(as_dict(item.get("body")).get("content")),
        mentions=parse_mentions(item.get("mentions")),
        sender_name=as_text(sender.get("sender_name")),
        position=_ordinal(item.get("message_position")),
        edited=item.get("updated") is True,
    )


def _ordinal(value: object) -> int:
    """A number from 1 on, written as one or as text; 0 for anything else."""
    digits = str(value)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else 0


def history_page(data: dict[str, Any]) -> HistoryPage:
    """Raises Unintelligible for an answer that goes on and does not say where, or has no list."""
    more, token = data.get("has_more") is True, as_text(data.get("page_token"))
    items = data.get("items")
    if more and not token:
        raise Unintelligible("the answer has more pages and no page_token")
    if not isinstance(items, list) and (more or items is not None):
        raise Unintelligible("the answer has no items")
    return HistoryPage(
        tuple(raw_message(as_dict(item)) for item in as_list(items)), token if more else ""
    )


def chat_info(data: dict[str, Any]) -> ChatInfo:
    return ChatInfo(
        name=as_text(data.get("name")),
        chat_mode=as_text(data.get("chat_mode")),
        group_message_type=as_text(data.get("group_message_type")),
        managers=_managers(data),
    )


def _managers(data: dict[str, Any]) -> tuple[str, ...]:
    """Feishu names no owner where a bot is it, and may name one by another kind of id."""
    candidates = (data.get("owner_id"), *as_list(data.get("user_manager_id_list")))
    return tuple(
        dict.fromkeys(open_id for open_id in map(as_text, candidates) if open_id.startswith("ou_"))
    )


def members_of_page(data: dict[str, Any]) -> dict[FeishuPerson, str]:
    """The people of one page of a chat's members, with their names. Raises Unreachable for an
    answer without a list, which would empty the group."""
    if not isinstance(data.get("items"), list):
        raise Unreachable("the answer has no items")
    items = [as_dict(item) for item in as_list(data["items"])]
    people = {
        FeishuPerson(as_text(item.get("tenant_key")), as_text(item.get("member_id"))): as_text(
            item.get("name")
        )
        for item in items
    }
    return {person: name for person, name in people.items() if person.open_id}


def is_forward(message_type: str) -> bool:
    return message_type == "merge_forward"


def message_text(raw: RawMessage, names: Mapping[str, str]) -> str:
    """What the message says, as Markdown; `names` are by open_id, for at-tags in cards."""
    if raw.deleted:
        return RETRACTED_TEXT
    rendering = render_content(raw.message_type, raw.content, raw.mentions, names)
    return render_mentions(rendering.template, raw.mentions)


def message_attachments(raw: RawMessage) -> tuple[Attachment, ...]:
    """Resources that can be downloaded under the message's own id."""
    return () if raw.deleted else render_content(raw.message_type, raw.content).attachments


def forward_text(messages: Sequence[RawMessage], names: Mapping[str, str]) -> str:
    """The children of a merged forward, `found[0]`: `Name: text`, oldest first, nested ones too."""
    children = sorted(messages[1:], key=lambda raw: raw.create_time_ms)
    visible_children = children[:MOST_FORWARDED]
    lines = [_forward_line(raw, names) for raw in visible_children]
    lines += [f"({left_out} more)"] if (left_out := len(children) - len(visible_children)) else []
    lines += [NOT_FETCHED_TEXT] if any(map(message_attachments, visible_children)) else []
    return "\n".join(lines)


def _forward_line(raw: RawMessage, names: Mapping[str, str]) -> str:
    text = message_text(raw, names).strip() or f"[{raw.message_type}]"
    return labelled_text(speaker_label(names.get(raw.sender_id, "")), text)


def shown_text(message: RawMessage, element_id: str = "") -> str | None:
    """The answer's text in a card or text message, what a file is called; None where there is none.

    With `element_id`: only of a card that has that element.
    """
    try:
        content = as_dict(json.loads(message.content))
    except ValueError:
        return None
    if message.message_type == "text":
        return None if element_id else as_text(content.get("text"))
    if message.message_type in ("file", "image"):
        return (
            None if element_id else render_content(message.message_type, message.content).template
        )
    texts = list(_markdown_elements(as_dict(original_card(content).get("body")).get("elements")))
    if element_id and element_id not in dict(texts):
        return None
    return join_entries(part for part in texts if holds_answer(part[0])) or next(
        (text for _, text in texts), None
    )


def is_same_text(visible_text: str, stored_text: str) -> bool:
    """Whether two texts are the same but for whom at-tags name."""
    return _comparable_text(visible_text) == _comparable_text(stored_text)


def _markdown_elements(elements: object) -> Iterator[tuple[str, str]]:
    """element_id and content of every Markdown element, in order, however deep."""
    for element in map(as_dict, as_list(elements)):
        if element.get("tag") == "markdown":
            yield as_text(element.get("element_id")), as_text(element.get("content"))
        for inner in ("elements", "columns"):
            yield from _markdown_elements(element.get(inner))


def _comparable_text(text: str) -> str:
    return _AT.sub("<at></at>", text).strip()
