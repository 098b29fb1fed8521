"""Reads requests for calendars and tasks, for the offline model. Pure.

It knows the sentences that people use most, in English and Chinese; everything else is for a
language model."""

from __future__ import annotations

import re

from bot.agents.offline.notes import Call
from bot.agents.offline.reminder_wishes import DAY_EN
from memory.text import has_han

_LONGEST = 400
_DAY_ZH = (
    r"(?:今天|明天|大?后天|[这本]周[一二三四五六日天末]?|下周[一二三四五六日天]?"
    r"|(?:周|星期|礼拜)[一二三四五六日天]|\d{1,2}月\d{1,2}[日号])"
)
_TIME_ZH = (
    r"(?:上午|下午|早上|晚上|中午)?"
    r"(?:\s?[\d一二三四五六七八九十两]{1,3}\s?[点时](?:半|一刻|\d{1,2}分?)?|\d{1,2}[:：]\d\d)?"
)
_UNTIL_ZH = rf"{_DAY_ZH}{_TIME_ZH})(?:之?前)?(?:完成|截止)?)?"
_LENGTH = r"(?P<length>an hour|half an hour|\d{1,3}[ -]?(?:minutes?|mins?|hours?))"
_LENGTH_ZH = r"(?P<length>[一两二三四五六七八九十\d]{1,3}个?半?小时|半个?小时|\d{1,3}\s?分钟)"
_WHEN = rf"(?:on |at |next |this |last |yesterday|{DAY_EN}|in the )"
_POLITE_AGENDA = re.compile(
    r"^(?:(?:please|pls|can you|could you|would you|hey|hi)[\s,]+)+|^(?:请|麻烦|帮我?|给我)+", re.I
)
_MEALS = "lunch|dinner|breakfast|coffee|interview|workshop|demo"
_MEAL = re.compile(rf"\b(?:{_MEALS})\b", re.I)
_FREE = (
    re.compile(
        r"^when (?:is|are|am) (?P<who>.+?) (?:free|available|busy)\b(?P<when>.*)$"
        r"|^do i have (?:any )?(?:free )?time(?P<when5>.*)$"
        r"|^(?:is|are|am) (?!you\b|it\b|this\b|that\b|there\b|the\b)(?P<who2>.+?)"
        rf" (?:free|available|busy)(?P<when2>(?: {_WHEN}.*)?)$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?:what(?:['’]s| is) (?:on |in )?|show (?:me )?|check )?my (?:calendar|schedule|agenda)"
        rf"(?P<when>(?: {_WHEN}.*)?)(?P<who>)(?P<when2>)$"
        rf"|^do i have (?:anything|something|(?:any )?(?:meetings?|plans|appointments)|a meeting)"
        rf"(?P<when6> {_WHEN}.*)$"
        rf"|^what(?:['’]s| is) planned(?P<when4> {_WHEN}.*)$"
        rf"|^what (?:meetings|events) do i have(?P<when3>(?: {_WHEN}.*)?)$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?=我|{_DAY_ZH}"
        rf"|.*日)我?(?P<when>{_DAY_ZH})?我?(?P<who>)(?P<when2>{_DAY_ZH})?的?(?:有没有|有什么"
        rf"|有哪些|有几个|有)?"
        r"(?:日程|日历|行程|安排|会议|会|(?<=有)[事约](?=吗))(?:安排|表)?(?:有哪些|是什么|有什么)?[吗呢]?$",
        re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})?(?P<who>.{{1,40}}?)(?P<when2>{_DAY_ZH}{_TIME_ZH})?"
        r"(?:都)?(?:什么时候|啥时候|何时|几点|哪些时间|有没有)?(?:有空|空闲|有时间|没空|忙不忙)"
        r"(?:吗|么|呢|的|没有|没)*$",
        re.S,
    ),
)
_FIND_TIME = re.compile(
    rf"^(?:find|suggest) (?:a |some |me a )?(?:free )?(?:time|slot)(?: (?:for|with) (?P<who>.+?))?"
    rf"(?P<when> {_WHEN}.*)$"
    rf"|^找(?:一?个)?(?P<when_zh>{_DAY_ZH})?我?(?:和|跟|与)(?P<who_zh>.+?)(?:都|一起)?有空的时[间候]$",
    re.I | re.S,
)
# “put the dentist in my calendar for Friday at 3”
_ENTER = re.compile(
    r"^(?:put|add|enter|block) (?P<title>.{1,80}?) (?:in|on|to|into) (?:my|the) calendar"
    r" (?P<when>.{1,60})$"
    rf"|^(?P<when_zh>{_DAY_ZH}{_TIME_ZH})在?(?:我的)?日[历程][里上中]?(?:加上?|添加|记上?)"
    r"(?P<title_zh>.{1,80})$",
    re.I | re.S,
)
_DUE = re.compile(
    r"^(?:what|which)(?:['’]s| is| are| do i have| tasks are)?(?: my)?(?: open)?(?: tasks?)?"
    r"(?: (?:that (?:is|are) )?due\b|(?<=tasks)$|(?<=tasks)(?: do i have\b))(?P<when>.*)$"
    r"|^(?:show |list )?(?:me )?(?:all )?my (?:open )?(?:tasks|to-?do list|to-?dos?)(?P<mine>.*)$"
    r"|^(?:(?:do i have|are there) (?:any |open )*)?tasks(?: due)?"
    rf"(?P<any> (?:{DAY_EN}|this week|next week))?$"
    r"|^(?:what|which)(?: of my)? tasks are (?:overdue|late|open|left)$"
    r"|^我?(?:还)?有?(?:什么|哪些)?[没未](?:有)?(?:做完|完成|办完)的(?:任务|待办)(?:事项|有哪些"
    r"|吗)?$"
    rf"|^what do i (?:have|need) to do(?P<do> (?:{DAY_EN}|this week|next week))?$"
    rf"|^我?(?P<zh2>{_DAY_ZH})?我?(?:还)?(?:有什么|有哪些|要)要?(?:做|办|干)(?:的|什么|哪些"
    rf"|啥)(?:事情?)?$"
    r"|^(?:我的)?(?:待办|任务)(?:事项|清单|列表)?$"
    rf"|^(?:列出|看看|查看)?(?:我)?(?P<zh>{_DAY_ZH}|本周|这周)?(?:我)?"
    r"(?:(?:有什么|有哪些|哪些|什么)?(?:任务|待办)?(?:要)?(?:到期|截止|要交)(?:的)?(?:任务|待办)?"
    r"(?:有哪些|有什么)?|(?:(?:还)?(?:有什么|有哪些)|的)(?:任务|待办)(?:事项)?(?:有哪些|有什么)?)$",
    re.I | re.S,
)
_BOOK = (
    re.compile(
        r"^(?:book|schedule|set up|arrange|meet)\b(?: (?:a"
        rf"|an) {_LENGTH.replace('length', 'length4')})?"
        rf"(?: {_LENGTH})?(?: (?:a |the )?(?:meeting|call|sync|chat|catch-?up|1:1|one-on-one"
        rf"|{_MEALS}))?"
        rf"(?: (?:of|for) {_LENGTH.replace('length', 'length2')})?"
        r"(?: (?:with |(?<=meet )"
        rf"|(?-i:(?=[A-Z@\u4e00-\u9fff])))(?P<who>.+?))?"
        rf"(?: for {_LENGTH.replace('length', 'length3')})?"
        rf"(?: (?P<when>{_WHEN}.*?))?"
        r"(?:,? (?:and )?(?:call(?:ed)? (?:it )?|title[d]? (?:it )?|named? (?:it )?|about )"
        r"(?P<title>.+))?$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})?(?:和|跟|与|约|预约|安排)一?下?(?:和|跟|与)?(?P<who>[^，。]+?)"
        rf"(?P<when2>{_DAY_ZH}{_TIME_ZH})?(?:约|开|安排|预约)?一?个?{_LENGTH_ZH}?的?(?:会议?|时间)?"
        r"(?:[，,。 ]*(?:标题|主题|名称|名字)?(?:就?叫|是|为|叫做)(?P<title>.+))$",
        re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})?(?:约|预约|安排)(?:一?下)?(?:和|跟|与)?"
        rf"(?P<who>(?![^会]*[吗呢了饭])(?:(?!一?下).){{2,}}?)(?P<when2>{_DAY_ZH}{_TIME_ZH})?的?(?:开|聊|碰)?一?[个下]?\s?{_LENGTH_ZH}?的?(?:会议?)?$",
        re.S,
    ),
    re.compile(
        r"^invite (?P<who>.+?) to (?:an? |the )?(?:\w+ )?(?:meeting|call|sync|chat"
        rf"|{_MEALS}) (?P<when>{_WHEN}.*)$"
        rf"|^叫上?\s?(?P<who_zh>[^，。]{{1,20}}?)\s?(?P<when2>{_DAY_ZH}{_TIME_ZH})一?起?开一?[个次]?会$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})\s?(?:和|跟|与)(?P<who>[^，。]{{1,20}}?)\s?(?:开|约|打"
        rf"|通)一?[个下]?"
        rf"{_LENGTH_ZH}?的?(?:电话|视频)?(?:会议?|(?<=电话))$",
        re.S,
    ),
)
_TASK = (
    re.compile(
        r"^(?:(?:make|create|add|set) (?:a|the) (?:new )?task for|(?:assign"
        r"|give)(?=.{1,60} (?:task|to-?do):))"
        r" (?P<who>[^:]{1,60}?)(?: (?:a|the) (?:new )?(?:task|to-?do))?: (?P<what>.+?)"
        r"(?: (?:by|due|until|before) (?P<due>.+?))?$",
        re.I | re.S,
    ),
    re.compile(
        r"^(?:建|创建|新建|加|添加|来)(?:一?个)?(?:任务|待办)(?:事项)?(?:[：:，, ]+"
        r"|(?=[去买写做交发查改订准]))(?P<what>.+?)"
        rf"(?:[，, ]+(?P<due>{_UNTIL_ZH}$",
        re.S,
    ),
    re.compile(
        r"^(?:make|create|add|set) (?:an?|the) (?:new )?(?:task|to-?do)\b"
        r"(?: (?:of|out of|from) (?P<this>this|that|it))?"
        r"(?:(?: to|:| of| called) (?P<what>.+?))?(?: for (?P<who>.+?))?"
        r"(?: (?:by|due|until|before) (?P<due>.+?))?$",
        re.I | re.S,
    ),
    re.compile(
        r"^(?:给|为|帮)(?P<who>.+?)(?:建|创建|新建|加|安排|布置|派|分配)(?:一?个)?(?:任务|待办)"
        rf"(?:[，,]?(?P<due>{_UNTIL_ZH}(?:[：:，, ]+(?P<what>.+))?$"
        rf"|^把(?P<this>[这那它]个?)(?:建|做|变|设)?成?(?P<who2>.+?)的任务"
        rf"(?:[，,]?(?P<due2>{_UNTIL_ZH}$",
        re.S,
    ),
)
_NAMES = re.compile(r",|、|，| and |和|与|跟|以及", re.I)
_NUMBERS = {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "半": 0.5}
_HOUR = 60
_LENGTHS = ("length", "length2", "length3", "length4")


