"""Declares a feature in one value, and the turns that its functions receive.

`bot.features.registry` lists the features."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.agents.tool_types import Tool
from bot.agents.tools.deps import Opened
from bot.answering.question import Turn
from bot.answering.reply import EndedTurn, RequestHandler
from bot.feishu.events import Envelope
from bot.hooks import CheckName, FeatureJob, FeatureTurn, FollowUp, PressTurn, SourceCheck
from bot.listening.chat_rules import Mode
from bot.outbox.buttons import Reply
from bot.queue.consumer import Lease
from bot.queue.table import JobTable
from bot.services import Services
from bot.text.languages import Sentence
from bot.text.slash_commands import Command
from memory.models import OpenTurn
from memory.scope import ChatType
from memory.tables.cards import Click, PressResult
from memory.tables.timers import DueTimer, TimerKind


@dataclass(frozen=True, slots=True)
class SetUp:
    """What makes a difference to what the bot can do. `shares`: what is said in a group is for all
    of its members (MEMORY_SHARING=chat). `hears`: what is said in a group reaches the bot without a
    mention."""

    chat_type: ChatType
    mode: Mode = "follow"
    shares: bool = True
    proactive: bool = False
    offline: bool = False
    hears: bool = True
    connects: bool = False

    @property
    def in_group(self) -> bool:
        return self.chat_type != "p2p"

    @property
    def imports(self) -> bool:
        """Whether the history of the chat can be imported."""
        return self.shares and self.hears

    @property
    def follows(self) -> bool:
        """Whether it speaks without being addressed."""
        listens = self.shares and self.mode != "mention"
        return self.in_group and self.hears and (listens or self.mode == "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTurn(FeatureTurn):
    """A turn whose question is a command. `commands` are all that there are."""

    command: Command
    turn: Turn
    open_turn: OpenTurn
    commands: Sequence[CommandSpec]


@dataclass(frozen=True, slots=True)
class Firing:
    """A timer that is due, and the job that posts it."""

    due: DueTimer
    lease: Lease
    handle_request: RequestHandler


# None: the words were no command after all.
CommandFunction = Callable[[Services, CommandTurn], Awaitable[Reply | None]]
PressFunction = Callable[[Services, PressTurn], Awaitable[Reply]]
DeletingPress = Callable[[Services, Click, PressResult], Awaitable[None]]
TimerFunction = Callable[[Services, Firing], Awaitable[str]]
GatherFunction = Callable[[Services, Turn], Opened | None]
CheckFunction = Callable[[Services, Turn, OpenTurn], SourceCheck | None]
FollowUpFunction = Callable[[Services], FollowUp]
AfterFunction = Callable[[Services, EndedTurn], Awaitable[None]]
EventFunction = Callable[[Services, Envelope, int, Lease], Awaitable[None]]
JobFunction = Callable[[Services, FeatureJob], Awaitable[None]]
GiveUpFunction = Callable[[Services, Lease], Awaitable[None]]
TendingFunction = Callable[[Services, JobTable], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HelpLine:
    """A line of the help and the slash menu: the command, and after a colon what it does."""

    en: str
    zh: str
    is_there: Callable[[SetUp], bool] = lambda _: True

    @property
    def text(self) -> Sentence:
        return Sentence(self.en, self.zh)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command. `words` after the slash: the English one, which is its name, then Chinese ones.
    `personal`: it works on the sender's own memory only."""

    words: tuple[str, ...]
    run: CommandFunction
    help: tuple[HelpLine, ...] = ()
    personal: bool = False

    @property
    def name(self) -> str:
        return self.words[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature, named as its room.

    `tools`: what the model can call. `presses`: what its buttons do, by `press_name`;
    `deleting_presses` are no turns, which would be the first thing to delete. `timers`: what
    happens at the time of a timer; returns what came of it, for metrics. `settings`: the fields of
    `Settings` that it reads. The others are steps of the pipeline (`bot.hooks.Hooks`): `gather`,
    `checks`, `follow_up`, `after`, `events`, `jobs`, `give_ups`, `tending`; `card_hooks`, by the
    fields of `CardHooks`; and `page_texts`, by the fields of `PageTexts`.
    """

    name: str
    commands: Sequence[CommandSpec] = ()
    tools: Sequence[Tool] = ()
    presses: Mapping[str, PressFunction] = field(default_factory=dict)
    deleting_presses: Mapping[str, DeletingPress] = field(default_factory=dict)
    timers: Mapping[TimerKind, TimerFunction] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()
    gather: GatherFunction | None = None
    checks: Mapping[CheckName, CheckFunction] = field(default_factory=dict)
    follow_up: FollowUpFunction | None = None
    after: AfterFunction | None = None
    events: Mapping[str, EventFunction] = field(default_factory=dict)
    jobs: Mapping[str, JobFunction] = field(default_factory=dict)
    give_ups: Mapping[str, GiveUpFunction] = field(default_factory=dict)
    tending: Sequence[TendingFunction] = ()
    card_hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    page_texts: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
