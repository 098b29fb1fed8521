"""Reads a request as the rules of the offline model need it. Pure.

Only `_conversation` and `held` know how a prompt is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.agents.llm.model import Message, Request
from bot.agents.offline.notes import Returned
from bot.agents.prompts.prompt import (
    ASKED_EARLIER,
    GROUP_FACTS,
    OTHER_BOT,
    PERSON,
    PERSON_MEMORY,
    RECALLED,
    REPLYING,
    THREAD_MEMORY,
    TRANSCRIPT,
    quotations,
    without_knowledge,
    without_material,
)
from bot.agents.tool_types import COMMON, ERROR, ToolOutcome
from bot.text.languages import Language, last_own_language, own_language
from memory.text import FOREIGN_MARGIN, original_text

_DATED = re.compile(r"\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)(?P<marks>[^\]]*)\] (?P<line>.+)", re.S)
# A name of several words has capital letters: “add a note: …” names nobody.
_NAME = r"(?!\[)(?:[^\s:：]{1,40}|[A-Z][^\s:：]{0,40}(?: [A-Z][^\s:：]{0,40}){1,3})"
_LABELLED = re.compile(
    rf"({_NAME}(?: \(…[^\s()]{{1,8}}\))?(?: {re.escape(OTHER_BOT)})?)[:：]\s+(.*)", re.S
)
_LINE_END = re.compile(rf"\n(?!{FOREIGN_MARGIN})")
_REPLY = re.compile(rf"\[{REPLYING} [^“\]]*“(?P<above>[^\]]*)”\] (?P<line>.+)", re.S)
_LABELLED_LINE = re.compile(
    rf"(?:\[[^\]]{{1,60}}\] )?(?:\[{REPLYING} [^\]]*\] )?{_LABELLED.pattern}", re.S
)
_OWN_NAME = re.compile(r"You are (.{1,80}?), a colleague in ")
_FILE = re.compile(r"Text of the (?:file|document) \"(.+?)\"")
_FACT = re.compile(
    r"\[[^\]·]{1,40} · (?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)(?P<until>[^\]]*)\]"
    r" (?P<who>[^:：]{1,60}?)(?: about [^:：]{1,60})?: [^:：]{1,80}: (?P<value>.+)"
)
_MYSELF = "[you]"
_TIME = r"\n(\d{4}-\d\d-\d\d \d\d:\d\d)(?: \w+ \(([\w/+-]+)\))?"
_NOW = re.compile(rf"^Now:{_TIME}", re.MULTILINE)
_ASKED_LINE = re.compile(rf"^{re.escape(ASKED_EARLIER)}{_TIME}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptLine:
    """Words of a person or of the bot (`own`). `when` is local time, “2026-03-02 10:00”, the day
    alone, or "".

    `is_replaced`: the prompt marks it as replaced by a later one. `earlier`: it was found, and does
    not stand in the conversation. `above`: the beginning of the line that it replies to.
    """

    text: str
    who: str = ""
    when: str = ""
    own: bool = False
    is_replaced: bool = False
    earlier: bool = False
    above: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """A prompt as the rules read it.

    `lines` are what was said before the question, oldest first. `author` is the name in front of
    the question, if people are told apart; `person` is whose memory it is. `files` are name and
    text of those that came with it. `results` are this turn's tool results in order; `bot_said`
    are the bot's words and its earlier results. `by_meaning`: recall also finds passages that share
    no word with the question.
    """

    question: str
    lines: tuple[PromptLine, ...] = ()
    bot_said: tuple[str, ...] = ()
    instructions: str = ""
    tools: frozenset[str] = frozenset()
    results: tuple[Returned, ...] = ()
    author: str = ""
    person: str = ""
    own_name: str = ""
    files: tuple[tuple[str, str], ...] = ()
    by_meaning: bool = False

    @property
    def last(self) -> Returned | None:
        return self.results[-1] if self.results else None

    @property
    def asks_for_self(self) -> bool:
        """Whether the memory is that of the person who asks."""
        return not (self.author and self.person) or self.author == self.person

    @property
    def language(self) -> Language:
        lines = [line.text for line in self.lines if not line.own]
        return own_language(self.question) or last_own_language(lines) or "en"


def situation_of(request: Request) -> Situation:
    """Returns the question, what was said before it, and what this turn's tools returned."""
    rules = _text(request.messages[0])
    calls: dict[str, str] = {}
    bot_said: list[str] = []
    results: list[Returned] = []
    question_text = knowledge_text = ""
    for message in request.messages[1:]:
        text = _text(message)
        match message["role"]:
            case "user":
                knowledge, question_text = without_knowledge(text)
                knowledge_text = knowledge or knowledge_text
                bot_said += [one.text for one in results]
                results.clear()
            case "assistant":
                bot_said.append(text)
                calls |= {c["id"]: c["function"]["name"] for c in message.get("tool_calls") or ()}
            case "tool":
                results.append(_read_result(calls, message, request))
    question_text = original_text(question_text)
    name_match = _OWN_NAME.match(rules)
    own_name = name_match[1] if name_match else ""
    author, question = label_and_words(without_material(question_text), own_name)
    return Situation(
        question=question,
        author=author,
        person=_section(knowledge_text, PERSON),
        files=_files(question_text),
        lines=tuple(_conversation(request.messages, knowledge_text, own_name)),
        bot_said=tuple(bot_said),
        instructions=f"{rules}\n\n{knowledge_text}",
        own_name=own_name,
        tools=frozenset(request.tools),
        results=tuple(results),
    )