def agenda_call(question: str, before: str = "") -> Call | None:
    """The call that the question asks for; `before`: what was said before it (“make a task of
    this”)."""
    words = _POLITE_AGENDA.sub("", question.strip()[:_LONGEST]).rstrip("?？.。!！ ")
    return (
        _find_time_call(words)
        or _enter_call(words)
        or (
            _free_call(words)
            or _due_call(words)
            or _booking_call(words)
            or _task_call(words, before)
        )
    )


def _find_time_call(words: str) -> Call | None:
    match = _FIND_TIME.search(words)
    if not match:
        return None
    who = ["me", *_people(match["who"] or match["who_zh"] or "")]
    when = (match["when"] or match["when_zh"] or "").strip()
    return Call("look_at_calendar", {"who": who, "when": when or "this week"})


def _enter_call(words: str) -> Call | None:
    match = _ENTER.search(words)
    if not match:
        return None
    title, at = match["title"] or match["title_zh"], match["when"] or match["when_zh"]
    at = re.sub(r"^(?:for|on|at) ", "", at.strip())
    arguments = {"title": _bare_title(title), "at": at, "with_whom": [], "minutes": _HOUR}
    return Call("book_meeting", arguments)


def _free_call(words: str) -> Call | None:
    for pattern in _FREE:
        if match := pattern.search(words):
            groups = match.groupdict()
            who = _people(groups["who"] or groups.get("who2") or "")
            names = ("when", "when2", "when3", "when4", "when5", "when6")
            when = next(filter(None, (groups.get(one) for one in names)), "")
            return Call("look_at_calendar", {"who": who, "when": when.strip() or "today"})
    return None


