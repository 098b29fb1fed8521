"""Decides whether what a person said elsewhere answers a question better than the group's answer
does.

Of what they said only yes or no leaves this module. It has to be about the question, at least as
much as what the group was told, and to hold a detail of the requested kind that neither the answer
nor the group has. Everything but `helps_more` and `recalled_in_group` is pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from bot.features.private_answers.questions import (
    PART_CHARS,
    questions_in,
    statements_in,
    text_parts,
)
from bot.listening.requests import has_han, pattern
from bot.text.times import TIME_PATTERN, read_time
from memory.dates import (
    COUNT,
    HAN_NUMBER,
    MONTH,
    WEEKDAY,
    WEEKDAY_ZH,
    read_month,
    read_number,
    read_weekday,
)
from memory.recall.passages import Passage
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.private import ComparedTerms, PrivateSource, PrivateStore

_MOST_PARTS = 16
_FROM_GROUP = 5

# How much of a question has to stand in a text, and how much of its telling words.
_ENOUGH = 0.55
_ENOUGH_TELLING = 0.5

# What a word of a question is worth, besides if it is telling, besides if it is a name.
_WORTH, _TELLING, _NAME_WORTH = 1.0, 1.0, 1.0
_LIGHT = frozenset("am use need want get got com mak tak put look find giv keep".split())
_ASKING = re.compile("[谁哪几吗怎什]")
_MANY = 3  # so many everyday words say something, too
_SAME_FROM = 4  # so many first characters make two Latin words forms of one
_BEFORE_HAN = r"([\w ]{{2,6}}){}"
_BEFORE_LATIN = r"\b(\w[\w-]+)(?:['’]s)?\s+{}"
_DEFINITION = r"{}\w*\s*(?:[:：=]|\b(?:is|are|was|were)\b|[是为在有])"

DetailKind = Literal["time", "amount", "person", "place", "thing"]
_QUARTER = re.compile(rf"\bQ([1-4])\b|第?({HAN_NUMBER}|[1-4])季度", re.IGNORECASE)
_DAY = re.compile(rf"\b{WEEKDAY}s?\b|\b(?:Mon|Tue|Wed|Thu|Fri)\b|{WEEKDAY_ZH}", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?=[A-Z])(?i:{MONTH})\b|({COUNT})月")

# Each begins where a run of characters does: so its time grows with the text and not its square.
_CODE = re.compile(
    r"(?<![\w.@#/:·-])(?:[\w.@#/:·-]*\d[\w.@#/:-]*|[\w.-]+@[\w.-]+|https?://\S+)", re.ASCII
)
_DIGIT_GROUPS = re.compile(r"(?<=\d)[,，](?=\d{3}(?!\d))|(?<=\d{3}) (?=\d{3,4}(?!\d))")
_DECIMAL = re.compile(r"(?<=\d)[,，](?=\d{1,2}(?!\d))")
_ZEROS = re.compile(r"(\.\d*?)0+$")
_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_CODE_CHARS = 100
_HAN_COUNT = re.compile(
    r"([零一二三四五六七八九十百千万两]{1,12})(?=[个年月号日天周小点楼层条元块万千百折套间台辆次成倍])"
    r"|([一二三四五六七八九十两]{1,4}[百千万][零一二三四五六七八九十两]{0,12})"
)
_ENGLISH_COUNT = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|hundred|thousand|million)\b",
    re.IGNORECASE,
)
_SOON = re.compile(
    r"\b(?:tomorrow|tonight|noon|midnight|weekend|next (?:week|month|year|quarter)|mornings?"
    r"|afternoons?|evenings?|daily|weekly|monthly)\b"
    r"|明[天早晚年]|后天|今[晚早]|下{1,4}个?[周月年]|月[底初]|年[底初]|季度末|周末|早上|中午|下午|晚上|傍晚|每[天周月年]",
    re.IGNORECASE,
)
_NAME_PATTERN = re.compile(r"(?<![\w-])[A-Z][\wÀ-ʯ]*[a-zA-ZÀ-ʯ](?:['’]s?)?(?![\w-])", re.ASCII)
_NAME_WITHIN = re.compile(
    rf"(?<=[\w,’'] ){_NAME_PATTERN.pattern}|(?<=[\u4e00-\u9fff]){_NAME_PATTERN.pattern}"
    rf"|{_NAME_PATTERN.pattern}(?= ?[\u4e00-\u9fff])"
)
_SOMEWHERE = pattern(
    r"\b(?:in|at|on|to|behind|under|near|beside|opposite|above|below|inside|outside|next to|between"
    r"|room|floor|hall|gate|street|building)\b",
    "[在到放往去]|[楼层室厅馆院区路街门旁边里]",
)
_HAN_NAME = re.compile(
    "(?<![上下本每这一两几])(?:欧阳|司马|上官|诸葛|[赵钱孙李周吴郑王冯陈卫蒋沈韩杨朱秦许何吕张孔曹严华金魏陶姜谢邹苏潘葛范彭鲁韦马苗方俞"
    "任袁柳唐薛雷贺汤罗郝安常于傅齐康伍余顾孟黄萧尹姚邵汪毛戴宋庞熊纪项祝董梁杜阮蓝季贾江童郭梅林钟徐邱骆高夏蔡田"
    "樊胡霍万管卢莫丁邓洪程陆翁段侯武刘龙叶黎白易廖文曾游])[\u4e00-\u9fff]{1,2}"
    "|[老小大阿][\u4e00-\u9fff]|[\u4e00-\u9fff](?:总|姐|哥|工|老师|经理|主任)"
)
_NICKNAME = re.compile(
    "(?!小[时组心区结程]|老[师板婆公]|大[家小概约]|阿姨)(?:[老小阿][\u4e00-\u9fff]|[\u4e00-\u9fff](?:总(?![是结数共部])|姐|哥))"
)
_KIND_CUES: Mapping[DetailKind, re.Pattern[str]] = {
    "person": pattern(
        r"\bwho(?:m|se)?\b(?! (?:knows|remembers|can tell))",
        "谁(?!知道|记得|能|有空|清楚)|哪位|哪些人|(?:对接|负责|联系)人(?!的)",
    ),
    "amount": pattern(
        r"\bhow (?:much|many)\b|\bwhat does .{1,40} cost\b",
        r"\b(?:price|budget|fee|limit|salary) (?:of|for|is)\b",
        "(?<![码号话])(?<![码号话]是)多少|几[个台套块份人]",
    ),
    "time": pattern(
        r"\bwhen\b|\bwhat (?:time|day|date)\b|\bwhich (?:day|date|week)\b|\bdeadline\b",
        r"\bhow (?:long|often)\b|什么时[候间]|何时|哪一?天|几[点号月时]|多久|周几|(?:时间|日期)是",
    ),
    "place": pattern(r"\bwhere\b|哪[里儿]|在哪|什么地方"),
}

# Something to be made, and what everybody knows or can work out.
_NO_MEMORY = pattern(
    r"(?:^|\b(?:you|please|and)\s)\W*(?:translate|write|draft|rephrase|suggest|invent)\b",
    r"\b(?:an? )?(?:good|nice|better|nicer) (?:name|title|word|way|slogan)\b|\bideas? for\b",
    r"\bstands? for\b|\bwhat does .{1,30} mean\b|\bthe meaning of\b",
    r"\bhow (?:do|does|would) (?:you|i|we|one) (?:say|spell|pronounce|write)\b",
    r"\bhow many \w+ (?:are|is|does|do|has|have|make|in) (?:in )?an? \w+",
    "一(?:年|个?月|天|周|小时|分钟|公斤|公里|米|吨)有?(?:多少|几)",
    "翻译[成下一]|^翻译|[起取想]个?.{0,4}(?:名字?|标题|口号)|[写编拟]一?[个封篇段份句首条]|润色|用.{1,3}[语文](?:怎么|如何)",
    r"缩写|是什么意思|怎么[读念拼]|\d\s*(?:%|％|[-+*/×÷]|加|减|乘|除以?)\s*(?:of\s*)?\d|\d\s*的\s*\d",
)
_OF_BOT = pattern(r"\byour\b|\b(?:are|were|do|did|have) you\b", "你(?!们|说|知道|觉得)")


async def helps_more(
    private: PrivateStore,
    place: AgentMemoryContext,
    question: str,
    *,
    asked_in: str,
    answer: str = "",
    group_passages: tuple[Passage, ...] = (),
) -> bool:
    """Whether what the person whose own `place` this is told elsewhere says more to `question` than
    the group's `answer`, and than what was told there (`group_passages`)."""
    sources = await private.sources(place, question, asked_in=asked_in)
    parts = [part for one in sources for part in _told_parts(one)][:_MOST_PARTS]
    if not parts:
        return False
    question_part = questions_in(question)[:PART_CHARS]
    group = [text[:PART_CHARS] for one in group_passages if (text := statements_in(one.question))]
    texts = [question_part, *group, *parts]
    terms = await private.terms(place, texts)
    weighed_texts = [WeighedText(text, term) for text, term in zip(texts, terms, strict=True)]
    of_group = weighed_texts[1 : 1 + len(group)]
    return says_more(weighed_texts[0], weighed_texts[1 + len(group) :], answer, of_group)


