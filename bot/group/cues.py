"""Does a message that addresses nobody go on with what the bot said? Pure, English and Chinese.

The bot prefers silence: a message is a follow-up only when its wording is a question, a
continuation or a request to rework the answer, when nothing marks it as talk among people, and
when those who spoke since the bot's last word were speaking with the bot. Somebody who was not
answered must also take up what was said. What is clear neither way is `UNCLEAR`, for the judge
model if there is one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_QUESTION_WORDS = 30
MAX_QUESTION_CHARACTERS = 200
MAX_ELLIPSIS_WORDS = 5
MAX_ELLIPSIS_CHARACTERS = 12


class Cue(StrEnum):
    """How a message reads."""

    FOLLOW_UP = "follow_up"
    CLOSING = "closing"
    SIDE_TALK = "side_talk"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Exchange:
    """The bot's last word and what surrounds it.

    `asker` is the id of the person it answered, None if unknown; `since` what people wrote after
    it, as author id and text; `names` those of the other people around.
    """

    said: str = ""
    asked: str = ""
    asker: str | None = None
    since: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    bot_name: str = ""


NO_EXCHANGE = Exchange()


def looks_like_followup(text: str, author: str = "", exchange: Exchange = NO_EXCHANGE) -> bool:
    """True when `author` most likely speaks to the bot with `text`."""
    return cue_of(text, author, exchange) is Cue.FOLLOW_UP


def cue_of(text: str, author: str, exchange: Exchange) -> Cue:
    """How `text` reads after `exchange`: a follow-up must not fall into talk of other people."""
    cue = _wording(text, author, exchange)
    if cue is Cue.FOLLOW_UP and _others_talk(author, exchange):
        return Cue.UNCLEAR
    return cue


def is_question(text: str) -> bool:
    """A short question: by its mark, a final 吗/呢/么, or a question word."""
    if len(text) > MAX_QUESTION_CHARACTERS or len(text.split()) > MAX_QUESTION_WORDS:
        return False
    if _STATEMENT_END.search(text):
        return False
    return any(asks.search(text) for asks in (_QUESTION_END, _QUESTION_START, _QUESTION_WORD))


def continues(text: str) -> bool:
    """A continuation that asks (but why …?, 那…呢), or only names one more thing (and PyPy)."""
    if not _CONTINUATION.match(text):
        return False
    more = _ONE_MORE.match(text)
    rest = text[more.end() :].strip() if more else ""
    return is_question(text) or (_is_ellipsis(rest) and not _STATEMENT.search(rest))


def _others_talk(author: str, exchange: Exchange) -> bool:
    said_by_others = ((who, text) for who, text in exchange.since if who != author)
    with_the_bot = (Cue.FOLLOW_UP, Cue.CLOSING)
    return any(_wording(text, who, exchange) not in with_the_bot for who, text in said_by_others)


def _wording(text: str, author: str, exchange: Exchange) -> Cue:
    rest = _without_courtesies(_URL.sub(" ", text).strip())
    if not rest or (_THANKS.search(rest) and not is_question(rest)):
        return Cue.CLOSING
    if _calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    if _names_a_person(rest, exchange.names) or _SIDE_TALK.search(rest):
        return Cue.SIDE_TALK
    was_answered = exchange.asker in (None, author)
    clear = _goes_on(rest) if was_answered else _joins_in(rest, exchange)
    return Cue.FOLLOW_UP if clear else Cue.UNCLEAR


def _goes_on(text: str) -> bool:
    """Whether the person who was answered asks again, goes on, or wants the answer reworked."""
    return is_question(text) or continues(text) or bool(_REQUEST.match(text))


def _joins_in(text: str, exchange: Exchange) -> bool:
    """Whether somebody else does, which takes a link to what was said. “You” may be anybody."""
    if _YOU.search(text) and not _POLITE_REQUEST.match(text):
        return False
    return continues(text) or (is_question(text) and _is_linked(text, exchange))


def _is_linked(text: str, exchange: Exchange) -> bool:
    """Whether the text points back, or shares a word of weight with the question or answer."""
    shared = _topics(text) & _topics(f"{exchange.asked}\n{exchange.said}")
    return bool(shared or _POINTS_BACK.search(text))


def _topics(text: str) -> frozenset[str]:
    folded = text.casefold()
    latin = (word for word in _LATIN_WORD.findall(folded) if word not in _STOP_WORDS)
    han = (run[i : i + 2] for run in _HAN_RUN.findall(folded) for i in range(len(run) - 1))
    return frozenset((*(word[:6] for word in latin), *han))


def _is_ellipsis(text: str) -> bool:
    return 0 < len(text.split()) <= MAX_ELLIPSIS_WORDS and (
        not _HAN.search(text) or len(text) <= MAX_ELLIPSIS_CHARACTERS
    )


def _without_courtesies(text: str) -> str:
    position = 0
    while courtesy := _COURTESY.match(text, position):
        position = courtesy.end()
    return text[position:].strip()


def _calls(text: str, name: str) -> bool:
    """“Memo, …”, “hey Memo: …” or “…, Memo?”"""
    if not name:
        return False
    start = _FILLER.sub("", text, count=1)
    end = text.rstrip(" ?？!！.。~")
    called = start.startswith(name) and start[len(name) :].lstrip()[:1] in (",", "，", ":", "：")
    return called or end.endswith((f", {name}", f"，{name}", f",{name}"))


def _names_a_person(text: str, names: Sequence[str]) -> bool:
    """Whether the text begins with a colleague's name or calls one."""
    start = _FILLER.sub("", text, count=1)
    called = [name for full in names for name in _called(full)]
    return bool(_CALL.match(start)) or any(
        _calls(text, name) or (start.startswith(name) and not _LATIN.match(start, len(name)))
        for name in called
    )