def recalled_lines(text: str, own_name: str) -> list[PromptLine]:
    """The lines that `recall` returns, or that stand in the prompt as recalled. An answer has the
    time of the line before it."""
    lines: list[PromptLine] = []
    for line in filter(None, (_line(one, own_name) for one in _rows(text))):
        when = line.when or (lines[-1].when if lines and line.own else "")
        if when:
            lines.append(replace(line, when=when, earlier=True))
    return lines


def remembered_facts(instructions: str) -> dict[str, Any]:
    """The facts kept in the prompt, those of the thread last."""
    person, thread = (_section(instructions, one) for one in (PERSON_MEMORY, THREAD_MEMORY))
    return {**json.loads(person or "{}"), **json.loads(thread or "{}")}


def now_of(instructions: str) -> datetime:
    """The local time of the question; the first of all times if the prompt gives none."""
    match = _ASKED_LINE.search(instructions) or _NOW.search(instructions)
    if not match:
        return datetime.min  # noqa: DTZ901
    try:
        zone = ZoneInfo(match[2] or "")
    except (ZoneInfoNotFoundError, ValueError):
        zone = None
    return datetime.fromisoformat(match[1]).replace(tzinfo=zone)


def _conversation(
    messages: Sequence[Message], knowledge: str, own_name: str
) -> Iterator[PromptLine]:
    """What was said before the question, oldest first. A recalled line comes after the last line of
    the window that has a time and is not later. A line without a time has the day of the last."""
    recalled_passages = recalled_lines(_section(knowledge, RECALLED), own_name) + _group_facts(
        knowledge
    )
    window = list(_window(messages, knowledge, own_name))
    times = ["", *(line.when for line in window)]
    placed_lines = [
        (max(when for when in times if when <= line.when), 1, line)
        for line in sorted(recalled_passages, key=lambda line: line.when)
    ]
    last_when, place = "", 2
    for line in window:
        last_when, place = (line.when, 0) if line.when else (last_when, place if line.own else 2)
        placed_lines.append((last_when, place, replace(line, when=line.when or last_when[:10])))
    return (line for *_, line in sorted(placed_lines, key=lambda one: one[:2]))


def _window(messages: Sequence[Message], knowledge: str, own_name: str) -> Iterator[PromptLine]:
    question_index = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=0)
    for message in messages[1:question_index]:
        text = _text(message)
        if message["role"] == "assistant" and text:
            yield PromptLine(text, own=True)
        elif message["role"] == "user":
            knowledge_text, spoken_text = without_knowledge(text)
            if knowledge_text and not spoken_text:  # the summary
                continue
            for one in _lines_of_people(spoken_text):
                words = without_material(original_text(one))
                yield _line(words, own_name) or PromptLine(words)
    for row in _rows(_section(knowledge, TRANSCRIPT)):
        yield _line(row, own_name) or PromptLine(row)


def _lines_of_people(text: str) -> list[str]:
    """The lines of a message, each with its further lines. Without labels all of it is one."""
    lines = _LINE_END.split(text)
    return lines if all(map(_LABELLED_LINE.match, lines)) else [text]


def _group_facts(knowledge: str) -> list[PromptLine]:
    """What people had the bot remember in the group."""
    rows = map(_FACT.fullmatch, _rows(_section(knowledge, GROUP_FACTS)))
    return [
        PromptLine(fact["value"], fact["who"], fact["when"], False, bool(fact["until"]), True)
        for fact in rows
        if fact
    ]


def _line(text: str, own_name: str) -> PromptLine | None:
    """“[2026-03-02 10:00 · current] Alice: words”, “Alice: words” or the words alone."""
    date_match = _DATED.fullmatch(text)
    when, marks, words = date_match.groups() if date_match else ("", "", text)
    reply = _REPLY.fullmatch(words)
    above, words = (reply["above"], reply["line"]) if reply else ("", words)
    who, words_said = label_and_words(words, own_name)
    own = who == _MYSELF or (bool(own_name) and who == own_name)
    return (
        PromptLine(words_said, who, when, own, is_replaced="earlier" in marks, above=above)
        if words_said
        else None
    )


def label_and_words(text: str, own_name: str) -> tuple[str, str]:
    """The label in front of what was said, if any, and the words without the bot's own mention."""
    if text.startswith(f"{_MYSELF}: "):
        return _MYSELF, text.removeprefix(f"{_MYSELF}: ")
    label_match = _LABELLED.fullmatch(text.strip())
    who, words = (label_match[1], label_match[2]) if label_match else ("", text.strip())
    return who, re.sub(rf"^(?:@{re.escape(own_name)}\s+)+", "", words) if own_name else words


def _rows(section: str) -> list[str]:
    """The lines at the margin, each with its further lines."""
    return (
        original_text(section.replace(f"\n{FOREIGN_MARGIN}", "\x00"))
        .replace("\x00", " ")
        .splitlines()
    )


def _section(instructions: str, heading: str) -> str:
    _, _, after = f"\n{instructions}".partition(f"\n{heading}\n")
    return after.partition("\n\n")[0]


def _files(question: str) -> tuple[tuple[str, str], ...]:
    labels = ((_FILE.match(label), text) for label, text in quotations(question))
    return tuple((label[1], text) for label, text in labels if label)


def _read_result(calls: dict[str, str], message: Message, request: Request) -> Returned:
    id, text = message["tool_call_id"], _text(message)
    unknown = ToolOutcome(original_text(text), ok=not text.startswith(ERROR))
    tool = calls.get(id, "")
    wording = request.tools[tool].wording if tool in request.tools else COMMON
    return Returned(tool, request.outcomes.get(id) or unknown, wording)


def _text(message: Message) -> str:
    """The words of a message, without its pictures."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")
