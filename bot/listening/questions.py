"""Whether a text asks, and what kind of answer it wants. Pure, English and Chinese."""

import re
from functools import lru_cache

from bot.listening.patterns import KEPT, ends_of, pattern

MAX_QUESTION_WORDS = 30
MAX_QUESTION_CHARACTERS = 200


@lru_cache(maxsize=KEPT)
def is_question(text: str) -> bool:
    """A short question: by its mark, a final 吗/呢/么, or a question word."""
    if len(text) > MAX_QUESTION_CHARACTERS or len(text.split()) > MAX_QUESTION_WORDS:
        return False
    if _QUESTION_THEN_WHY.match(text):
        return True
    if _STATEMENT_END.search(text):
        return bool(_ASKS_FIRST.match(text))
    return any(asks.search(text) for asks in (_QUESTION_END, _QUESTION_START, _QUESTION_WORD))


@lru_cache(maxsize=KEPT)
def last_question(text: str) -> str:
    """The questions that a text ends with, or nothing; “Anything else?” wants no answer."""
    own_words = _ASIDE.sub("", _ADDRESSED.sub("", ends_of(text.strip())))
    sentences = [part for part in _SENTENCE.findall(own_words) if part.strip()]
    questions: list[str] = []
    for last in map(str.strip, reversed(sentences)):
        asks = _QUESTION_END.search(last) or (not questions and _WANTS_TO_KNOW.search(last))
        if not asks or _ANYTHING_ELSE.search(last):
            break
        questions.append(last)
    return " ".join(reversed(questions))


def asks_for_a_name(question: str) -> bool:
    """Whether it is about who, so that a person's name answers it."""
    return bool(_WHO.search(question))


@lru_cache(maxsize=KEPT)
def asks_for_consent(question: str) -> bool:
    """Whether yes or no answers it."""
    plain_question = _IS_THAT_WHAT.sub("is that it", question)
    return bool(_YES_OR_NO.search(plain_question)) and not _ALTERNATIVES.search(plain_question)


def asks_to_choose(question: str) -> bool:
    """Whether it offers alternatives."""
    return bool(_ALTERNATIVES.search(question))


_QUESTION_END = re.compile(r"(?:[?？][\s!！~～)）]*|[吗呢么][\s。.!！~～…]*)$")
# A question, and then what makes one ask: are you sure? last year …
_QUESTION_THEN_WHY = re.compile(r"[^.。!！?？\n]{2,}[?？]\s*[^\s?？].*[^?？]$")
_QUESTION_START = re.compile(
    r"^(?:what|how|why|when|where|which|who|do|does|is|are|can|could|should|would|will"
    r"|since (?:when|which|what))\b",
    re.IGNORECASE,
)
_QUESTION_WORD = pattern(
    "怎么|什么|为何|如何|怎样|多久|多少|哪[里儿个些天一]|几[点个天号次]",
    "^谁.{1,8}的[?？]?$|可不可以|是否|有没有|([\u4e00-\u9fff])不\\1|(?<!还)没[?？]?$",
)
_ASKS_FIRST = re.compile("(?:哪[些个里儿]|为什么|为何|什么时候|多少|几[个天点号])[^!！…]*了$")
_STATEMENT_END = re.compile(r"(?:[了啦吧哈呀啊]|[还正]\S{0,12}呢)[\s。.!！~～…]*$|[…!！]$|\.\.\.$")

_ADDRESSED = re.compile(r"^(?:@\S+\s+)+")
_SENTENCE = re.compile(r"(?:[^.。!！?？\n]|\.(?=\S))+[.。!！?？]*[\s)）”\"]*")
_WANTS_TO_KNOW = pattern(
    r"\b(?:tell me (?:which|what|when|who|how|whether|if|your|the)|let me know (?:which|what|when"
    r"|who|how|whether)|please (?:choose|pick|confirm|specify|tell|paste|provide|describe"
    r"|(?:give|send|show) me|share (?:it|them) with me)|which one)\b",
    "请(?:把.{1,12})?(?:告诉|选择?|提供|确认|说明|补充|回复|问|[发贴传]给?我?)|告诉我(?:哪|什|是|要|您|你)|需要您?(?:确认|提供|补充)",
)
_ANYTHING_ELSE = pattern(
    r"\b(?:anything|something) else\b|\b(?:can|may) i (?:help|do)\b.{0,200}\b(?:else|more)\b",
    r"\bmore (?:help|questions)\b|还有(?:什么|其他|别的)|还需要(?:什么|其他|别的|我)",
)
_ASIDE = re.compile(r"[(（][^()（）]{1,60}[)）]\s*$")
_IS_THAT_WHAT = re.compile(
    r"\b(?:is|was|are|were) (?:that|this|it|these|those) (?:what|how|where|when|who|why|which)\b",
    re.IGNORECASE,
)
_YES_OR_NO = pattern(
    r"(?:^|[.,;:!] )(?:ready|mind|sure|agreed|confirm(?:ed)?|delete|remove|send|save|add|book|keep"
    r"|post|share|proceed|continue|go (?:ahead|on)|try)\b",
    "(?<![什怎那这多])么[?？。\\s]*$|吧[?？]\\s*$",
    "^(?:确认|继续|可以|没问题|同意|保存|提交|发送|删除|预订)[^?？]{0,8}[?？]\\s*$",
    r"(?:^|[,;:] )(?:so |and |then )?(?:should|shall|do|does|did|is|are|was|were|may|can|could|will"
    r"|would|have|has|want|need|ok|okay|right)\b",
    r"\b(?:want me to|would you like|do you want|correct|right|okay|ok)\b.{0,400}[?？]",
    "吗[?？。\\s]*$|是否|([\u4e00-\u9fff])不\\1|可不可以|有没有|好[吗么]|对吧|是吧",
)
_ALTERNATIVES = pattern(r"\b(?:which|what|when|where|who|how|or)\b|哪|什么|还是|几[点个]")
_WHO = pattern(r"\b(?:who|whom|whose)\b|谁|哪位")
