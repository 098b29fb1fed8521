"""Commands about notes in plain words, English and Chinese. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.agents.prompt import is_chinese

_LONGEST_COMMAND = 400  # bounds the work of the patterns on hostile input
_QUOTES = "'\"“”‘’「」『』`"
_SEPARATOR = re.compile(r"\s*[,，、;；]\s*|\s+and\s+|和|与", re.IGNORECASE)

_BEFORE_EN = r"^\W*(?:please\s+|can you\s+|could you\s+)*"
_BEFORE_ZH = r"^\W*(?:请|麻烦|帮我|你)*"
_AFTER = r"\s*(?:please)?[.!?。！？\s]*$"

# What the words in capitals stand for; longer ones are written with the shorter ones.
_WORDS_EN = (
    ("CHANGE", r"(?:update|edit|change|modify) REF,? (?:to |and |by )?"),
    ("ADD", r"add(?:ing)? (?:the |a )?(?:new )?"),
    ("DROP", r"(?:remove|removing|delete|drop|take off) (?:the )?"),
    ("REF", r"(?P<ref>(?:[^,，]{0,60}?\bnotes?|it|that one))"),
    ("TAGS", r"(?P<tags>.+?)"),
    ("TITLE", r"(?P<title>.+?)"),
)
_WORDS_ZH = (
    ("MAKE", r"(?:创建|新建|建|写|记|添加|加|做)(?:一)?(?:条|个|份|篇)?新?的?"),
    ("TAGGED", r"(?:[，,、；;\s]*(?:带有?|并?加上?|打上?|用)?标签(?:为|是|有)?[:：\s]*TAGS)?"),
    (
        "ONTO",
        r"(?:给|为|在|对|往|更新)REF[，,\s]*(?:再)?(?:加上|添加|打上|增加|加入|加)(?:一个)?新?",
    ),
    ("OFF", r"(?:把|将|从|给)REF(?:里|中|上)?的?"),
    ("DROP", r"(?:去掉|去除|删除|删掉|移除|拿掉)"),
    ("REF", r"(?P<ref>[^，,。]{0,30}?(?:笔记|便签)|它)"),
    ("TAGS", r"(?P<tags>.+?)"),
    ("TITLE", r"(?P<title>[^，,；;]+?)"),
)

# The first rule that matches decides, so the narrower ones stand first.
_RULES_EN = (
    ("list", r"(?:list|show)(?: me)?(?: all)?(?: of)?(?: my| the| our)? notes"),
    ("list", r"(?:what|which) notes (?:do i have|are there|have i(?: got)?)"),
    ("find", r"(?:search|find|look for)(?: for)?(?: my| the)? notes? (?:about|for|on|with) TITLE"),
    (
        "make",
        r"(?:create|make|add|write|start|save)(?: me)?(?: an?| another)?(?: new)? note"
        r"(?: about| on| for| titled| called| named)?[:：]?\s+TITLE"
        r"(?:\s+(?:saying|that says|with the text)\s+(?P<body>.+?))?"
        r"(?:,?\s+(?:with |and |having )*(?:the )?(?:tags?|tagged)[:：]?\s+TAGS)?",
    ),
    ("tag", r"ADDtags? TAGS to REF"),
    ("tag", r"ADDTAGS tags? to REF"),
    ("tag", r"tag REF (?:with|as) TAGS"),
    ("tag", r"CHANGEADDtags? TAGS"),
    ("tag", r"CHANGEADDTAGS tags?"),
    ("untag", r"DROPtags? TAGS from REF"),
    ("untag", r"DROPTAGS tags? from REF"),
    ("untag", r"CHANGEDROPtags? TAGS"),
    ("untag", r"CHANGEDROPTAGS tags?"),
    ("name", r"rename REF to TITLE"),
    ("name", r"change the title of REF to TITLE"),
    ("drop", r"(?:delete|remove|erase) REF"),
    ("share", r"share REF(?: with .*)?"),
    ("show", r"(?:show|open|read|what is in|what's in)(?: me)? REF"),
)
_RULES_ZH = (
    ("list", r"(?:列出|显示|看看|查看)(?:一下)?我?的?(?:所有|全部)?的?笔记"),
    ("list", r"我?(?:都|现在)?有(?:哪些|什么|几条)笔记"),
    ("find", r"(?:搜索|查找|找一?下|找)(?:关于|有关)TITLE的?笔记"),
    ("make", r"MAKE(?:笔记|便签)[，,:：\s]*(?:标题(?:为|是)?|叫|关于)?[:：\s]*TITLETAGGED"),
    ("make", r"MAKE(?:关于|有关)?TITLE的?(?:笔记|便签)TAGGED"),
    ("tag", r"ONTO标签[:：\s]*TAGS"),
    ("tag", r"ONTOTAGS的?标签"),
    ("tag", r"(?:把|将)标签TAGS(?:加到|添加到|加进|加给)REF(?:里|上|中)?"),
    ("untag", r"OFF标签TAGSDROP"),
    ("untag", r"OFFTAGS标签DROP"),
    ("untag", r"(?:从|给)?REF(?:里|中|上)?DROP标签TAGS"),
    ("untag", r"(?:从|给)?REF(?:里|中|上)?DROPTAGS标签"),
    ("untag", r"DROPREF(?:里|中|上)?的TAGS标签"),
    ("drop", r"(?:把|将)REF(?:给)?DROP"),
    ("drop", r"DROPREF"),
    ("share", r"(?:把|将)?REF(?:分享|共享)(?:给.*|到.*)?"),
    ("show", r"(?:看看|打开|显示|读一下|查看)REF"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody asked to be done with notes: make, list, find, tag, untag, name, drop, …"""

    kind: str
    chinese: bool
    ref: str = ""
    tags: tuple[str, ...] = ()
    title: str = ""
    body: str = ""


def command(text: str) -> Command | None:
    """The command in `text`, if it is one."""
    if len(text) > _LONGEST_COMMAND:
        return None
    for kind, pattern in _PATTERNS:
        if match := pattern.match(text):
            found = {key: value or "" for key, value in match.groupdict().items()}
            title = found.get("title", "").strip(_QUOTES + " 　")
            return Command(
                kind=kind,
                chinese=is_chinese(text),
                ref=found.get("ref", "").strip(),
                tags=_tags(found.get("tags", "")),
                title=title[:1].upper() + title[1:],
                body=found.get("body", "").strip(),
            )
    return None


def _tags(text: str) -> tuple[str, ...]:
    tags = (tag.strip(_QUOTES + " #　") for tag in _SEPARATOR.split(text))
    return tuple(tag for tag in tags if tag)


def _pattern(before: str, rule: str, words: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    for word, meaning in words:
        rule = rule.replace(word, meaning)
    return re.compile(before + rule + _AFTER, re.IGNORECASE | re.DOTALL)


_PATTERNS = (
    *((kind, _pattern(_BEFORE_EN, rule, _WORDS_EN)) for kind, rule in _RULES_EN),
    *((kind, _pattern(_BEFORE_ZH, rule, _WORDS_ZH)) for kind, rule in _RULES_ZH),
)
