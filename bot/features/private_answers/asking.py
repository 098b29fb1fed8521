"""Whether a message wants to know something, English and Chinese. Pure.

After a statement, or an order to do something, nobody is offered what they said elsewhere. What
asks is a question, a request to be told, or the bare name of a thing (“the wifi password”).
"""

from __future__ import annotations

import re

from bot.listening.patterns import ends_of, has_han
from bot.listening.questions import is_question
from bot.listening.requests import requests
from bot.text.slash_commands import parse

_SENTENCE = re.compile(r"(?:[^.。!！?？；;\n]|[.](?=\S))+[.。!！?？；;]*")
_ASKED = re.compile(r"[?？][\s)）”\"'’~～!！]*$|[吗呢么][\s。.!！~～]*$")
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
_KEEPS = re.compile(
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


def asks(message: str) -> bool:
    """Whether `message` asks to be told something: no command, statement or order."""
    text = ends_of(message.strip())
    if not text or parse(text):
        return False
    sentences = [part.strip() for part in _SENTENCE.findall(text) if part.strip()]
    if any(_ASKED.search(one) for one in sentences):
        return True
    wanting = [one for one in sentences if not _KEEPS.search(one)]
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