def _due_call(words: str) -> Call | None:
    match = _DUE.search(words)
    if not match:
        return None
    when = next(filter(None, match.groups()), "").strip()
    return Call("list_due_tasks", {"when": when or "this week"})


def _booking_call(words: str) -> Call | None:
    for pattern in _BOOK:
        match = pattern.search(words)
        if not match:
            continue
        groups = match.groupdict()
        who = groups["who"] or groups.get("who_zh")
        when = groups["when"] or groups.get("when2")
        if not when and (not who or "title" not in groups):
            continue
        arguments = {
            "title": _bare_title(groups.get("title") or "") or _usual_title(who or "", words),
            "at": (when or "").strip(" ,，"),
            "with_whom": _people(who or ""),
            "minutes": _minutes(next(filter(None, (groups.get(one) for one in _LENGTHS)), "")),
        }
        return Call("book_meeting", arguments)
    return None


def _usual_title(who: str, words: str) -> str:
    who = who.strip()
    if has_han(words):
        left, right = (" " if who[at : at + 1].isascii() else "" for at in (0, len(who) - 1))
        return f"与{left}{who}{right}的会议" if who else "会议"
    kind = _MEAL.search(words)
    title = kind[0].capitalize() if kind else "Meeting"
    return f"{title} with {who}" if who else title


