"""Builds the prompt from the stored conversation, within the token budget. Pure.

The memory returns one list (`OpenTurn.history`). People's statements are evidence; a question that
was asked before is one line; an old answer that rests on a replaced statement is marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
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
from bot.feishu import markup
from bot.feishu.markup import AT_TAG
from bot.listening.requests import is_question
from bot.listening.topics import Discussion
from bot.listening.transcript import MessageRecord
from bot.text.languages import Language
from bot.text.roster import NOBODY, Roster, from_card
from memory.context import Calibration, PromptMessage, PromptSections, exchange_cost, fit_sections
from memory.models import OpenTurn, PersonRemark, StoredMessage, WorkingMemory
from memory.recall.changes import replacement_times, stated_facts
from memory.recall.passages import Passage, content_words, needs_recall
from memory.recall.rendering import SpeakerLabel
from memory.scope import AgentMemoryContext
from memory.summary import lines_about, without_shown
from memory.tables.notes import registered_notes
from memory.text import (
    indented_text,
    json_line,
    labelled_text,
    one_line,
    quoted_text,
    speaker_label,
    unlabelled_text,
)

# So many answers, the newest ones, are told with the tool calls that led to them as real pairs.
_PAIRED_ANSWERS = 3
_PAIRED_SHARE = 1 / 3
_PAUSE = timedelta(minutes=10)
_UNASKED_SUMMARY = 50  # tokens of a summary that do not speak of the question

_SHORT_REPLY = 12  # characters
_SHORT = 3  # characters of words that most texts share: the, was
_UNSTORED_ID = -1  # the id of a line that the memory does not have
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_WORD = re.compile(r"\d+(?:[:.,]\d+)*|[a-z\u00c0-\u024f]+|[\u3400-\u9fff]")

QUOTED_BELOW = "[this message is quoted with the question]"


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
    messages = rendered_window(lines, scene, context, room=int(budget_tokens * _PAIRED_SHARE))
    sections = PromptSections(
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
    messages: Sequence[StoredMessage], scene: Scene, context: AgentMemoryContext, *, room: int
) -> list[PromptMessage]:
    """The window as a model reads it. The tool calls of the newest answers that have some are real
    pairs of call and result, as far as they cost at most `room`; older ones are a block of text."""
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
    times = _times(messages, scene)
    stays = (context.actor_id, context.root_id)
    return [
        replace(
            one,
            at=at,
            is_stale=stored_message.id in stale,
            stays=stored_message.actor_id in stays or stored_message.message_id in stays,
        )
        for one, stored_message, at in zip(prompt_messages[::-1], messages, times, strict=True)
    ]


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


def with_heard(open_turn: OpenTurn, records: Iterable[MessageRecord]) -> OpenTurn:
    """The turn with the lines of `records` that the memory does not have: a thread in which
    listening lapsed, or any place while the memory is away. Nothing of this bot's is among them."""
    window_ids = {one.message_id for one in open_turn.history}
    missing = [
        _line(one)
        for one in records
        if not one.ours and one.message_id not in window_ids and one.content
    ]
    if not missing:
        return open_turn
    before = sorted((*open_turn.history[:-1], *missing), key=said_at)
    return replace(open_turn, history=(*before, *open_turn.history[-1:]))


def without_other_topics(
    open_turn: OpenTurn, discussion: Discussion | None, question: str
) -> OpenTurn:
    """The turn without the talk to nobody that belongs to other discussions than the question. All
    of it stays where the discussion is in doubt."""
    if discussion is None:
        return open_turn
    on_topic = {one.message_id for one in discussion.of_topic(question)}
    other = {one.message_id for one in discussion.messages} - on_topic
    kept_lines = [one for one in open_turn.history if one.id >= 0 or one.message_id not in other]
    return replace(open_turn, history=tuple(kept_lines))


def _line(record: MessageRecord) -> StoredMessage:
    return StoredMessage(
        _UNSTORED_ID,
        "user",
        record.content,
        record.author_id,
        record.author,
        record.message_id,
        datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(),
        by_bot=record.is_bot,
    )


def said_at(line: StoredMessage) -> datetime:
    """When a line was said; long ago where that is not known."""
    return datetime.fromisoformat(line.created_at) if line.created_at else _LONG_AGO


def without_repeats(lines: Sequence[StoredMessage]) -> list[StoredMessage]:
    """`lines`, the question last, in which each question stands once: the one to answer at the end,
    any other with its first answer. The exchange right before the question stays, and so does what
    was answered with tools, or by a person in words that say nothing alone (“Leonie does”)."""
    if not lines:
        return []
    question_of = _questions(lines)
    last = len(lines) - 1
    last_asked = {now: last} if (now := _question_key(lines[-1].content)) else {}
    needed = {question_of[place] for place, line in enumerate(lines) if line.tool_calls}
    needed |= _answered_in_short(lines, now)
    just_asked = question_of[last - 1] if last else last
    kept_lines: list[StoredMessage] = []
    for place, line in enumerate(lines):
        asked_at = question_of[place]
        says = _question_key(lines[asked_at].content)
        is_first = last_asked.setdefault(says, asked_at) == asked_at
        stays = asked_at in needed or (asked_at == just_asked and says != now)
        if not says or is_first or stays:
            kept_lines.append(line)
    return kept_lines


