"""Parses the events besides messages and clicks: chats, comments, reactions, the menu. Pure.

The parsers are total: they raise MalformedEvent or nothing. Sources: Feishu, im.chat.*,
drive.notice.comment_add_v1, im.message.reaction.*, application.bot.menu_v6. `from_user_type` of
comments is not documented: what is not a user counts as a bot, so that two bots stop.

Writes what is said in comments as text and as Feishu's elements, too. An answer is plain text after
a mention of whom it is for. It is kept as `<at id=…></at> text`, and nothing but that beginning
becomes a mention: tags in what people or models wrote stay words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bot.feishu import markup
from bot.feishu.events import Envelope, MalformedEvent
from bot.feishu.fields import as_dict, as_list, as_text, milliseconds
from memory.scope import FeishuPerson

ChatEventKind = Literal["joined", "left", "entered", "opened", "gone", "renamed"]
CHAT_EVENTS: Mapping[str, ChatEventKind] = {
    "im.chat.member.user.added_v1": "joined",
    "im.chat.member.user.deleted_v1": "left",
    "im.chat.member.user.withdrawn_v1": "left",  # an invitation is taken back: they are out
    "im.chat.member.bot.added_v1": "entered",
    "im.chat.access_event.bot_p2p_chat_entered_v1": "opened",
    "im.chat.member.bot.deleted_v1": "gone",
    "im.chat.disbanded_v1": "gone",
    "im.chat.updated_v1": "renamed",
}

_KEY = "comment"

REACTION_ADDED = "im.message.reaction.created_v1"
REACTION_REMOVED = "im.message.reaction.deleted_v1"
REACTION_EVENTS = frozenset({REACTION_ADDED, REACTION_REMOVED})
Consent = Literal["yes", "no"]
_YES = frozenset("thumbsup ok yes done checkmark lgtm jiayi get onit".split())
_NO = frozenset("thumbsdown no crossmark".split())
_HELPFUL = {"thumbsup": True, "jiayi": True, "thumbsdown": False}

MENU_PRESSED = "application.bot.menu_v6"


@dataclass(frozen=True, slots=True)
class ChatNews:
    """Something happened to a chat at `at_ms`, ms since epoch: `people` joined or left it, the bot
    entered it, somebody opened theirs with the bot, it is gone for the bot, or its settings
    changed. `tenant_key` is the bot's; `name` is the chat's, "" where it is not told."""

    what: ChatEventKind
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
        CHAT_EVENTS[envelope.event_type],
        chat_id,
        envelope.tenant_key,
        envelope.create_time_ms or received_ms,
        people=_people_of_event(event, envelope.tenant_key),
        name=as_text((new_values or event).get("name")),
        operator=as_text(as_dict(event.get("operator_id")).get("open_id")),
        topics=form == "thread" if form else None,
    )


def _people_of_event(event: dict[str, Any], tenant_key: str) -> tuple[FeishuPerson, ...]:
    users = [as_dict(user) for user in as_list(event.get("users"))]
    people = (
        FeishuPerson(
            as_text(user.get("tenant_key")) or tenant_key,
            as_text(as_dict(user.get("user_id")).get("open_id")),
        )
        for user in users
    )
    return tuple(person for person in people if person.open_id)


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """A thread of comments: token and kind (docx, sheet, …) of its document, and its id."""

    file_token: str
    file_type: str
    comment_id: str


@dataclass(frozen=True, slots=True)
class CommentNotice:
    """Somebody commented. `is_mentioned`: they may mention somebody, who need not be the bot.
    `by_bot`: the author is an app."""

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

    def reply(self, reply_id: str) -> CommentReply | None:
        """The reply of that id. The comment itself is the first reply, which may have another id:
        events then name the comment alone."""
        if reply_id == self.comment_id:
            return self.replies[0] if self.replies else None
        return next((one for one in self.replies if one.reply_id == reply_id), None)


def parse_comment(envelope: Envelope) -> CommentNotice:
    """The comment of a drive.notice.comment_add_v1 event. Raises MalformedEvent without its ids."""
    event = envelope.event
    notice = as_dict(event.get("notice_meta"))
    comment_id = _required_text(event, "comment_id")
    merged_event = {**event, **notice}  # older events name the document beside the comment
    place = CommentPlace(
        _required_text(merged_event, "file_token"),
        _required_text(merged_event, "file_type"),
        comment_id,
    )
    return CommentNotice(
        place,
        as_text(event.get("reply_id")) or comment_id,
        as_text(as_dict(notice.get("from_user_id")).get("open_id")),
        envelope.tenant_key,
        milliseconds(event.get("create_time")) or envelope.create_time_ms,
        is_mentioned=event.get("is_mentioned") is not False,
        by_bot=as_text(notice.get("from_user_type")) not in ("", "user"),
    )


def comment_message_key(file_type: str, reply_id: str) -> str:
    """What a reply is called where messages have their message_id: its document's kind is needed
    for every call about it."""
    return f"{_KEY}:{file_type}:{reply_id}"


def place_of_comment_key(key: str, chat_id: str) -> tuple[CommentPlace, str]:
    """Returns the place and id of the reply that `comment_message_key` named, in the thread
    `doc:{token}:{comment_id}`. Raises ValueError for any other key."""
    _, file_type, reply_id = key.split(":")
    _, file_token, comment_id = chat_id.split(":")
    return CommentPlace(file_token, file_type, comment_id), reply_id


def _required_text(source: Mapping[str, Any], name: str) -> str:
    if value := as_text(source.get(name)):
        return value
    raise MalformedEvent(f"The event has no {name}; check the event's version in the console.")


@dataclass(frozen=True, slots=True)
class Reaction:
    """Somebody put the emoji of that name on a message, or took it away (`gone`); `open_id` is ""
    when an app did."""

    message_id: str
    emoji: str
    open_id: str
    tenant_key: str
    at_ms: int
    gone: bool = False

    @property
    def consent(self) -> Consent | None:
        """What it says to a question that yes or no answers."""
        name = self.emoji.lower()
        return "yes" if name in _YES else "no" if name in _NO else None

    @property
    def helpful(self) -> bool | None:
        """What it says of an answer: whether that helped."""
        return _HELPFUL.get(self.emoji.lower())


def parse_reaction(envelope: Envelope) -> Reaction:
    """The reaction of such an event. Raises MalformedEvent without its message."""
    event = envelope.event
    message_id = as_text(event.get("message_id"))
    if not message_id:
        raise MalformedEvent("The event has no message_id; check the event's version.")
    by_app = event.get("operator_type") == "app"
    return Reaction(
        message_id=message_id,
        emoji=as_text(as_dict(event.get("reaction_type")).get("emoji_type")),
        open_id="" if by_app else as_text(as_dict(event.get("user_id")).get("open_id")),
        tenant_key=envelope.tenant_key,
        at_ms=milliseconds(event.get("action_time")) or envelope.create_time_ms,
        gone=envelope.event_type == REACTION_REMOVED,
    )


@dataclass(frozen=True, slots=True)
class MenuPress:
    """Somebody pressed the item `key`. `cause` tells their presses of it apart: the second in which
    it was, as Feishu says it, or the event's id."""

    open_id: str
    tenant_key: str
    key: str
    cause: str
    at_ms: int

    @property
    def item(self) -> str:
        """The item in that person's menu."""
        return f"menu:{self.open_id}:{self.key}"


