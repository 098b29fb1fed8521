"""Recognises what somebody asks for in their own words. Pure, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from bot.text.times import TIME_PATTERN, read_time
from memory.dates import (
    DATE_EXPRESSIONS,
    DAY_EXPRESSIONS,
    WEEKDAY,
    named_days,
    next_date,
    read_number,
)

_LONGEST = 4000
_SHORT_QUOTATION = 24
_CLAUSE = re.compile(r"\n+|(?<![.!?。！？;；])[.!?。！？;；]++(?=\s|$|[\u3400-\u9fff])")
_ONLY_ASKS = re.compile(
    r"^\W*(?:what|when|where|who|whom|whose|which|how|why|is|are|was|were|does|did|has|have"
    r"|do (?:you|we|i|they))\b"
    r"|\bremember (?:what|who|when|where|why|how|anything|something)\b"
    r"|还记得|[你您]记得|记得.{0,30}[吗么]|(?:记住|记下|记录|保存)了?(?:什么|哪些|吗|没有)"
    r"|什么|几时|哪|谁|多少|怎么|为何|何时|[吗呢么]\W*$",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^\W*(?:(?:can|could|would|will) (?:you|i)|(?:is|would) it (?:be )?(?:possible|ok)|any chance"
    r"|please|能不能|能否|能|可以|可不可以|请|麻烦|帮)|能(?:不能)?.{0,3}(?:提醒|记|删|改|帮)"
    r"|(?:好吗|行吗|可以吗|好不好|行不行)\W*$",
    re.IGNORECASE,
)
REMEMBER = re.compile(
    r"\b(?:remember(?! (?:what|who|when|where|why|how|if|whether|any|some))|memori[sz]e"
    r"|keep (?:in mind|that|this|it|my|our|a|track)|not(?:e|ing) (?:that|this|down|it|my|our)"
    r"|(?:make|take|add|write|create|save|keep) (?:me )?an? (?:\w+ )?note"
    r"|write (?:it|this|that|these|them|down)|jot|record|save|store|log (?:it|this|that)"
    r"|call me|from now on|in future|always|never|do(?:n['’]?| no)t forget)\b|\bnote:"
    r"|记住|记下|记一|记着|记到|记得|记好|牢记|帮我记|给我记|备忘|别忘|不要忘|存[一下起到]|保存"
    r"|写下|以后|今后|叫我",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"(?<!\bI )\b(?:do(?:n['’]?| no)t|never|no need to|without)(?! (?:\w+ )?forget)(?: \w+){0,2}"
    r" (?:remember|memori[sz]|keep|not(?:e|ing)\b|record|sav|stor|writ|log|jot)"
    r"|(?:别|不要|不用|不必|不需要|无需|请勿|不许)(?!.{0,3}忘)[^，,。]{0,3}(?:记(?!得|错)|存|写下)",
    re.IGNORECASE,
)
WRITE = re.compile(
    r"\b(?:note|notes|write|draft|put|add|create|make|start|set up|turn)\b"
    r"|笔记|便签|记录一?下|写|整理成|加|新建|创建|建[一个条]|做[一成个]",
    re.IGNORECASE,
)
CHANGE = re.compile(
    r"\b(?:change|update|swap|switch|add|append|put|tag|untag|snooze|edit|modify|correct"
    r"|fix|rename|retitle|label|replace|extend"
    r"|mark|move|push|postpone|reschedule|shift|delay|bring forward|remove|drop|take off|no longer"
    r"|instead|now)\b"
    r"|改|换|更新|顺延|往[前后]|只在|打[个上]|补|加|更正|修改|标签|补充|加上|去掉|移除|推迟|提前"
    r"|延后|挪|现在是|不再",
    re.IGNORECASE,
)
DELETE = re.compile(
    r"\b(?:delete|del|remove|(?:un|dis)remember|forget|erase|wipe|scratch|bin|kill|trash|cancle"
    r"|canc?el+"
    r"|turn off|switch off|take (?:it|that|this) (?:out|off)|drop|clear|discard|throw"
    r"|get rid|can (?:now )?go|skip|cancel|stop|end|undo"
    r"|do(?:n['’]?| no)t (?:remember|remind)|no longer|no need (?:to|for)|not any ?more"
    r"|isn't|don't (?:need|want|keep))\b"
    r"|\bnever ?mind\b|删|忘|别记|别提醒|划掉|去掉|移除|清除|清空|清掉|清了|取消|撤|不要|不用"
    r"|不再|不需要|别再|抹掉|扔|关[了掉]|停",
    re.IGNORECASE,
)
CORRECTS = re.compile(
    r"\W*(?:no|nope|wrong|actually|correction|(?:please )?correct (?:that|this|it)|sorry|(?:that"
    r"|this)(?:['’]s| is) (?:not right|wrong)"
    r"|(?=(?:it|that)(?:['’]s| is) (?:actually|really|now)\b)|不对|不是(?!吗)|错了|不(?=[，,。])"
    r"|[更纠]正(?:一下)?|说错了"
    r"|其实|实际上)[\s,.;:，。：；]*(?:i (?:meant|mean)\b[\s,:]*|我(?:是说|的意思是))?"
    r"(?:(?:it|that|this)(?:['’]s| is)?(?: (?:now|actually"
    r"|really))?\b)?"
    r"(?:应该|现在|已经)*(?:改到了?|改成了?|是)?",
    re.IGNORECASE,
)
SETS_TIME = re.compile(
    r"\b(?:make|set|turn)\b[^\n]{1,60}\b(?:daily|weekly|monthly|every|weekdays|at)\b|[设调]"
    rf"[为成到]|\b(?:i mean[t]?|(?:make|set) (?:it|that|this)) (?:for |to |at )?(?:\d|noon"
    rf"|{WEEKDAY})",
    re.IGNORECASE,
)
REMIND = re.compile(
    r"\b(?:re?mi?n?e?i?nd\w*|ping|nudge|poke|alert|alarm|nag|bug (?:me|us)|buzz|kick (?:me|us)"
    r"|give (?:me|us) a (?:shout|nudge|ping|heads[- ]up)"
    r"|do(?:n['’]?| no)t (?:let\b.{1,40}\b)?forget)\b"
    r"|提醒|题醒|提个?醒|提心我|[踢戳滴敲催盯]我|[踢戳滴敲催叫喊].?一下|吱一?声|定个?闹|ping我"
    r"|闹钟|别忘|别让.{1,20}忘|记得",
    re.IGNORECASE,
)
_TELL = re.compile(
    r"\b(?:notify|tell|wake|text|message|let\b.{1,40}\bknow)\b|通知|叫|喊|告诉|告知", re.IGNORECASE
)
_ASKS_FOR_AN_ANSWER = re.compile(
    r"\b(?:what|when|where|who|which|how|why|whether|if)\b|什么|几|哪|谁|多少|怎么|是否|有没有",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(?:tomorrow|tonight|today|every|daily|weekly|monthly|noon|morning|evening"
    rf"|{WEEKDAY})\b|[明后今每]天|今晚|周|星期|点|月|号",
    re.IGNORECASE,
)
EVERYBODY = re.compile(
    r"\b(?:us|we|our|everyone|everybody|all|team|group|channel|chat|here|folks|guys|people|both)\b"
    r"|我们|咱|大家|所有人|全体|全员|全组|群|各位|团队|同事|你们|每个人|小组|@all",
    re.IGNORECASE,
)
REPEATS = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|weekdays|workdays|nightly|regularly|always|recurring"
    rf"|(?:{WEEKDAY}|morning|evening|night)s)\b"
    r"|每|天天|周周|月月|日日|工作日|定期|重复|循环",
    re.IGNORECASE,
)
FORGETS_FACT = re.compile(
    r"\b(?:forget|remember|memory)\b|忘|(?<!笔)记(?![事笔])|我的[^，。\s]{1,12}(?:信息|资料)",
    re.IGNORECASE,
)
SHARING = re.compile(
    r"\b(?:unshare|share|sharing|private|hide)\b|共享|分享|公开|私有|私人|隐藏", re.IGNORECASE
)
_ITEM = "(?:note|one|reminder|fact|alarm|entry|list)s?"
_POINTS_AT_ITEM = re.compile(
    rf"\b(?:it|these|those|them|(?:this|that)(?= {_ITEM}\b|\s*(?:[,.!?]|$))"
    r"|(?:first|second|third|1st|2nd|3rd|last|latest|newest|previous|other|same|all)"
    rf"(?: (?:of )?(?:the )?{_ITEM})?"
    rf"|(?:{_ITEM}|number) ?#?(?:\d{{1,2}}|one|two|three|four|five))\b"
    r"|(?:(?<![\u3400-\u9fff])|(?<=[把将掉除了在给到从向对新改消]))[这那](?:[个些条])?"
    r"|第 ?[一二三四五六七八九十\d]+ ?[个条]|(?:提醒|笔记) ?\d{1,2}"
    r"|\b(?:both|everything|each)\b|[都全](?=取消|删|$)|[两三][个条](?!月|星期|小时|礼拜)"
    r"|最后[一个条]|最新|刚才|刚刚|全部|所有|它",
    re.IGNORECASE,
)
_ONLY_A_NUMBER = re.compile(
    r"\W*(?:no\.? ?|number )?(?:\d{1,2}|[一二三四五六七八九十])号?\W*", re.I
)
_FENCED = re.compile(r"```[^`]*(?:```|$)")
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_LINK = re.compile(r"https?://\S+|\bwww\.\S+", re.IGNORECASE)
_FILE = re.compile(
    r"[^\s,，。;；:：]{1,120}\.(?:pdf|docx?|xlsx?|pptx?|txt|md|csv|png|jpe?g|zip)\b", re.I
)
# Several words in quotation marks: a single one is a name or a value.
_QUOTED = re.compile(
    r'“[^“”\s]*[\s\u3400-\u9fff][^“”]*”|"[^"\s]*[\s\u3400-\u9fff][^"\n]*"|「[^「」]*」|『[^『』]*』'
    r"|《[^《》]*》|«[^«»]*»|‘[^‘’\s]*[\s\u3400-\u9fff][^‘’]*’|`[^`\s]*[\s\u3400-\u9fff][^`\n]*`"
)
_WORD = re.compile(r"[a-z0-9][a-z0-9'’-]*", re.IGNORECASE)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_POINTS_BACK = re.compile(
    r"\b(?:what (?:he|she|they|we|you)\b|(?:main|key|first|second|third|last|latest)\b)"
    r"|[这那](?:[个些条份点件里段句篇张次封]|一[个条])?|第[一二三四五六七八九十\d]+[个条]"
    r"|最后[一个条]{0,2}"
    r"|刚才|刚刚|以上|上面|上述|里面?的?",
    re.IGNORECASE,
)
_GENERIC_OBJECTS = frozenset(
    """want said say writ wrote agreed decid down later file document doc point summary decision
    discussion minut above both same other everyth""".split()
)
_GENERIC_OBJECTS_HAN = re.compile(
    "[文附]件|文档|要点|重点|总结|内容|全部|所有|消息|图片|会议|纪要|讨论|结论|下来|稍后|以后|[记存写能里中]"
)
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十廿卅百]{1,7}")
_NOON = 12
_MONTHS = {
    name: at for at, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)
}
_YEARS = frozenset(range(1900, 2100))
_LONG_NUMBER = re.compile(r"\d{3,}")
_DATE = re.compile(
    r"(?:19|20)\d\d(?:-\d\d?-\d\d?)?(?:T\d\d:?\d\d)?(?!\d)"
    r"|\b\d{1,2}(?:st|nd|rd|th)? [A-Z][a-z]{2,8}\b|\b[A-Z][a-z]{2,8} \d{1,2}\b"
)
_DATE_ZH = re.compile(r"[\d零一二三四五六七八九十]{1,4}月[\d零一二三四五六七八九十]{1,3}[日号]?")
_STOP_WORDS = frozenset(
    """a an the my our your his her its their me us we i you he she they it this that these those
    of to in on at by for from with about and or but is are was were be been am do does did has
    have had will would can could should shall may please now then so as if not no yes ok okay just
    also too there here when what which who how note notes reminder reminders fact facts message
    messages list title body tag tags text memory thing things person user name key value s t re ll
    pls plz tomorow tommorow tmrw tmr go into get
    remember remind save store write add put make take create set keep tell update change delete
    remove forget cancel stop move rename edit hey hi bot everyone everybody all team group today
    tomorrow tonight every daily weekly monthly morning evening noon week month day hour hours
    minute minutes min mins am pm next after before until instead oclock""".split()
)
_STOP_HAN = frozenset(
    "我你您他她它们的了在把给请帮一下吗呢吧啊是有和与就都也要让叫个这那条到再来去好说看不用别掉关改换移挪成"
)
_GENERIC_HAN = re.compile(
    "记住|记下|记得|记录|保存|写下|备忘|提醒|笔记|便签|闹钟|删除|删掉|删了|忘掉|忘记|忘了|取消|修改|改成"
    "|更新|添加|加上|创建|新建|大家|所有人|全体|每天|每周|每月|明天|今天|后天|今晚|上午|下午|早上|晚上"
    "|中午|(?<![零一二三四五六七八九十两0-9])[零一二三四五六七八九十两0-9]++[点分号日月周个]"
    "|星期[一二三四五六日天]|周[一二三四五六日天]"
    "|半|麻烦|能不能|可以|以后"
)


def own_text(text: str, *, short_quotations: bool = False) -> str:
    """`text` without quotations, titles, links, file names and code: others wrote those."""
    for pattern in (_FENCED, _QUOTED_LINE, _LINK, _FILE):
        text = pattern.sub(" ", text[:_LONGEST])
    return _QUOTED.sub(_shorten_quotation if short_quotations else " ", text)


def _shorten_quotation(quotation: re.Match[str]) -> str:
    return quotation[0] if len(quotation[0]) <= _SHORT_QUOTATION else " "


def without_names(text: str, names: Iterable[str]) -> str:
    """`text` without mentions: people choose their own names, which may read like a request."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = text.replace(f"@{name}", " ")
    return text


