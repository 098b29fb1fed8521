"""Actions that are done only when the person who asked presses a button."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from bot.agents.prompt import PendingAction
from bot.agents.tools.deps import ToolDeps

SHARE_NOTE = "share_note"


def wait_for_confirmation(tool: str, arguments: Mapping[str, Any], deps: ToolDeps) -> str:
    """Notes that `tool` is to be called with `arguments` (JSON) once confirmed, each action once.

    Returns what the model is told in place of a result.
    """
    known = [one for one in deps.pending if (one.tool, one.arguments) == (tool, arguments)]
    if not known:
        deps.pending.append(
            PendingAction(
                id=secrets.token_urlsafe(16),
                tool=tool,
                arguments=arguments,
                description=f"{tool}: {json.dumps(arguments, ensure_ascii=False)}",
                actor_id=deps.context.actor_id,
                conversation_id=deps.context.conversation_id,
            )
        )
    return (
        f"Not done yet: {tool} waits until the person who asked presses the button that is shown "
        "under your answer. Say in one sentence what would be done, and do not claim it is done."
    )