def _called(name: str) -> Iterable[str]:
    """The name, and of a Chinese name of three the given name."""
    if len(name) > 1:
        yield name
    if len(name) == 3 and _HAN.fullmatch(name[0]):
        yield name[1:]


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile(_any(*alternatives), re.IGNORECASE)


_URL = re.compile(r"https?://\S+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z0-9_]")
_LATIN_WORD = re.compile(r"[a-z][a-z0-9_]{2,}|\d+(?:\.\d+)+")
# Characters of grammar end a run, so that bigrams are made of words of weight.
_GRAMMAR = "的了吗呢么是我你他她它们在有也都还就不这那哪什怎为谁几很再和与或要会能可以"
_HAN_RUN = re.compile(rf"[^\W0-9a-z_{_GRAMMAR}]+")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you your our with that this have has had was were will would can "
        "could should does did from they them what when where which who whom why how about into "
        "any all some there here then than its get got let use just now out one two too also very "
        "say said going want need make please still",
    )
)

# Courtesies stand alone (“thanks!”) or before what matters (“ok, and how …?”).
_COURTESY = _pattern(
    r"(?:thank(?:s| you)(?: so much| a lot)?|thx|ty|np|cool|nice|great|perfect|awesome|good)\b",
    r"(?:ok(?:ay)?|got it|yes|yep|sure|will do|done|lol|(?:ha){2,}|hm+|ah+|oh+)(?![\w'’])",
    "谢谢[你您]?|多谢|感谢|谢[啦了]|收到|明白了?|了解|知道了|辛苦[了啦]?|不错|没问题",
    "好[的滴嘞]|哈{2,}|嗯+",
    r"(?:可以|[好行哦可赞啊])(?=[\s,，。.!！~～…]|$)",
    r"[^\w\s@`\"'“”‘’(（<《/?？]+|\s+",
)
_THANKS = _pattern(r"\b(?:thanks|thank you|thx)\b|谢谢|多谢|感谢|谢[啦了]")
_CONTINUATION = _pattern(
    r"(?:and|also|what about|how about|what if|why|but|so|then|or)\b",
    "那么?|还有|另外|为什么|但是?|如果|要是|怎么|然后|以及|可是|不过",
)
_ONE_MORE = _pattern(r"(?:and|also|what about|how about|or)\b[\s,]*|那么?|还有|另外|以及")
# “@…”, “Mei, …” or “小美，你…”: somebody is called, known or not.
_CALL = re.compile(
    "@|(?!(?:Also|And|But|So|Then|Well|Actually|Wait|No|Yes|Right|Sorry|Please|First|Otherwise"
    "|However|Still|Anyway|Instead|Again|Alternatively|Maybe|Now|If)\\b)[A-Z][a-z]+,\\s"
    "|[\u4e00-\u9fff]{2,3}[,，]\\s*[你您]"
)
_FILLER = re.compile(r"^(?:(?:hey|hi|hello|and|but|so)\b|[那哎嗨])[\s,，]*", re.IGNORECASE)