def parse_menu_press(envelope: Envelope) -> MenuPress:
    """The press of such an event. Raises MalformedEvent without its person or item."""
    event = envelope.event
    person = as_dict(as_dict(event.get("operator")).get("operator_id"))
    open_id, key = as_text(person.get("open_id")), as_text(event.get("event_key"))
    if not (open_id and key):
        raise MalformedEvent("The event has no open_id or event_key; check the event's version.")
    at = event.get("timestamp")
    at_ms = milliseconds(at)
    cause = str(at) if at_ms else envelope.event_id
    return MenuPress(open_id, envelope.tenant_key, key, cause, at_ms or envelope.create_time_ms)


LONGEST = 4000  # characters of one reply; Feishu takes 10,000, and nobody reads them in a margin
MOST_REPLIES = 3
_AT = re.compile(r"<at id=(ou_\w+)></at> ")
_ENDS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"(?<=[.!?])\s|(?<=[。！？])", r"\s")))
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_FENCE = re.compile(r"^```[^\n]*\n?", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(([^\s()]{1,2000}(?:\([^\s()]{0,500}\))?[^\s()]{0,500})\)")


def reply_text(reply: CommentReply, names: Mapping[str, str], *, without: str = "") -> str:
    """A reply as people read it: mentions as @Name, links as they are. The mention of `without`, an
    open id, is left out."""
    return "".join(_words(as_dict(one), names, without) for one in reply.elements).strip()


def mentioned_in(reply: CommentReply) -> tuple[str, ...]:
    """The open ids of whom a reply mentions."""
    people = (as_dict(as_dict(one).get("person")) for one in reply.elements)
    return tuple(id for one in people if (id := as_text(one.get("user_id"))))


def replies_of(text: str, addressee: str, *, note: str) -> list[str]:
    """The replies that say `text` to `addressee`, an open id: in parts where it is long. What does
    not fit into three is left out, and `note` stands in its place."""
    parts, rest = list[str](), plain_text(text)
    while rest and len(parts) < MOST_REPLIES:
        part, rest = _part(rest, LONGEST)
        parts.append(part)
    if rest:
        parts[-1] = f"{_part(parts[-1], LONGEST - len(note) - 2)[0]}\n\n{note}"
    first, *others = parts or [""]
    return [f"{markup.at_tag(addressee)} {first}", *others]


def elements_of(content: str) -> list[dict[str, Any]]:
    """The elements of a kept reply."""
    match = _AT.match(content)
    rest = content[match.end() :] if match else content
    run = {"type": "text_run", "text_run": {"text": f" {rest}" if match else rest}}
    return [{"type": "person", "person": {"user_id": match[1]}}, run] if match else [run]


def is_said(reply: CommentReply, content: str) -> bool:
    """Whether a reply says what was kept as `content`."""
    return _mentions_and_words(reply.elements) == _mentions_and_words(elements_of(content))


def plain_text(text: str) -> str:
    """Markdown as plain text: comments show marks as they are written."""
    text_left = _SPAN.sub(r"\1", _FENCE.sub("", _HEADING.sub("", text)))
    text_left = _LINK.sub(lambda link: _link(link[1], link[2]), _EMPHASIS.sub(r"\2", text_left))
    return markup.with_marks(text_left).strip()


def _link(label: str, target: str) -> str:
    return f"{label} ({target})" if label and label != target else target


def _part(text: str, longest: int) -> tuple[str, str]:
    """The beginning of `text`, cut where a paragraph, a line, a sentence or a word ends; and the
    rest."""
    if len(text) <= longest:
        return text, ""
    end_positions = (
        [one.start() for one in end.finditer(text, longest // 2, longest)] for end in _ENDS
    )
    at = next((ends[-1] for ends in end_positions if ends), longest)
    return text[:at].rstrip(), text[at:].lstrip()


def _words(element: Mapping[str, Any], names: Mapping[str, str], without: str) -> str:
    if person := as_text(as_dict(element.get("person")).get("user_id")):
        return "" if person == without else f"@{names.get(person, 'someone')}"
    text = as_text(as_dict(element.get("text_run")).get("text"))
    return text or as_text(as_dict(element.get("docs_link")).get("url"))


def _mentions_and_words(elements: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Mentions and words, joined where they stand side by side, spaces at the ends apart."""
    spans: list[tuple[str, str]] = []
    for one in map(as_dict, elements):
        person = as_text(as_dict(one.get("person")).get("user_id"))
        kind, value = ("person", person) if person else ("text", _words(one, {}, ""))
        if kind == "text" and spans and spans[-1][0] == "text":
            value, _ = spans.pop()[1] + value, None
        spans.append((kind, value))
    return [(kind, " ".join(value.split())) for kind, value in spans if value.strip()]