def _answered_in_short(lines: Sequence[StoredMessage], key: str) -> set[int]:
    """The places where the question of that key was asked and another person's next line is a few
    words, none of them the question's."""
    people = [place for place, line in enumerate(lines[:-1]) if line.role == "user"]
    return {
        asked
        for asked, place in pairwise(people)
        if len(lines[place].content) <= _SHORT_REPLY
        and lines[asked].actor_id != lines[place].actor_id
        and _question_key(lines[asked].content) == key != ""
        and not _question_key(lines[place].content)
        and not content_words(lines[asked].content) & content_words(lines[place].content)
    }


def _questions(lines: Sequence[StoredMessage]) -> list[int]:
    """For each line the place of the one that it answers, or its own."""
    question_counts: dict[str | None, int] = {}
    places: list[int] = []
    for place, line in enumerate(lines):
        if line.role == "user" and line.id >= 0:
            question_counts[line.actor_id] = place
        places.append(
            question_counts.get(line.actor_id, place) if line.role == "assistant" else place
        )
    return places


def _question_key(text: str) -> str:
    """The words of a question; "" of anything else."""
    return _known_question(text) if len(text) <= _KNOWN_CHARS else _read_question(text)


def _read_question(text: str) -> str:
    line = one_line(text)
    return " ".join(_WORD.findall(line.lower())) if is_question(line) else ""


_KNOWN_CHARS = 1000
_known_question = lru_cache(maxsize=512)(_read_question)  # a window's lines come again each turn


def stale_answers(lines: Sequence[StoredMessage]) -> frozenset[int]:
    """The ids of the answers among `lines` that repeat a statement which a later one replaces."""
    answers = [one for one in lines if one.role == "assistant"]
    statements = [one for one in lines if one.role == "user" and one.message_id]
    if not answers or sum(1 for one in statements if stated_facts(one.content)) < 2:
        return frozenset()
    by_id = {one.message_id: one for one in statements}
    by_time = {one.created_at: one for one in statements}
    changes = [
        _change(by_id[turn_id], by_time[until])
        for turn_id, until in replacement_times([_statement(one) for one in statements]).items()
        if until in by_time
    ]
    return frozenset([one.id for one in answers if changes and _repeats_old(one, changes)])


def _statement(line: StoredMessage) -> Passage:
    return _known_statement(
        line.message_id or "",
        line.id,
        line.created_at,
        line.actor_id,
        line.actor_name,
        line.content,
    )


@lru_cache(maxsize=512)
def _known_statement(
    message_id: str, id: int, at: str, actor_id: str | None, actor_name: str, content: str
) -> Passage:
    return Passage(message_id, id, "", "", at, actor_id, actor_name, content, "")


# When the old statement was said, and the words that only it and only the new one has.
_Change = tuple[datetime, frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]


def _change(old: StoredMessage, new: StoredMessage) -> _Change:
    was, became = _terms(old.content), _terms(new.content)
    return said_at(old), was - became, became - was


def _repeats_old(answer: StoredMessage, changes: Sequence[_Change]) -> bool:
    """True if the answer says what only the old statement says, and nothing that only the new one
    does."""
    terms, at = _terms(answer.content), said_at(answer)
    return any(at >= since and terms & was and not terms & became for since, was, became in changes)


def _terms(text: str) -> frozenset[tuple[str, ...]]:
    """Long words, and pairs of neighbours: “3月3号” and “3月10号” have the same words."""
    words = _WORD.findall(AT_TAG.sub(" ", text).lower())
    return frozenset([*((word,) for word in words if len(word) > _SHORT), *pairwise(words)])


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that is quoted with the question, as the model reads it."""

    message_id: str
    text: str


def without_quoted(
    messages: Sequence[PromptMessage],
    stored_messages: Sequence[StoredMessage],
    quoted_message: Quoted | None,
) -> list[PromptMessage]:
    """The messages `messages`, made of those `stored_messages`, with a remark in place of the
    quoted text."""
    if quoted_message is None:
        return list(messages)
    return [
        _set_aside(one, stored_message, quoted_message)
        for one, stored_message in zip(messages, stored_messages, strict=True)
    ]


def _set_aside(
    message: PromptMessage, stored_message: StoredMessage, quoted_message: Quoted
) -> PromptMessage:
    by_bot = stored_message.role == "assistant"
    if stored_message.message_id != quoted_message.message_id and not (
        by_bot and _holds(message.content, quoted_message.text)
    ):
        return message
    text = quoted_message.text if by_bot else indented_text(quoted_message.text)
    return replace(message, content=message.content.replace(text, QUOTED_BELOW, 1))


def _holds(text: str, paragraphs: str) -> bool:
    """Whether whole paragraphs of `text` are these."""
    needle = paragraphs.strip()
    return bool(needle) and f"\n\n{needle}\n\n" in f"\n\n{text.strip()}\n\n"