def _told_parts(source: PrivateSource) -> list[str]:
    if source.kind == "said":
        return list(text_parts(statements_in(source.told)))
    return list(text_parts(source.told.replace("_", " ") if source.kind == "fact" else source.told))


async def recalled_in_group(
    store: MemoryStore, group: AgentMemoryContext, question: str, *, but: str, now: datetime
) -> tuple[Passage, ...]:
    """What the group was told that is about the question; of its turn `but` nothing."""
    passages = await store.find(group, question, now=now, scope="chat", k=_FROM_GROUP + 1)
    return tuple(one for one in passages if one.turn_id != but)[:_FROM_GROUP]


@dataclass(frozen=True, slots=True)
class WeighedText:
    """A text with its terms."""

    text: str
    terms: ComparedTerms

    @property
    def words(self) -> frozenset[str]:
        return self.terms.telling | self.terms.everyday

    def has(self, word: str) -> bool:
        """Whether the word stands in it, in any form; a Chinese one anywhere."""
        if has_han(word):
            return word in self.text
        return any(_is_same(word, other) for other in self.words)


def says_more(
    question: WeighedText,
    private_texts: Sequence[WeighedText],
    answer: str = "",
    group_texts: Sequence[WeighedText] = (),
) -> bool:
    """Whether any of `private_texts` says more to `question` than `answer`, which was made from
    `group_texts`."""
    if not needs_memory(question.text):
        return False
    if is_about_bot(question.text) and not question.terms.telling:
        return False
    least = max([_ENOUGH, *(relevance_score(question, one) for one in group_texts)])
    known_texts = [question, *group_texts]
    return any(
        relevance_score(question, one) >= least and _has_more(question, one, known_texts, answer)
        for one in private_texts
    )