def orders(words: str) -> list[str]:
    """The clauses that may ask for something to be done, and not only for an answer."""
    clauses = _CLAUSE.split(words[:_LONGEST])
    return [one for one in clauses if _POLITE.search(one) or not _ONLY_ASKS.search(one)]


def wants(words: str, *cues: re.Pattern[str]) -> bool:
    """True if a clause that asks for something has one of the cues."""
    return any(cue.search(clause) for clause in orders(words) for cue in cues)


def tells_at_a_time(clause: str) -> bool:
    """True for “tell us at five to leave”, False for “tell us what it says”."""
    return bool(
        _TELL.search(clause) and _TIME.search(clause) and not _ASKS_FOR_AN_ANSWER.search(clause)
    )


def forbids(words: str) -> bool:
    """True if a clause forbids keeping something, unless that is what it asks to remember."""
    for clause in _CLAUSE.split(words):
        forbidding, asking = _FORBIDS.search(clause), REMEMBER.search(clause)
        if forbidding and not (asking and asking.start() < forbidding.start()):
            return True
    return False


def names_no_object(words: str) -> bool:
    """True for “remind us at nine”, “save this file”: what it is about was said or shown before."""
    rest = _GENERIC_OBJECTS_HAN.sub(" ", _GENERIC_HAN.sub(" ", _POINTS_BACK.sub(" ", words)))
    han = set("".join(_HAN.findall(rest)))
    named_words = {word for word in content_words(_HAN.sub(" ", rest)) if not word.isdigit()}
    return han <= _STOP_HAN and named_words <= _GENERIC_OBJECTS


