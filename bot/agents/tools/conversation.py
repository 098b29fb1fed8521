"""Tools that need no memory: likely next questions, and the time."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.agents.tool_types.tool import Tool, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.text.follow_ups import MOST_COLUMNS, questions_of


def conversation_tools() -> list[Tool]:
    return [tool(suggest_follow_ups, sequential=True, reads=True), tool(current_time, reads=True)]


async def suggest_follow_ups(deps: ToolDeps, questions: list[str]) -> str:
    """Show up to three likely next questions as buttons, when they help; never list them in the
    answer.

    Args:
        questions: Short, in the person's language and voice.
    """
    deps.follow_ups[:] = questions_of(questions)
    if not deps.follow_ups:
        raise ToolFailed(
            f"No question fits on a button: at most {MOST_COLUMNS} characters "
            f"({MOST_COLUMNS // 2} Chinese ones), and no command."
        )
    return (
        f"{len(deps.follow_ups)} follow-up questions will be shown as buttons. "
        "Do not write them into your answer."
    )


async def current_time(deps: ToolDeps, timezone: str | None = None) -> str:
    """The date and time now.

    Args:
        timezone: An IANA name such as Asia/Shanghai; left out, the bot's own.
    """
    now = deps.prompt.now
    if timezone:
        try:
            now = now.astimezone(ZoneInfo(timezone))
        except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
            raise ToolFailed(
                f"{timezone!r} is no known time zone; use a name such as Asia/Shanghai."
            ) from exc
    return f"{now:%A, %Y-%m-%d %H:%M} ({now.tzname()}, UTC{now:%z})"
