"""The manager: turns what is known about a conversation into one reply, with tools and specialists.

The loop is in `loop`; which tools there are, and what a failure or limit means, is here. Everything
that differs between turns is in the prompt and the tools' deps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from bot.agents.choice import choose_tools
from bot.agents.llm.model import Declined, Model, ModelFailed, ToolsRefused
from bot.agents.llm.requests import manager_messages, reader_of
from bot.agents.loop import (
    AgentWords,
    Delegation,
    cut_short_sentence,
    declined_sentence,
    run_agent,
    storable_words,
)
from bot.agents.model_text.cleaner import Cleaner
from bot.agents.offline.model import OfflineModel, wish_of
from bot.agents.prompts.prompt import AgentAnswer, Ended, ModelUnavailable, PendingAction, Prompt
from bot.agents.running_turns import (
    STOPPED,
    LimitReached,
    Limits,
    OnProgress,
    Spent,
    Stop,
    WrittenSoFar,
    time_limit,
)
from bot.agents.specialists import Specialist
from bot.agents.tool_types import NO_TOOLS, Tool, Toolbox
from bot.agents.tools.deps import Liken, MayBeTold, Opened, Recall, ToolDeps
from bot.agents.tools.own_tools import conversation_tools, memory_tools, note_tools
from bot.agents.tools.tool_calls import (
    Toolkit,
    ToolSession,
    call_and_record,
    offer_for_confirmation,
)
from bot.process.concurrency import compute_apart
from bot.text.languages import Language
from memory.models import STOPPED as STOPPED_TURN
from memory.models import TurnOutcome, apology_outcome
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.tables.timers import TimerStore

__all__ = ["AgentAnswer", "Manager", "ModelUnavailable", "Prompt", "Stores", "own_tools"]

LIMITS = Limits()
NOTHING_OPENED: Mapping[str, Opened] = {}


@dataclass(frozen=True, slots=True)
class Stores:
    """What the tools work on. Without `recall` the model cannot search earlier messages; with
    `liken` notes are found by meaning too."""

    memory: MemoryStore
    notes: NoteStore
    recall: Recall | None = None
    timers: TimerStore | None = None
    liken: Liken | None = None


class Outside(Protocol):
    """Where tools come from that are not always there."""

    def tools(self) -> Toolbox:
        """The tools there are now; the same box as before unless they have changed."""
        ...


@dataclass(slots=True)
class _Turn:
    """One question on its way; `deps` None: there are no tools."""

    prompt: Prompt
    usage: Spent
    deps: ToolDeps | None
    text_so_far: WrittenSoFar
    allowed_tools: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """What was said so far, as people may have read it."""
        return storable_words(self.text_so_far.text)


class Manager:
    """Answers with one model, or delegates; safe to share between concurrent turns.

    Without `stores` there are no tools and no specialists. `tools` are those that features bring,
    beside the manager's own. `model_named` gives the model of a
    specialist that names one of its own; `mcp` are the tools of outside servers; `model_name` is
    what the model is called.
    """

    def __init__(
        self,
        model: Model,
        *,
        stores: Stores | None = None,
        tools: Sequence[Tool] = (),
        specialists: Sequence[Specialist] = (),
        mcp: Outside | None = None,
        model_named: Callable[[str], Model] | None = None,
        limits: Limits = LIMITS,
        model_name: str = "",
    ) -> None:
        self._model = model
        self._stores = stores
        self._limits = limits
        self._mcp = mcp
        tools = [*own_tools(with_recall=bool(stores and stores.recall)), *tools]
        self._cleaner = Cleaner(model_name)
        self._delegation = Delegation(
            specialists, model=model, model_named=model_named, tools=tools, cleaner=self._cleaner
        )
        self._own = Toolbox(tools)
        asking = [self._delegation.tool()] if specialists else []
        self._tools = Toolkit([*tools, *asking])

    async def answer(
        self,
        prompt: Prompt,
        *,
        timeout_s: float,
        flows_for_s: float = 0.0,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
        opened_tools: Mapping[str, Opened] = NOTHING_OPENED,
        may_be_told: MayBeTold | None = None,
        allowed_tools: frozenset[str] | None = None,
    ) -> AgentAnswer:
        """The reply to `prompt`. Raises `ModelUnavailable` when nothing has begun after
        `timeout_s`; once something has, the whole may take `flows_for_s`, if that is longer.

        An answer that is cut short stays as far as it came; `ended` says why. When there is nothing
        of it and a limit is hit, or the model fails after tools have worked, the reply says so
        honestly and keeps the tool calls; also when the model declines. `on_progress` is told of
        each step; the model streams without it too. `stop` ends it at any moment. `opened_tools` is
        what its tools may read; `may_be_told` says whether what they give may be told.
        `allowed_tools`: only these of our tools, and of outside ones those that read.
        """
        turn = self._turn(prompt, WrittenSoFar(on_progress), opened_tools, may_be_told)
        turn.allowed_tools = allowed_tools
        try:
            async with time_limit(timeout_s) as limit:
                with _ended_by(stop, limit), _flowing(turn.text_so_far, stop, limit, flows_for_s):
                    answer = await self._run(turn)
        except (TimeoutError, Declined, ModelFailed, LimitReached) as exc:
            if stop and stop.asked:
                return self._answer(turn.text, turn, ending=STOPPED)
            return self._cut_short(turn, exc)
        return self._answer(answer.text, turn, ending=answer.end_reason)

    def _cut_short(self, turn: _Turn, exc: Exception) -> AgentAnswer:
        """What was said so far, else an honest sentence. Raises `ModelUnavailable` when nothing was
        done."""
        reply_language, calls = turn.prompt.reply_language, turn.deps.calls if turn.deps else []
        if isinstance(exc, Declined):
            return self._answer(
                declined_sentence(str(exc), reply_language), turn, cut_short="declined"
            )
        reason = exc.reason if isinstance(exc, ModelFailed | LimitReached) else "timeout"
        if text := turn.text:
            ending: Ended = "time" if reason == "timeout" else "connection"
            return self._answer(text, turn, ending=ending)
        if not isinstance(exc, LimitReached) and not calls:
            raise ModelUnavailable(reason) from exc
        return self._answer(cut_short_sentence(calls, reply_language), turn, cut_short=reason)

    async def perform(
        self, action: PendingAction, prompt: Prompt, language: Language
    ) -> tuple[str, Mapping[str, Any]] | None:
        """Calls a tool of ours as a person confirmed it: what they are told, and the record of the
        call, as an answer keeps it. None for a tool that is none of ours; nothing was called then.
        """
        deps = self._turn(prompt, WrittenSoFar()).deps
        if deps is None or action.tool not in self._own:
            return None
        deps.is_confirmed = True
        tool = self._own[action.tool]
        outcome = await call_and_record(tool, tool.valid(dict(action.arguments)), deps)
        return tool.wording.tell(outcome, language), deps.calls[0]

    async def _run(self, turn: _Turn) -> AgentWords:
        if turn.deps is None:
            return await self._ask(turn, None)
        tools = self._tools.with_outside(turn.deps.outside)
        if turn.allowed_tools is not None:
            tools = tools.part(tuple(_within(tools, turn.allowed_tools, turn.deps.outside)))
        prompt, names = turn.prompt, self._delegation.names
        offered_tools = await compute_apart(
            lambda: choose_tools(tools, prompt, names), prompt.characters
        )
        hands = ToolSession(tools, turn.deps, offered_tools)
        try:
            return await self._ask(turn, hands, offers_tools=True)
        except ToolsRefused:
            return await self._grant(turn, hands) or await self._ask(turn, hands)

    async def _ask(
        self, turn: _Turn, hands: ToolSession | None, *, offers_tools: bool = False
    ) -> AgentWords:
        return await run_agent(
            self._model,
            manager_messages(
                turn.prompt, with_tools=offers_tools, done_calls=hands.deps.calls if hands else ()
            ),
            usage=turn.usage,
            hands=hands,
            on_progress=turn.text_so_far,
            offers_tools=offers_tools,
            reader=reader_of(turn.prompt, hands.tools if hands else NO_TOOLS, self._cleaner),
        )

    async def _grant(self, turn: _Turn, hands: ToolSession) -> AgentWords | None:
        """Does by rules what the question asks for outright, for a model that cannot; what may be
        meant otherwise is offered beside the model's answer."""
        if hands.deps.reads_only or hands.deps.calls:
            return None
        messages = manager_messages(turn.prompt, with_tools=True)
        wish = await wish_of(messages, hands.tools)
        if wish and wish.certain:
            return await run_agent(OfflineModel(), messages, usage=turn.usage, hands=hands)
        if wish:
            await offer_for_confirmation(wish.calls, hands)
        return None

    def _turn(
        self,
        prompt: Prompt,
        text_so_far: WrittenSoFar,
        opened_tools: Mapping[str, Opened] = NOTHING_OPENED,
        may_be_told: MayBeTold | None = None,
    ) -> _Turn:
        usage = Spent(self._limits)
        if self._stores is None or prompt.context is None:
            return _Turn(prompt, usage, None, text_so_far)
        deps = ToolDeps(
            context=prompt.context,
            notes=self._stores.notes,
            store=self._stores.memory,
            prompt=prompt,
            recall=self._stores.recall,
            liken=self._stores.liken,
            timers=self._stores.timers,
            outside=self._mcp.tools() if self._mcp else NO_TOOLS,
            note_done=partial(self._stores.memory.note_done, prompt.context, prompt.turn_id)
            if prompt.turn_id
            else None,
            exchange=prompt.exchange,
            words_of_model=prompt.words_of_model,
            reads_only=prompt.reads_only,
            opened_sources=opened_tools,
            may_be_told=may_be_told,
            usage=usage,
            on_progress=text_so_far,
        )
        return _Turn(prompt, usage, deps, text_so_far)

    def _answer(
        self, text: str, turn: _Turn, *, cut_short: str = "", ending: Ended = ""
    ) -> AgentAnswer:
        deps, tokens = turn.deps, turn.usage
        means = STOPPED_TURN if ending == STOPPED else TurnOutcome("answered", ending)
        answer = AgentAnswer(
            text=text,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cut_short=cut_short or ending,
            end_reason=ending,
            means=apology_outcome(cut_short) if cut_short else means,
        )
        if deps is None:
            return answer
        return replace(
            answer,
            tool_calls=tuple(deps.calls),
            follow_ups=tuple(deps.follow_ups),
            pending_actions=tuple(deps.pending),
            specialists=tuple(deps.specialists),
            files=tuple(deps.files),
            passages=tuple(deps.passages),
            auto_mention=self._delegation.auto_mention(deps.specialists),
        )


def _within(tools: Toolbox, allowed_tools: frozenset[str], outside: Toolbox) -> Iterator[str]:
    return (one for one in tools if one in allowed_tools or (one in outside and tools[one].reads))


def _ended_by(stop: Stop | None, limit: asyncio.Timeout) -> contextlib.AbstractContextManager[None]:
    """While it is entered, a stop is the end of the time limit."""
    return stop.ends(lambda: limit.reschedule(0)) if stop else contextlib.nullcontext()


@contextlib.contextmanager
def _flowing(
    text_so_far: WrittenSoFar, stop: Stop | None, limit: asyncio.Timeout, flows_for_s: float
) -> Iterator[None]:
    """While it is entered, the first sign of an answer gives it `flows_for_s` in all."""
    until = asyncio.get_running_loop().time() + flows_for_s

    def extend_limit() -> None:
        if not (stop and stop.asked) and not limit.expired():
            limit.reschedule(max(until, limit.when() or 0.0))

    if flows_for_s:
        text_so_far.begun = extend_limit
    yield


def own_tools(*, with_recall: bool) -> list[Tool]:
    """The tools of the memory and of the conversation."""
    return [
        *note_tools(),
        *memory_tools(with_recall=with_recall),
        *conversation_tools(),
    ]
