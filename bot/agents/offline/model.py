"""The model that answers without any key: rules over the prompt it is given.

It sees exactly what a language model would see and can only know what stands there, so a
conversation that works offline shows that the memory works.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from bot.agents.llm.model import Message, OnText, Request, Response
from bot.agents.offline import agendas, facts, notes, reminders
from bot.agents.offline.commands import NoteRequest, command
from bot.agents.offline.notes import Call, Returned
from bot.agents.offline.small_talk import small_talk
from bot.agents.offline.texts import say
from bot.agents.prompts.prompt import MEMORY_AWAY, without_knowledge
from bot.agents.prompts.quotation import quotations, without_material
from bot.agents.tool_types.outcomes import COMMON, ToolOutcome
from bot.agents.tool_types.tool import ERROR, ToolCall
from bot.documents.links import links_in, without_links
from bot.text.languages import Language, join_list, language_said, last_language
from memory.foreign_text import as_written

_WORD = re.compile(r"\S+\s*|\s+")
_NEAREST = 2  # passages of which the question need not share a word
_MOST_LINES, _LINE_CHARS = 5, 300
_FILE = re.compile(r"Text of the (?:file|document) \"(.+?)\"")


@dataclass(frozen=True, slots=True)
class Situation:
    """A prompt as the rules read it; `returned` are this turn's tool results, in order, and
    `instructions` hold what is known for the answer too.

    `author` is the name in front of the question, where people are told apart; `own_name` the
    bot's. `files` are name and text of those that came with the question. `by_meaning`: recall
    finds what shares no word with it, too.
    """

    question: str
    people_said: tuple[str, ...] = ()
    bot_said: tuple[str, ...] = ()
    instructions: str = ""
    tools: frozenset[str] = frozenset()
    returned: tuple[Returned, ...] = ()
    author: str = ""
    own_name: str = ""
    files: tuple[tuple[str, str], ...] = ()
    by_meaning: bool = False

    @property
    def last(self) -> Returned | None:
        return self.returned[-1] if self.returned else None

    @property
    def language(self) -> Language:
        said = [facts.spoken(line, self.own_name) for line in self.people_said]
        return language_said(self.question) or last_language(said) or "en"


class OfflineModel:
    """A model whose answers and tool calls are made by `next_step`; `by_meaning` as there."""

    def __init__(self, *, by_meaning: bool = False) -> None:
        self._by_meaning = by_meaning

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        step = next_step(replace(situation_of(request), by_meaning=self._by_meaning))
        if isinstance(step, Call):
            arguments = json.dumps(step.arguments, ensure_ascii=False)
            return Response(
                calls=(ToolCall(f"call_{len(request.messages)}", step.tool, arguments),)
            )
        if on_text is not None:
            for word in _WORD.finditer(step):
                await on_text(step[: word.end()])
        return Response(step)


def next_step(situation: Situation) -> Call | str:
    """The next tool to call, or the answer."""
    if MEMORY_AWAY in situation.instructions:
        return say("memory-away", situation.language)
    asked = command(situation.question)
    if asked and asked.kind == "help":
        return say("guide", situation.language)
    wish = reminders.wish(situation.question) if "set_reminder" in situation.tools else None
    if wish:
        returned, told_of = situation.returned, situation.instructions
        return reminders.next_step(wish, returned, told_of, situation.language)
    if call := _with_agenda(situation):
        return call
    if asked and "create_note" in situation.tools:
        return _with_notes(situation, asked)
    if "read_document" in situation.tools and (links := links_in(situation.question)):
        return _from_document(situation, links[0].url)
    return _with_facts(situation)


def situation_of(request: Request) -> Situation:
    """What stands in a prompt, sorted."""
    people: list[str] = []
    bot: list[str] = []
    called: dict[str, str] = {}
    returned: list[Returned] = []
    rules, known = _text(request.messages[0]), ""
    for message in request.messages[1:]:
        text = _text(message)
        match message["role"]:
            case "user":
                knowledge, text = without_knowledge(text)
                known = knowledge or known
                people.append(as_written(text))
                bot += [one.text for one in returned]
                returned.clear()
            case "assistant":
                bot.append(text)
                calls = message.get("tool_calls", ())
                called |= {call["id"]: call["function"]["name"] for call in calls}
            case "tool":
                id = message["tool_call_id"]
                outcome = request.outcomes.get(id) or _read(text)
                returned.append(_returned(called.get(id, ""), outcome, request))
    own_name = facts.bot_name(rules)
    return Situation(
        question=facts.spoken(without_material(people[-1]), own_name) if people else "",
        author=facts.author(people[-1]) if people else "",
        files=_files(people[-1]) if people else (),
        people_said=tuple(people[:-1]),
        bot_said=tuple(bot),
        instructions=f"{rules}\n\n{known}",
        own_name=own_name,
        tools=frozenset(request.tools),
        returned=tuple(returned),
    )


def _files(asked: str) -> tuple[tuple[str, str], ...]:
    labelled = ((_FILE.match(label), text) for label, text in quotations(asked))
    return tuple((label[1], text) for label, text in labelled if label)


def _read(text: str) -> ToolOutcome:
    """A result of which nothing is known but its message."""
    return ToolOutcome(as_written(text), ok=not text.startswith(ERROR))


def _returned(tool: str, outcome: ToolOutcome, request: Request) -> Returned:
    return Returned(tool, outcome, request.tools[tool].wording if tool in request.tools else COMMON)


def _text(message: Message) -> str:
    """The words of a message, without its pictures."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _with_agenda(situation: Situation) -> Call | str | None:
    """The tool for calendars or tasks that the question calls for, or what came of it."""
    said_before = situation.people_said[-1] if situation.people_said else ""
    call = agendas.wish(situation.question, facts.spoken(said_before, situation.own_name))
    if call is None or call.tool not in situation.tools:
        return None
    return situation.last.told(situation.language) if situation.last else call


