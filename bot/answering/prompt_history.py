"""Builds the prompt from the stored conversation, within the token budget. Pure.

The memory returns one list (`OpenTurn.history`). People's statements are evidence; a question that
was asked before is one line; an old answer that rests on a replaced statement is marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bot.agents.authority.rules import exchange_of
from bot.agents.prompts.prompt import (
    OTHER_BOT,
    Image,
    Prompt,
    circumstances,
    group_lines,
    manager_rules,
    with_material,
)
from bot.agents.prompts.tool_context import enrich, exchanges, registry_table
from bot.answering.window import (
    QUOTING,
    LineAbove,
    Quoted,
    said_at,
    stale_answers,
    without_quoted,
    without_repeats,
)
from bot.feishu import markup
from bot.text.languages import Language
from bot.text.roster import NOBODY, Roster, from_card
from memory.context import Calibration, PromptMessage, PromptSections, exchange_cost, fit_sections
from memory.models import OpenTurn, PersonRemark, StoredMessage, WorkingMemory
from memory.recall.passages import content_words, needs_recall
from memory.recall.selection import RenderedPassages, SpeakerLabel, snippet
from memory.scope import AgentMemoryContext
from memory.summary import lines_about, without_shown
from memory.tables.notes import registered_notes
from memory.text import (
    FOREIGN_MARGIN,
    json_line,
    labelled_text,
    quoted_text,
    speaker_label,
    unlabelled_text,
)

# So many answers, the newest ones, are told with the tool calls that led to them as real pairs.
_PAIRED_ANSWERS = 3
_PAIRED_SHARE = 1 / 3
_PAUSE = timedelta(minutes=10)
_QUOTING = f"\n{FOREIGN_MARGIN}{QUOTING}"  # at the end of a line whose author quoted another
_LONGEST_ABOVE = 60  # characters of a line that another replies to
_UNASKED_SUMMARY = 50  # tokens of a summary that do not speak of the question


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
    label: SpeakerLabel = lambda open_id, name: speaker_label(name or open_id)


@dataclass(frozen=True, slots=True)
class PromptMaterial:
    """What came with a question: `text` stands before it, `images` are for models that see, and
    `quoted` is the message that `text` quotes. `above` has the lines that lines of the window reply
    to and the window lacks, by message_id."""

    text: str = ""
    images: tuple[Image, ...] = ()
    quoted: Quoted | None = None
    above: Mapping[str, LineAbove] = field(default_factory=dict)


NO_MATERIAL = PromptMaterial()
NOTHING_EARLIER = RenderedPassages()


def build_prompt(
    open_turn: OpenTurn,
    question: str,
    scene: Scene,
    *,
    context: AgentMemoryContext,
    turn_id: str,
    budget_tokens: int,
    calibration: Calibration,
    material: PromptMaterial = NO_MATERIAL,
    earlier: RenderedPassages = NOTHING_EARLIER,
    transcript: str = "",
    words_of_model: bool = False,
    reads_only: bool = False,
    typed: bool = True,
) -> Prompt:
    """The prompt of a turn. The question is never cut; of the rest, the newest is kept.

    `budget_tokens` are the endpoint's, as `calibration` has learned them; the schemas of the tools
    come on top. `typed`: the asker wrote `question` themselves, and did not only forward it.

    While the memory is away the prompt has no `context`: then no tool can claim to remember.
    """
    room = int(budget_tokens * _PAIRED_SHARE)
    sections = _sections(open_turn, question, scene, context, material, room=room)
    sections = replace(
        sections, recalled=earlier.text, recalled_worth=earlier.worth, transcript=transcript
    )
    fitted_sections = _fit_to_budget(sections, budget_tokens, calibration)
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
        summary=_summary_lines(fitted_sections, question),
        recalled=fitted_sections.recalled,
        transcript=fitted_sections.transcript,
        now=scene.now,
        written_at=scene.asked,
        context=None if open_turn.degraded else context,
        turn_id=turn_id,
        memory_away=open_turn.degraded,
        images=material.images,
        owner=scene.owner,
        exchange=exchange_of(
            question if typed else "",
            open_turn.own(context.actor_id)[:-1],
            context.actor_id,
            names=scene.people.names(),
            material=bool(material.text),
        ),
        words_of_model=words_of_model,
        reads_only=reads_only,
        people=scene.people,
        language=scene.language,
    )


def _sections(
    open_turn: OpenTurn,
    question: str,
    scene: Scene,
    context: AgentMemoryContext,
    material: PromptMaterial,
    *,
    room: int,
) -> PromptSections:
    """The parts of the prompt that the memory gives, and the question with what it came with.
    `room` is for the tool calls of earlier answers."""
    lines = without_repeats(open_turn.told)
    messages = rendered_window(lines, scene, context, material.above, room=room)
    asked = messages[-1].content if messages else question
    return PromptSections(
        question=with_material(material.text, asked),
        system=_rules(scene, away=open_turn.degraded),
        working_memory=_memory_lines(open_turn.working_memory, scene),
        registry=registry_table(registered_notes(open_turn.registry)),
        summary=quoted_text(open_turn.summary.content) if open_turn.summary else "",
        history=tuple(without_quoted(messages[:-1], lines[:-1], material.quoted)),
    )


def _summary_lines(sections: PromptSections, question: str) -> str:
    """The summary without the lines of people that the window shows. It is older than the window:
    where the prompt speaks of the question anyway, little else of it is told."""
    if not sections.summary:
        return ""
    people = [one for one in sections.history if one.role == "user"]
    shown = [(one.author, one.content.partition(": ")[2]) for one in people if one.author]
    summary = "\n".join([line.removeprefix("> ") for line in sections.summary.splitlines()])
    summary = without_shown(summary, shown)
    if not needs_recall(question, [summary, sections.recalled, *(p.content for p in people)]):
        summary = lines_about(summary, content_words(question), _UNASKED_SUMMARY)
    return quoted_text(summary) if summary else ""


def _rules(scene: Scene, *, away: bool) -> str:
    rules = manager_rules(scene.bot_name, with_tools=not away, owner=scene.owner)
    facts = circumstances(scene.subject, scene.now, memory_away=away, asked_at=scene.asked)
    return f"{rules}\n\n{facts}"


def _fit_to_budget(
    sections: PromptSections, budget_tokens: int, calibration: Calibration
) -> PromptSections:
    """What fits beside the rules, which are always sent whole."""
    assembly = fit_sections(sections, budget_tokens, calibration)
    if "system" in assembly.cut:
        return PromptSections(question=sections.question)
    return assembly.sections


def rendered_window(
    messages: Sequence[StoredMessage],
    scene: Scene,
    context: AgentMemoryContext,
    above: Mapping[str, LineAbove],
    *,
    room: int,
) -> list[PromptMessage]:
    """The window as a model reads it. The tool calls of the newest answers that have some are real
    pairs of call and result, as far as they cost at most `room`; older ones are a block of text.
    `above` are lines outside of it that its lines reply to, by message_id."""
    prompt_messages: list[PromptMessage] = []
    left = _PAIRED_ANSWERS
    for message in reversed(messages):
        pair = (
            rendered_message(message, scene, in_pairs=True)
            if message.tool_calls and left > 0
            else None
        )
        if pair:
            left -= 1
            room -= sum(map(exchange_cost, pair.exchanges))
        prompt_messages.append(pair if pair and room >= 0 else rendered_message(message, scene))
    stale = stale_answers(messages) if scene.labelled else frozenset()
    lines_above = _lines_above(messages, scene, above)
    times = _times(messages, scene)
    stays = (context.actor_id, context.root_id)
    return [
        replace(
            one,
            at=at,
            is_stale=stored_message.id in stale,
            content=one.content.removesuffix(_QUOTING) if replied else one.content,
            replies_to=replied,
            stays=stored_message.actor_id in stays or stored_message.message_id in stays,
        )
        for one, stored_message, at, replied in zip(
            prompt_messages[::-1], messages, times, lines_above, strict=True
        )
    ]


def _lines_above(
    messages: Sequence[StoredMessage],
    scene: Scene,
    elsewhere: Mapping[str, LineAbove],
) -> list[str]:
    """For each line of a person the author and the beginning of the one that it replies to; ""
    where that is neither among `messages` nor `elsewhere`, or is plain from the line before."""
    places = {one.message_id: place for place, one in enumerate(messages) if one.message_id}
    shown: list[str] = []
    for before, one in zip((None, *messages), messages, strict=False):
        is_plain = before and one.replies_to in (before.message_id, before.replies_to)
        if is_plain or one.role != "user" or not one.replies_to:
            shown.append("")
            continue
        place = places.get(one.replies_to)
        above = elsewhere.get(one.replies_to) if place is None else messages[place]
        shown.append(_beginning(above, scene) if above else "")
    return shown


def _beginning(line: StoredMessage | LineAbove, scene: Scene) -> str:
    """Alice: “the handover is in room 101”, you: “Noted.”; alone with the bot the words only."""
    if isinstance(line, LineAbove):
        author, text = line.author, line.text
    elif line.role == "assistant":
        author, text = "", from_card(line.content, scene.names, unescape=markup.unescape)
    else:
        author = scene.label(line.actor_id or "", line.actor_name)
        text = line.content.removesuffix(f"\n{QUOTING}")
    label = f"{author or 'you'}: " if scene.labelled or not author else ""
    return f"{label}“{snippet(text, _LONGEST_ABOVE)}”"


def _times(messages: Sequence[StoredMessage], scene: Scene) -> list[str]:
    """When people's lines were said, where a line is the first after a pause; "" elsewhere."""
    times: list[str] = []
    before: datetime | None = None
    for one in messages:
        if one.role != "user" or not scene.labelled:
            times.append("")
            continue
        at = said_at(one).astimezone(scene.now.tzinfo)
        pause = before is None or at - before >= _PAUSE or at.date() != before.date()
        times.append(f"{at:%Y-%m-%d %H:%M}" if pause else "")
        before = at
    return times