def points_at_item(words: str) -> bool:
    """True for “add a tag to that note”, “cancel the second one”."""
    return bool(_POINTS_AT_ITEM.search(words))


def picks_by_number(words: str) -> bool:
    """True for “1”, “number 2”, “三”: the answer to a list."""
    return bool(_ONLY_A_NUMBER.fullmatch(words))


def content_words(text: str) -> frozenset[str]:
    """Words that say what a text is about: no function words, times or words for the request.

    Chinese text gives pairs of neighbouring characters.
    """
    english = map(str.casefold, _WORD.findall(text.replace("_", " ").replace("-", " ")))
    stems = {_stem(word) for word in english if word not in _STOP_WORDS}
    runs = _HAN.findall(_GENERIC_HAN.sub(" ", text))
    pairs = {run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))}
    return frozenset(
        {word for word in stems - _STOP_WORDS if len(word) > 1}
        | {pair for pair in pairs if not set(pair) <= _STOP_HAN}
    )


def same_date(thing: str, words: str) -> bool:
    """True if `thing` has a date, written in any way, whose numbers are all in `words`."""
    dates = _DATE.findall(thing) + _DATE_ZH.findall(thing)
    numbers = frozenset().union(*map(_numbers, dates)) - _YEARS
    return bool(numbers) and numbers <= _numbers(words)