def _task_call(words: str, before: str) -> Call | None:
    for pattern in _TASK:
        match = pattern.search(words)
        if not match:
            continue
        groups = match.groupdict()
        title = _bare_title(groups["what"] or "") or before
        who = _people(groups.get("who") or groups.get("who2") or "me")
        due = groups["due"] or groups.get("due2") or ""
        arguments = {"title": title[:200], "for_whom": who[0] if who else "me", "due": due}
        return Call("make_task", arguments)
    return None


def _people(names: str) -> list[str]:
    names_found = [one.strip().lstrip("@") for one in _NAMES.split(names.strip())]
    return ["me" if one.lower() in ("i", "you", "we") else one for one in names_found if one]


def _minutes(length: str) -> int:
    """Of “half an hour”, 两个半小时; an hour where nothing is said."""
    figure = re.search(r"\d+", length)
    number = int(figure[0]) if figure else _NUMBERS.get(length[:1], 1)
    if re.search("min|分", length, re.IGNORECASE):
        return int(number)
    if length.lower().startswith("half"):
        return _HOUR // 2
    return int(number * _HOUR) + (_HOUR // 2 if "半小时" in length[1:] else 0)


def _bare_title(title: str) -> str:
    return title.strip(" ,，。.\"'“”‘’「」《》:：")