_QUESTION_END = re.compile(r"(?:[?？][\s!！~～)）]*|[吗呢么][\s。.!！~～…]*)$")
_QUESTION_START = re.compile(
    r"^(?:what|how|why|when|where|which|who|do|does|is|are|can|could|should|would|will)\b",
    re.IGNORECASE,
)
_QUESTION_WORD = _pattern(
    "怎么|什么|为何|如何|怎样|多久|多少|哪[里儿个些天一]|几[点个天号次]",
    "可不可以|是否|有没有|([\u4e00-\u9fff])不\\1|(?<!还)没[?？]?$",
)
_STATEMENT_END = re.compile(r"(?:[了啦吧哈呀啊]|[还正]\S{0,12}呢)[\s。.!！~～…]*$|[…!！]$|\.\.\.$")
_STATEMENT = _pattern(
    r"\b(?:i|we|he|she|they|me|my|our|done|(?:i|we|it|that)['’]\w+)\b",
    r"\b(?:is|are|was|were|has|have|had|just|already|still)\b|!$",
    "[我咱]|已经|就这样|今天|明天|昨天|下午|晚上",
    "[了吧哈啦的呀][。.!！~～]*$",
)

_REWORK = _any(
    r"(?:make|turn|put|change) (?:it|that|this|them)\b",
    r"(?:add|remove|rename|translate|shorten|rewrite|rephrase|summari[sz]e|expand|explain)\b",
    r"(?:elaborate|continue|go on|list|(?:show|give|tell|write) me|try again)\b",
    r"(?:move|extend|replace|include|write|draft|compare|swap|split|sort|group|use|set|more)\b",
    "(?:much |a bit |even )?(?:shorter|longer|simpler|more detail)",
    "as (?:an? )?(?:bullet|list|table|number)",
    "in (?:english|chinese|one sentence|plain)",
)
_REWORK_ZH = _any(
    "再[短长详细简单说加写给来举列具正]",
    "翻译|缩短|精简|简化|展开|扩写|润色|详细|具体|语气|继续|接着[说写]|解释|总结",
    "换[成个种]|[改写做整]成|改写|举个?例|列[出成个]|加[上个一条]|[去删]掉",
    "多[来给加写举]|来[个几]|补[上充一]|[延挪调]到|[写发]给?我|给我",
    "用.{1,6}[列写说表]|(?:直接)?把",
)
_REQUEST = _pattern(
    rf"(?:(?:please|now|no|and|also|then|instead)[\s,]+)*(?:{_REWORK}|send me\b)",
    f"(?:请|麻烦|帮我|现在)*{_REWORK_ZH}",
)
_POLITE_REQUEST = _pattern(
    rf"(?:can|could|would) you (?:please |also )?{_REWORK}(?!.*\byour\b)",
    f"[你您]?(?:能不能|能|可以|可不可以)(?:再|也)?{_REWORK_ZH}(?!.*[你您])",
)
_YOU = _pattern(r"\byou(?:['’]\w+|rs?)?\b", "[你您]")
_POINTS_BACK = _pattern(
    r"\b(?:it|that|this|these|those|there|also|too|instead|else)\b", "[这那][个样]|它|也"
)

_SIDE_TALK = _pattern(
    # To the group
    r"\b(?:anyone|anybody|everyone|everybody|guys|folks|y['’]?all)\b",
    r"\bwho(?: wants|['’]s (?:in|up))\b",
    "大家|各位|你们|咱们|有人|有谁|谁[要来去想有]",
    # To one colleague
    r"\b(?:did|have|were|will|are) you\b(?! sure| certain)",
    r"\byour (?:side|end|turn|weekend|day|team|place)\b",
    "[你您](?:吃|今天|明天|昨天|周末|那[边里]|在哪|下班|[去来][吗不]|到了|看了|[做写弄]完)",
    # Comings, goings and small talk
    r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b|先走|先撤|先下了",
    r"\b(?:lunch|dinner|breakfast|coffee|beers?|weekend|vacation|birthday|team building)\b",
    "吃饭|午饭|晚饭|早饭|奶茶|咖啡|夜宵|周末|下班|团建",
    # No answer is wanted
    r"\bwho (?:knows|cares|would have)\b|\bwhy (?:me|bother|oh why)\b|\banyways?\?*$",
    r"\bwhy (?:do|did|am|would) i (?:even|ever|still|always)\b",
    r"^(?:really|seriously|no way|right|you kidding)\s*[?!？！]+",
    r"\b(?:isn|wasn|aren)['’]t (?:that|this|it) (?:just|so|great|lovely|funny|wonderful)\b",
    "谁(?:知道|能想|料到)|怎么[又老总]|怎么可能|真的假的|不会吧|难道|何必|搞什么|什么鬼|^这不",
)