def names_moment(words: str, at: datetime, now: datetime) -> bool:
    """True if `words` name the day or the time of `at`: “the Friday one”, 3 月 3 日的, “the noon
    one”."""
    times = [read_time(one, "") for one in TIME_PATTERN.finditer(words)]
    hours = {(one.hour, one.minute) for one in times if one}
    return (
        (at.hour, at.minute) in hours
        or (at.hour - _NOON, at.minute) in hours
        or any(
            next_date(day, now.date()) == f"{at:%Y-%m-%d}" or day.weekday == at.weekday()
            for day in named_days(words, (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS), now.date())
        )
    )


def is_said(value: str, words: str) -> bool:
    """True if `words` hold `value` to the letter, spaces aside."""
    return bool(value.strip()) and _compact(value) in _compact(words)


def same_script(one: frozenset[str], other: frozenset[str]) -> bool:
    """True if both have words in English, or both in Chinese."""
    return any(
        any(map(is_script, one)) and any(map(is_script, other))
        for is_script in (str.isascii, _is_han)
    )


def unsaid_numbers(thing: str, words: str) -> bool:
    """True if `thing` has a number of three digits or more that `words` lack, and not as a date."""
    plain_words = words.replace(",", "").replace(" ", "")
    return any(number not in plain_words for number in _LONG_NUMBER.findall(_DATE.sub(" ", thing)))


def _stem(word: str) -> str:
    word = word.strip("'’-")
    for ending in ("'s", "’s", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _numbers(text: str) -> frozenset[int]:
    """The whole numbers in `text`, months by name among them."""
    numbers = {int(digits) for digits in re.findall(r"\d{1,9}", text)}
    numbers |= {
        value for run in _HAN_NUMBER.findall(text) if (value := read_number(run)) is not None
    }
    months = re.findall(r"[a-z]+", text.casefold())
    return frozenset(numbers | {_MONTHS[one[:3]] for one in months if one[:3] in _MONTHS})


def _compact(text: str) -> str:
    return "".join(text.casefold().split())


def _is_han(word: str) -> bool:
    return bool(_HAN.match(word))
