"""Which tools a question can need. Pure.

Tools for memory, follow-ups and MCP servers are always sent; the others come in groups, when
something in the prompt calls for them. A group that is sent for nothing costs some hundred tokens;
one that is missing costs the answer, so cues are wide. A tool that was not sent still works.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache

from bot.agents.choice.tool_cues import CUES, GROUP_OF, SPECIALISTS, Cues, Group
from bot.agents.offline import agendas, reminders
from bot.agents.offline.commands import command
from bot.agents.offline.prompt_reading import spoken
from bot.agents.prompts.prompt import Prompt
from bot.agents.prompts.quotation import without_material
from bot.agents.tool_types.tool import Toolbox

_RIVALS: tuple[Group, ...] = ("notes", "reminders")
_POINTS = re.compile(
    r"\b(that|this|it|them|these|those|above|same|so|yes|ok|okay|sure|please|go ahead)\b"
    r"|这|那|它|上面|刚才|照|好的?|可以|行|办|弄|搞|帮",
    re.IGNORECASE,
)


def choose(tools: Toolbox, prompt: Prompt, specialists: Collection[str] = ()) -> Toolbox:
    """The tools to send: the constant ones first, then the groups in the order of `tools`.

    `specialists` are the names of those who can be asked.
    """
    groups = groups_for(prompt, specialists)
    always = [name for name in tools if name not in GROUP_OF]
    return tools.part((*always, *(name for name in tools if GROUP_OF.get(name) in groups)))


def groups_for(prompt: Prompt, specialists: Collection[str] = ()) -> frozenset[Group]:
    """What the question and the conversation before it can need.

    A longer conversation never needs less, so that tools are only added while one goes on.
    """
    groups = _called_for(prompt.question, specialists) | _understood_offline(prompt)
    of_others = [one.content for one in prompt.history if not one.stays]
    if not groups and _POINTS.search(prompt.question):
        groups = _called_for("\n".join((*of_others, prompt.transcript)), specialists)
    earlier: set[Group] = {"notes"} if prompt.registry else set()
    for one in (one for one in prompt.history if one.stays):
        words_of_people = one.role == "user"
        earlier |= _called_for(one.content, specialists, hints=words_of_people)
        earlier |= _used(one.content, [exchange.name for exchange in one.exchanges])
    if any(name not in SPECIALISTS for name in specialists):
        earlier.add("specialists")
    return frozenset(groups | earlier)


def _called_for(text: str, specialists: Iterable[str], *, hints: bool = True) -> frozenset[Group]:
    return _called(text.lower(), tuple(specialists), hints)


@lru_cache(maxsize=512)  # the same messages come again with each question of a conversation
def _called(text: str, specialists: tuple[str, ...], hints: bool) -> frozenset[Group]:
    cues = (*CUES.items(), *_of_specialists(specialists))
    groups = {group for group, cue in cues if cue.names.is_in(text)}
    if hints and not groups.intersection(_RIVALS):
        groups |= {group for group, cue in cues if group not in groups and cue.hints.is_in(text)}
    return frozenset(groups)


@cache
def _of_specialists(names: tuple[str, ...]) -> list[tuple[Group, Cues]]:
    return [("specialists", SPECIALISTS[name]) for name in names if name in SPECIALISTS]


def _understood_offline(prompt: Prompt) -> set[Group]:
    """What the rules of the offline model would do."""
    _, question = spoken(without_material(prompt.question), prompt.bot_name)
    groups: set[Group] = set()
    if command(question):
        groups.add("notes")
    if reminders.wish(question):
        groups.add("reminders")
    if agendas.wish(question):
        groups.add("calendar")
    return groups


def _used(text: str, called_names: Collection[str]) -> set[Group]:
    """The groups of tools that were called for an answer, or that its tool context names."""
    return {group for name, group in GROUP_OF.items() if name in called_names or name in text}
