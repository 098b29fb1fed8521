"""What the model is told: the stored conversation as text, within the token budget. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bot.agents.authority.rules import exchange_of
from bot.agents.prompts.group_facts import group_lines
from bot.agents.prompts.prompt import Image, Prompt, circumstances, manager_rules
from bot.agents.prompts.quotation import with_material
from bot.agents.prompts.tool_context import enrich, exchanges, registry_table
from bot.answering.deduplication import Quoted, without_quoted
from bot.answering.window import said_at, stale_answers, without_repeats
from bot.feishu import markup
from bot.text.card_names import from_card
from bot.text.languages import Language
from bot.text.roster import NOBODY, Roster
from memory.context import Message, Sections, assemble, exchange_cost
from memory.foreign_text import json_line, speaker, spoken, unlabelled
from memory.foreign_text import quoted as quoted_text
from memory.models import OpenTurn, Remark, StoredMessage, WorkingMemory
from memory.recall.reading import Label
from memory.scope import AgentMemoryContext
from memory.tables.notes import registered_notes
from memory.tokens import Calibration

# So many answers, the newest ones, are told with the tool calls that led to them as real pairs.
_PAIRED_ANSWERS = 3
_PAIRED_SHARE = 1 / 3
_OTHER_BOT = "(a bot)"
_PAUSE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Scene:
    """Who speaks where: `names` is open_id → name; `label` gives what stands in front of the words
    of an open_id, known by a name; `labelled` says whether it does.

    `owner` are the owner's own instructions; `people` those whom a name can mean;
    `language` is what the chat and the question are in.
    """

    bot_name: str
    subject: str
    names: Mapping[str, str]
    labelled: bool
    now: datetime
    asked: datetime | None = None
    owner: str = ""
    people: Roster = NOBODY
    language: Language | None = None
    label: Label = lambda open_id, name: speaker(name or open_id)


def build_prompt(
    open_turn: OpenTurn,
    question: str,
    scene: Scene,
    *,
    context: AgentMemoryContext,
    turn_id: str,
    recalled: str,
    budget_tokens: int,
    calibration: Calibration,
    recalled_worth: tuple[float, ...] = (),
    transcript: str = "",
    material: str = "",
    images: tuple[Image, ...] = (),
    quoted: Quoted | None = None,
    words_of_model: bool = False,
    reads_only: bool = False,
    typed: bool = True,
) -> Prompt:
    """The prompt of a turn. The question is never cut; of the rest, the newest is kept.

    `budget_tokens` are the endpoint's, as `calibration` has learned them; the schemas of the tools
    come on top.

    `material` and `images` are what came with the question besides its text; `quoted` is the
    message in `material` that the person picked out. `typed`: the asker wrote
    `question` themselves, and did not only forward it.

    While the memory is away the prompt has no `context`: then no tool can claim to remember.
    """
    lines = without_repeats(open_turn.told)
    messages = tell_all(lines, scene, context, room=int(budget_tokens * _PAIRED_SHARE))
    sections = Sections(
        question=with_material(material, messages[-1].content if messages else question),
        system=_rules(scene, away=open_turn.degraded),
        working_memory=_memory_lines(open_turn.working_memory, scene),
        registry=registry_table(registered_notes(open_turn.registry)),
        summary=quoted_text(open_turn.summary.content) if open_turn.summary else "",
        recalled=recalled,
        recalled_worth=recalled_worth,
        transcript=transcript,
        history=tuple(without_quoted(messages[:-1], lines[:-1], quoted)),
    )
    fitted_sections = _fitted(sections, budget_tokens, calibration)
    memory, remarks, group_facts = _memory_within(
        open_turn.working_memory, fitted_sections.working_memory, scene
    )
    return Prompt(
        bot_name=scene.bot_name,
        question=fitted_sections.question,
        history=_from_a_person(fitted_sections.history),
        subject=scene.subject,
        working_memory=memory,
        working_memory_cut=memory != open_turn.working_memory,
        remarks=remarks,
        group_facts=group_facts,
        registry=fitted_sections.registry,
        summary=fitted_sections.summary,
        recalled=fitted_sections.recalled,
        transcript=fitted_sections.transcript,
        now=scene.now,
        asked=scene.asked,
        context=None if open_turn.degraded else context,
        turn_id=turn_id,
        memory_away=open_turn.degraded,
        images=images,
        owner=scene.owner,
        exchange=exchange_of(
            question if typed else "",
            open_turn.own(context.actor_id)[:-1],
            context.actor_id,
            names=scene.people.names(),
            material=bool(material),
        ),
        words_of_model=words_of_model,
        reads_only=reads_only,
        people=scene.people,
        language=scene.language,
    )


def _rules(scene: Scene, *, away: bool) -> str:
    rules = manager_rules(scene.bot_name, with_tools=not away, owner=scene.owner)
    facts = circumstances(scene.subject, scene.now, memory_away=away, asked_at=scene.asked)
    return f"{rules}\n\n{facts}"


def _fitted(sections: Sections, budget_tokens: int, calibration: Calibration) -> Sections:
    """What fits beside the rules, which are always sent whole."""
    assembly = assemble(sections, budget_tokens, calibration)
    if "system" in assembly.cut:
        return Sections(question=sections.question)
    return assembly.sections


def tell_all(
    messages: Sequence[StoredMessage], scene: Scene, context: AgentMemoryContext, *, room: int
) -> list[Message]:
    """The window as a model reads it. The tool calls of the newest answers that have some are real
    pairs of call and result, as far as they cost at most `room`; older ones are a block of text."""
    prompt_messages: list[Message] = []
    left = _PAIRED_ANSWERS
    for message in reversed(messages):
        pair = tell(message, scene, in_pairs=True) if message.tool_calls and left > 0 else None
        if pair:
            left -= 1
            room -= sum(map(exchange_cost, pair.exchanges))
        prompt_messages.append(pair if pair and room >= 0 else tell(message, scene))
    stale = stale_answers(messages) if scene.labelled else frozenset()
    times = _times(messages, scene)
    stays = (context.actor_id, context.root_id)
    return [
        replace(
            one,
            at=at,
            is_stale=kept.id in stale,
            stays=kept.actor_id in stays or kept.message_id in stays,
        )
        for one, kept, at in zip(prompt_messages[::-1], messages, times, strict=True)
    ]


def _times(messages: Sequence[StoredMessage], scene: Scene) -> list[str]:
    """When people's lines were said, where a line is the first after a pause; "" elsewhere."""
    times: list[str] = []
    before: datetime | None = None
    for one in messages:
        statement_times = said_at(one).astimezone(scene.now.tzinfo)
        pause = (
            before is None
            or statement_times - before >= _PAUSE
            or statement_times.date() != before.date()
        )
        tells = scene.labelled and one.role == "user" and pause
        times.append(f"{statement_times:%Y-%m-%d %H:%M}" if tells else "")
        before = statement_times if one.role == "user" else before
    return times


