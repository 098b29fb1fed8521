"""Actions that are done only when the person who asked presses a button."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from bot.agents.prompts.prompt import PendingAction
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import ToolFailed
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.pending_texts import question

SHARE_NOTE = "share_note"

# People read all of what they confirm, on one card.
MOST_PENDING = 5
LONGEST_SHOWN = 4000


def wait_for_confirmation(
    tool: str,
    arguments: Mapping[str, Any],
    deps: ToolDeps,
    about: Mapping[str, str] | None = None,
) -> ToolOutcome:
    """Notes that `tool` is to be called with `arguments` (JSON) once confirmed, each action once.
    `about` is what people call what ids in the arguments stand for.

    Returns what the model is told in place of a result. Raises `ToolFailed` for what a card cannot
    show in full.
    """
    action = PendingAction(
        id=secrets.token_urlsafe(16),
        tool=tool,
        arguments=arguments,
        description=f"{tool}: {json.dumps(arguments, ensure_ascii=False, default=str)}",
        actor_id=deps.context.actor_id,
        conversation_id=deps.context.conversation_id,
        told=question(tool, arguments, about or {}, deps.prompt),
        asked_ms=int(deps.prompt.asked_at.timestamp() * 1000),
    )
    _wait(action, deps)
    return _waiting(tool)


def propose(
    tool: str, arguments: Mapping[str, Any], deps: ToolDeps, *, text: str, summary: str
) -> ToolOutcome:
    """Offers what a feature's button of the name `tool` does with `arguments` (JSON). `text` is the
    card's text, which says all that will be written; `summary` is one line of it. Returns and
    raises as `wait_for_confirmation`, also where the answer only shows what is known."""
    if deps.reads_only:
        raise reads_only()
    action = PendingAction(
        id=secrets.token_urlsafe(16),
        tool=tool,
        arguments=arguments,
        description=summary,
        actor_id=deps.context.actor_id,
        conversation_id=deps.context.conversation_id,
        told=text,
    )
    _wait(action, deps)
    return _waiting(tool)


def reads_only() -> ToolFailed:
    """What a call that would change something comes to in an answer that may change nothing."""
    return ToolFailed(
        "Nothing can be changed in this answer, and nothing was: it only shows what is known. "
        "Do not try again.",
        "reads-only",
    )


def _wait(action: PendingAction, deps: ToolDeps) -> None:
    tool, arguments = action.tool, action.arguments
    if (tool, arguments) not in [(one.tool, one.arguments) for one in deps.pending]:
        deps.pending.append(_showable(action, deps))


def _waiting(tool: str) -> ToolOutcome:
    return ToolOutcome(
        f"Not done yet: {tool} waits until the person who asked presses the button that is shown "
        "under your answer. Say in one sentence what would be done, and do not claim it is done.",
        "waits-for-press",
    )


def _showable(action: PendingAction, deps: ToolDeps) -> PendingAction:
    if len(deps.pending) >= MOST_PENDING:
        raise ToolFailed(
            f"Not done: {MOST_PENDING} actions already wait for a confirmation under this answer. "
            "Say that the rest was not done and can be asked for afterwards.",
            "too-many-to-confirm",
        )
    shown_chars = sum(len(one.told) for one in (*deps.pending, action))
    if shown_chars > LONGEST_SHOWN:
        raise ToolFailed(
            f"Not done: {action.tool} needs a confirmation, and its arguments are too long to be "
            "shown in full on a card. Say that it was not done; the person can ask for it in "
            "shorter parts, or type the request themselves.",
            "too-long-to-confirm",
        )
    return action
