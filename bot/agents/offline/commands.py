"""Reads commands about notes in plain words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.text.languages import Language, language_of

_LONGEST_COMMAND = 400  # bounds the work of the patterns on hostile input
_QUOTES = "'\"“”‘’「」『』《》`"

# 和 and 与 part two tags, and do not begin one (“和风”).
_SEPARATOR = re.compile(r"[,，、;；]|(?<!\s)\s+and\s+|(?<=[^\s,，、;；])[和与]", re.IGNORECASE)
_BEFORE_EN = r"^\W*(?:please\s+|can you\s+|could you\s+|now\s+|then\s+)*"
_BEFORE_ZH = r"^\W*(?:请|麻烦|帮我|你|再|然后|现在)*"
_AFTER = r"\s*(?:please|吧|一下|谢谢)?[.!?。！？\s]*$"

# What the words in capitals stand for; longer ones are written with the shorter ones.
_WORDS_EN = (
    ("CHANGE", r"(?:update|edit|change|modify) REF,? (?:to |and |by )?"),
    ("ADD", r"add(?:ing)? (?:the |a )?(?:new )?"),
    ("DROP", r"(?:remove|removing|delete|drop|take off) (?:the )?"),
    ("KIND", r"(?:what|which) tags|what are the tags"),
    (
        "REF",
        r"(?P<ref>(?:[^,，]{0,60}?\bnotes?(?: (?:about|on|called|titled|named) [^,，]{1,40}?)?"
        r"|(?:the |that |this )?(?:\w{1,10} )?one"
        r"|(?:note )?(?:number |no\.? |#)\d{1,3}|note \d{1,3}|it))",
    ),
    ("TAGS", r"(?P<tags>.+?)"),
    ("TITLE", r"(?P<title>.+?)"),
    ("BODY", r"(?P<body>.+?)"),
    ("TEXT", r"(?:text|body|contents?)"),
)
_WORDS_ZH = (
    ("MAKE", r"(?:创建|新建|新增|建立|建|写|记|添加|加|做)(?:一)?(?:条|个|份|篇)?新?的?"),
    ("TAGGED", r"(?:[，,、；;。\s]*(?:带有?|并?加上?|打上?|用)?标签(?:为|是|有)?[:：\s]*TAGS)?"),
    ("SAYING", r"(?:[，,、；;。\s]*(?:内容|正文)(?:为|是)?[:：\s]*(?P<body>.+?))?"),
    (
        "ONTO",
        r"(?:给|为|在|对|往|更新)REF(?:里|中|上)?[，,\s]*(?:再)?"
        r"(?:加上|添加|打上|增加|加入|贴上|加)(?:一个|个)?新?",
    ),
    ("OFF", r"(?:把|将|从|给)?REF(?:里|中|上)?的?"),
    ("DROP", r"(?:去掉|去除|删除|删掉|删|移除|拿掉|取消)"),
    ("RENAME", r"(?:改成|改为|换成|改叫|改名为|改名叫|重命名为|更名为|叫做|叫)"),
    ("WHICH", r"(?:哪些|什么|几个|多少)"),
    (
        "REF",
        r"(?P<ref>[^，,。]{0,30}?(?:笔记|便签)|[^，,。]{1,20}那[条篇]"
        r"|(?:第[一二三四五六七八九十\d]{1,3}|[那这]|最后一?|最新的?一?|刚才那|上一)[条个篇]|它)",
    ),
    ("TAGS", r"(?P<tags>.+?)"),
    ("TITLE", r"(?P<title>[^，,；;]+?)"),
    ("BODY", r"(?P<body>.+?)"),
    ("TEXT", r"(?:内容|正文)"),
)

# The first rule that matches decides, so the narrower ones stand first.
_RULES_EN = (
    (
        "help",
        r"(?:what can you do(?: for (?:me|us))?|what do you do|how do you work|who are you"
        r"|what are you|help(?: me)?|i don['’]?t (?:understand|get it)"
        r"|i need (?:some )?help(?: with .{1,40})?"
        r"|how (?:do|can|should) i (?:use|set|create|make|add|delete|remove|change|cancel|list"
        r"|find|move|edit|tag|rename|see|turn o(?:n|ff)|enable|disable|stop|start|schedule"
        r"|get) (?:\w+ ){0,3}(?:notes?|reminders?|tasks?|digests?|you"
        r"|this bot)"
        r"|how can you help(?: me| us)?"
        r"|what (?:else )?can i (?:ask|say|tell)(?: to)?(?: you)?)",
    ),
    (
        "list",
        r"(?:list|show)(?: me)?(?: all)?(?: of)?(?: my| the| our)?(?: the)? notes(?: i have)?",
    ),
    ("list", r"how many notes (?:do i have|are there)"),
    ("list", r"(?:what|which) notes (?:do i have|are there|have i(?: got)?)|(?:all )?my notes"),
    (
        "find",
        r"(?:search|find|look for)(?: for)?(?: my| the| all)? notes?:? "
        r"(?:(?:about|for|on|with) )?TITLE",
    ),
    (
        "find",
        r"(?:(?:show|list|find)(?: me)?(?: my| the| all)? |which "
        r"|my )?notes (?:are )?tagged(?: with| as)? TITLE",
    ),
    ("find", r"(?:what|which) (?:are |of )?(?:my |the )?notes (?:are )?about TITLE"),
    ("find", r"(?:do i have|is there|are there) (?:a |any )?notes? (?:about|on|with) TITLE"),
    (
        "make",
        r"(?:(?:create|make|add|write|start|save|take)(?: me)?(?: an?| another)?(?: new)?|new"
        r"|another)"
        r" (?:note|(?<=another )one)(?: about| on| for| to| titled| called| named| that)?"
        r"[:：,]?\s+(?:title[d:]? )?TITLE"
        r"(?:,?\s+(?:saying|that says|with the text)\s+(?P<body>.+?))?"
        r"(?:,?\s+(?:with |and |having |add(?:ing)? )*(?:the )?(?:tags?|tagged)[:：]?\s+TAGS)?",
    ),
    (
        "make",
        r"(?:(?:jot|note|write|take) (?:this |that |it )?down|note to self|make a note"
        r"|(?:new|quick) note)(?:[:：,]\s*|\s+(?:that )?)TITLE",
    ),
    ("tags", r"(?:KIND) (?:does|do|has) REF (?:now |currently )?have(?: now| currently)?"),
    ("tags", r"(?:KIND) (?:of|on|for|are on|has) REF(?: now)?"),
    ("tags", r"(?:show|list)(?: me)? the tags (?:of|on) REF"),
    ("tag", r"ADDtags? TAGS to REF"),
    ("tag", r"ADDTAGS tags? to REF"),
    ("tag", r"tag REF (?:with|as) TAGS"),
    ("tag", r"CHANGEADDtags? TAGS"),
    ("tag", r"CHANGEADDTAGS tags?"),
    ("tag", r"ADDtags? TAGS"),
    ("untag", r"DROPtags? TAGS from REF"),
    ("untag", r"DROPTAGS tags? from REF"),
    ("untag", r"CHANGEDROPtags? TAGS"),
    ("untag", r"CHANGEDROPTAGS tags?"),
    ("untag", r"DROPtags? TAGS"),
    ("untag", r"DROPTAGS tags?"),
    ("name", r"(?:rename|retitle) REF (?:to|as) TITLE"),
    ("name", r"(?:change|set|update) the (?:title|name) of REF to TITLE"),
    ("name", r"(?:change|set|update) (?:the|its) (?:title|name) to TITLE"),
    ("name", r"CHANGE(?:change |set )?(?:the|its) (?:title|name) to TITLE"),
    ("write", r"(?:change|set|update|replace) the TEXT of REF (?:to|with):? BODY"),
    ("write", r"(?:change|set|update) (?:the|its) TEXT to:? BODY"),
    ("write", r"CHANGE(?:change |set )?(?:the|its) TEXT to:? BODY"),
    ("write", r"(?=.{1,60}\bnotes? )(?:change|update|set) REF (?:to(?: say)?|so it says):? BODY"),
    (
        "append",
        r"(?:add|append) (?P<body>[\"“'].+?[\"”']|(?:the |a )?(?:line|text|sentence)"
        r"[:：]? .+?) to REF",
    ),
    ("append", r"add to REF[:：] BODY"),
    ("write", r"give REF the TEXT:? BODY"),
    ("write", r"write BODY (?:in|into|on) REF"),
    (
        "drop",
        r"(?:delete|remove|erase|clear) (?P<ref>(?:all |both |every )?(?:of )?"
        r"(?:my |the |our |these )?notes?\b.{1,60}?)",
    ),
    ("drop", r"(?:delete|remove|erase|throw away|get rid of) REF"),
    ("share", r"share REF(?: with .*)?"),
    ("show", r"(?:show|open|read|what is in|what's in|what does)(?: me)? REF(?: say)?"),
    (
        "show",
        r"(?:show|open|read)(?: me)?(?: my| the)? note"
        r"(?: about| on| called| titled| named)?[:：]? (?P<ref>[^,，]{1,60}?)",
    ),
)
_RULES_ZH = (
    (
        "help",
        r"(?:都|究竟|到底)?(?:能|会|可以)(?:帮我|为我)?(?:做|干)?(?:些|点)?(?:什么|啥)(?:事情?|忙)?"
        r"|帮帮我|我?(?:可以|能)(?:跟|对|和)你说(?:些)?(?:什么|啥)|(?:不好意思)?我?(?:没听懂|没明白|听不懂|看不懂|没看懂|不明白)|(?:怎么|如何|怎样)(?:用你"
        r"|.{0,8}(?:笔记|提醒|任务|摘要|待办).{0,6})"
        r"|.{0,6}(?:笔记|提醒|任务|摘要|待办)(?:功能)?(?:怎么|如何)(?:用|设|建|删|改|弄).{0,4}"
        r"|(?:有)?(?:什么|哪些)功能|怎么用|是谁|帮助|使用说明|(?:能|可以)怎么(?:帮我|用)",
    ),
    ("list", r"(?:列出|列一下|显示|看看|查看|看一下)(?:一下)?我?的?(?:所有|全部)?的?笔记"),
    (
        "list",
        r"我?(?:都|现在|一共)?有(?:哪些|什么|几条|多少)笔记|我的(?:所有|全部)?笔记(?:列表|呢)?",
    ),
    ("find", r"(?:搜索|搜一下|搜|查找|查一下|查|找一?下|找)(?:关于|有关)TITLE的?笔记"),
    (
        "find",
        r"(?:搜索|搜一下|搜|查找|查一下|查|找一?下|找)(?:我的)?笔记(?:里的?"
        r"|中的?)?[:：，,\s]*TITLE",
    ),
    ("find", r"(?:搜索|搜一下|搜|查找|查一下|找一?下|找)TITLE的?笔记"),
    ("find", r"(?:有没有|有)(?:关于|有关)TITLE的?笔记[吗么]?"),
    (
        "find",
        r"(?:列出|看看|查看)?(?:所有|全部)?[带有]TITLE标签的?笔记(?:都?有?(?:哪些|什么|几条))?",
    ),
    ("find", r"(?:哪些|哪条|哪几条|有没有)笔记(?:是|带有?|有|标了?|打了)TITLE的?(?:标签)?的?"),
    ("find", r"(?:关于|有关)TITLE的?笔记(?:有(?:哪些|什么|几条)|在哪里?)?"),
    ("find", r"(?:搜索|搜一下)[:：\s]*TITLE"),
    (
        "make",
        r"MAKE(?:笔记|便签)[，,:：\s]*(?:标题(?:为|是|叫)?|叫做?|关于"
        r"|名为)?[:：\s]*TITLESAYINGTAGGED",
    ),
    ("make", r"MAKE(?:关于|有关|叫做?|名为|标题(?:为|是))?TITLE的?(?:笔记|便签)SAYINGTAGGED"),
    ("make", r"MAKE(?:笔记|便签)[:：]\s*(?P<title>.+?)TAGGED"),
    ("make", r"再?(?:建|新建|记|加)一[条篇][:：]\s*TITLETAGGED"),
    ("make", r"再?(?:建|新建|记|加|写)一?[条篇个](?:关于|有关)TITLE的"),
    ("tags", r"REF(?:里|中|上)?(?:现在|目前)?(?:都|还|一共)?(?:有|是|带有?)WHICH(?:个)?标签"),
    ("tags", r"REF的?(?:现在|目前)?的?标签(?:现在|目前)?(?:都)?(?:是|有)?(?:哪些|什么|哪几个)?"),
    ("tag", r"ONTO标签[:：\s]*TAGS"),
    ("tag", r"ONTOTAGS的?标签"),
    ("tag", r"(?:把|将)标签TAGS(?:加到|添加到|加进|加给)REF(?:里|上|中)?"),
    ("tag", r"(?:加上|添加|打上|增加|贴上|加)(?:一个|个)?标签[:：\s]*TAGS"),
    ("untag", r"OFF标签TAGSDROP(?:掉)?"),
    ("untag", r"OFFTAGS(?:的|这个)?标签(?:给|都)?DROP(?:掉)?"),
    ("untag", r"(?:从|给)?REF(?:里|中|上)?DROP标签TAGS"),
    ("untag", r"(?:从|给)?REF(?:里|中|上)?DROPTAGS标签"),
    ("untag", r"DROPREF(?:里|中|上)?的?标签TAGS"),
    ("untag", r"DROPREF(?:里|中|上)?的TAGS标签"),
    ("untag", r"(?:把|将)(?P<ref>[^，,。]{2,20}?)的TAGS标签DROP(?:掉)?"),
    ("untag", r"DROP标签[:：\s]*TAGS"),
    ("untag", r"DROPTAGS(?:这个)?标签"),
    ("untag", r"(?:把|将)(?:标签TAGS|(?P<tags_before>.+?)(?:这个)?标签)DROP"),
    ("name", r"(?:把|将|给)?REF的?(?:标题|名字)RENAME[:：\s]*TITLE"),
    ("name", r"(?:把|将)?(?:标题|名字)RENAME[:：\s]*TITLE"),
    ("name", r"(?:把|将|给)?REF(?:重命名为|改名为|改名叫|改名成|更名为|改叫)[:：\s]*TITLE"),
    ("name", r"(?:改名|重命名)(?:叫|为|成)[:：\s]*TITLE"),
    ("name", r"重命名REF(?:为|成)[:：\s]*TITLE"),
    ("write", r"(?:把|将|给)?REF的?TEXT(?:RENAME|写成|写为|设为)[:：\s]*BODY"),
    (
        "append",
        r"(?:在|给|往|把)?REF(?:里|中|上)?面?再?加(?:上)?(?:一?[句行段]"
        r"|内容)(?:话)?[:：，,\s]*BODY",
    ),
    ("write", r"(?:把|将)REF(?:改成|改为|换成)[:：\s]*BODY"),
    ("write", r"(?:把|将)?TEXT(?:RENAME|写成|写为|设为)[:：\s]*BODY"),
    ("write", r"(?:给|在|往)REF(?:里|中|上)?(?:写上|写下|写入|写)TEXT?[:：\s]*BODY"),
    (
        "drop",
        r"(?:(?:把|将)?(?P<ref>[^，,。]{0,30}?(?:笔记|便签)(?:全部|全|都|统统))"
        r"|(?P<ref_but>(?:除了?|[只仅]保?留下?)"
        r"[^。]{1,30}?(?:全部|全|都|统统)))(?:给)?DROP[掉了]*",
    ),
    ("drop", r"(?P<ref>清空我?的?(?:所有|全部)?的?(?:笔记|便签))"),
    ("drop", r"(?:把|将)REF(?:给|都)?DROP[掉了]*"),
    ("drop", r"REF不要了"),
    ("drop", r"DROP(?:掉|了)?REF"),
    ("share", r"(?:把|将)?REF(?:分享|共享)(?:给.*|到.*)?"),
    ("share", r"(?:分享|共享)REF(?:给.*|到.*)?"),
    ("show", r"(?:看看|看一下|打开|显示|[读念](?:一下)?|查看)REF(?:的内容)?"),
    ("show", r"REF(?:里面?)?(?:的内容)?(?:是|写了?|说了?)(?:些)?什么(?:内容)?"),
    (
        "show",
        r"(?:看看|看一下|打开|显示|读一下|读|查看)(?:我的)?笔记[:：\s]*(?P<ref>[^，,。]{1,30}?)",
    ),
)


@dataclass(frozen=True, slots=True)
class NoteRequest:
    """What somebody asked to be done with notes: make, list, find, tag, untag, name, write, append,
    drop, …

    `help` asks what the bot can do.
    """

    kind: str
    language: Language
    ref: str = ""
    tags: tuple[str, ...] = ()
    title: str = ""
    body: str = ""


def command(text: str) -> NoteRequest | None:
    """The command in `text`, if it is one."""
    if len(text) > _LONGEST_COMMAND or (text.isascii() and not _MAY_COMMAND.match(text.lower())):
        return None
    for kind, pattern in _PATTERNS_EN if text.isascii() else _PATTERNS:
        if match := pattern.match(text):
            groups = {key: value or "" for key, value in match.groupdict().items()}
            title = groups.get("title", "").strip(_QUOTES + " 　")
            return NoteRequest(
                kind=kind,
                language=language_of([text]),
                ref=(groups.get("ref") or groups.get("ref_but") or "").strip(),
                tags=_tags(groups.get("tags", "") or groups.get("tags_before", "")),
                title=title[:1].upper() + title[1:],
                body=groups.get("body", "").strip(_QUOTES + " 　"),
            )
    return None


def _tags(text: str) -> tuple[str, ...]:
    tags = (tag.strip(_QUOTES + " #　") for tag in _SEPARATOR.split(text))
    return tuple(tag for tag in tags if tag)


def _pattern(before: str, rule: str, words: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    for word, meaning in words:
        rule = rule.replace(word, meaning)
    return re.compile(f"{before}(?:{rule}){_AFTER}", re.IGNORECASE | re.DOTALL)


def _any_of(before: str, rules: Iterable[str], words: tuple[tuple[str, str], ...]) -> str:
    """One pattern for all the rules, which names no parts."""
    for word, meaning in words:
        rules = [rule.replace(word, meaning) for rule in rules]
    return re.sub(r"\(\?P<\w+>", "(?:", f"{before}(?:{'|'.join(rules)}){_AFTER}")


_MAY_COMMAND = re.compile(
    _any_of(_BEFORE_EN, [rule for _, rule in _RULES_EN], _WORDS_EN), re.DOTALL
)
_PATTERNS_EN = tuple((kind, _pattern(_BEFORE_EN, rule, _WORDS_EN)) for kind, rule in _RULES_EN)
_PATTERNS = (
    *_PATTERNS_EN,
    *((kind, _pattern(_BEFORE_ZH, rule, _WORDS_ZH)) for kind, rule in _RULES_ZH),
)
