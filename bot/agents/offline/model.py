"""Answers without a key, by rules over the prompt. The rules also serve models that take no tools.

It sees exactly what a language model would see and can only know what stands there, so a
conversation that works offline shows that the memory works.

The rules are those of the offline model. What they read without doubt is done, because the person's
own words asked for it; what may be meant otherwise waits for a button."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.agents.llm.model import Message, OnText, Request, Response
from bot.agents.offline import facts, notes, reminders
from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import NoteRequest, command
from bot.agents.offline.evidence import (
    Evidence,
    cited_statement,
    kept_fact_key,
    kept_texts,
    lines_about,
    names_whole_kept_fact,
    quotes,
    statements,
    statements_answering,
)
from bot.agents.offline.notes import Call, say
from bot.agents.offline.prompt_reading import (
    Situation,
    now_of,
    recalled_lines,
    remembered_facts,
    situation_of,
)
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.request_forms import completed, requests_in, respelled
from bot.agents.offline.small_talk import (
    asks_clock,
    asks_of_bot,
    asks_source,
    forgets_last,
    lead_in,
    question_about_itself,
    small_talk,
)
from bot.agents.prompts.prompt import MEMORY_AWAY
from bot.agents.tool_types import Toolbox, ToolCall
from bot.documents.document import links_in, without_links
from bot.feishu.markup import quotable
from bot.text.languages import join_list
from bot.text.slash_commands import words_to_forget
from bot.text.times import coming_text

__all__ = ["OfflineModel", "Situation", "next_step", "situation_of"]
_WORD = re.compile(r"\S+\s*|\s+")
_NEAREST = 2  # passages of which the question need not share a word
_MOST_LINES, _LINE_CHARS = 5, 300
_SEARCHES = frozenset({"recall"})  # the model finds in its prompt what these would find
_LONGEST_CERTAIN = 200
_SEVERAL_SENTENCES = re.compile(r"[.!?]\s+\S|[。！？；;]\s*\S|\n\s*\S")


@dataclass(frozen=True, slots=True)
class ToolWish:
    """The first call that the rules make for a question."""

    calls: tuple[ToolCall, ...]
    certain: bool


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
    own_lines = (line.text for line in reversed(situation.lines) if line.who == situation.author)
    question = completed(situation.question, next(own_lines, ""), _last_answer(situation))
    situation = replace(situation, question=question)
    talk, rest = lead_in(situation.question, situation.own_name)
    situation = replace(situation, question=rest)
    step, at_a_loss = _one_after_another(situation), say("only-read", situation.language)
    if step == at_a_loss and (question := respelled(rest)) != rest:
        step = _one_after_another(replace(situation, question=question))
    return say(talk, situation.language) if talk and step == at_a_loss else step


def _one_after_another(situation: Situation) -> Call | str:
    """The step for the first request that is not carried out yet, or all the answers."""
    requests = requests_in(situation.question)
    if len(requests) == 1:
        return _step(situation)
    answers: list[str] = []
    results = situation.results
    for request in requests:
        step = _step(replace(situation, question=request, results=()))
        taken = 0
        while isinstance(step, Call):
            if taken == len(results):
                return step
            taken += 1
            step = _step(replace(situation, question=request, results=results[:taken]))
        answers.append(step)
        results = results[taken:]
    return "\n\n".join(answers)


def _step(situation: Situation) -> Call | str:
    question, tools, language = situation.question, situation.tools, situation.language
    if MEMORY_AWAY in situation.instructions:
        return say("memory-away", language)
    note_request = command(question)
    if note_request and note_request.kind == "help":
        return say("guide", language)
    if "set_reminder" in tools and (wish := reminder_wish(question)):
        return reminders.next_reminder_step(
            wish, situation.results, situation.instructions, language
        )
    if call := _with_agenda(situation):
        return call
    if note_request and "create_note" in tools:
        return _with_notes(situation, note_request)
    if "read_document" in tools and (links := links_in(question)):
        return _from_document(situation, links[0].url)
    return _with_facts(situation)


def _with_agenda(situation: Situation) -> Call | str | None:
    """The tool for calendars or tasks that the question calls for, or what it returned."""
    before = next((line.text for line in reversed(situation.lines) if not line.own), "")
    call = agenda_call(situation.question, before)
    if call is None or call.tool not in situation.tools:
        return None
    return situation.last.tell(situation.language) if situation.last else call


def _with_notes(situation: Situation, note_request: NoteRequest) -> Call | str:
    known_notes = notes.known_notes(situation.instructions, situation.bot_said)
    if note_request.kind == "drop" and notes.is_several(note_request.ref):
        now, results = now_of(situation.instructions), situation.results
        step = notes.delete_several(note_request, results, known_notes, now)
        if step is not None:
            return step
        situation = replace(situation, results=results[1:])
    last = situation.last
    if note_request.kind == "append" and last and last.outcome.kind == "note-read":
        return notes.append_call(note_request, last)
    has_searched = bool(
        last and last.ok and last.tool == "search_notes" and note_request.kind != "find"
    )
    if last and not has_searched:
        return notes.note_answer(note_request, last, known_notes)
    if last:
        known_notes = notes.found_notes(last.outcome)
    next_call = notes.next_note_call(note_request, known_notes, has_searched=has_searched)
    return next_call or notes.note_question_back(
        note_request, known_notes, has_searched=has_searched
    )


def _with_facts(situation: Situation) -> Call | str:
    question, language, last = situation.question, situation.language, situation.last
    if last and not last.ok:
        return last.tell(language)
    if forgets_last(question):
        return _forget_last(situation)
    if key := question_about_itself(question):
        return say(key, language, name=situation.own_name or "Memo")
    if fact := facts.fact_to_remember(question):
        return _keep_fact(situation, fact, say("remembered", language, fact=quotable(fact)))
    if about := words_to_forget(question):
        return _forget_fact(situation, about)
    if value := facts.corrected_value(question):
        return _correct_fact(situation, value)
    if facts.asks_name(question) and (name := _name(situation)):
        return say("your-name", language, name=name)
    if answer := _of_itself(situation) or _small_talk(situation) or _from_files(situation):
        return answer
    if facts.asks_for(question):
        return _from_memory(situation)
    if fact := facts.fact_to_keep(question):
        return _keep_fact(situation, fact, say("remembered", language, fact=quotable(fact)))
    return _at_a_loss(situation, "only-read")


def _from_memory(situation: Situation) -> Call | str:
    """What people said about the matter of the question, else what recall finds."""
    question, last = situation.question, situation.last
    recalled_text = last.text if last and last.tool == "recall" else None
    candidates = list(
        _statements(situation)
        if recalled_text is None
        else statements(recalled_lines(recalled_text, situation.own_name))
    )
    if answers := statements_answering(question, candidates, situation.author):
        return _fact_answer(situation, "from-before", answers)
    query = {"query": question, "scope": "everywhere"}
    if recalled_text is None and "recall" in situation.tools:
        return Call("recall", query)
    if recalled_text is None or not situation.by_meaning:
        return _at_a_loss(situation, "only-read" if asks_of_bot(question) else "not-told")
    if len(situation.results) == 1:  # in a longer list the best do not stand first
        return Call("recall", {**query, "k": _NEAREST})
    if not candidates:
        return say("not-told", situation.language)
    return _fact_answer(situation, "nearest", tuple(candidates))


def _fact_answer(situation: Situation, intro: str, answers: tuple[Evidence, ...]) -> str:
    """The statements; below `intro` where they are several, or only near."""
    language, now = situation.language, now_of(situation.instructions)
    asker = situation.author or situation.person
    lines = [cited_statement(one, asker, now, language) for one in answers]
    if len(answers) == 1 and intro != "nearest":
        return lines[0]
    return say(intro, language, facts="\n".join(f"- {line}" for line in lines))


def _statements(situation: Situation) -> Iterator[Evidence]:
    """What people stated, the oldest first: what is kept comes before the conversation."""
    lines = situation.lines
    window_begins = next((n for n, line in enumerate(lines) if not line.earlier), len(lines))
    yield from statements(lines[:window_begins])
    teller = "" if situation.asks_for_self else situation.person
    yield from (Evidence(text, teller) for text in kept_texts(situation.instructions))
    yield from statements(lines[window_begins:])


def _keep_fact(situation: Situation, fact: str, receipt: str) -> Call | str:
    language, last = situation.language, situation.last
    if last:
        return receipt if last.outcome.kind == "facts-kept" else last.tell(language)
    if "update_working_memory" not in situation.tools:
        return say("cannot-keep", language)
    return Call("update_working_memory", {"scope": "thread", "patch": {facts.fact_key(fact): fact}})


def _forget_fact(situation: Situation, about: str) -> Call | str:
    last, name = situation.last, kept_fact_key(about, situation.instructions)
    if last:
        return last.tell(situation.language)
    if not name or "forget_fact" not in situation.tools:
        return say("not-here", situation.language)
    return Call("forget_fact", {"key": name})


def _forget_last(situation: Situation) -> Call | str:
    """Forgets the fact that the last answer told of."""
    if situation.last:
        return situation.last.tell(situation.language)
    answer, kept_facts = _last_answer(situation), remembered_facts(situation.instructions)
    told = [key for key, fact in kept_facts.items() if quotes(answer, str(fact))]
    if not told or "forget_fact" not in situation.tools:
        return say("forget-what", situation.language)
    return Call("forget_fact", {"key": told[-1]})


def _correct_fact(situation: Situation, value: str) -> Call | str:
    """Gives another value to what the bot answered last to the same person."""
    language, last = situation.language, situation.last
    name, old, fact = _correction(situation, value)
    if last:
        if last.outcome.kind != "facts-kept":
            return last.tell(language)
        if old and old != fact:
            return say("corrected-from", language, old=quotable(old), fact=quotable(fact))
        return say("corrected", language, value=quotable(fact or value))
    if not fact or "update_working_memory" not in situation.tools:
        return say("correct-what", language)
    return Call("update_working_memory", {"scope": "thread", "patch": {name: fact}})


def _correction(situation: Situation, value: str) -> tuple[str, str, str]:
    """The key of the corrected fact, what it was, and the whole of what it is now; "" where nothing
    can be meant."""
    stored_facts = remembered_facts(situation.instructions)
    kept_facts = {key: fact for key, fact in stored_facts.items() if isinstance(fact, str)}
    if facts.is_whole(value):
        return facts.fact_key(value), kept_facts.get(facts.fact_key(value), ""), value
    answer = _last_answer(situation)
    old_statements = [one.text for one in _statements(situation) if quotes(answer, one.text)]
    candidates = [(key, old) for key, old in kept_facts.items() if quotes(answer, old)] or [
        (facts.fact_key(facts.statement_with_value(old, value)), old) for old in old_statements
    ]
    name, old = (candidates or list(kept_facts.items()) or [("", "")])[-1]
    return name, old, facts.statement_with_value(old, value) if old else ""


def _last_answer(situation: Situation) -> str:
    """The bot's last answer to the person who asks."""
    to_them, answer = False, ""
    for line in situation.lines:
        if not line.own:
            to_them = not situation.author or line.who == situation.author
        elif to_them:
            answer = line.text
    return answer