def relevance_score(question: WeighedText, text: WeighedText) -> float:
    """How much of `question` stands in `text`, 0 to 1; 0 where the text is about another matter."""
    people = nicknames(question.text)
    telling = frozenset(w for w in question.terms.telling if not _ASKING.search(w)) | people
    question_words = telling | (question.terms.everyday - _LIGHT)
    shares = {word: _share(word, question, text) for word in question_words}
    shared_words = frozenset(word for word, share in shares.items() if share == 1)
    if sum(shares[word] for word in telling) < _ENOUGH_TELLING * len(telling):
        return 0.0
    if not _agrees(question, text) or _is_of_another(question, text, shared_words):
        return 0.0
    if question_words == shared_words and not _is_said_of(question, question_words, text):
        return 0.0
    names = people | names_within(question.text)
    worth = {word: _WORTH + (_TELLING if word in telling else 0) for word in question_words}
    of_names = _NAME_WORTH * len(names)  # without them the text would not agree
    whole = sum(worth.values()) + of_names
    return (sum(worth[w] * shares[w] for w in question_words) + of_names) / whole if whole else 0.0


def _share(word: str, question: WeighedText, text: WeighedText) -> float:
    """How much of the word stands in the text: a half of a pair of Chinese characters whose first
    one ends a word there (仪收 of 投影仪收在哪里)."""
    if text.has(word):
        return 1.0
    if len(word) == 2 and has_han(word):
        before = question.text[max(0, question.text.find(word) - 1) :][:2]
        return 0.5 if before[1:] == word[0] and has_han(before[0]) and before in text.text else 0.0
    return 0.0


def _agrees(question: WeighedText, text: WeighedText) -> bool:
    """Whether the text has every day, number and name of the question."""
    lower = text.text.lower()
    names = names_within(question.text) | nicknames(question.text)
    return details_in(question.text) <= details_in(text.text) and all(
        name in lower for name in names
    )


def _is_said_of(question: WeighedText, question_words: frozenset[str], text: WeighedText) -> bool:
    """Of a question of one word (“wifi?”) whether the text says what that is."""
    return (
        len(question_words) != 1
        or wanted_detail(question.text) != "thing"
        or any(
            re.search(_DEFINITION.format(re.escape(word)), text.text, re.IGNORECASE)
            for word in question_words
        )
    )


def _is_of_another(question: WeighedText, text: WeighedText, shared_words: Iterable[str]) -> bool:
    """Whether, before a word that they share, both name what the other does not: 上海办公室 and
    北京办公室."""
    return any(
        (asked_subject := _named_before(word, question))
        and (told_subject := _named_before(word, text))
        and (asked_subject & question.terms.telling or told_subject & text.terms.telling)
        and not any(map(text.has, asked_subject))
        and not any(map(question.has, told_subject))
        for word in shared_words
    )


def _named_before(word: str, text: WeighedText) -> frozenset[str]:
    """The words that stand directly before `word`."""
    before = _BEFORE_HAN if has_han(word) else _BEFORE_LATIN
    matches = re.findall(before.format(re.escape(word)), text.text.lower())
    return frozenset(one for one in text.words if any(one in words for words in matches))