def rendered_message(
    message: StoredMessage, scene: Scene, *, in_pairs: bool = False
) -> PromptMessage:
    """A stored message as the model reads it: at-tags as names, people labelled in groups."""
    if message.role == "assistant":
        text = from_card(message.content, scene.names, unescape=markup.unescape)
        if in_pairs:
            return PromptMessage(
                "assistant", text, exchanges=exchanges(message.id, message.tool_calls)
            )
        return PromptMessage("assistant", enrich(text, message.tool_calls))
    if not scene.labelled:
        return PromptMessage("user", unlabelled_text(message.content))
    author = scene.label(message.actor_id or "", message.actor_name)
    author = f"{author} {OTHER_BOT}" if message.by_bot else author
    return PromptMessage("user", labelled_text(author, message.content), author=author)


def _from_a_person(history: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
    """The window from the first message of a person on: an answer without its question misleads,
    and some endpoints refuse it."""
    people = (place for place, message in enumerate(history) if message.role == "user")
    return history[next(people, len(history)) :]


def _memory_lines(memory: WorkingMemory, scene: Scene) -> str:
    """A line for each key, the shortest first: cut at the end, it keeps as many as possible."""
    lines = [_memory_line(item) for facts in (memory.chat, memory.user) for item in facts.items()]
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


def _remark(remark: PersonRemark, label: SpeakerLabel) -> str:
    author, subject = (label(open_id, "") for open_id in (remark.actor_id, remark.user_id))
    return f"{author} about {subject}: {json_line(remark.content)}"
