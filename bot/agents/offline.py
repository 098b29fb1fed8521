"""The model that answers without any key: rules over the prompt it is given, clearly labelled.

It sees exactly what a language model would see and can only know what stands there, so a
conversation that works offline shows that the memory works.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

LABEL_EN = "_(offline model: set OPENAI_API_KEY for a real one)_"
LABEL_ZH = "_（离线模型：设置 OPENAI_API_KEY 后由真正的模型回答）_"

_CJK = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-z0-9]+")
_REMEMBER = re.compile(
    r"^\W*(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?\b[\s:,]*(.+)"
    r"|^\W*(?:请)?(?:帮我)?(?:记住|记一下|记着|记下)[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(
    r"[?？吗呢么]\s*$"
    r"|^\W*(?:what|when|where|who|which|how|why|do|does|did|is|are|can|could)\b"
    r"|什么|几时|哪|谁|多少|怎么|何时",
    re.IGNORECASE,
)
_STOP = frozenset(
    "a an and are at be can did do does for have how i in is it its me my of on or our s t that the"
    " this to was we were what when where which who why will with you your remember please".split()
)


def offline_model() -> FunctionModel:
    """A PydanticAI model whose answers are made by `reply`."""
    return FunctionModel(_respond, model_name="offline")


async def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    said = list(_user_texts(messages))
    return ModelResponse(parts=[TextPart(reply(said[-1] if said else "", said[:-1]))])


def reply(question: str, earlier: Sequence[str]) -> str:
    """The offline answer to `question`, given what people said before, oldest first."""
    text = _spoken(question)
    chinese = bool(_CJK.search(text))
    answer = _remembered(text, chinese) or _recalled(text, earlier, chinese) or _small(chinese)
    return f"{answer}\n\n{LABEL_ZH if chinese else LABEL_EN}"


def _remembered(text: str, chinese: bool) -> str:
    match = _REMEMBER.match(text)
    if not match or _QUESTION.search(text):
        return ""
    fact = (match[1] or match[2]).strip().rstrip(".。!！")
    return f"好的，记住了：{fact}。" if chinese else f"Got it. I will remember: {fact}."


def _recalled(text: str, earlier: Sequence[str], chinese: bool) -> str:
    if not _QUESTION.search(text):
        return ""
    best = _closest(text, [_spoken(line) for line in earlier])
    if not best:
        return (
            "这里我还没有听到过相关的内容。" if chinese else "I have not been told that here yet."
        )
    match = _REMEMBER.match(best)
    fact = ((match[1] or match[2]) if match else best).strip().rstrip(".。!！")
    return f"你告诉过我：{fact}。" if chinese else f"You told me: {fact}."


def _small(chinese: bool) -> str:
    if chinese:
        return "收到。我会记住这段对话；试试“记住……”，然后再问我。"
    return "Noted. I keep this thread in mind; try “remember that …” and then ask me about it."


def _closest(question: str, candidates: Iterable[str]) -> str:
    """The statement that shares most words with the question; the latest of equals."""
    wanted = _words(question)
    best, best_score = "", 0
    for candidate in candidates:
        score = len(wanted & _words(candidate))
        if score and score >= best_score and not _QUESTION.search(candidate):
            best, best_score = candidate, score
    return best


def _words(text: str) -> set[str]:
    """Latin words without stop words, and pairs of neighbouring CJK characters."""
    latin = {word for word in _LATIN.findall(text.lower()) if word not in _STOP}
    runs = re.findall(r"[\u3400-\u9fff]+", text)
    return latin | {run[i : i + 2] for run in runs for i in range(len(run) - 1)}


def _spoken(line: str) -> str:
    """What was said, without the author's name and people addressed in front."""
    return re.sub(r"^(?:[^\s:：]{1,40}[:：]\s+)?(?:@\S+\s+)*", "", line.strip())


def _user_texts(messages: Sequence[ModelMessage]) -> Iterable[str]:
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                    yield part.content