def _of_itself(situation: Situation) -> str:
    """The time of day, and where the bot's last answer comes from."""
    question, language = situation.question, situation.language
    if asks_clock(question):
        now = now_of(situation.instructions)
        return say("time-now", language, when=coming_text(now, language, now=now))
    if not asks_source(question):
        return ""
    answer = _last_answer(situation)
    sources = tuple(one for one in _statements(situation) if quotes(answer, one.text))
    if not sources:
        return say("no-source", language)
    return _fact_answer(situation, "from-before", sources[-1:])


def _small_talk(situation: Situation) -> str:
    key = small_talk(situation.question)
    if key == "sent-file":
        return _at_a_loss(situation, key)
    return say(key, situation.language) if key else ""


def _from_files(situation: Situation) -> str:
    """The lines of the files that share words with the question."""
    for name, text in situation.files:
        if lines := lines_about(situation.question, name, text):
            line_list = "\n".join(f"- {line}" for line in lines)
            return say("from-file", situation.language, name=name, lines=line_list)
    return ""


def _from_document(situation: Situation, url: str) -> Call | str:
    """The lines of a document that share words with the question, else how it begins."""
    last, language = situation.last, situation.language
    if last is None:
        return Call("read_document", {"url": url})
    if not last.ok:
        return last.tell(language)
    heading, _, text = last.text.partition("\n\n")
    title = heading.partition("\n")[0].removeprefix("Title: ")
    lines = lines_about(without_links(situation.question), title, text) or text.splitlines()
    lines_said = [line.lstrip("# ")[:_LINE_CHARS] for line in lines if line.strip("# ")][
        :_MOST_LINES
    ]
    line_list = "\n".join(f"- {line}" for line in lines_said)
    return say("from-file", language, name=title, lines=line_list)


def _at_a_loss(situation: Situation, key: str) -> str:
    """The text of `key`, or what can be asked about the files that came with the question."""
    if not situation.files:
        return say(key, situation.language)
    names = join_list((name for name, _ in situation.files), situation.language)
    return say("file-read", situation.language, name=names)


def _name(situation: Situation) -> str:
    """The name the person gave last, of what they said themselves; what is kept comes first."""
    own = [line.text for line in situation.lines if not line.own and line.who == situation.author]
    told_before = [*own, *kept_texts(situation.instructions)]
    return next((name for line in reversed(told_before) if (name := facts.name_in(line))), "")


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