def _has_more(
    question: WeighedText,
    private_text: WeighedText,
    known_texts: Sequence[WeighedText],
    answer: str,
) -> bool:
    """Whether it has a detail of the kind that was asked for and that is not known."""
    known_words = "\n".join([answer, *(one.text for one in known_texts)])
    lower = known_words.lower()
    new = {
        word for word in private_text.terms.telling
        if word not in lower and not any(one.has(word) for one in known_texts)
    }  # fmt: skip
    kind = wanted_detail(question.text)
    if (
        kind in ("thing", "place")
        and len([word for word in private_text.words if word not in lower]) >= _MANY
    ):
        return True
    return has_new_detail(kind, private_text.text, known_words, frozenset(new))


def _is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (one.isascii() and other.isascii() and one.isalpha() and other.isalpha()):
        return False
    least = min(len(one), len(other))
    return least >= _SAME_FROM and one[:least] == other[:least]


def wanted_detail(question: str) -> DetailKind:
    """The kind of detail that answers `question`."""
    return next((kind for kind, cue in _KIND_CUES.items() if cue.search(question)), "thing")


def needs_memory(question: str) -> bool:
    """Whether what people said may answer it: not where something is to be made, or worked out."""
    return not _NO_MEMORY.search(question)


def is_about_bot(question: str) -> bool:
    """Whether it speaks of who is asked: of itself it was told nothing."""
    return bool(_OF_BOT.search(question))


def details_in(text: str) -> frozenset[str]:
    """Times of day, days, months and numbers: `4:00` for 16:00, “4 pm” and 下午四点."""
    text = _DECIMAL.sub(".", _DIGIT_GROUPS.sub("", text))
    quarters = {f"quarter {read_number(one[1] or one[2])}" for one in _QUARTER.finditer(text)}
    quarters |= {f"day {read_weekday(_day(one[0]))}" for one in _DAY.finditer(text)}
    quarters |= {f"month {read_month(one[1] or one[0])}" for one in _MONTH.finditer(text)}
    rest = _MONTH.sub(" ", _DAY.sub(" ", _QUARTER.sub(" ", text)))
    for one in TIME_PATTERN.finditer(rest):
        if clock := read_time(one, ""):
            quarters.add(f"{clock.hour % 12}:{clock.minute:02}")
    rest = TIME_PATTERN.sub(" ", rest)
    quarters |= {_code(one) for one in _CODE.findall(rest)}
    quarters |= {str(read_number(one[0]) or one[0]) for one in _HAN_COUNT.finditer(rest)}
    return frozenset(quarters - {"", "1"})


def has_new_detail(kind: DetailKind, text: str, known_text: str, new_words: frozenset[str]) -> bool:
    """Whether `text` has a detail of that kind that `known_text` has not. `new_words` are the
    telling ones of it."""
    new = details_in(text) - details_in(known_text)
    match kind:
        case "time":
            return bool(new) or bool(_matches(_SOON, text) - _matches(_SOON, known_text))
        case "amount":
            return any(map(_is_amount, new)) or bool(
                _matches(_ENGLISH_COUNT, text) - _matches(_ENGLISH_COUNT, known_text)
            )
        case "person":
            return any(
                (one[:2] if has_han(one) else one) not in known_text.lower()
                for one in _people(text, new_words)
            )
        case "place":
            return bool(_SOMEWHERE.search(text)) and bool(new or new_words)
    return bool(new or new_words)


def names_within(text: str) -> frozenset[str]:
    """Words with a capital that does not come from where they stand, in lower case."""
    return frozenset(_bare(one) for one in _NAME_WITHIN.findall(text))


def nicknames(text: str) -> frozenset[str]:
    """Chinese names as colleagues use them: 老周, 小雨, 王总."""
    return frozenset(_NICKNAME.findall(text))


def _people(text: str, words: frozenset[str]) -> frozenset[str]:
    """Names of people, of Latin ones those that begin with any of `words`."""
    latin = (_bare(one) for one in _NAME_PATTERN.findall(text))
    latin_names = (one for one in latin if any(map(one.startswith, words)))
    return frozenset((*latin_names, *_HAN_NAME.findall(text)))


def _bare(name: str) -> str:
    return re.sub(r"['’]s?$|(?<=[A-Z])s$", "", name).lower()


def _code(text: str) -> str:
    code = _ORDINAL.sub(r"\1", text[:_CODE_CHARS].lower().strip(".:-/"))
    return _ZEROS.sub(r"\1", code).rstrip(".") if code.count(".") == 1 else code


def _day(text: str) -> str:
    return text[-1] if has_han(text) else text


def _is_amount(detail: str) -> bool:
    return not detail.startswith(("day ", "month ", "quarter ")) and ":" not in detail


def _matches(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    return frozenset(one[0].lower() for one in pattern.finditer(text))
