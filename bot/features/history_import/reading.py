"""A page of Feishu's list as what is kept of it. Pure.

Source: Feishu, "Obtain chat history": a message that was taken back is `deleted`; of an ordinary
group's threads the chat lists the first message alone, which carries the `thread_id`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.features.history_import.memberships import memberships
from bot.feishu.fields import as_dict
from bot.feishu.models import RawMessage
from bot.feishu.received import is_forward, raw_text
from memory.tables.imports import ImportedMessage, MembershipNotice, Page
from memory.text import one_line

LONGEST = 30_000
_LONGEST_NAME = 200
_IMAGE = re.compile(r"!\[image\]\([^()\s]{0,2000}\)")
_LABELS = re.compile(r"(?:\[[a-z ]+\]\s*)+")  # a message of which there is nothing else to say


@dataclass(frozen=True, slots=True)
class Source:
    """Whose messages they are: of the chat, of a thread in it with `in_thread`. `topics`: the chat
    consists of topics; `app_id` is the bot's own."""

    chat_id: str
    app_id: str
    topics: bool = False
    in_thread: bool = False

    def is_own(self, raw: RawMessage) -> bool:
        return raw.sender_type == "app" and raw.sender_id == self.app_id

    def is_here(self, raw: RawMessage) -> bool:
        """Whether it is a message of this chat at all."""
        has_id = bool(raw.message_id) and raw.create_time_ms > 0
        return has_id and raw.chat_id in ("", self.chat_id)

    def counts(self, raw: RawMessage) -> bool:
        """The first message of a thread was counted in the chat already."""
        return not self.in_thread or bool(raw.root_id)

    def root(self, raw: RawMessage) -> str:
        """The first message of its thread; "" outside of threads, also where one is quoted."""
        if not (raw.thread_id or self.topics):
            return ""
        return raw.root_id or raw.message_id


def people(messages: Iterable[RawMessage]) -> tuple[str, ...]:
    """The open_ids of those who wrote them."""
    ids = (one.sender_id for one in messages if one.sender_id_type != "app_id")
    return tuple(dict.fromkeys(open_id for open_id in ids if open_id.startswith("ou_")))


def named(messages: Iterable[RawMessage]) -> dict[str, str]:
    """The names that Feishu tells with the messages, of authors and of people mentioned."""
    names_told = (
        (who, name)
        for one in messages
        for who, name in (
            *((mention.open_id, mention.name) for mention in one.mentions),
            (one.sender_id, one.sender_name),
        )
    )
    return {who: name for who, name in names_told if who and name}


def forwards(messages: Iterable[RawMessage], source: Source) -> tuple[str, ...]:
    """The ids of merged forwards, whose messages Feishu lists apart."""
    candidates = (one for one in messages if is_forward(one.message_type) and not one.deleted)
    return tuple(
        one.message_id for one in candidates if source.is_here(one) and not source.is_own(one)
    )


def read_page(
    messages: Sequence[RawMessage],
    source: Source,
    names: Mapping[str, str],
    forwarded_texts: Mapping[str, str],
    next_position: str,
) -> Page:
    """What is kept of `messages`, and what is not, counted by kind. `names` are by open_id;
    `forwarded_texts` has the texts of merged forwards by message_id."""
    kept_messages: list[ImportedMessage] = []
    joins: list[MembershipNotice] = []
    counts: Counter[str] = Counter()
    for raw in messages:
        text = _text(raw, names, forwarded_texts)
        if kind := _left_out(raw, source, text):
            counts[kind] += source.counts(raw)
        else:
            kept_messages.append(_imported(raw, source, names, text))
        if kind == "system":
            joins += memberships(_content(raw), raw.create_time_ms)
    lists_threads = not source.in_thread and not source.topics
    threads = dict.fromkeys(raw.thread_id for raw in messages if lists_threads and raw.thread_id)
    return Page(
        tuple(kept_messages),
        tuple(threads),
        tuple(dict.fromkeys(joins)),
        dict(+counts),
        next_position,
    )


def _left_out(raw: RawMessage, source: Source, text: str) -> str:
    """The kind of a message that is not kept; "" for the others."""
    if not source.is_here(raw):
        return "unreadable"
    if raw.deleted:
        return "deleted"
    if raw.message_type == "system":
        return "system"
    if source.is_own(raw):
        return "own"
    return "" if text else "without_text"


def _text(raw: RawMessage, names: Mapping[str, str], forwarded_texts: Mapping[str, str]) -> str:
    """What it says; "" where that is no more than that there was a picture."""
    if raw.deleted or raw.message_type == "system":
        return ""
    text = forwarded_texts.get(raw.message_id) or _IMAGE.sub("[image]", raw_text(raw, names))
    text = text.strip()
    if raw.message_type != "text" and _LABELS.fullmatch(text):
        return ""
    return text[:LONGEST]


def _imported(
    raw: RawMessage, source: Source, names: Mapping[str, str], text: str
) -> ImportedMessage:
    return ImportedMessage(
        message_id=raw.message_id,
        root_id=source.root(raw),
        author_id=raw.sender_id,
        author_name=one_line(names.get(raw.sender_id, ""))[:_LONGEST_NAME],
        sent_ms=raw.create_time_ms,
        content=text,
        position=raw.position,
    )


def _content(raw: RawMessage) -> dict[str, object]:
    try:
        return as_dict(json.loads(raw.content))
    except (ValueError, RecursionError):
        return {}
