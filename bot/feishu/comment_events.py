"""Comments in documents, as Feishu tells of them: the event, threads and their replies. Pure.

Source: Feishu, drive-v1: “Add comment and reply notice event” (drive.notice.comment_add_v1), and
file-comment batch_query. `from_user_type` is in the SDK's model of the event only, without
its values: what is not a user is taken for a bot, so that two bots stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.feishu.events import Envelope, MalformedEvent, milliseconds
from bot.feishu.fields import as_dict, as_text

_KEY = "comment"


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """A thread of comments: token and kind (docx, sheet, …) of its document, and its id."""

    file_token: str
    file_type: str
    comment_id: str


@dataclass(frozen=True, slots=True)
class CommentNotice:
    """Somebody commented. `is_mentioned`: they mention somebody, who need not be the bot. `by_bot`:
    the author is an app."""

    event_id: str
    place: CommentPlace
    reply_id: str
    author_open_id: str
    tenant_key: str
    create_time_ms: int
    is_mentioned: bool
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class CommentReply:
    """What one author said in a thread. `elements`: text_run, docs_link and person, as Feishu has
    them; `create_time_s` since the epoch."""

    reply_id: str
    author_open_id: str
    create_time_s: int
    elements: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class CommentThread:
    """A thread with its replies, oldest first. `quote`: the passage it is about, "" for the whole
    document (`is_whole`)."""

    comment_id: str
    quote: str
    is_whole: bool
    replies: tuple[CommentReply, ...]


def parse_comment(envelope: Envelope) -> CommentNotice:
    """The comment of a drive.notice.comment_add_v1 event. Raises MalformedEvent without its ids."""
    event = envelope.event
    notice = as_dict(event.get("notice_meta"))
    comment_id = _needed(event, "comment_id")
    merged_event = {**event, **notice}  # older events name the document beside the comment
    place = CommentPlace(
        _needed(merged_event, "file_token"), _needed(merged_event, "file_type"), comment_id
    )
    return CommentNotice(
        envelope.event_id,
        place,
        as_text(event.get("reply_id")) or comment_id,
        as_text(as_dict(notice.get("from_user_id")).get("open_id")),
        envelope.tenant_key,
        milliseconds(event.get("create_time")) or envelope.create_time_ms,
        is_mentioned=event.get("is_mentioned") is True,
        by_bot=as_text(notice.get("from_user_type")) not in ("", "user"),
    )


def message_key(file_type: str, reply_id: str) -> str:
    """What a reply is called where messages have their message_id: its document's kind is needed
    for every call about it."""
    return f"{_KEY}:{file_type}:{reply_id}"


def place_of_reply(key: str, chat_id: str) -> tuple[CommentPlace, str]:
    """Place and id of the reply that `message_key` named, in the thread `doc:{token}:{comment_id}`.
    Raises ValueError for what is none."""
    _, file_type, reply_id = key.split(":")
    _, file_token, comment_id = chat_id.split(":")
    return CommentPlace(file_token, file_type, comment_id), reply_id


def _needed(source: Mapping[str, Any], name: str) -> str:
    if value := as_text(source.get(name)):
        return value
    raise MalformedEvent(f"The event has no {name}; check the event's version in the console.")
