"""Defines turns, their origins and outcomes, messages and facts as the memory keeps them.

Times are ISO 8601 strings as the database wrote them. `sql/functions/outcomes.sql` describes
the outcomes. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from memory.text import as_json

TurnState = Literal["open", "pending", "sent", "failed", "cancelled"]
ENDED_STATES: frozenset[TurnState] = frozenset({"sent", "failed", "cancelled"})
Scope = Literal["chat", "user"]

OriginKind = Literal[
    "message",
    "button",
    "again",
    "retry",
    "reaction",
    "reminder",
    "digest",
    "unasked",
    "offer",
    "private_answer",
]

OutcomeKind = Literal[
    "answered",
    "apologised",
    "refused",
    "stopped",
    "silent",
    "undelivered",
    "taken_back",
    "offer",
]
OUTCOME_KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One line of a place; an answer of several cards is one. `command`: it, or what it answers, is
    a command, which a model is not told. `by_bot`: another bot wrote it. A line that nobody
    addressed to this bot has a negative `id`. `actor_id` is the author, of an answer the asker.
    `replies_to` is the message that it quotes, or the root of its thread."""

    id: int
    role: Literal["user", "assistant"]
    content: str
    actor_id: str | None = None
    actor_name: str = ""
    message_id: str | None = None
    created_at: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    command: bool = False
    by_bot: bool = False
    replies_to: str | None = None


@dataclass(frozen=True, slots=True)
class CardButton:
    """A stored button as a card shows it; what it does stays in the memory. With `form`, a list of
    selects {name, label, initial, options: [[value, text]]}, it submits them. With `entry` it
    stands beside that paragraph of the text, counted from the last."""

    id: str
    label: str
    danger: bool = False
    form: Sequence[Mapping[str, Any]] = ()
    entry: int = 0


@dataclass(frozen=True, slots=True)
class StoredCard:
    """One card of a reply: its exact markdown, its buttons and, once delivered, its Feishu
    message_id. With `file` ({name, kind, content}) it is that file, and `content` what is told of
    it."""

    chunk: int
    content: str
    status: Literal["pending", "sent", "failed"]
    message_id: str | None = None
    buttons: tuple[CardButton, ...] = ()
    file: Mapping[str, Any] | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> StoredCard:
        """A card as the database gives it."""
        buttons = tuple(CardButton(**button) for button in row.get("buttons") or ())
        return cls(**{**row, "buttons": buttons})


@dataclass(frozen=True, slots=True)
class PersonRemark:
    """What `actor_id` had kept about `user_id`: a statement, not a fact of that person."""

    actor_id: str
    user_id: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupFact:
    """What `actor_id` had the bot remember in a group about `user_id` or, in their own name, about
    one of its matters. `at` is when (ISO 8601), `turn_id` the message that said so, None: not
    known. It held `until` the fact `by` replaced it; None: it holds."""

    id: str
    key: str
    value: Any
    scope: Scope
    actor_id: str
    user_id: str
    at: str
    turn_id: str | None = None
    until: str | None = None
    by: str | None = None

    def may_be_replaced_by(self, author: str) -> bool:
        """Whether a statement of `author` can replace it: what people had kept about themselves is
        theirs."""
        return self.scope == "chat" or self.actor_id == author


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """JSON objects: `chat` is what the person had kept in this conversation, `user` their lasting
    facts, as far as they may be used here. `said` is what others had kept about the person in this
    conversation, and the person about others. `group` are facts of anybody in this group that have
    words of the question, with what they replaced. `turns` are the messages that it comes from."""

    chat: Mapping[str, Any] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)
    said: tuple[PersonRemark, ...] = ()
    turns: tuple[str, ...] = ()
    group: tuple[GroupFact, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> WorkingMemory:
        """As the database gives it."""
        return cls(
            row.get("chat", {}),
            row.get("user", {}),
            tuple(PersonRemark(**one) for one in row.get("said", ())),
            tuple({turn for turns in row.get("turns") or () for turn in turns if turn}),
            tuple(GroupFact(**one) for one in row.get("group") or ()),
        )


@dataclass(frozen=True, slots=True)
class FormerValue:
    """A value that a fact had from `since` (None: not known) `until` another replaced it, both ISO
    8601. `turn_id` is the message it came from, None: not known."""

    value: Any
    since: str | None
    until: str
    turn_id: str | None = None
    key: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What came before the history, folded; `messages` is how many, `version` counts the folds.
    `source` is the id under which an answer is given it."""

    content: str
    version: int
    messages: int
    source: str


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """`reason` is a code, and nobody's words. Of a stored reply: what it is once people have it."""

    kind: OutcomeKind = "answered"
    reason: str = ""

    def row(self) -> dict[str, str] | None:
        """As it is kept with the reply; None: an answer."""
        return None if self == ANSWERED_OUTCOME else {"outcome": self.kind, "reason": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, str] | None) -> TurnOutcome:
        """As it is kept; None: an answer."""
        if not row:
            return ANSWERED_OUTCOME
        kind: OutcomeKind = row["outcome"]  # type: ignore[assignment]
        return cls(kind, row.get("reason") or "")


