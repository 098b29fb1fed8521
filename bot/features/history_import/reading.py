"""Turns a page of Feishu's history into what an import stores: messages, joins and leaves, and the
position of the next page. Pure.

Source: Feishu, "Obtain chat history" and "Receive message content", system. Of an ordinary group's
threads the chat lists only the first message, which carries the `thread_id`. System messages hold
a template and names without ids; an unknown template counts as joining for all whom it names, so
that they read less and never more. When a page token expires, a chat is read again from the second
of the last message, a thread from its beginning."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import HistoryPage, RawMessage, is_forward, message_text
from memory.tables.imports import ImportedMessage, MembershipNotice, Page
from memory.text import one_line, storable

LONGEST = 30_000
_LONGEST_NAME = 200
_IMAGE = re.compile(r"!\[image\]\([^()\s]{0,2000}\)")
_LABELS = re.compile(r"(?:\[[a-z ]+\]\s*)+")  # a message of which there is nothing else to say

NAMELESS = "…"  # who joined and is not told; nobody is known by it
_MOST_NAMES = 500
_LONGEST_MEMBER_NAME = 200
_FROM, _TO = "from_user", "to_chatters"
_SLOT = re.compile(r"\{(\w{0,40})\}")
_NO_NAMES = frozenset({"template", "divider_text", "i18n_text"})
_F, _T = r"\{from_user\}", r"\{to_chatters\}"
_ANY = r"\{\w+\}"
_REST = r"[^{}]*"

# Nobody joined or left.
_VERBS = (
    "renamed|updated|changed|edited|modified|set|reset|pinned|unpinned|recalled|transferred|enabled|"
    "disabled|turned|allowed|restricted|muted|unmuted|assigned|made|created an?|ended|started a|"
    "shared|sent|posted|published|deleted the|cleared|dissolved|upgraded|converted|is now|became|"
    "has become|synced|marked|bound|unbound"
)
_CHANGES = (
    "修改|更改|更新|变更|设置|置顶|取消置顶|撤回|转让|移交|开启|关闭|启用|禁用|禁言|解除|指定|任命|发布|"
    "分享|发送|清空|解散|升级|转为|成为|同步|标记|结束|预约|绑定"
)

_LONGEST_TOKEN = 800
_MOST_RESTARTS = 3


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


def author_ids(messages: Iterable[RawMessage]) -> tuple[str, ...]:
    """The open_ids of those who wrote them."""
    ids = (one.sender_id for one in messages if one.sender_id_type != "app_id")
    return tuple(dict.fromkeys(open_id for open_id in ids if open_id.startswith("ou_")))


def names_in(messages: Iterable[RawMessage]) -> dict[str, str]:
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


def forward_ids(messages: Iterable[RawMessage], source: Source) -> tuple[str, ...]:
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
            kept_messages.append(_imported_message(raw, source, names, text))
        if kind == "system":
            joins += membership_notices(_content(raw), raw.create_time_ms)
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
    text = forwarded_texts.get(raw.message_id) or _IMAGE.sub("[image]", message_text(raw, names))
    text = text.strip()
    if raw.message_type != "text" and _LABELS.fullmatch(text):
        return ""
    return text[:LONGEST]


def _imported_message(
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


def _any_pattern(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns), re.IGNORECASE)


# Whoever stands in `from_user`, or in `to_chatters`, is out from then on.
_LEFT_FROM = _any_pattern(
    rf"{_F} (?:has )?left\b{_REST}", rf"{_F}\s*(?:已)?(?:主动)?(?:退出|离开)(?:了)?{_REST}"
)
_LEFT_TO = _any_pattern(
    rf"{_F} (?:has )?(?:removed|kicked)(?: out)? {_T}{_REST}",
    rf"{_F} (?:has )?(?:revoked|withdrew|cancell?ed) {_REST}invit{_REST}{_T}{_REST}",
    rf"{_T} (?:was|were|has been|have been) removed{_REST}(?:{_F}{_REST})?",
    rf"{_F}\s*(?:已)?(?:将|把)\s*{_T}\s*(?:移出|移除|踢出|请出)(?:了)?{_REST}",
    rf"{_F}\s*(?:移出|移除|踢出)了?\s*{_T}{_REST}",
    rf"{_F}\s*(?:撤回|撤销|取消)了?(?:对|给)?\s*{_T}\s*的?{_REST}邀请{_REST}",
)

# Who joined; nobody else named there did.
_JOINED_TO = _any_pattern(
    rf"{_F} (?:has )?(?:invited|added) {_T}(?! as ){_REST}",
    rf"{_T} joined {_REST}(?:{_F}{_REST})?",
    rf"{_F}\s*邀请了?\s*{_T}{_REST}",
    rf"{_F}\s*(?:将|把)\s*{_T}\s*(?:拉|添加|加入|邀请){_REST}",
    rf"{_T}\s*通过{_REST}(?:{_F}{_REST})?加入{_REST}",
)
_JOINED_FROM = _any_pattern(
    rf"{_F} (?:has )?joined {_REST}",
    rf"{_F} (?:started|created) (?:the|this|a) (?:group|chat){_REST}",
    rf"{_F}\s*(?:通过[^{{}}]*)?加入了?{_REST}",
    rf"{_F}\s*(?:创建|发起|新建)了?(?:群|本群|此群|会话){_REST}",
)
_NOTHING = _any_pattern(
    rf"{_ANY}'?s? (?:{_VERBS})\b.*",
    rf"{_ANY}\s*(?:已)?(?:将|把)?(?:群|本群|此群)[^{{}}]{{0,12}}(?:{_CHANGES}).*",
    rf"{_ANY}\s*(?:已)?(?:将|把).*(?:{_CHANGES}).*",
    rf"{_ANY}\s*(?:已)?(?:{_CHANGES}).*",
    rf"{_F} added {_T} as .*",
    r"\{divider_text\}",
    rf"\{{\}}?\s*(?:{_CHANGES}).*",
    r"welcome to .*",
    r"欢迎.*",
)
_JOINING = _any_pattern(r"\b(?:joined|entered)\b", "加入|入群|进群")


def membership_notices(content: Mapping[str, Any], at_ms: int) -> tuple[MembershipNotice, ...]:
    """What the content of a system message says of joining and leaving at `at_ms`, ms since epoch.

    Who joined without being named is `NAMELESS`.
    """
    template = one_line(as_text(content.get("template")))
    if _LEFT_TO.fullmatch(template):
        return _notices(_names(content, _TO), at_ms, has_joined=False)
    if _LEFT_FROM.fullmatch(template):
        return _notices(_names(content, _FROM), at_ms, has_joined=False)
    if _JOINED_TO.fullmatch(template):
        return _notices(_names(content, _TO) or [NAMELESS], at_ms, has_joined=True)
    if _JOINED_FROM.fullmatch(template):
        return _notices(_names(content, _FROM) or [NAMELESS], at_ms, has_joined=True)
    if not template or (_NOTHING.fullmatch(template) and not _JOINING.search(template)):
        return ()
    return _notices(_all_named(template, content), at_ms, has_joined=True)


def _all_named(template: str, content: Mapping[str, Any]) -> list[str]:
    """Everybody in a template that nobody knows; `NAMELESS` where it names somebody and does not
    tell whom."""
    names = [name for field in content if field not in _NO_NAMES for name in _names(content, field)]
    slots = set(_SLOT.findall(template)) - _NO_NAMES
    return names or ([NAMELESS] if slots else [])


def _names(content: Mapping[str, Any], field: str) -> list[str]:
    return [name for name in map(_stored_name, _texts(content.get(field))) if name]


def _texts(value: object, depth: int = 3) -> Iterator[str]:
    """The texts in a value, however it is nested: a list in practice."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for inner in as_dict(value).values():
            yield from _texts(inner, depth - 1)
    elif depth:
        for inner in as_list(value):
            yield from _texts(inner, depth - 1)


