"""The steps of a turn that features extend.

The pipeline calls a hook and does not know which feature is behind it; `bot.features.registry`
puts the hooks together. `bot.features.feature.Feature` states the exact type of each function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, Self, get_args

from bot.agents.tools.deps import Opened
from bot.feishu.authorization import AccessNeeds
from bot.queue.consumer import Lease
from bot.settings import Settings
from bot.text.languages import Language, Sentence
from memory.models import OpenTurn, TurnOutcome
from memory.rpc import Statement
from memory.scope import AgentMemoryContext, ChatType
from memory.tables.cards import PressResult

# sources: may what an answer draws on still be shown to its readers?
CheckName = Literal["sources"]


class SourceCheck(Protocol):
    """Says what one answer may draw on. Its methods raise `StoreError`."""

    @property
    def sources(self) -> frozenset[str]:
        """The ids of what the answer may tell of, to be noted with it."""

    async def untellable(self, sources: Iterable[str]) -> frozenset[str]:
        """Those of `sources` (ids as an answer notes them) that must be left out."""

    async def may_be_told(self, sources: Collection[str]) -> bool:
        """Whether none of them must be left out."""

    async def still_open(self) -> bool:
        """Whether what may be told of can still be shown, once the answer is there."""


@dataclass(frozen=True, slots=True)
class FeatureTurn:
    """A turn that a feature answers in place of the model. `beside`: the group beside which the
    card is to stand, if it does. `asked_ms`: when it was written or pressed, since epoch; 0 is
    now."""

    context: AgentMemoryContext
    chat_type: ChatType
    language: Language
    turn_id: str
    beside: str = ""
    asked_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PressTurn(FeatureTurn):
    """A turn that a press on a button began. `values`: what was chosen in the form around it.
    `attempts`: how often it was begun, this time too; `pressed_ms`: since the epoch."""

    press: PressResult
    values: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1
    pressed_ms: int = 0


class FollowUp(Protocol):
    """Looks, beside a turn, for what may follow its answer. The look ends with the `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def is_possible(self, turn: Any) -> bool:
        """Whether the turn is one that anything may follow: the flag with which it begins."""

    def begin(self, turn: Any, open_turn: OpenTurn) -> None:
        """Looks in the background."""

    def end(self, means: TurnOutcome, needs: AccessNeeds) -> None:
        """How the turn ends, and what its answer lacked."""

    def job(self) -> Statement | None:
        """What queues the job that follows, in the transaction that ends the turn."""


@dataclass(frozen=True, slots=True)
class FeatureJob:
    """A job of a feature, and the ways back into the pipeline: `handle_request` answers a request
    (`bot.turn`), `ask_again` repeats the question of an answer for somebody. Repeating that does
    nothing."""

    lease: Lease
    handle_request: Callable[..., Coroutine[Any, Any, None]]
    ask_again: Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTexts:
    """What features say on the page of the simulated group.

    `commands`: those of such a chat, each as the word that is written and what it does. `fact`: a
    stored fact (key, value), as `/memory` shows it. `decision`: the explanation of
    `answered: explicit_trigger: mention` for a message.
    """

    commands: Callable[[Settings, ChatType], Sequence[tuple[Sentence, Sentence]]]
    fact: Callable[[str, object, Language], str]
    decision: Callable[[str, str], Sentence]


PressFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHooks:
    """What people do with cards, as features answer it (`bot.card_actions`). Each function takes
    `Services` first.

    `presses`: the reply to a button, by its name; can be repeated after a crash.
    `deleting_presses`: are no turns, because a turn would be the first thing to delete.
    `may_show`: whether everybody who reads in a context may see what the sources hold.
    `answer_beside`: answers a press on a card that one person sees beside a group, and removes that
    card. `answer_privately`: repeats a group's question where only the person reads.
    `list_items`: shows the person's items again after they cancelled an action beside a group.
    """

    presses: Mapping[str, PressFunction]
    deleting_presses: Mapping[str, Callable[..., Awaitable[None]]]
    may_show: Callable[..., Awaitable[bool]]
    answer_beside: Callable[..., Awaitable[None]]
    answer_privately: Callable[..., Awaitable[None]]
    list_items: PressFunction


class MissingHook(RuntimeError):
    """No feature registers a hook that the pipeline requires: nothing may be shown without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The functions of the features, by the step that calls them. Each takes `Services` first.

    `gathers`: open what the tools of a turn read, by feature. `checks`: may this still be shown?
    `answer_command`: the reply to a command; None if the question is none. `after`: after the
    answer was sent, or could not be; they never raise. `events`: by event type. `jobs` and
    `give_ups`: by task. `tending`: for as long as the worker works. `cards`: presses and answers to
    them.
    """

    gathers: Mapping[str, Callable[..., Opened | None]]
    checks: Mapping[CheckName, Callable[..., SourceCheck | None]]
    answer_command: Callable[..., Awaitable[Any]]
    follow_up: Callable[..., FollowUp]
    after: Sequence[Callable[..., Awaitable[None]]]
    events: Mapping[str, Callable[..., Awaitable[None]]]
    jobs: Mapping[str, Callable[..., Awaitable[None]]]
    give_ups: Mapping[str, Callable[..., Awaitable[None]]]
    tending: Sequence[Callable[..., Awaitable[None]]]
    cards: CardHooks

    def __post_init__(self) -> None:
        """Raises `MissingHook`."""
        if missing := set(get_args(CheckName)) - self.checks.keys():
            raise MissingHook(f"No feature registers these checks: {', '.join(sorted(missing))}.")