def tell(message: StoredMessage, scene: Scene, *, in_pairs: bool = False) -> Message:
    """A stored message as the model reads it: at-tags as names, people labelled in groups."""
    if message.role == "assistant":
        text = from_card(message.content, scene.names, unescape=markup.unescape)
        if in_pairs:
            return Message("assistant", text, exchanges=exchanges(message.id, message.tool_calls))
        return Message("assistant", enrich(text, message.tool_calls))
    if not scene.labelled:
        return Message("user", unlabelled(message.content))
    author = scene.label(message.actor_id or "", message.actor_name)
    author = f"{author} {_OTHER_BOT}" if message.by_bot else author
    return Message("user", spoken(author, message.content), author=author)


def _from_a_person(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """The window from the first message of a person on: an answer without its question misleads,
    and some endpoints refuse it."""
    people = (place for place, message in enumerate(history) if message.role == "user")
    return history[next(people, len(history)) :]


def _memory_lines(memory: WorkingMemory, scene: Scene) -> str:
    """A line for each key, the shortest first: cut at the end, it keeps as many as possible."""
    lines = [_memory_line(item) for kept in (memory.chat, memory.user) for item in kept.items()]
    lines += [_remark(remark, scene.label) for remark in memory.said]
    lines += group_lines(memory.group, scene.label, scene.now)
    return "\n".join(sorted(lines, key=len))


def _memory_within(
    memory: WorkingMemory, lines: str, scene: Scene
) -> tuple[WorkingMemory, str, str]:
    """What of the memory has its whole line among `lines`; its remarks and its group's facts as
    lines."""
    left = frozenset(lines.split("\n"))

    def within(items: Mapping[str, Any]) -> dict[str, Any]:
        return {item[0]: item[1] for item in items.items() if _memory_line(item) in left}

    remarks_left = tuple(remark for remark in memory.said if _remark(remark, scene.label) in left)
    fact_lines = group_lines(memory.group, scene.label, scene.now)
    group = tuple(fact for fact, line in zip(memory.group, fact_lines, strict=True) if line in left)
    memory_left = WorkingMemory(
        within(memory.chat), within(memory.user), remarks_left, memory.turns, group
    )
    remarks = "\n".join(_remark(remark, scene.label) for remark in remarks_left)
    return memory_left, remarks, "\n".join(line for line in fact_lines if line in left)


def _memory_line(item: tuple[str, Any]) -> str:
    return json_line(dict([item]))


def _remark(remark: Remark, label: Label) -> str:
    author, subject = (label(open_id, "") for open_id in (remark.actor_id, remark.user_id))
    return f"{author} about {subject}: {json_line(remark.content)}"