ANSWERED_OUTCOME = TurnOutcome()


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn as it stands. `history` is what anybody said in its place, as far as the prompt can
    show it, in the order in which it was said, and ends with the question; it is empty unless state
    is open.

    `registry`: rows of `note_registry`, for `memory.tables.notes.registered_notes`.

    `fold_due`: enough messages lie between summary and history to be folded (`memory.summary`).

    `conversation`: the chat's, as `begin_turn` found it, for `bot.listening`; None when none is on.

    `rules`: what the chat set of its own, for `bot.listening.chat_rules`.

    `done`: the tools that have changed something for it, in an attempt before this one.

    `first_read`: of a question that is asked again, which messages its first answer was given, and
    `asked_in` the message in which somebody wrote it, "" where it stood on a button.

    `shown`: what stands below the answer, once there is one (`bot.outbox.foot`).

    `recalled`: rows for `memory.recall.passages.passages`, found with the turn's beginning; None
    where nothing was searched then.

    `elsewhere`: whether the sender can read in other places than this group; None: not known.

    `documents`: whether answers told of documents where the sender may read.

    `degraded`: the memory is away, so history and working memory are unknown, not empty.

    `turn_id`: its id.

    `means`: what the stored reply is, once there is one.
    """

    state: TurnState
    attempts: int
    reply: tuple[StoredCard, ...] = ()
    history: tuple[StoredMessage, ...] = ()
    working_memory: WorkingMemory = WorkingMemory()
    registry: tuple[Mapping[str, Any], ...] = ()
    summary: Summary | None = None
    fold_due: bool = False
    conversation: Mapping[str, Any] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    first_read: tuple[str, ...] = ()
    asked_in: str = ""
    shown: Mapping[str, Any] | None = None
    recalled: tuple[Mapping[str, Any], ...] | None = None
    elsewhere: bool | None = None
    documents: bool = False
    degraded: bool = False
    turn_id: str = ""
    means: TurnOutcome = ANSWERED_OUTCOME

    @property
    def told(self) -> tuple[StoredMessage, ...]:
        """What a model is told of `history`."""
        return tuple([one for one in self.history if not one.command])

    def own(self, asker: str) -> tuple[StoredMessage, ...]:
        """The asker's own exchanges in `history`: what they wrote, and the answers to them."""
        return tuple([one for one in self.history if one.actor_id == asker])


@dataclass(frozen=True, slots=True)
class QuestionEmbedding:
    """The question's embedding by `model`; `weight` (0 to 1) is what it counts beside the words."""

    model: str
    embedding: str
    weight: float


@dataclass(frozen=True, slots=True)
class MemoryOverview:
    """How much is kept of a person: messages (here and everywhere), conversations and notes.

    `since`: when the first of the messages was written, None without any.
    """

    messages_here: int
    messages: int
    conversations: int
    notes: int
    since: str | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of one person as operators see it."""

    conversation_id: str
    user_id: str
    tenant_key: str
    chat_id: str
    root_id: str
    title: str
    created_at: str
    updated_at: str
    messages: int
    first_at: str | None
    last_at: str | None
    pending: int
    failed: int


@dataclass(frozen=True, slots=True)
class Origin:
    """A turn's origin. An `again` is a second answer that somebody pressed for, a `retry` one that
    an operator wanted after the word that there is none.

    `parent_id` is the turn that it came from, of a reminder or digest the timer, of a button in the
    bot's menu the item; "" where it answers a message as it was written. `cause` is what of the
    parent led to it: the button, the time of the timer or of the press in the menu, the number of
    the retry; "" where the parent leads to one only.
    """

    kind: OriginKind = "message"
    parent_id: str = ""
    cause: str = ""

    @property
    def turn_id(self) -> str:
        """The id of a turn that came from something else: however often that comes, there is one.
        It is a key and tells nothing."""
        whole = json.dumps([self.kind, self.parent_id, self.cause])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]

    @property
    def is_pressed(self) -> bool:
        """Whether somebody pressed the question and did not write it."""
        return self.kind in ("button", "again")

    def row(self) -> dict[str, str] | None:
        """As it is kept; None: a message's."""
        if self == MESSAGE_ORIGIN:
            return None
        parent = {"parent_id": self.parent_id} if self.parent_id else {}
        return {"origin": self.kind, **parent, "cause": self.cause}

    def params(self) -> dict[str, str]:
        """As the SQL functions take it."""
        row = self.row()
        return {"p_origin": as_json(row)} if row else {}


MESSAGE_ORIGIN = Origin()

ANSWERED_BY_COMMAND = TurnOutcome("answered", "command")
ANSWERED_ELSEWHERE = TurnOutcome("answered", "elsewhere")
STOPPED = TurnOutcome("stopped")


def apology_outcome(reason: str) -> TurnOutcome:
    """People have a word that there is no answer."""
    return TurnOutcome("apologised", reason)


def refusal_outcome(reason: str) -> TurnOutcome:
    """The bot was not to answer."""
    return TurnOutcome("refused", reason)
