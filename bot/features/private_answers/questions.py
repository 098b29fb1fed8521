"""Tells questions from statements in a message, in English and Chinese. Pure.

Nothing is offered after a statement or an order. A question, a request to be told, and the bare
name of a thing (“the wifi password”) ask for something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.listening.requests import ends_of, has_han, is_question, requests
from bot.text.slash_commands import parse_command

_MESSAGE_SENTENCE = re.compile(r"(?:[^.。!！?？；;\n]|[.](?=\S))+[.。!！?？；;]*")
_ASKED_MESSAGE = re.compile(r"[?？][\s)）”\"'’~～!！]*$|[吗呢么][\s。.!！~～]*$")
_LEAD = (
    r"^\W*(?:(?:hi|hey|hello|please|pls|ok(?:ay)?|so|and|also|now|then|can you|could you|would you"
    r"|can|could|just|quickly)\b[\s,]*)*"
    "(?:[请麻烦帮我再先能可以一下你您]*)"
)
_TELL_ME = re.compile(
    "|".join((
        _LEAD + r"(?:tell|show|give|send|get) (?:me|us)\b",
        _LEAD + r"(?:find(?: out)?|look up|search|list|check|recall|summari[sz]e|describe)\b",
        _LEAD + r"(?:explain|which|whose|whether)\b",
        _LEAD + r"remind (?:me|us) (?:what|who|whom|whose|which|when|where|how|why|of|about)\b",
        r"\b(?:i|we) (?:wonder|forg[eo]t|(?:can['’]?t|cannot) (?:find|remember|recall))\b",
        r"\b(?:i|we) do(?: not|n['’]?t) (?:know|remember|recall)\b",
        r"\b(?:i|we) (?:need|want|would like|['’]d like) (?:the|my|our)\b",
        r"\b(?:i|we) (?:need|want|would like|['’]d like) to (?:know|see|find|hear|look up)\b",
        r"\bany ?(?:body|one) knows?\b|\blet (?:me|us) know\b",
        _LEAD + "(?:告诉我|告知|查|找|搜|看看|列出|列一下|说说|讲讲|介绍|总结|解释|回忆)",
        _LEAD + "给我[看讲说]|我(?:忘|不记得|记不得|想知道|不知道|找不到|想看)",
        "[\u4e00-\u9fff](?:发|给)(?:我|下|一下|我一下|个)$",
        "提醒我.{0,12}(?:是什么|是谁|哪|什么时候|怎么)",
    )),
    re.IGNORECASE,
)  # fmt: skip
_COURTESY = re.compile(
    r"^(?:(?:and|also|so|please|pls|hi|hey|hello|ok(?:ay)?|请问|请|麻烦)\b[\s,]*)+|^(?:请问|请|麻烦)+"
    r"|(?<![\s,])[\s,]+(?:please|pls|thanks)[\s.!]*$",
    re.IGNORECASE,
)
_ORDERS_TO_KEEP = re.compile(
    r"^\W*(?:please\s+)?(?:remember|note|keep in mind|forget)\b"
    r"|^\W*(?:请|帮我)?(?:记[住着下一]|忘[记掉])",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\b(?:is|are|was|were|am|be|been|has|have|had|do|did|does|done|will|would|shall|should|must|may"
    r"|might|can|could|got|went|came|said|says|told|sent|made|left|took|gave|set|put|let|goes"
    r"|needs?|wants?|i|we|you|he|she|they|thanks?|thx|hi|hello|hey|ok(?:ay)?|yes|no|please"
    r"|now|fyi|good|great|nice|well|sorry|welcome|done|sure|\w+ed|\w+['’](?:s|m|re|ve|ll|d))\b"
    r"|[:：=→]|^(?-i:[A-Z])\w+ (?:\w+ly )?[a-z]+s\b"
    "|(?<![晨例周早晚年大])会(?!议)"
    "|[是了在有要已把被请去来想说用定改换到吧啊呀哈嗯我你您他她它咱谢好对行]",
    re.IGNORECASE,
)
_MOST_WORDS, _MOST_CHARACTERS = 9, 14

# A text is compared in parts of so many characters.
PART_CHARS = 600
_SENTENCE = re.compile(r"(?:[^.。!！?？；;\n]|[.](?=\S))+[.。!！?？；;\n]*")
_QUESTION_END = re.compile(r"[?？][\s)）”\"'’~～!！]*$|(?:[吗呢么]|咋样?)[\s。.!！~～]*$")
_KEEPS = re.compile(
    r"^\W*(?:(?:can|could|would) you |please )*(?:remember|note|keep in mind)(?: that\b|\s*[:：])"
    r"|^\W*(?:do not|don['’]t)\b|^\W*(?:能|可以)?(?:请|麻烦)?(?:你)?(?:帮我)?记[住着下一]",
    re.IGNORECASE,
)

# “When the lift is stuck call …” tells, “when is the launch” asks.
_CLAUSE = re.compile(
    r"^(?:when|where) (?!is\b|are\b|was|were|do|did|does|can|could|will|would|shall|should|ha)"
    r"(?:\S+ ){4}",
    re.IGNORECASE,
)


def asks_for_information(message: str) -> bool:
    """Whether `message` asks to be told something: no command, statement or order."""
    text = ends_of(message.strip())
    if not text or parse_command(text):
        return False
    sentences = [part.strip() for part in _MESSAGE_SENTENCE.findall(text) if part.strip()]
    if any(_ASKED_MESSAGE.search(one) for one in sentences):
        return True
    wanting = [one for one in sentences if not _ORDERS_TO_KEEP.search(one)]
    bare = [_COURTESY.sub("", one) for one in wanting]
    if any(is_question(one) or _TELL_ME.search(one) for one in (*wanting, *bare)):
        return True
    return wanting == sentences and len(bare) == 1 and _only_names(bare[0])


def _only_names(text: str) -> bool:
    """A few words that say nothing of what they name."""
    if has_han(text):
        return len(text) <= _MOST_CHARACTERS and not _SAYS.search(text) and not requests(text)
    is_short = 1 < len(text.split()) <= _MOST_WORDS
    return is_short and not _SAYS.search(text) and not requests(text)


def statements_in(message: str) -> str:
    """The sentences of `message` that ask nothing; "" of a command."""
    if parse_command(message.strip()):
        return ""
    return "".join(one for one in _SENTENCE.findall(message) if not _asks(one.strip())).strip()


def questions_in(message: str) -> str:
    """The sentences of `message` that ask something; all of it where none is seen to."""
    sentences = " ".join(one.strip() for one in _SENTENCE.findall(message) if _asks(one.strip()))
    return sentences or message


def text_parts(text: str) -> Iterator[str]:
    """Neighbouring sentences of `text` together, each part beginning with the end of the one
    before."""
    part: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if part and sum(map(len, part)) + len(sentence) > PART_CHARS:
            yield "".join(part).strip()
            part = part[-1:] if len(part) > 1 else []
        part.append(sentence[:PART_CHARS])
    if "".join(part).strip():
        yield "".join(part).strip()


def _asks(sentence: str) -> bool:
    if _KEEPS.search(sentence) or (_CLAUSE.search(sentence) and not _QUESTION_END.search(sentence)):
        return False
    return bool(_QUESTION_END.search(sentence)) or is_question(sentence)