def _with_notes(situation: Situation, asked: NoteRequest) -> Call | str:
    last = situation.last
    searched = bool(last and last.ok and last.tool == "search_notes" and asked.kind != "find")
    known = notes.known_notes(situation.instructions, situation.bot_said)
    if last and not searched:
        return notes.said(asked, last, known)
    if last:
        known = notes.found_notes(last.outcome)
    next_call = notes.next_call(asked, known, searched=searched)
    return next_call or notes.unknown(asked, known, searched=searched)


def _with_facts(situation: Situation) -> Call | str:
    language, last = situation.language, situation.last
    if last and not last.ok:
        return last.told(situation.language)
    if fact := facts.to_remember(situation.question):
        return _remembered(situation, fact)
    if about := facts.to_forget(situation.question):
        return _forgotten(situation, about)
    if value := facts.corrected(situation.question):
        return _corrected(situation, value)
    if facts.asks_name(situation.question) and (name := _name(situation)):
        return say("your-name", language, name=name)
    if answer := _small_talk(situation) or _from_files(situation):
        return answer
    if not facts.is_question(situation.question):
        return _at_a_loss(situation, "only-read")
    said = (facts.spoken(line, situation.own_name) for line in situation.people_said)
    told_before = [*facts.kept(situation.instructions), *said]
    if known := facts.closest(situation.question, told_before):
        return say("remembered-fact", language, fact=known)
    if "recall" in situation.tools and not last:
        return Call("recall", {"query": situation.question, "scope": "everywhere"})
    if last and last.tool == "recall":
        return _from_before(situation, last)
    return _at_a_loss(situation, "not-told")


def _from_before(situation: Situation, found: Returned) -> Call | str:
    """What recall found that shares a word with the question. Where meaning counts, too, and there
    is none, the best passages alone are asked for: in `found` they do not stand best first."""
    question, own_name = situation.question, situation.own_name
    key, lines = "from-before", facts.told_before(question, found.text, own_name)
    if not lines and situation.by_meaning:
        if len(situation.returned) == 1:
            nearest = {"query": question, "scope": "everywhere", "k": _NEAREST}
            return Call("recall", nearest)
        key, lines = "nearest", facts.told(found.text, own_name)
    if not lines:
        return _at_a_loss(situation, "not-told")
    listed = "\n".join(f"- {line}" for line in lines)
    return say(key, situation.language, facts=listed)


def _small_talk(situation: Situation) -> str:
    key = small_talk(situation.question)
    if key == "sent-file":
        return _at_a_loss(situation, key)
    return say(key, situation.language) if key else ""


def _from_files(situation: Situation) -> str:
    """The lines of the files that share words with the question."""
    for name, text in situation.files:
        if lines := facts.lines_about(situation.question, name, text):
            listed = "\n".join(f"- {line}" for line in lines)
            return say("from-file", situation.language, name=name, lines=listed)
    return ""


def _from_document(situation: Situation, url: str) -> Call | str:
    """The lines of a document that share words with the question, else how it begins."""
    last, language = situation.last, situation.language
    if last is None:
        return Call("read_document", {"url": url})
    if not last.ok:
        return last.told(language)
    heading, _, text = last.text.partition("\n\n")
    title = heading.partition("\n")[0].removeprefix("Title: ")
    asked = without_links(situation.question)
    lines = facts.lines_about(asked, title, text) or text.splitlines()
    said = [line.lstrip("# ")[:_LINE_CHARS] for line in lines if line.strip("# ")][:_MOST_LINES]
    listed = "\n".join(f"- {line}" for line in said)
    return say("from-file", language, name=title, lines=listed)


def _at_a_loss(situation: Situation, key: str) -> str:
    """The text of `key`, or what can be asked about the files that came with the question."""
    if not situation.files:
        return say(key, situation.language)
    names = join_list((name for name, _ in situation.files), situation.language)
    return say("file-read", situation.language, name=names)


def _remembered(situation: Situation, fact: str) -> Call | str:
    language, last = situation.language, situation.last
    if not last and "update_working_memory" in situation.tools:
        patch = {facts.key(fact): fact}
        return Call("update_working_memory", {"scope": "thread", "patch": patch})
    if not last:
        return say("cannot-keep", language)
    if last.outcome.kind != "facts-kept":
        return last.told(language)
    return say("remembered", language, fact=fact)


def _forgotten(situation: Situation, about: str) -> Call | str:
    last, name = situation.last, facts.key_of(about, situation.instructions)
    if last:
        return last.told(situation.language)
    if not name or "forget_fact" not in situation.tools:
        return say("not-here", situation.language)
    return Call("forget_fact", {"key": name})


def _corrected(situation: Situation, value: str) -> Call | str:
    """What was kept last has another value now."""
    language, last = situation.language, situation.last
    if last and last.outcome.kind != "facts-kept":
        return last.told(language)
    if last:
        return say("corrected", language, value=value)
    known = facts.held(situation.instructions)
    if not known or "update_working_memory" not in situation.tools:
        return say("only-read", language)
    name, old = list(known.items())[-1]
    patch = {name: facts.replaced(old, value) if isinstance(old, str) else value}
    return Call("update_working_memory", {"scope": "thread", "patch": patch})


def _name(situation: Situation) -> str:
    """The name the person gave last, of what they said themselves; what is kept comes first."""
    own = (line for line in situation.people_said if facts.author(line) == situation.author)
    stated = (facts.spoken(line, situation.own_name) for line in own)
    told_before = [*stated, *facts.kept(situation.instructions)]
    return next((name for line in reversed(told_before) if (name := facts.name_in(line))), "")
