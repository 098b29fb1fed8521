"""The tools of one agent: its own, and those of outside servers as they are when a turn begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bot.agents.tool_types.tool import NO_TOOLS, Tool, Toolbox


class Toolkit:
    """Puts the two together, again only when the outside has changed.

    `allowed` says by name which of them the agent may use.
    """

    def __init__(
        self, own: Iterable[Tool], *, allowed: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._own = [tool for tool in own if allowed(tool.name)]
        self._allowed = allowed
        self._outside = NO_TOOLS
        self._box = Toolbox(self._own)

    def with_outside(self, outside: Toolbox) -> Toolbox:
        """All of the agent's tools."""
        if outside is not self._outside:
            outside_tools = (outside[name] for name in outside if self._allowed(name))
            self._outside, self._box = outside, Toolbox([*self._own, *outside_tools])
        return self._box
