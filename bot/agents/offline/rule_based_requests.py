"""What people ask in plain words to be kept, forgotten or reminded of, for a model without tools.

The rules are those of the offline model. What they read without doubt is done, because the person's
own words asked for it; what may be meant otherwise waits for a button.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.llm.model import Message, Request
from bot.agents.offline import facts
from bot.agents.offline.kept import is_named
from bot.agents.offline.model import OfflineModel, situation_of
from bot.agents.tool_types.tool import Toolbox, ToolCall
from bot.text.forget_requests import asked_to_forget

_SEARCHES = frozenset({"recall"})  # the model finds in its prompt what these would find
_LONGEST_CERTAIN = 200
_SEVERAL_SENTENCES = re.compile(r"[.!?]\s+\S|[。！？；;]\s*\S|\n\s*\S")


@dataclass(frozen=True, slots=True)
class ToolWish:
    """The first call that the rules make for a question."""

    calls: tuple[ToolCall, ...]
    certain: bool


async def wish_of(messages: Sequence[Message], tools: Toolbox) -> ToolWish | None:
    """What the newest message asks to be done; None for a question or a remark."""
    request = Request(messages, tools)
    response = await OfflineModel().respond(request)
    if not response.calls or any(call.name in _SEARCHES for call in response.calls):
        return None
    question = situation_of(request).question
    asked_for = facts.to_remember(question) or facts.corrected(question)
    if facts.to_keep(question) and not asked_for:
        return None  # a remark, which nobody asked to be kept
    return ToolWish(response.calls, _is_certain(request))


def _is_certain(request: Request) -> bool:
    situation = situation_of(request)
    question = situation.question.strip()
    if len(question) > _LONGEST_CERTAIN or _SEVERAL_SENTENCES.search(question):
        return False
    if facts.corrected(question) and not facts.to_remember(question):
        return False  # “no, it is now …” may be about anything that was said
    about = asked_to_forget(question)
    return not about or is_named(about, situation.instructions)
