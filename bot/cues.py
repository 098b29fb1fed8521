"""Does a message that addresses nobody go on with what the bot said? Pure, English and Chinese.

The bot prefers silence: a message counts as a follow-up only when its wording is a question, a
continuation or a request, when nothing marks it as talk among people, and when the people who
spoke since the bot's last word were still speaking with the bot. What is neither clear one way nor
the other is `UNCLEAR`, for the judge model if there is one.
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


def _others_talk(author: str, exchange: Exchange) -> bool:
    said_by_others = ((who, text) for who, text in exchange.since if who != author)
    with_the_bot = (Cue.FOLLOW_UP, Cue.CLOSING)
    return any(_wording(text, who, exchange) not in with_the_bot for who, text in said_by_others)


def _wording(text: str, author: str, exchange: Exchange) -> Cue:
    words = _URL.sub(" ", text).strip()
    rest = _without_courtesies(words)
    if not rest:
        return Cue.CLOSING
    if _calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    if _names_a_person(rest, exchange.names) or _SIDE_TALK.search(rest):
        return Cue.SIDE_TALK
    if _LEAVING.search(rest):
        return Cue.UNCLEAR
    asked_before = exchange.asker in (None, author)
    clear = _goes_on(rest) if asked_before else _joins_in(rest, exchange)
    return Cue.FOLLOW_UP if clear else Cue.UNCLEAR


def _goes_on(text: str) -> bool:
    """Whether the person who was answered asks again, goes on, or wants the answer reworked."""
    return is_question(text) or continues(text) or bool(_REQUEST.match(text))


def _joins_in(text: str, exchange: Exchange) -> bool:
    """Whether somebody else does, which needs a link to what was said. “You” may be anybody."""
    if _POLITE_REQUEST.match(text):
        return _is_linked(text, exchange)
    if _YOU.search(text):
        return False
    return continues(text) or (is_question(text) and _is_linked(text, exchange))


def is_question(text: str) -> bool:
    """A short question: by its mark, a final 吗/呢/么, or a question word."""
    if len(text) > MAX_QUESTION_CHARACTERS or len(text.split()) > MAX_QUESTION_WORDS:
        return False
    if _STATEMENT_END.search(text):
        return False
    return any(pattern.search(text) for pattern in (_QUESTION_END, _QUESTION_START, _QUESTION_WORD))


def continues(text: str) -> bool:
    """A continuation (and …, what about …, 那…, 还有…) that asks or only names a thing."""
    opener = _CONTINUATION.match(text)
    if not opener:
        return False
    rest = text[opener.end() :].strip()
    return is_question(text) or (_is_ellipsis(rest) and not _STATEMENT.search(rest))


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
    return text.startswith("@") or any(
        _calls(text, name) or (start.startswith(name) and not _LATIN_NEXT.match(start, len(name)))
        for name in called
    )


def _called(name: str) -> Iterable[str]:
    """The name, and of a Chinese name of three the given name."""
    if len(name) > 1:
        yield name
    if len(name) == 3 and _HAN.fullmatch(name[0]):
        yield name[1:]


def _is_linked(text: str, exchange: Exchange) -> bool:
    """Whether the text points back, or shares a word of weight with the question or answer."""
    shared = _topics(text) & _topics(f"{exchange.asked}\n{exchange.said}")
    return bool(shared or _POINTS_BACK.search(text))


def _topics(text: str) -> frozenset[str]:
    folded = text.casefold()
    latin = (word for word in _LATIN.findall(folded) if word not in _STOP_WORDS)
    han = (run[i : i + 2] for run in _HAN_RUN.findall(folded) for i in range(len(run) - 1))
    return frozenset((*(word[:6] for word in latin), *han))


def _any(*alternatives: str) -> str:
    return "(?:" + "|".join(alternatives) + ")"


_URL = re.compile(r"https?://\S+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile(r"[a-z][a-z0-9_]{2,}|\d+(?:\.\d+)+")
# Characters of grammar end a run, so that bigrams are made of words of weight only.
_HAN_RUN = re.compile(
    "[^\\W0-9a-z_的了吗呢么是我你他她它们在有也都还就不这那哪什怎为谁几很再和与或要会能可以]+"
)
_LATIN_NEXT = re.compile("[A-Za-z0-9_]")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you your our with that this have has had was were will would can "
        "could should does did from they them what when where which who whom why how about into "
        "any all some there here then than its get got let use just now out one two too also very "
        "say said going want need make please still memo",
    )
)

_COURTESY = re.compile(
    _any(
        _any(
            r"thank(?:s| you)(?: so much| a lot)?",
            "thx",
            "ty",
            "ok(?:ay)?",
            "got it",
            "cool",
            "nice",
            "great",
            "perfect",
            "awesome",
            "good",
            "lol",
            "(?:ha){2,}",
            "yes",
            "yep",
            "sure",
            "np",
            "will do",
            "done",
            "hm+",
            "ah+",
            "oh+",
        )
        + r"(?![\w'’])",
        "谢谢[你您]?",
        "多谢",
        "感谢",
        "谢[啦了]",
        "好[的滴嘞]",
        "收到",
        "明白了?",
        "了解",
        "知道了",
        "辛苦[了啦]?",
        "不错",
        "没问题",
        "哈{2,}",
        r"[好行嗯哦可赞啊](?=[\s,，。.!！~～…]|$)",
        "嗯+",
        "可以(?=[\\s,，。.!！~～…]|$)",
        r"[^\w\s@`\"'“”‘’(（<《/?？]+",
        r"\s+",
    ),
    re.IGNORECASE,
)
_CONTINUATION = re.compile(
    _any(
        r"(?:and|also|what about|how about|what if|why|but|so|then|or)\b",
        "那么?",
        "还有",
        "另外",
        "为什么",
        "但是?",
        "如果",
        "要是",
        "怎么",
        "然后",
        "以及",
        "可是",
        "不过",
    )
    + r"[\s,，]*",
    re.IGNORECASE,
)
_FILLER = re.compile(
    _any(r"(?:hey|hi|hello|and|but|so)\b", "那", "哎", "嗨") + r"[\s,，]*", re.IGNORECASE
)
_QUESTION_END = re.compile(r"(?:[?？][\s!！~～)）]*|[吗呢么][\s。.!！~～…]*)$")
_QUESTION_START = re.compile(
    r"^(?:what|how|why|when|where|which|does|is|can|could|should|would)\b", re.IGNORECASE
)
_QUESTION_WORDS = 30
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


def _others_talk(author: str, exchange: Exchange) -> bool:
    said_by_others = ((who, text) for who, text in exchange.since if who != author)
    with_the_bot = (Cue.FOLLOW_UP, Cue.CLOSING)
    return any(_wording(text, who, exchange) not in with_the_bot for who, text in said_by_others)


def _wording(text: str, author: str, exchange: Exchange) -> Cue:
    words = _URL.sub(" ", text).strip()
    rest = _without_courtesies(words)
    if not rest:
        return Cue.CLOSING
    if _calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    if _names_a_person(rest, exchange.names) or _SIDE_TALK.search(rest):
        return Cue.SIDE_TALK
    if _LEAVING.search(rest):
        return Cue.UNCLEAR
    asked_before = exchange.asker in (None, author)
    clear = _goes_on(rest) if asked_before else _joins_in(rest, exchange)
    return Cue.FOLLOW_UP if clear else Cue.UNCLEAR


def _goes_on(text: str) -> bool:
    """Whether the person who was answered asks again, goes on, or wants the answer reworked."""
    return is_question(text) or continues(text) or bool(_REQUEST.match(text))


def _joins_in(text: str, exchange: Exchange) -> bool:
    """Whether somebody else does, which needs a link to what was said. “You” may be anybody."""
    if _POLITE_REQUEST.match(text):
        return _is_linked(text, exchange)
    if _YOU.search(text):
        return False
    return continues(text) or (is_question(text) and _is_linked(text, exchange))


def is_question(text: str) -> bool:
    """A short question: by its mark, a final 吗/呢/么, or a question word."""
    if len(text) > MAX_QUESTION_CHARACTERS or len(text.split()) > MAX_QUESTION_WORDS:
        return False
    if _STATEMENT_END.search(text):
        return False
    return any(pattern.search(text) for pattern in (_QUESTION_END, _QUESTION_START, _QUESTION_WORD))


def continues(text: str) -> bool:
    """A continuation (and …, what about …, 那…, 还有…) that asks or only names a thing."""
    opener = _CONTINUATION.match(text)
    if not opener:
        return False
    rest = text[opener.end() :].strip()
    return is_question(text) or (_is_ellipsis(rest) and not _STATEMENT.search(rest))


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
    return text.startswith("@") or any(
        _calls(text, name) or (start.startswith(name) and not _LATIN_NEXT.match(start, len(name)))
        for name in called
    )


def _called(name: str) -> Iterable[str]:
    """The name, and of a Chinese name of three the given name."""
    if len(name) > 1:
        yield name
    if len(name) == 3 and _HAN.fullmatch(name[0]):
        yield name[1:]


def _is_linked(text: str, exchange: Exchange) -> bool:
    """Whether the text points back, or shares a word of weight with the question or answer."""
    shared = _topics(text) & _topics(f"{exchange.asked}\n{exchange.said}")
    return bool(shared or _POINTS_BACK.search(text))


def _topics(text: str) -> frozenset[str]:
    folded = text.casefold()
    latin = (word for word in _LATIN.findall(folded) if word not in _STOP_WORDS)
    han = (run[i : i + 2] for run in _HAN_RUN.findall(folded) for i in range(len(run) - 1))
    return frozenset((*(word[:6] for word in latin), *han))


def _any(*alternatives: str) -> str:
    return "(?:" + "|".join(alternatives) + ")"


_URL = re.compile(r"https?://\S+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile(r"[a-z][a-z0-9_]{2,}|\d+(?:\.\d+)+")
# Characters of grammar end a run, so that bigrams are made of words of weight only.
_HAN_RUN = re.compile(
    "[^\\W0-9a-z_的了吗呢么是我你他她它们在有也都还就不这那哪什怎为谁几很再和与或要会能可以]+"
)
_LATIN_NEXT = re.compile("[A-Za-z0-9_]")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you your our with that this have has had was were will would can "
        "could should does did from they them what when where which who whom why how about into "
        "any all some there here then than its get got let use just now out one two too also very "
        "say said going want need make please still memo",
    )
)

_COURTESY = re.compile(
    _any(
        _any(
            r"thank(?:s| you)(?: so much| a lot)?",
            "thx",
            "ty",
            "ok(?:ay)?",
            "got it",
            "cool",
            "nice",
            "great",
            "perfect",
            "awesome",
            "good",
            "lol",
            "(?:ha){2,}",
            "yes",
            "yep",
            "sure",
            "np",
            "will do",
            "done",
            "hm+",
            "ah+",
            "oh+",
        )
        + r"(?![\w'’])",
        "谢谢[你您]?",
        "多谢",
        "感谢",
        "谢[啦了]",
        "好[的滴嘞]",
        "收到",
        "明白了?",
        "了解",
        "知道了",
        "辛苦[了啦]?",
        "不错",
        "没问题",
        "哈{2,}",
        r"[好行嗯哦可赞啊](?=[\s,，。.!！~～…]|$)",
        "嗯+",
        "可以(?=[\\s,，。.!！~～…]|$)",
        r"[^\w\s@`\"'“”‘’(（<《/?？]+",
        r"\s+",
    ),
    re.IGNORECASE,
)
_CONTINUATION = re.compile(
    _any(
        r"(?:and|also|what about|how about|what if|why|but|so|then|or)\b",
        "那么?",
        "还有",
        "另外",
        "为什么",
        "但是?",
        "如果",
        "要是",
        "怎么",
        "然后",
        "以及",
        "可是",
        "不过",
    )
    + r"[\s,，]*",
    re.IGNORECASE,
)
_FILLER = re.compile(
    _any(r"(?:hey|hi|hello|and|but|so)\b", "那", "哎", "嗨") + r"[\s,，]*", re.IGNORECASE
)
_QUESTION_END = re.compile(r"(?:[?？][\s!！~～)）]*|[吗呢么][\s。.!！~～…]*)$")
_QUESTION_START = re.compile(
    r"(?:what|how|why|when|where|which|does|is|can|could|should|would)\b(?! a nice| cool)",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(
    "怎么|什么|为何|如何|怎样|多久|多少|哪[里儿个些天一]|几[点个天号次]|能不能|可不可以|是不是|有没有|是否|要不要"
)
_STATEMENT_END = re.compile(r"(?<![么])[了啦吧哈呀啊][\s。.!！~～…]*$|[…!！]$|\.\.\.$")
_STATEMENT = re.compile(
    _any(
        r"\b(?:i|i['’]\w+|we|we['’]\w+|he|she|they|it['’]s|that['’]s|this is|me|my|our|done)\b",
        "[我咱]",
        "[了吧哈啦的呀][。.!！~～]*$",
        "已经",
        "就这样",
        "今天|明天|昨天|下午|晚上",
    ),
    re.IGNORECASE,
)
_REWORK = _any(
    r"(?:make|turn|put|change) (?:it|that|this|them)\b",
    "(?:add|remove|rename|translate|shorten|rewrite|rephrase|summari[sz]e|expand|explain)\\b",
    "(?:elaborate|continue|go on|list|(?:show|give|tell) me|try again)\\b",
    "(?:much |a bit |even )?(?:shorter|longer|simpler|more detail)",
    "as (?:a |an )?(?:bullet|list|table|number)",
    "in (?:english|chinese|one sentence|plain)",
)
_REWORK_ZH = _any(
    "再[短长详细简单说加写给来举列具正]",
    "翻译|缩短|精简|简化|展开|扩写|润色|详细|具体|语气|继续|接着[说写]|解释|总结",
    "换[成个种]|改[成写]|举个?例|列[出成个]|加[上个一条]|[去删]掉",
    "用.{1,6}[列写说表]",
    "把.{1,20}(?:去掉|改成|换成|删|加上|翻译)",
)
_REQUEST = re.compile(
    _any(
        r"(?:(?:please|now|no|and|also|then|instead)[\s,]+)*" + _REWORK,
        "(?:请|麻烦|帮我|现在)*" + _REWORK_ZH,
    ),
    re.IGNORECASE,
)
_POLITE_REQUEST = re.compile(
    _any(
        "(?:can|could|would) you (?:please |also )?" + _REWORK + r"(?!.*\byour\b)",
        "[你您]?(?:能不能|能|可以|可不可以)(?:再|也)?" + _REWORK_ZH + "(?!.*[你您])",
    ),
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:it|that|this|these|those|there|also|too|instead|else)\b|[这那]个|[这那]样|它|也",
    re.IGNORECASE,
)
_YOU = re.compile(r"\byou(?:['’]\w+|r)?\b|[你您]", re.IGNORECASE)
_LEAVING = re.compile(r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b|先走|先撤|先下了", re.I)
_SIDE_TALK = re.compile(
    _any(
        # To the group, not to the bot
        r"\b(?:anyone|anybody|everyone|everybody|guys|folks|y['’]?all)\b",
        r"\bwho(?: wants|['’]s (?:in|up))\b",
        "大家|各位|你们|咱们|有人|有谁|谁[要来去想有]",
        # To one colleague
        r"\b(?:did|have|were|will|are) you\b(?! sure| certain)",
        r"\byour (?:side|end|turn|weekend|day|team|place)\b",
        "[你您](?:吃|今天|明天|昨天|周末|那边|那里|在哪|下班|去[吗不]|来[吗不]|到了|看了|做完|写完|弄完)",
        # Small talk
        r"\b(?:lunch|dinner|breakfast|coffee|beers?|weekend|vacation|birthday)\b",
        "吃饭|午饭|晚饭|早饭|奶茶|咖啡|夜宵|周末|下班|团建|team building",
        # No answer is wanted
        r"\bwho (?:knows|cares|would have)\b|\bwhy (?:me|bother|oh why)\b|\banyways?\?*$",
        r"^(?:oh |wait,? )?(?:really|seriously|no way|right|you kidding)\s*[?!？！]+",
        r"\b(?:isn|wasn|aren)['’]t (?:that|this|it) (?:just|so|great|lovely|funny|wonderful)\b",
        "谁(?:知道|能想|料到)|怎么又|怎么可能|真的假的|不会吧|难道|何必|搞什么|什么鬼",
        "^这?不[就是很挺].{0,8}[吗嘛][?？]?$|^这不",
    ),
    re.IGNORECASE,
)
