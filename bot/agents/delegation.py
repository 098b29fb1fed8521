"""Specialists at work: each is an agent with its own instructions and only the tools it lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from bot.agents.llm.model import Declined, Model, ModelFailed, ToolsRefused
from bot.agents.llm.request_messages import reader_of, specialist_messages
from bot.agents.loop import AgentWords, run
from bot.agents.model_text.cleaner import Cleaner
from bot.agents.progress import OnProgress
from bot.agents.specialists import Specialist
from bot.agents.tool_types.tool import FinalAnswer, Tool, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool_calls import Hands
from bot.agents.tools.toolkit import Toolkit
from bot.text.address_template import AutoMention

_ABOUT = "Hand a task to a specialist, who sees the same conversation and memory:\n"


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
        tools: Sequence[Tool],
        cleaner: Cleaner,
    ) -> None:
        self._cleaner = cleaner
        self._specialists = {one.name: one for one in specialists}
        self._tools = {one.name: Toolkit(tools, allowed=one.may_use) for one in specialists}
        self._models = {
            one.name: model_named(one.model) if one.model and model_named else model
            for one in specialists
        }

    @property
    def names(self) -> Collection[str]:
        return self._specialists.keys()

    def tool(self) -> Tool:
        """`ask_specialist`; its description lists who there is."""
        listing = "\n".join(
            f"- {one.name}: {one.description}" for one in self._specialists.values()
        )
        description = _ABOUT + listing
        # What a specialist calls for is called, and held up, like the manager's own calls.
        return tool(
            self.ask, name="ask_specialist", description=description, sequential=True, reads=True
        )

    def auto_mention(self, consulted_names: Sequence[str]) -> AutoMention | None:
        """Whom the answer addresses: as the specialist asked last has it; None: as usual."""
        return self._specialists[consulted_names[-1]].auto_mention if consulted_names else None

    async def ask(
        self, deps: ToolDeps, name: str, task: str, answers_the_person: bool = True
    ) -> str:
        """Hands `task` to the specialist `name`.

        Args:
            name: Whom.
            task: What to do, complete and in the person's language.
            answers_the_person: Their answer goes to the person and ends your turn; False gives it
                to you.
        """
        if name not in self._specialists:
            known_names = ", ".join(self._specialists)
            raise ToolFailed(f"There is no specialist {name!r}; ask {known_names}.")
        on_progress = deps.on_progress if answers_the_person else None
        try:
            answer = await self._run(deps, name, task, on_progress)
        except Declined as exc:
            raise ToolFailed(f"The specialist {name} declined to do this. Say so.") from exc
        except ModelFailed as exc:
            raise ToolFailed(
                f"The specialist {name} could not be reached. Answer yourself as well as you can."
            ) from exc
        deps.consulted.append(name)
        if not answers_the_person:
            return answer.text
        deps.ended = answer.ended
        return FinalAnswer(answer.text)

    async def _run(
        self, deps: ToolDeps, name: str, task: str, on_progress: OnProgress | None
    ) -> AgentWords:
        """What the specialist says, without tools where its model takes none."""
        hands = Hands(self._tools[name].with_outside(deps.outside), deps)
        own = self._specialists[name].instructions

        async def ask(*, with_tools: bool) -> AgentWords:
            return await run(
                self._models[name],
                specialist_messages(own, task, deps.prompt, with_tools=with_tools),
                usage=deps.spent,
                hands=hands,
                on_progress=on_progress,
                offers_tools=with_tools,
                reader=reader_of(deps.prompt, hands.tools, self._cleaner),
            )

        if not hands.tools:
            return await ask(with_tools=False)
        try:
            return await ask(with_tools=True)
        except ToolsRefused:
            return await ask(with_tools=False)
