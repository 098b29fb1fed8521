"""Tells what the rules would call for a question, for models that take no tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.llm.model import Message, Request
from bot.agents.offline import facts
from bot.agents.offline.evidence import names_whole_kept_fact
from bot.agents.offline.model import OfflineModel
from bot.agents.offline.prompt_reading import situation_of
from bot.agents.offline.request_forms import requests_in
from bot.agents.tool_types import Toolbox, ToolCall
from bot.text.slash_commands import words_to_forget

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
    asked_for = facts.fact_to_remember(question) or facts.corrected_value(question)
    if facts.fact_to_keep(question) and not asked_for:
        return None  # a remark, which nobody asked to be kept
    return ToolWish(response.calls, _is_certain(request))


def _is_certain(request: Request) -> bool:
    situation = situation_of(request)
    question = situation.question.strip()
    is_several = _SEVERAL_SENTENCES.search(question) or len(requests_in(question)) > 1
    if len(question) > _LONGEST_CERTAIN or is_several:
        return False
    if facts.corrected_value(question) and not facts.fact_to_remember(question):
        return False  # “no, it is now …” may be about anything that was said
    about = words_to_forget(question)
    return not about or names_whole_kept_fact(about, situation.instructions)
