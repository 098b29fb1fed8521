"""The manager: turns what is known about a conversation into one reply, with tools and specialists.

The agent loop is PydanticAI's; which tools there are, and what a failure or limit means, is here.
Agents are built once; everything that differs between turns is in the prompt and the tools' deps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import AgentRunError, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from bot.agents.delegation import RETRIES, Delegation, agent
from bot.agents.progress import Handler, OnProgress, Progress, reporting, without_thoughts
from bot.agents.prompt import (
    Answer,
    ModelUnavailable,
    Prompt,
    is_chinese,
    manager_instructions,
)
from bot.agents.specialists import Specialist
from bot.agents.tool_context import without_context
from bot.agents.tools.conversation import conversation_tools
from bot.agents.tools.deps import Recall, ToolDeps
from bot.agents.tools.memory import memory_tools
from bot.agents.tools.notes import note_tools
from bot.agents.tools.recording import clean_text
from memory.context import Message
from memory.kept.notes import NoteStore
from memory.store import MemoryStore

__all__ = ["Answer", "Manager", "ModelUnavailable", "Prompt", "Stores", "tool_names"]

LIMITS = UsageLimits(request_limit=12, tool_calls_limit=20, total_tokens_limit=120_000)

CUT_SHORT = {
    "zh": "这次我没能在限定的步骤或时间内完成回答，请把问题拆小一点再问一次。",
    "en": "I could not finish this answer within my limits. Please ask again, in smaller steps.",
}
_DONE = {"zh": "已经完成的操作：", "en": "Done so far: "}


@dataclass(frozen=True, slots=True)
class Stores:
    """What the tools work on. Without `recall` the model cannot search earlier messages."""

    memory: MemoryStore
    notes: NoteStore
    recall: Recall | None = None


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
        mcp: AbstractToolset[ToolDeps] | None = None,
        model_named: Callable[[str], Model] | None = None,
        limits: UsageLimits = LIMITS,
    ) -> None:
        self._stores = stores
        self._limits = limits
        self._plain: Agent[None, str] = Agent(model, name="manager", retries=RETRIES)
        tools = _tools(with_recall=bool(stores and stores.recall))
        self._delegation = Delegation(
            specialists,
            model=model,
            model_named=model_named,
            tools=tools,
            mcp=mcp,
            limits=limits,
        )
        asking = [self._delegation.tool()] if specialists else []
        self._equipped = agent("manager", model, [*tools, *asking], mcp)

    async def answer(
        self, prompt: Prompt, *, timeout_s: float, on_progress: OnProgress | None = None
    ) -> Answer:
        """The reply to `prompt`. Raises `ModelUnavailable` after `timeout_s` at the latest.

        When a limit is hit, or the model fails after tools have worked, the reply says so honestly
        and keeps the tool calls. With `on_progress` the model streams and each step is reported.
        """
        deps = self._deps(prompt)
        usage = RunUsage()
        try:
            async with asyncio.timeout(timeout_s):
                text = _said(await self._either_way(prompt, deps, usage, on_progress))
        except (TimeoutError, AgentRunError) as exc:
            reason = "timeout" if isinstance(exc, TimeoutError) else type(exc).__name__
            if not isinstance(exc, UsageLimitExceeded) and not (deps and deps.calls):
                raise ModelUnavailable(reason) from exc
            return self._answer(_cut_short(prompt, deps), deps, usage, cut_short=reason)
        return self._answer(text, deps, usage)

    async def _either_way(
        self,
        prompt: Prompt,
        deps: ToolDeps | None,
        usage: RunUsage,
        on_progress: OnProgress | None,
    ) -> str:
        """The text, streamed if wanted; a stream that broke off is asked for again as a whole."""
        if on_progress is None:
            return await self._run(prompt, deps, usage)
        begun = False

        async def report(progress: Progress) -> None:
            nonlocal begun
            begun = True
            await on_progress(progress)

        try:
            return await self._run(prompt, deps, usage, reporting(report))
        except UsageLimitExceeded:
            raise
        except AgentRunError:
            if not begun or (deps and deps.calls):
                raise
        return await self._run(prompt, deps, usage)

    async def _run(
        self,
        prompt: Prompt,
        deps: ToolDeps | None,
        usage: RunUsage,
        handler: Handler | None = None,
    ) -> str:
        instructions = manager_instructions(prompt, with_tools=deps is not None)
        history = [_model_message(message) for message in prompt.history]
        if deps is None:
            plain = await self._plain.run(
                _asked(prompt),
                message_history=history,
                instructions=instructions,
                usage=usage,
                usage_limits=self._limits,
                event_stream_handler=handler,
                infer_name=False,
            )
            return plain.output
        deps.history = history
        equipped = await self._equipped.run(
            _asked(prompt),
            message_history=history,
            instructions=instructions,
            deps=deps,
            usage=usage,
            usage_limits=self._limits,
            event_stream_handler=handler,
            infer_name=False,
        )
        return equipped.output

    def _deps(self, prompt: Prompt) -> ToolDeps | None:
        if self._stores is None or prompt.context is None:
            return None
        return ToolDeps(
            context=prompt.context,
            notes=self._stores.notes,
            store=self._stores.memory,
            prompt=prompt,
            recall=self._stores.recall,
        )

    def _answer(
        self, text: str, deps: ToolDeps | None, usage: RunUsage, *, cut_short: str = ""
    ) -> Answer:
        consulted = tuple(deps.consulted) if deps else ()
        return Answer(
            text=text,
            tool_calls=tuple(deps.calls) if deps else (),
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            follow_ups=tuple(deps.follow_ups) if deps else (),
            pending_actions=tuple(deps.pending) if deps else (),
            specialists=consulted,
            auto_mention=self._delegation.auto_mention(consulted),
            cut_short=cut_short,
        )


def _tools(*, with_recall: bool) -> list[Tool[ToolDeps]]:
    return [*note_tools(), *memory_tools(with_recall=with_recall), *conversation_tools()]


def _asked(prompt: Prompt) -> str | list[UserContent]:
    """The question, with the images that came with it."""
    if not prompt.images:
        return prompt.question
    seen = [BinaryContent(image.data, media_type=image.media_type) for image in prompt.images]
    return [prompt.question, *seen]


def _said(output: str) -> str:
    """What of the model's output is an answer. Raises `AgentRunError` when nothing is."""
    text = clean_text(without_context(without_thoughts(output)))
    if not text.strip():
        raise UnexpectedModelBehavior("the model thought and said nothing")
    return text


def _cut_short(prompt: Prompt, deps: ToolDeps | None) -> str:
    """An honest sentence in the question's language, with the names of the steps that were done."""
    language = "zh" if is_chinese(prompt.question) else "en"
    done = [call["name"] for call in deps.calls if call["ok"]] if deps else []
    steps = f"\n\n{_DONE[language]}{', '.join(dict.fromkeys(done))}" if done else ""
    return CUT_SHORT[language] + steps


def _model_message(message: Message) -> ModelMessage:
    if message.role == "assistant":
        return ModelResponse(parts=[TextPart(message.content)])
    return ModelRequest(parts=[UserPromptPart(message.content)])
