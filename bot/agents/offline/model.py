"""The model that answers without any key: rules over the prompt it is given, clearly labelled.

It sees exactly what a language model would see and can only know what stands there, so a
conversation that works offline shows that the memory works.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.model import Message, OnText, Request, Response, ToolCall
from bot.agents.offline import facts, notes
from bot.agents.offline.commands import Command, command
from bot.agents.offline.notes import Call
from bot.agents.prompt import MEMORY_AWAY, is_chinese
from bot.agents.quotation import without_material
from bot.agents.tools.tool import ERROR

LABEL_EN = "*(offline model: set OPENAI_API_KEY for a real one)*"
LABEL_ZH = "*（离线模型：设置 OPENAI_API_KEY 后由真正的模型回答）*"

_AWAY_EN = (
    "My memory cannot be reached right now, so I see only this message. What you write is kept and "
    "will be there later."
)
_AWAY_ZH = "我的记忆现在连不上，只能看到这一条消息。你写的内容会保留，之后就能用到。"

_WORD = re.compile(r"\S+\s*|\s+")
_SENTENCE = re.compile(r"^(?:Error: )?(.*?[.。!！])(?:\s|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool of this turn gave back."""

    tool: str
    text: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """A prompt as the rules read it; `returned` are this turn's tool results, in order."""

    question: str
    people_said: tuple[str, ...] = ()
    bot_said: tuple[str, ...] = ()
    instructions: str = ""
    tools: frozenset[str] = frozenset()
    returned: tuple[Returned, ...] = ()

    @property
    def last(self) -> Returned | None:
        return self.returned[-1] if self.returned else None

    @property
    def chinese(self) -> bool:
        return is_chinese(self.question)


class OfflineModel:
    """A model whose answers and tool calls are made by `next_step`."""

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        step = next_step(situation_of(request))
        if isinstance(step, Call):
            arguments = json.dumps(step.arguments, ensure_ascii=False)
            return Response(
                calls=(ToolCall(f"call_{len(request.messages)}", step.tool, arguments),)
            )
        if on_text is not None:
            for word in _WORD.finditer(step):
                await on_text(step[: word.end()])
        return Response(step)


def without_label(text: str) -> str:
    """An answer of this model without the line that says so."""
    return text.replace(LABEL_EN, "").replace(LABEL_ZH, "").rstrip()


def reply(question: str, earlier: Sequence[str]) -> str:
    """The answer to `question` without tools, given what people said before, oldest first."""
    step = next_step(Situation(facts.spoken(question), tuple(earlier)))
    return step if isinstance(step, str) else ""


def next_step(situation: Situation) -> Call | str:
    """The next tool to call, or the labelled answer."""
    asked = command(situation.question) if "create_note" in situation.tools else None
    step = _with_notes(situation, asked) if asked else _with_facts(situation)
    if isinstance(step, Call):
        return step
    return f"{step}\n\n{LABEL_ZH if situation.chinese else LABEL_EN}"


def situation_of(request: Request) -> Situation:
    """What stands in a prompt, sorted."""
    people: list[str] = []
    bot: list[str] = []
    called: dict[str, str] = {}
    returned: list[Returned] = []
    for message in request.messages[1:]:
        text = _text(message)
        match message["role"]:
            case "user":
                people.append(text)
                bot += [one.text for one in returned]
                returned.clear()
            case "assistant":
                bot.append(text)
                calls = message.get("tool_calls", ())
                called |= {call["id"]: call["function"]["name"] for call in calls}
            case "tool":
                tool = called.get(message["tool_call_id"], "")
                returned.append(Returned(tool, text, text.startswith(ERROR)))
    return Situation(
        question=facts.spoken(without_material(people[-1])) if people else "",
        people_said=tuple(people[:-1]),
        bot_said=tuple(bot),
        instructions=_text(request.messages[0]),
        tools=frozenset(request.tools),
        returned=tuple(returned),
    )


def _text(message: Message) -> str:
    """The words of a message, without its pictures."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _with_notes(situation: Situation, asked: Command) -> Call | str:
    last = situation.last
    if last and last.failed:
        return _not_done(last.text, situation.chinese)
    searched = bool(last and last.tool == "search_notes" and asked.kind != "find")
    known = notes.known_notes(situation.instructions, situation.bot_said)
    if last and searched:
        known = notes.found_notes(last.text)
    if last and not searched:
        others = [note.title for note in notes.meant(asked.ref, known)[1:4]]
        return notes.said(asked, last.tool, last.text, others if asked.ref else [])
    return notes.next_call(asked, known, searched=searched) or notes.unknown(asked, known)


def _with_facts(situation: Situation) -> Call | str:
    chinese, last = situation.chinese, situation.last
    if last and last.failed:
        return _not_done(last.text, chinese)
    if MEMORY_AWAY in situation.instructions:
        return _AWAY_ZH if chinese else _AWAY_EN
    if fact := facts.to_remember(situation.question):
        if "update_working_memory" in situation.tools and not last:
            patch = {facts.key(fact): fact}
            return Call("update_working_memory", {"scope": "thread", "patch": patch})
        return f"好的，记住了：{fact}。" if chinese else f"Got it. I will remember: {fact}."
    if not facts.is_question(situation.question):
        return _small(chinese)
    said = map(facts.spoken, situation.people_said)
    told = [*facts.kept(situation.instructions), *said]
    if known := facts.closest(situation.question, told):
        return f"你告诉过我：{known}。" if chinese else f"You told me: {known}."
    if "recall" in situation.tools and not last:
        return Call("recall", {"query": situation.question, "scope": "chat"})
    if last and last.tool == "recall" and "Do not guess" not in last.text:
        return f"我找到了之前的内容：\n\n{last.text}" if chinese else f"From before:\n\n{last.text}"
    return "这里我还没有听到过相关的内容。" if chinese else "I have not been told that here yet."


def _not_done(result: str, chinese: bool) -> str:
    """The first sentence of a failure; the rest speaks to the model."""
    match = _SENTENCE.match(result.strip())
    reason = match[1] if match else result
    return f"这次没有做成：{reason}" if chinese else f"That was not done: {reason}"


def _small(chinese: bool) -> str:
    if chinese:
        return "收到。我会记住这段对话；试试“记住……”，然后再问我。"
    return "Noted. I keep this thread in mind; try “remember that …” and then ask me about it."
