"""The details of a text, each in one form: times, days, numbers, names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from bot.listening.patterns import has_han, pattern
from bot.text.dates.time_of_day import TIME, read_time
from memory.dates.words import COUNT, HAN_NUMBER, MONTH, WEEKDAY, WEEKDAY_ZH, month, number, weekday

Wanted = Literal["time", "amount", "person", "place", "thing"]

_QUARTER = re.compile(rf"\bQ([1-4])\b|第?({HAN_NUMBER}|[1-4])季度", re.IGNORECASE)
_DAY = re.compile(rf"\b{WEEKDAY}s?\b|\b(?:Mon|Tue|Wed|Thu|Fri)\b|{WEEKDAY_ZH}", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?=[A-Z])(?i:{MONTH})\b|({COUNT})月")
# Each begins where a run of characters does: so its time grows with the text and not its square.
_CODE = re.compile(
    r"(?<![\w.@#/:·-])(?:[\w.@#/:·-]*\d[\w.@#/:-]*|[\w.-]+@[\w.-]+|https?://\S+)", re.ASCII
)
_GROUPED = re.compile(r"(?<=\d)[,，](?=\d{3}(?!\d))|(?<=\d{3}) (?=\d{3,4}(?!\d))")
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
_NAME = re.compile(r"(?<![\w-])[A-Z][\wÀ-ʯ]*[a-zA-ZÀ-ʯ](?:['’]s?)?(?![\w-])", re.ASCII)
_NAME_WITHIN = re.compile(
    rf"(?<=[\w,’'] ){_NAME.pattern}|(?<=[\u4e00-\u9fff]){_NAME.pattern}"
    rf"|{_NAME.pattern}(?= ?[\u4e00-\u9fff])"
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
_WANTED: Mapping[Wanted, re.Pattern[str]] = {
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


def wanted(question: str) -> Wanted:
    """The kind of detail that answers `question`."""
    return next((kind for kind, asked in _WANTED.items() if asked.search(question)), "thing")


def needs_memory(question: str) -> bool:
    """Whether what people said may answer it: not where something is to be made, or worked out."""
    return not _NO_MEMORY.search(question)


def is_about_bot(question: str) -> bool:
    """Whether it speaks of who is asked: of itself it was told nothing."""
    return bool(_OF_BOT.search(question))


def details(text: str) -> frozenset[str]:
    """Times of day, days, months and numbers: `4:00` for 16:00, “4 pm” and 下午四点."""
    text = _DECIMAL.sub(".", _GROUPED.sub("", text))
    quarters = {f"quarter {number(one[1] or one[2])}" for one in _QUARTER.finditer(text)}
    quarters |= {f"day {weekday(_day(one[0]))}" for one in _DAY.finditer(text)}
    quarters |= {f"month {month(one[1] or one[0])}" for one in _MONTH.finditer(text)}
    rest = _MONTH.sub(" ", _DAY.sub(" ", _QUARTER.sub(" ", text)))
    for one in TIME.finditer(rest):
        if clock := read_time(one, ""):
            quarters.add(f"{clock.hour % 12}:{clock.minute:02}")
    rest = TIME.sub(" ", rest)
    quarters |= {_code(one) for one in _CODE.findall(rest)}
    quarters |= {str(number(one[0]) or one[0]) for one in _HAN_COUNT.finditer(rest)}
    return frozenset(quarters - {"", "1"})


def answers(kind: Wanted, text: str, known_text: str, new_words: frozenset[str]) -> bool:
    """Whether `text` has a detail of that kind that `known_text` has not. `new_words` are the
    telling ones of it."""
    new = details(text) - details(known_text)
    match kind:
        case "time":
            return bool(new) or bool(_said(_SOON, text) - _said(_SOON, known_text))
        case "amount":
            return any(map(_is_amount, new)) or bool(
                _said(_ENGLISH_COUNT, text) - _said(_ENGLISH_COUNT, known_text)
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
    latin = (_bare(one) for one in _NAME.findall(text))
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


def _said(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    return frozenset(one[0].lower() for one in pattern.finditer(text))
