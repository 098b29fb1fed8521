"""Specialists at work: each is an agent with its own instructions and only the tools it lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.exceptions import AgentRunError, RunCancelled, ToolFailed, UsageLimitExceeded
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.usage import UsageLimits

from bot.agents.prompt import specialist_instructions
from bot.agents.specialists import Specialist
from bot.agents.tool_context import without_context
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.recording import FixedTools, RecordedTools
from bot.mentions import AutoMention

RETRIES = 2
_TASK = "Task: {task}\n\nThe person's message:\n{question}"


class Delegation:
    """The specialists of a manager and the tool by which it asks them.

    They share the turn's memory, limits and time with the manager.
    """

    def __init__(
        self,
        specialists: Sequence[Specialist],
        *,
        model: Model,
        model_named: Callable[[str], Model] | None,
        tools: Sequence[Tool[ToolDeps]],
        mcp: AbstractToolset[ToolDeps] | None,
        limits: UsageLimits,
    ) -> None:
        self._limits = limits
        self._specialists = {one.name: one for one in specialists}
        self._agents = {
            one.name: agent(
                one.name,
                model_named(one.model) if one.model and model_named else model,
                [tool for tool in tools if one.may_use(tool.name)],
                mcp and mcp.filtered(lambda _, tool, one=one: one.may_use(tool.name)),  # type: ignore[misc]
            )
            for one in specialists
        }

    def tool(self) -> Tool[ToolDeps]:
        """`ask_specialist`; its description lists who there is."""
        listing = "\n".join(
            f"- {one.name}: {one.description}" for one in self._specialists.values()
        )
        description = (
            "Hand a task to a specialist, who sees this conversation, memory and transcript too. "
            f"Pass the answer on as it is. The specialists:\n{listing}"
        )
        return Tool(self.ask, name="ask_specialist", description=description, sequential=True)

    def auto_mention(self, consulted: Sequence[str]) -> AutoMention | None:
        """Whom the answer addresses: as the specialist asked last has it; None: as usual."""
        return self._specialists[consulted[-1]].auto_mention if consulted else None

    async def ask(self, ctx: RunContext[ToolDeps], name: str, task: str) -> str:
        """Hands `task` to the specialist `name`.

        Args:
            name: One of the specialists' names.
            task: What to do, complete and in the person's language.
        """
        if name not in self._agents:
            raise ToolFailed(f"There is no specialist {name!r}; ask {', '.join(self._agents)}.")
        prompt = ctx.deps.prompt
        try:
            result = await self._agents[name].run(
                _TASK.format(task=task, question=prompt.question),
                message_history=ctx.deps.history,
                instructions=specialist_instructions(self._specialists[name].instructions, prompt),
                deps=ctx.deps,
                usage=ctx.usage,
                usage_limits=self._limits,
                infer_name=False,
            )
        except (UsageLimitExceeded, RunCancelled):
            raise
        except AgentRunError as exc:
            raise ToolFailed(
                f"The specialist {name} could not be reached. Answer yourself as well as you can."
            ) from exc
        ctx.deps.consulted.append(name)
        return without_context(result.output)


def agent(
    name: str,
    model: Model,
    tools: Sequence[Tool[ToolDeps]],
    mcp: AbstractToolset[ToolDeps] | None,
) -> Agent[ToolDeps, str]:
    """An agent whose every tool call is recorded."""
    toolsets: list[AbstractToolset[ToolDeps]] = [FixedTools(FunctionToolset(tools))]
    if mcp is not None:
        toolsets.append(RecordedTools(mcp))
    return Agent(model, deps_type=ToolDeps, name=name, toolsets=toolsets, retries=RETRIES)
