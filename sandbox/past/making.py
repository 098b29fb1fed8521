"""A group with its past, ready to be taken in by a world: the same for the same asked."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.past.cast import BY_KEY, CAST, FIRST_DAY, FOUNDER, CastMember
from sandbox.past.days import LAST_DAY, moment, moved_ms
from sandbox.past.drafting import PastLine, drafted
from sandbox.world.entities import (
    Chat,
    Resource,
    SandboxMention,
    SandboxMessage,
    SandboxPerson,
)
from sandbox.world.state import stable_id
from sandbox.world.system_messages import BLANK, INVITED, RENAMED, STARTED, system_content

ENDS_MS = moment(LAST_DAY, "19:00")
FEWEST, MOST = 500, 200_000
_NAME = "Harbour project"
_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA"
    "fFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_FORWARDED = 3


@dataclass(frozen=True, slots=True)
class PastRequest:
    """`messages`: how many, system messages included. The past ends at most six days before
    `ends_ms`: it is moved by whole weeks, so that weekdays stay."""

    seed: int = 1
    messages: int = 20_000
    name: str = _NAME
    ends_ms: int = ENDS_MS


@dataclass(frozen=True, slots=True)
class Past:
    """`messages` by time, their `position` still 0. `evidence`: ids of the messages in which a
    matter stands, by its key."""

    chat: Chat
    people: tuple[SandboxPerson, ...]
    messages: tuple[SandboxMessage, ...]
    resources: tuple[Resource, ...]
    evidence: Mapping[str, tuple[str, ...]]


def make_past(asked: PastRequest) -> Past:
    """Raises ValueError for fewer messages than the scenes need, or more than a sandbox holds."""
    if not FEWEST <= asked.messages <= MOST:
        raise ValueError(f"a past has {FEWEST} to {MOST} messages")
    chat_id = stable_id("oc_", f"past:{asked.seed}:{asked.name}")
    system = list(_comings_and_goings(moved_ms(asked.ends_ms)))
    lines = drafted(chat_id, asked.messages - len(system), asked.ends_ms)
    maker = _Maker(chat_id)
    told: list[PastLine | _SystemLine] = [*system, *lines]
    for one in sorted(told, key=lambda said: said.at_ms):
        maker.add(one)
    present = [one for one in CAST if one.stays[-1][1] == ""]
    members = (FOUNDER, *(one for one in present if one != FOUNDER))
    return Past(
        Chat(chat_id, asked.name, members=tuple(one.open_id for one in members)),
        tuple(one.person() for one in CAST),
        tuple(maker.messages),
        tuple(maker.resources),
        {key: tuple(ids) for key, ids in maker.evidence.items()},
    )


@dataclass(frozen=True, slots=True)
class _SystemLine:
    at_ms: int
    content: str


def _comings_and_goings(by_ms: int) -> Iterator[_SystemLine]:
    """Who came and left, in either language; names alone, as Feishu has them."""
    began = moment(FIRST_DAY, "08:00") + by_ms
    yield _SystemLine(began, system_content(STARTED, [FOUNDER.name]))
    first = [one for one in CAST[1:] if one.stays[0][0] == FIRST_DAY]
    names = [one.name for one in first]
    yield _SystemLine(began + 1000, system_content(INVITED, [FOUNDER.name], names))
    yield _SystemLine(began + 2000, system_content(RENAMED, [FOUNDER.name]))
    yield _SystemLine(began + 3000, system_content(BLANK, []))
    for number, one in enumerate(CAST[1:]):
        inviter = "赵敏" if "zh" in one.languages else FOUNDER.name
        chinese = number % 2 == 0
        for since, until in one.stays:
            if since != FIRST_DAY:
                at = moment(since, "08:00") + by_ms
                yield _SystemLine(
                    at, system_content(one.joined_by, [inviter], [one.name], chinese=chinese)
                )
            if until:
                at = moment(until, "19:30") + by_ms
                by = one.name if one.left_by == "left" else FOUNDER.name
                left = [] if one.left_by == "left" else [one.name]
                yield _SystemLine(at, system_content(one.left_by, [by], left, chinese=chinese))


@dataclass(slots=True)
class _Maker:
    """Gives lines their ids, one after the other. `_above`: the first and the latest message
    of each episode."""

    chat_id: str
    messages: list[SandboxMessage] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)
    evidence: dict[str, list[str]] = field(default_factory=dict)
    _above: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, said: PastLine | _SystemLine) -> None:
        message_id = self._id("om_", len(self.messages))
        if isinstance(said, _SystemLine):
            self.messages.append(
                SandboxMessage(
                    message_id, self.chat_id, "", "system", said.content, said.at_ms, said.at_ms
                )
            )
            return
        msg_type, content, mentions, forwarded = self._body(said, message_id)
        message = SandboxMessage(
            message_id,
            self.chat_id,
            said.by.open_id,
            msg_type,
            content,
            said.at_ms,
            said.at_ms + 60_000 * said.is_edited,
            mentions=mentions,
            forwarded=forwarded,
            deleted=said.is_recalled,
            updated=said.is_edited,
        )
        self.messages.append(self._placed(message, said))
        if said.settles:
            self.evidence.setdefault(said.settles, []).append(message_id)

    def _placed(self, message: SandboxMessage, said: PastLine) -> SandboxMessage:
        """In the thread of its episode, or as a quote of what was said before it."""
        here = len(self.messages)
        first, latest = self._above.get(said.episode, (here, here))
        self._above[said.episode] = first, here
        root = self.messages[first] if first < here else None
        if root is None:
            return message
        if said.in_thread:
            if not root.thread_id:
                self.messages[first] = replace(root, thread_id=self._id("omt_", first, 16))
            thread_id = self.messages[first].thread_id
            above = root.message_id
            return replace(message, root_id=above, parent_id=above, thread_id=thread_id)
        if said.quotes:
            quoted = self.messages[latest]
            root_id = quoted.root_id or quoted.message_id
            return replace(message, root_id=root_id, parent_id=quoted.message_id)
        return message

    def _body(
        self, said: PastLine, message_id: str
    ) -> tuple[str, str, tuple[SandboxMention, ...], tuple[str, ...]]:
        """msg_type, content, mentions, and what is forwarded."""
        mentions: tuple[SandboxMention, ...] = ()
        text = said.text
        if said.mentions:
            mentions = (SandboxMention("@_user_1", BY_KEY[said.mentions].open_id),)
            text = f"@_user_1 {text}"
        if text.startswith("@HelpDesk "):
            mentions = (SandboxMention("@_user_1", BY_KEY["HelpDesk"].open_id),)
            text = f"@_user_1 {text.removeprefix('@HelpDesk ')}"
        if said.kind == "forward":
            ids = tuple(one.message_id for one in _forwardable(self.messages))
            if len(ids) == _FORWARDED:
                return "merge_forward", "Merged and Forwarded Message", (), ids
            return "text", _json({"text": "👍"}), (), ()
        value = self._value(said.kind, text, said.by, message_id)
        return _TYPES.get(said.kind, said.kind), _json(value), mentions, ()

    def _value(self, kind: str, text: str, by: CastMember, message_id: str) -> dict[str, Any]:
        key = self._id("", len(self.messages))
        match kind:
            case "image":
                self.resources.append(Resource(f"img_v3_{key}", "image/png", _PIXEL, message_id))
                return {"image_key": f"img_v3_{key}"}
            case "file":
                data = "TWFkZSB1cC4="
                self.resources.append(
                    Resource(f"file_v3_{key}", "application/octet-stream", data, message_id, text)
                )
                return {"file_key": f"file_v3_{key}", "file_name": text}
            case "sticker":
                return {"file_key": f"file_v3_{key}"}
            case "post":
                return {"title": "", "content": [[{"tag": "text", "text": text, "style": []}]]}
            case "card1":
                return _card_1(text.split("|"))
            case "card2":
                return _card_2(text.split("｜"), by)
            case _:
                return {"text": text}

    def _id(self, prefix: str, number: int, length: int = 32) -> str:
        made = hashlib.blake2b(f"{self.chat_id}:{number}".encode(), digest_size=16)
        return prefix + made.hexdigest()[:length]


_TYPES = {"card1": "interactive", "card2": "interactive"}


def _forwardable(messages: Sequence[SandboxMessage]) -> list[SandboxMessage]:
    """The latest of the texts, a while ago."""
    found = [one for one in messages[-60:-20] if one.msg_type == "text" and not one.deleted]
    return found[-_FORWARDED:]


def _card_1(parts: list[str]) -> dict[str, Any]:
    title, *lines = parts
    elements = [{"tag": "div", "text": {"tag": "lark_md", "content": one}} for one in lines]
    header = {"title": {"tag": "plain_text", "content": title}}
    return {"config": {"wide_screen_mode": True}, "header": header, "elements": elements}


def _card_2(parts: list[str], by: CastMember) -> dict[str, Any]:
    title, *lines = parts
    elements = [{"tag": "markdown", "content": one} for one in (*lines, f"来自 {by.name}")]
    header = {"title": {"tag": "plain_text", "content": title}}
    return {"schema": "2.0", "header": header, "body": {"elements": elements}}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
