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
from bot.feishu.user_scopes import AccessNeeds
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
    """Decides what one answer may use. Its methods raise `StoreError`."""

    @property
    def sources(self) -> frozenset[str]:
        """The ids of the sources that the answer may use, to be stored with it."""

    async def untellable(self, sources: Iterable[str]) -> frozenset[str]:
        """Returns those of `sources` (ids as an answer stores them) that must be left out."""

    async def may_be_told(self, sources: Collection[str]) -> bool:
        """True if none of them must be left out."""

    async def still_open(self) -> bool:
        """True if everything the answer uses can still be shown, once the answer exists."""


@dataclass(frozen=True, slots=True)
class FeatureTurn:
    """A turn that a feature answers in place of the model. `beside` is the group beside which the
    card is shown, if any. `asked_ms` is when the question was written or the button pressed, since
    epoch; 0 means now."""

    context: AgentMemoryContext
    chat_type: ChatType
    language: Language
    turn_id: str
    beside: str = ""
    asked_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PressTurn(FeatureTurn):
    """A turn that a press on a button began. `values`: the choices in the form around the button.
    `attempts` counts this one too. `pressed_ms` is since epoch."""

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
        """True if anything may follow the turn. The turn begins with this flag."""

    def begin(self, turn: Any, open_turn: OpenTurn) -> None:
        """Looks in the background."""

    def end(self, means: TurnOutcome, needs: AccessNeeds) -> None:
        """Notes how the turn ends, and what its answer lacked."""

    def job(self) -> Statement | None:
        """Returns the statement that queues the job that follows, in the transaction that ends the
        turn."""


@dataclass(frozen=True, slots=True)
class FeatureJob:
    """A job of a feature, and the ways back into the pipeline: `handle_request` answers a request
    (`bot.turn`), `ask_again` asks the question of an answer again for somebody. Both can be
    repeated."""

    lease: Lease
    handle_request: Callable[..., Coroutine[Any, Any, None]]
    ask_again: Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTexts:
    """The texts of features on the page of the simulated group.

    `commands`: the commands of such a chat, each as its word and what it does. `fact`: a stored
    fact (key, value) as `/memory` shows it. `decision`: the explanation of a decision such as
    `answered: explicit_trigger: mention`.
    """

    commands: Callable[[Settings, ChatType], Sequence[tuple[Sentence, Sentence]]]
    fact: Callable[[str, object, Language], str]
    decision: Callable[[str, str], Sentence]


PressFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHooks:
    """The functions that answer what people do with cards (`bot.card_actions`). Each takes
    `Services` first.

    `presses`: return the reply to a button, by its name; they can be repeated after a crash.
    `deleting_presses` are not turns, because they would delete their own turn first. `may_show`
    returns whether everybody who reads in a context may see the sources. `answer_beside` answers a
    press on a card that one person sees beside a group, and removes that card. `answer_privately`
    asks a group's question again where only the person reads. `list_items` shows the person's items
    again after they cancelled an action beside a group.
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

    `gathers`: open what the tools of a turn read, by feature. `checks`: decide whether content may
    still be shown. `answer_command`: returns the reply to a command, None if the question is no
    command. `after`: run after the answer was sent, or could not be; they never raise. `events`: by
    event type. `jobs` and `give_ups`: by task. `tending`: run as long as the worker works. `cards`:
    answer presses.
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
