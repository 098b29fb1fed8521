"""What people read in place of an answer, in the language of the question. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.text.languages import Language
from memory.foreign_text import quoted
from memory.text import has_han

CUT_SHORT = {
    "zh": "这次我没能在限定的步骤或时间内完成回答，请把问题拆小一点再问一次。",
    "en": "I could not finish this answer within my limits. Please ask again, in smaller steps.",
}
DECLINED = {
    "zh": "模型拒绝回答这个问题。换一种问法也许可以。",
    "en": "The model declined to answer this. Asking in other words may help.",
}
_STOPPED_FIRST = {
    "zh": "已按要求停止，还没有写出回答。",
    "en": "Stopped on request, before there was an answer.",
}
_CONFIRM_BELOW = {
    "zh": "请先确认，我再执行：",
    "en": "Please confirm this first:",
}
# Part of the text until there was a line of its own for it below the answer.
_END_MARKS = (
    "（回答到了模型的长度上限，到此为止。可以让我接着说。）",
    "(The answer reached the model's length limit and ends here. Ask me to go on.)",
    "（按要求停止，回答到此为止。）",
    "(Stopped on request; the answer ends here.)",
)
_DONE = {"zh": "已经完成的操作：", "en": "Done so far: "}


def cut_short(question: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """An honest sentence, with the names of the steps that were done."""
    language = _language(question)
    done = [call["name"] for call in calls if call["ok"]]
    return "\n\n".join([CUT_SHORT[language], *_steps(done, language)])


def stopped_first(done: Sequence[str], language: Language) -> str:
    """That it was stopped before there was an answer, and the steps done, by name."""
    return "\n\n".join([_STOPPED_FIRST[language], *_steps(done, language)])


def _steps(done: Sequence[str], language: str) -> list[str]:
    return [_DONE[language] + ", ".join(dict.fromkeys(done))] if done else []


def declined(question: str, said: str) -> str:
    """That the model declined, and what it said about it, if anything."""
    sentence = DECLINED[_language(question)]
    return f"{sentence}\n\n{quoted(said)}" if said else sentence


def confirm_below(question: str) -> str:
    """What is said where the model only wants something done."""
    return _CONFIRM_BELOW[_language(question)]


def without_end_mark(text: str) -> str:
    """An answer as earlier versions stored it, without the line on why it had ended."""
    for mark in _END_MARKS:
        text = text.replace(f"\n\n{mark}", "")
    return text


def _language(question: str) -> str:
    return "zh" if has_han(question) else "en"
