"""People, chats, messages and cards of the simulated tenant: frozen values."""

import secrets
from dataclasses import dataclass, field, fields
from typing import Any

BOT = "bot"
USER = "user"
GROUP = "group"
TOPIC = "topic"
P2P = "p2p"


def new_id(prefix: str, length: int = 32) -> str:
    """An id that looks like Feishu's: `ou_` + 32 hexadecimal digits."""
    return prefix + secrets.token_hex(length // 2)


@dataclass(frozen=True)
class SandboxPerson:
    """Somebody. `kind` is `user` or `bot`; the app's own bot is a person too. `tenant_key` is ""
    for members of the app's tenant. `resigned`: they have left the company. `calendar`: to whom
    Feishu shows their calendar."""

    open_id: str
    name: str
    kind: str = USER
    en_name: str = ""
    union_id: str = field(default_factory=lambda: new_id("on_"))
    user_id: str = ""
    tenant_key: str = ""
    resigned: bool = False
    calendar: str = "show_only_free_busy"


@dataclass(frozen=True)
class Chat:
    """A conversation. `members` are open ids, bots included, in order of joining. `form`: chat or
    thread; a group of the mode `topic`, or of the form `thread`, consists of topics. The app's bot
    is in it since `bot_since_ms`, 0: from the beginning."""

    chat_id: str
    name: str
    mode: str = GROUP
    members: tuple[str, ...] = ()
    dissolved: bool = False
    form: str = "chat"
    bot_since_ms: int = 0

    @property
    def has_topics(self) -> bool:
        return self.mode == TOPIC or self.form == "thread"


@dataclass(frozen=True)
class SandboxMention:
    """One `@` in a message; `key` is `@_user_N`."""

    key: str
    open_id: str


@dataclass(frozen=True)
class SandboxReaction:
    """An emoji that `open_id` put on a message."""

    reaction_id: str
    open_id: str
    emoji_type: str
    action_ms: int


@dataclass(frozen=True, slots=True)
class SandboxMessage:
    """A message. `content` is the JSON string as sent; times are ms since the epoch. Nobody sends a
    `system` message: its `sender` is "".

    `forwarded`: ids of the messages that a merged forward holds.
    `position` counts messages, `version` counts changes of this one. `edits` counts PUTs.
    `visible_to`: the one person who sees it; "": every member. `unseen`: not even they, who were
    offline when it came.
    """

    message_id: str
    chat_id: str
    sender: str
    msg_type: str
    content: str
    create_ms: int
    update_ms: int
    root_id: str = ""
    parent_id: str = ""
    thread_id: str = ""
    mentions: tuple[SandboxMention, ...] = ()
    reactions: tuple[SandboxReaction, ...] = ()
    deleted: bool = False
    updated: bool = False
    edits: int = 0
    uuid: str = ""
    card_id: str = ""
    visible_to: str = ""
    unseen: bool = False
    forwarded: tuple[str, ...] = ()
    position: int = 0
    version: int = 1


@dataclass(frozen=True)
class Card:
    """A CardKit card entity. `streaming_since_ms` is 0 while streaming is off."""

    card_id: str
    body: dict[str, Any]
    create_ms: int
    sequence: int = 0
    uuids: tuple[str, ...] = ()
    message_id: str = ""
    streaming_since_ms: int = 0
    timed_out: bool = False


@dataclass(frozen=True)
class Resource:
    """An image or file that was uploaded or sent. `data` is base64; images have no `name`.
    `spoken`: what is said in a voice message, for the page."""

    key: str
    mime: str
    data: str
    message_id: str = ""
    name: str = ""
    spoken: str = ""


@dataclass(frozen=True)
class SandboxDocument:
    """A document of the cloud. `kind` is docx, sheet or bitable; what `body` holds depends on it:
    `blocks`, `sheets` or `tables` (`sandbox.world.library` makes them).

    `link` is Feishu's `link_share_entity`. `members`: collaborators besides the owner, as
    `{member_type, member_id, perm}`; of departments and wikis also `people`, whom they stand for.
    `manage`: who may look at all this. `comments` are threads (`sandbox.world.comments`).
    `node_token`: where it hangs in the wiki.
    """

    token: str
    kind: str
    title: str
    owner: str
    body: dict[str, Any]
    link: str = "closed"
    members: tuple[dict[str, Any], ...] = ()
    manage: str = "collaborator_can_view"
    comments: tuple[dict[str, Any], ...] = ()
    node_token: str = ""
    space_id: str = ""
    deleted: bool = False
    create_ms: int = 0
    update_ms: int = 0
    revision: int = 1


@dataclass(frozen=True)
class SandboxEvent:
    """An event in the primary calendar of `owner`; times in seconds since the epoch, `zone` as IANA
    names it. `attendees` are open ids besides the owner's. `free`: it keeps nobody busy. `key`: the
    idempotency key that it was made with. `all_day`: it lasts from the midnight (UTC) `start_s` to
    the midnight `end_s`. `more`: further fields that are given back as they came."""

    event_id: str
    owner: str
    summary: str
    start_s: int
    end_s: int
    zone: str = "Asia/Shanghai"
    attendees: tuple[str, ...] = ()
    location: str = ""
    free: bool = False
    deleted: bool = False
    key: str = ""
    create_ms: int = 0
    description: str = ""
    all_day: bool = False
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SandboxTask:
    """A task; `due_ms` is 0 without one, `members` as Feishu lists them: `{id, type, role}`;
    `more`: further fields that are given back as they came."""

    guid: str
    summary: str
    creator: str
    members: tuple[dict[str, Any], ...] = ()
    due_ms: int = 0
    all_day: bool = False
    completed_ms: int = 0
    deleted: bool = False
    client_token: str = ""
    create_ms: int = 0
    description: str = ""
    more: dict[str, Any] = field(default_factory=dict)


Entity = (
    SandboxPerson
    | Chat
    | SandboxMessage
    | Card
    | Resource
    | SandboxDocument
    | SandboxEvent
    | SandboxTask
)

KINDS: dict[str, type[Entity]] = {
    "person": SandboxPerson,
    "chat": Chat,
    "message": SandboxMessage,
    "card": Card,
    "resource": Resource,
    "document": SandboxDocument,
    "event": SandboxEvent,
    "task": SandboxTask,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def kind_of(entity: Entity) -> str:
    """The entity's name in the journal."""
    return _NAMES[type(entity)]


def to_record(entity: Entity) -> dict[str, Any]:
    """A JSON-ready copy of the entity (one level deep; nested values are plain lists of dicts)."""
    return {one.name: _plain(getattr(entity, one.name)) for one in fields(entity)}


def from_record(kind: str, record: dict[str, Any]) -> Entity:
    """The inverse of `to_record`, without what an earlier version kept. Raises KeyError for an
    unknown kind, TypeError for a bad one."""
    known = {one.name for one in fields(KINDS[kind])}
    values = {name: value for name, value in record.items() if name in known}
    for name in ("members", "uuids", "forwarded", "comments", "attendees"):
        if name in values:
            values[name] = tuple(values[name])
    if "mentions" in values:
        values["mentions"] = tuple(SandboxMention(**one) for one in values["mentions"])
    if "reactions" in values:
        values["reactions"] = tuple(SandboxReaction(**one) for one in values["reactions"])
    return KINDS[kind](**values)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, SandboxMention | SandboxReaction):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return value