def _stored_name(text: str) -> str:
    return one_line(storable(text))[:_LONGEST_MEMBER_NAME]


def _notices(names: Sequence[str], at_ms: int, *, has_joined: bool) -> tuple[MembershipNotice, ...]:
    """More names than one message can hold stand for somebody who is not told."""
    kept_names = list(dict.fromkeys(names))[:_MOST_NAMES]
    if has_joined and len(names) > _MOST_NAMES:
        kept_names.append(NAMELESS)
    return tuple(MembershipNotice(name, at_ms, has_joined) for name in kept_names)


class PagesLeadNowhere(Exception):
    """Feishu's pages do not lead on: one names itself as the next, or none of its tokens works."""


@dataclass(frozen=True, slots=True)
class PagePlace:
    """The next page to ask for: `token`, "" the first from `start_s` on (None: from the beginning).
    `last_s` is the second of the latest message so far, `restarts` how often it was begun again
    without getting on."""

    token: str = ""
    start_s: int | None = None
    last_s: int | None = None
    restarts: int = 0

    @property
    def text(self) -> str:
        return json.dumps([self.token, self.start_s, self.last_s, self.restarts])

    def again(self, *, by_time: bool) -> PagePlace:
        """Where to go on without the token. Raises `Astray` when that did not help before."""
        if self.restarts >= _MOST_RESTARTS:
            raise PagesLeadNowhere
        start_s = self.start_s
        if by_time and self.last_s is not None:
            start_s = self.last_s
        return replace(self, token="", start_s=start_s, restarts=self.restarts + 1)

    def after(self, page: HistoryPage, *, by_time: bool) -> PagePlace | None:
        """The place of the page that follows; None: there is none. Raises `Astray`."""
        if not page.next_token:
            return None
        if page.next_token == self.token:
            raise PagesLeadNowhere
        last_s = _latest_s(page.messages, self.last_s)
        has_moved = by_time and last_s != self.last_s
        following = PagePlace(
            page.next_token, self.start_s, last_s, 0 if has_moved else self.restarts
        )
        if len(page.next_token) <= _LONGEST_TOKEN:
            return following
        if not has_moved:
            raise PagesLeadNowhere
        return replace(following, token="", start_s=last_s)


def place_of(text: str, start_s: int | None) -> PagePlace:
    """The place that `text` tells of; "" is the beginning, at `start_s`."""
    if not text:
        return PagePlace(start_s=start_s)
    try:
        token, since_ms, last, restarts = json.loads(text)
    except (ValueError, TypeError):
        return PagePlace(start_s=start_s)
    return PagePlace(as_text(token), _number(since_ms), _number(last), _number(restarts) or 0)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _latest_s(messages: Sequence[RawMessage], before: int | None) -> int | None:
    times = [one.create_time_ms // 1000 for one in messages if one.create_time_ms]
    return max([*times, *([] if before is None else [before])], default=None)
