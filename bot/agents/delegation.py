"""Specialists at work: each is an agent with its own instructions and only the tools it lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.agents.calling import Hands
from bot.agents.loop import run
from bot.agents.model import Declined, Model, ModelFailed
from bot.agents.requesting import specialist_messages
from bot.agents.sentences import with_end_marked
from bot.agents.specialists import Specialist
from bot.agents.toolkit import Toolkit
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool import FinalAnswer, Tool, ToolFailed, tool
from bot.mentions import AutoMention

_ABOUT = (
    "Hand a task to a specialist, who sees this conversation, memory and transcript too. "
    "The specialists:\n"
)


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
    ) -> None:
        self._specialists = {one.name: one for one in specialists}
        self._tools = {one.name: Toolkit(tools, allowed=one.may_use) for one in specialists}
        self._models = {
            one.name: model_named(one.model) if one.model and model_named else model
            for one in specialists
        }

    def tool(self) -> Tool:
        """`ask_specialist`; its description lists who there is."""
        listing = "\n".join(
            f"- {one.name}: {one.description}" for one in self._specialists.values()
        )
        told = _ABOUT + listing
        # What a specialist calls for is called, and held up, like the manager's own calls.
        return tool(self.ask, name="ask_specialist", description=told, sequential=True, reads=True)

    def auto_mention(self, consulted: Sequence[str]) -> AutoMention | None:
        """Whom the answer addresses: as the specialist asked last has it; None: as usual."""
        return self._specialists[consulted[-1]].auto_mention if consulted else None

    async def ask(
        self, deps: ToolDeps, name: str, task: str, answers_the_person: bool = True
    ) -> str:
        """Hands `task` to the specialist `name`.

        Args:
            name: One of the specialists' names.
            task: What to do, complete and in the person's language.
            answers_the_person: True gives the specialist's answer to the person as it is and ends
                your turn. False gives it to you, when there is more to do with it.
        """
        if name not in self._specialists:
            known = ", ".join(self._specialists)
            raise ToolFailed(f"There is no specialist {name!r}; ask {known}.")
        tools = self._tools[name].with_outside(deps.outside)
        own = self._specialists[name].instructions
        try:
            said = await run(
                self._models[name],
                specialist_messages(own, task, deps.prompt, with_tools=bool(tools)),
                spent=deps.spent,
                hands=Hands(tools, deps),
                on_progress=deps.on_progress if answers_the_person else None,
            )
        except Declined as exc:
            raise ToolFailed(f"The specialist {name} declined to do this. Say so.") from exc
        except ModelFailed as exc:
            raise ToolFailed(
                f"The specialist {name} could not be reached. Answer yourself as well as you can."
            ) from exc
        deps.consulted.append(name)
        text = with_end_marked(said.text, deps.prompt.question) if said.cut_off else said.text
        return FinalAnswer(text) if answers_the_person else text
