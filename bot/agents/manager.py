"""The manager: turns what is known about a conversation into one reply, with tools and specialists.

The loop is in `loop`; which tools there are, and what a failure or limit means, is here. Everything
that differs between turns is in the prompt and the tools' deps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from bot.agents.calling import Hands
from bot.agents.delegation import Delegation
from bot.agents.limits import LimitReached, Limits, Spent
from bot.agents.loop import Said, run
from bot.agents.model import Declined, Model, ModelFailed
from bot.agents.progress import OnProgress, Written
from bot.agents.prompt import Answer, ModelUnavailable, PendingAction, Prompt
from bot.agents.requesting import manager_messages
from bot.agents.sentences import cut_short, declined, with_end_marked
from bot.agents.specialists import Specialist
from bot.agents.stopping import STOPPED, Stop
from bot.agents.toolkit import Toolkit
from bot.agents.tools.conversation import conversation_tools
from bot.agents.tools.deps import Liken, Recall, ToolDeps
from bot.agents.tools.files import file_tools
from bot.agents.tools.memory import memory_tools
from bot.agents.tools.notes import note_tools
from bot.agents.tools.recording import recorded
from bot.agents.tools.reminders import reminder_tools
from bot.agents.tools.tool import NO_TOOLS, Tool, Toolbox, ToolFailed
from memory.kept.notes import NoteStore
from memory.kept.timers import TimerStore
from memory.store import MemoryStore

__all__ = ["Answer", "Manager", "ModelUnavailable", "Prompt", "Stores", "tool_names"]

LIMITS = Limits()


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
    spent: Spent
    deps: ToolDeps | None
    on_progress: OnProgress | None


def tool_names() -> frozenset[str]:
    """The names a specialist may list, besides those of MCP servers."""
    return frozenset(tool.name for tool in _tools(with_recall=True))


class Manager:
    """Answers with one model, or delegates; safe to share between concurrent turns.

    Without `stores` there are no tools and no specialists. `model_named` gives the model of a
    specialist that names one of its own; `mcp` are the tools of outside servers.
    """

    def __init__(
        self,
        model: Model,
        *,
        stores: Stores | None = None,
        specialists: Sequence[Specialist] = (),
        mcp: Outside | None = None,
        model_named: Callable[[str], Model] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self._model = model
        self._stores = stores
        self._limits = limits
        self._mcp = mcp
        tools = _tools(with_recall=bool(stores and stores.recall))
        self._delegation = Delegation(
            specialists, model=model, model_named=model_named, tools=tools
        )
        self._own = Toolbox(tools)
        asking = [self._delegation.tool()] if specialists else []
        self._tools = Toolkit([*tools, *asking])

    async def answer(
        self,
        prompt: Prompt,
        *,
        timeout_s: float,
        on_progress: OnProgress | None = None,
        stop: Stop | None = None,
    ) -> Answer:
        """The reply to `prompt`. Raises `ModelUnavailable` after `timeout_s` at the latest.

        When a limit is hit, or the model fails after tools have worked, the reply says so honestly
        and keeps the tool calls; also when the model declines. With `on_progress` the model streams
        and each step is reported. `stop` ends it at any moment: then the text is what was said so
        far, and `cut_short` says so.
        """
        written = Written(on_progress) if on_progress else None
        turn = self._turn(prompt, written)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                with _ended_by(stop, limit):
                    said = await self._run(turn)
        except (TimeoutError, Declined, ModelFailed, LimitReached) as exc:
            if stop and stop.asked:
                return self._answer(written.text if written else "", turn, cut_short=STOPPED)
            return self._cut_short(turn, exc)
        text = with_end_marked(said.text, prompt.question) if said.cut_off else said.text
        return self._answer(text, turn, cut_short="length" if said.cut_off else "")

    def _cut_short(self, turn: _Turn, exc: Exception) -> Answer:
        """An honest sentence in its place. Raises `ModelUnavailable` when nothing was done."""
        question, calls = turn.prompt.question, turn.deps.calls if turn.deps else []
        if isinstance(exc, Declined):
            return self._answer(declined(question, str(exc)), turn, cut_short="declined")
        reason = exc.reason if isinstance(exc, ModelFailed | LimitReached) else "timeout"
        if not isinstance(exc, LimitReached) and not calls:
            raise ModelUnavailable(reason) from exc
        return self._answer(cut_short(question, calls), turn, cut_short=reason)

    async def perform(self, action: PendingAction, prompt: Prompt) -> Mapping[str, Any] | None:
        """Calls a tool of ours as a person confirmed it: the record of the call, as an answer keeps
        it. None for a tool that is none of ours; nothing was called then."""
        deps = self._turn(prompt, None).deps
        if deps is None or action.tool not in self._own:
            return None
        tool = self._own[action.tool]
        with contextlib.suppress(ToolFailed):
            await recorded(tool, tool.valid(dict(action.arguments)), deps)
        return deps.calls[0]

    async def _run(self, turn: _Turn) -> Said:
        deps = turn.deps
        return await run(
            self._model,
            manager_messages(turn.prompt, with_tools=deps is not None),
            spent=turn.spent,
            hands=Hands(self._tools.with_outside(deps.outside), deps) if deps else None,
            on_progress=turn.on_progress,
        )

    def _turn(self, prompt: Prompt, on_progress: OnProgress | None) -> _Turn:
        spent = Spent(self._limits)
        if self._stores is None or prompt.context is None:
            return _Turn(prompt, spent, None, on_progress)
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
            words_of_model=prompt.words_of_model,
            reads_only=prompt.reads_only,
            spent=spent,
            on_progress=on_progress,
        )
        return _Turn(prompt, spent, deps, on_progress)

    def _answer(self, text: str, turn: _Turn, *, cut_short: str = "") -> Answer:
        deps, tokens = turn.deps, turn.spent
        answer = Answer(
            text=text,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cut_short=cut_short,
        )
        if deps is None:
            return answer
        return replace(
            answer,
            tool_calls=tuple(deps.calls),
            follow_ups=tuple(deps.follow_ups),
            pending_actions=tuple(deps.pending),
            specialists=tuple(deps.consulted),
            files=tuple(deps.files),
            auto_mention=self._delegation.auto_mention(deps.consulted),
        )


def _ended_by(stop: Stop | None, limit: asyncio.Timeout) -> contextlib.AbstractContextManager[None]:
    """While it is entered, a stop is the end of the time limit."""
    return stop.ends(lambda: limit.reschedule(0)) if stop else contextlib.nullcontext()


def _tools(*, with_recall: bool) -> list[Tool]:
    return [
        *note_tools(),
        *memory_tools(with_recall=with_recall),
        *reminder_tools(),
        *conversation_tools(),
        *file_tools(),
    ]
