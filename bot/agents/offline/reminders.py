"""Reads requests for reminders, calendars and tasks, for the offline model. Pure.

It knows the sentences that people use most, in English and Chinese; everything else is for a
language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.agents.offline.notes import Call, ListedItem, Returned, choose_items, say
from bot.agents.offline.prompt_reading import now_of
from bot.text.languages import Language
from bot.text.moments import read_moment
from memory.text import HAN

_PEOPLE = r"(?:(?:[、和与,，\s]| and )*@[^\s@,，、]+)*"

# Somebody by name: with a capital letter, or in Chinese characters within English words.
_NAME = r"(?-i:[A-Z][a-z]+(?:[-'’ ][A-Z][a-z]+)*)"
_NO_NAME = (
    r"(?!(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|every|this|that|at\b"
    r"|on\b|in\b|of\b|to\b|about\b|please)"
)
_SET = re.compile(
    r"\b(?:remind(?:ing)?|set (?:an? )?reminders? for)\s+"
    r"(?:(?P<en>me|us|everyone|everybody|all(?: of us)?"
    rf"|(?:the|my|our) (?:team|group)|(?=@)){_PEOPLE}"
    rf"|{_NO_NAME}(?P<name>{_NAME}|[{HAN}]{{2,4}}(?=\s))(?![\w’']))"
    r"|\b(?:set(?: up)?|create|add|make|get|schedule) "
    r"(?:(?P<own>me|us) )?(?:an? )?(?P<bare>reminder)\b"
    r"|\b(?P<reminded>be reminded)\b"
    r"|提醒(?:一?下)?(?P<zh>我们|咱们|我|大家|所有人|全体|各位|同事们|团队|全组)?"
    rf"(?:\s*(?P<zh_name>{_NAME})(?![\w’']*[a-z]))?{_PEOPLE}",
    re.IGNORECASE,
)
_CALL = re.compile(  # only with a time: 叫我小李 gives a name
    r"\b(?:ping|nudge|poke|alert|notify|wake|text|buzz) (?P<en>me|us|everyone)\b(?: up)?"
    r"|\b(?:don['’]t let (?P<let>me|us) forget|reminder(?= ?[:：]))\b[:：]?"
    r"|(?:叫|喊|通知|呼|叫醒|喊醒)(?:一下|一声)?(?P<zh>我们|我|大家|所有人)(?:一下|一声)?",
    re.IGNORECASE,
)
_LONGEST_WISH = 1000  # characters; bounds the work of the patterns on hostile input
_LIST = re.compile(
    r"\b(?:list|show|what|which)\b.{0,30}\breminders\b|(?:列出|看看|查看|显示|有哪些|有什么).{0,6}提醒"
    r"|提醒.{0,4}(?:列表|有哪些)",
    re.IGNORECASE,
)
_CANCEL = re.compile(
    r"\b(?:cancel|delete|remove|stop|drop)\b(?P<before>.{0,60}?)\breminders?\b(?P<en>.*)"
    r"|\bcancel (?P<one>(?:the|that) (?:[\w'’-]{1,15} ){0,3}one\b.{0,40}"
    r"|the (?:\d{1,3}(?:st|nd|rd|th)|first|second|third|fourth|fifth|last|next)"
    r"|(?:number |#)?\d{1,3})\W*$"
    r"|(?:取消|删除|删掉|去掉)(?P<zh>.*?)的?提醒(?P<number> ?\d{1,3})?"
    r"|把(?P<ba>.{0,40}?)的?提醒(?:给|都)?(?:取消|删除|删掉|去掉)"
    r"|取消(?P<nth>[^，。,.]{1,20}[个条项])\W*$",
    re.IGNORECASE | re.DOTALL,
)
_CHANGE = re.compile(
    r"\b(?:move|change|postpone|reschedule|shift)\b(?P<before>.{0,60}?)\breminder\b(?P<en>.{0,200}?)"
    r"\bto (?P<to>.+)"
    r"|\A把?(?P<zh>.*?)的?提醒(?:时间)?(?:改到|改成|改为|推迟到|提前到|挪到)(?P<zto>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ARTICLE = re.compile(r"^\W*(?:the|my|our|that|this|a)\b\s*", re.IGNORECASE)

# One of these stands in each of the patterns above, which take longer to try.
_MAY_WISH = re.compile(
    r"remind|ping|nudge|poke|alert|notify|wake|text|buzz|forget|cancel|提醒|叫|喊|通知|呼|取消"
)
_EDGES = re.compile(
    r"^(?:[\s,，。:：;；、.!！?？-]|\b(?:to|that|about|of|for|please|and|then|on|at)\b"
    r"|if (?:you can|possible)\b|请|麻烦|帮我?|记得|记着|到时候?|一下"
    r"|一声|要|去|在(?=\s)|(?<![^\s])的(?=\s))+"
    r"|(?:[\s,，。:：;；、.!！?？~～-]|\b(?:please|pls|at|on|by|and|thx"
    r"|cheers|ta|ok(?:ay)?|if (?:you can|possible)"
    r"|(?:thanks|thank you)(?: a lot| so much| very much| in advance)?)\b|[吧哦哈啊呀哟啦]"
    r"|(?:谢谢|多谢|非常感谢|感谢)[你您]?|到时候?|拜托了?|辛苦了|(?:可以|好|行)[吗么]|[别不]要?(?:让我|给)?忘了|一下)+$",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^\W*(?:(?:hey|hi|hello|please|pls|can you|could you|would you|will you|you)\b[\s,]*)*",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^(?:[\s,，。.!！~～]|\b(?:hey|hi|hello|there|all|good (?:morning|afternoon|evening))\b"
    r"|[^\s,，。!！@]{0,12}?[你您]好|大家好|[早晚下中]上?午?好|哈[喽啰罗]|[嗨嘿喂亲])+",
    re.IGNORECASE,
)
_HERE = "\x1f"  # where the words stood that ask for a reminder
_CLAUSE = re.compile(r"[,，.。;；!！?？]+\s*(?=\S)")
_CLAUSE_BEFORE = re.compile(rf"^[^{_HERE}]*[,，.。;；!！?？](?=[^{_HERE}]*{_HERE})")
_PRONOUNS = {
    **dict.fromkeys(
        (
            "us", "everyone", "everybody", "all", "all of us",
            "咱们", "我们", "大家", "所有人", "全体", "各位", "同事们", "团队", "全组",
            *(f"{whose} {who}" for whose in ("the", "my", "our") for who in ("team", "group")),
        ),
        "us",
    ),
    "me": "me", "我": "me",
}  # fmt: skip

_LONGEST = 400
_DAY_ZH = (
    r"(?:今天|明天|大?后天|[这本]周[一二三四五六日天末]?|下周[一二三四五六日天]?"
    r"|(?:周|星期|礼拜)[一二三四五六日天]|\d{1,2}月\d{1,2}[日号])"
)
_TIME_ZH = (
    r"(?:上午|下午|早上|晚上|中午)?"
    r"(?:[\d一二三四五六七八九十两]{1,3}[点时](?:半|一刻|\d{1,2}分?)?|\d{1,2}[:：]\d\d)?"
)
_UNTIL_ZH = rf"{_DAY_ZH}{_TIME_ZH})(?:之?前)?(?:完成|截止)?)?"
_LENGTH = r"(?P<length>an hour|half an hour|\d{1,3} ?(?:minutes?|mins?|hours?))"
_LENGTH_ZH = r"(?P<length>[一两二三四五六七八九十\d]{1,3}个?半?小时|半个?小时|\d{1,3}分钟)"
_WHEN = r"(?:on |at |next |this |today|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|in the )"
_POLITE_AGENDA = re.compile(
    r"^(?:(?:please|pls|can you|could you|would you|hey|hi)[\s,]+)+|^(?:请|麻烦|帮我?|给我)+", re.I
)
_FREE = (
    re.compile(
        r"^when (?:is|are|am) (?P<who>.+?) (?:free|available|busy)\b(?P<when>.*)$"
        r"|^(?:is|are|am) (?!you\b|it\b|this\b|that\b|there\b|the\b)(?P<who2>.+?)"
        rf" (?:free|available|busy)(?P<when2>(?: {_WHEN}.*)?)$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})?(?P<who>.{{1,40}}?)(?P<when2>{_DAY_ZH}{_TIME_ZH})?"
        r"(?:都)?(?:什么时候|啥时候|何时|几点|哪些时间|有没有)?(?:有空|空闲|有时间|没空|忙不忙)"
        r"(?:吗|么|呢|的|没有|没)*$",
        re.S,
    ),
)
_DUE = re.compile(
    r"^(?:what|which)(?:['’]s| is| are| do i have| tasks are)?(?: my)?(?: open)?(?: tasks?)?"
    r"(?: (?:that (?:is|are) )?due\b|(?<=tasks)$|(?<=tasks)(?= do i have$))(?P<when>.*)$"
    r"|^(?:show |list )?(?:me )?my (?:open )?tasks$"
    rf"|^(?:列出|看看|查看)?(?:我)?(?P<zh>{_DAY_ZH}|本周|这周)?(?:我)?"
    r"(?:(?:有什么|有哪些|哪些|什么)?(?:任务|待办)?(?:要)?(?:到期|截止|要交)(?:的)?(?:任务|待办)?"
    r"(?:有哪些|有什么)?|(?:(?:还)?(?:有什么|有哪些)|的)(?:任务|待办)(?:事项)?(?:有哪些|有什么)?)$",
    re.I | re.S,
)
_BOOK = (
    re.compile(
        rf"^(?:book|schedule|set up|arrange)\b(?: {_LENGTH})?(?: (?:a |the )?(?:meeting|call))?"
        rf"(?: (?:of|for) {_LENGTH.replace('length', 'length2')})?"
        rf"(?: with (?P<who>.+?))?(?: (?P<when>{_WHEN}.*?))?"
        r"(?:,? (?:and )?(?:call(?:ed)? (?:it )?|title[d]? (?:it )?|named? (?:it )?|about )"
        r"(?P<title>.+))?$",
        re.I | re.S,
    ),
    re.compile(
        rf"^(?P<when>{_DAY_ZH}{_TIME_ZH})?(?:和|跟|与|约|预约|安排)一?下?(?:和|跟|与)?(?P<who>.+?)"
        rf"(?P<when2>{_DAY_ZH}{_TIME_ZH})?(?:约|开|安排|预约)?一?个?{_LENGTH_ZH}?的?(?:会议?|时间)?"
        r"(?:[，,。 ]*(?:标题|主题|名称|名字)?(?:就?叫|是|为|叫做)(?P<title>.+))$",
        re.S,
    ),
)
_TASK = (
    re.compile(
        r"^(?:make|create|add|set) (?:a|the) (?:new )?task\b"
        r"(?: (?:of|out of|from) (?P<this>this|that|it))?"
        r"(?:(?: to|:| of| called) (?P<what>.+?))?(?: for (?P<who>.+?))?"
        r"(?: (?:by|due|until|before) (?P<due>.+?))?$",
        re.I | re.S,
    ),
    re.compile(
        r"^(?:给|为|帮)(?P<who>.+?)(?:建|创建|新建|加|安排|布置)(?:一?个)?任务"
        rf"(?:[，,]?(?P<due>{_UNTIL_ZH}(?:[：:，, ]+(?P<what>.+))?$"
        rf"|^把(?P<this>[这那它]个?)(?:建|做|变|设)?成?(?P<who2>.+?)的任务"
        rf"(?:[，,]?(?P<due2>{_UNTIL_ZH}$",
        re.S,
    ),
)
_NAMES = re.compile(r",|、|，| and |和|与|跟|以及", re.I)
_NUMBERS = {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "半": 0.5}
_HOUR = 60


@dataclass(frozen=True, slots=True)
class ReminderWish:
    """What somebody wants done with reminders: set, list, change or cancel. `about` are words that
    name one; `text` is what is said besides."""

    kind: str
    text: str = ""
    whom: tuple[str, ...] = ()
    about: str = ""


def reminder_wish(question: str) -> ReminderWish | None:
    """The wish in `question`, if it is about reminders; none in a long text."""
    if len(question) > _LONGEST_WISH or not _MAY_WISH.search(question.lower()):
        return None
    question = question.replace(_HERE, " ")
    if match := _CHANGE.search(question):
        return ReminderWish("change", match["to"] or match["zto"], about=_about(match))
    if _LIST.search(question):
        return ReminderWish("list")
    if match := _CANCEL.search(question):
        return ReminderWish("cancel", about=_about(match))
    match = _SET.search(question) or _match_call(question)
    if not match or _is_about(question, match):
        return None
    words = match.groupdict()
    wish_words = (words["en"] or words["zh"] or words.get("let") or words.get("own") or "").lower()
    names = re.findall(r"@[^\s@,，、]+", match[0])
    names += filter(None, (words.get("name"), words.get("zh_name")))
    whom = ([_PRONOUNS[wish_words]] if wish_words else []) + names or ["me"]
    rest = f"{question[: match.start()]} {_HERE} {question[match.end() :]}"
    return ReminderWish("set", _POLITE.sub("", rest), tuple(whom))


def _about(match: re.Match[str]) -> str:
    """The words that name the reminder: before and after that word."""
    words = {
        name: text or "" for name, text in match.groupdict().items() if name not in ("to", "zto")
    }
    words["before"] = _ARTICLE.sub("", words["before"])
    return _bare_reminder(" ".join(filter(None, words.values())))


def _match_call(question: str) -> re.Match[str] | None:
    """“ping me at 3”, 明早八点叫我起床: a reminder where a time is said."""
    match = _CALL.search(question)
    if not match:
        return None
    rest = f"{question[: match.start()]} {question[match.end() :]}"
    return match if read_moment(rest, datetime(2000, 1, 3)).problem != "missing" else None  # noqa: DTZ001


def next_reminder_step(
    reminder_wish: ReminderWish, results: Sequence[Returned], instructions: str, language: Language
) -> Call | str:
    """The next tool to call, or the answer."""
    last = results[-1] if results else None
    if last and (not last.ok or last.tool != "list_reminders" or reminder_wish.kind == "list"):
        return last.told(language)
    if reminder_wish.kind == "set":
        return _set(reminder_wish, now_of(instructions), language)
    if not last:
        return Call("list_reminders", {})
    return _on_one(reminder_wish, last, now_of(instructions), language)


def _set(reminder_wish: ReminderWish, now: datetime, language: Language) -> Call | str:
    time = read_moment(reminder_wish.text, now)
    if time.problem == "several":
        time = read_moment(_CLAUSE_BEFORE.sub("", reminder_wish.text), now)
    text = _of_what(time.rest)
    if time.problem:
        return say(f"ask-{time.problem}", language)
    if not text:
        return say("ask-what", language)
    arguments = {"text": text, "at": time.at, "repeats": time.repeats}
    return Call("set_reminder", {**arguments, "for_whom": list(reminder_wish.whom)})


def _of_what(words: str) -> str:
    """What comes after the wish; what comes before it, a greeting or how it came to it, only where
    nothing does."""
    before, _, after = words.partition(_HERE)
    return _bare_reminder(after) or _bare_reminder(_GREETING.sub("", before))


def _on_one(
    reminder_wish: ReminderWish, list_result: Returned, now: datetime, language: Language
) -> Call | str:
    """The one reminder that is named by number, day or words, or the only one there is."""
    rows = list_result.outcome.fields.get("reminders", ())
    there = [ListedItem(one["id"], one["text"], _due_time(one)) for one in rows]
    choices = choose_items(reminder_wish.about, there, now)
    if len(choices) != 1:
        return f"{say('ask-which', language)}\n\n{list_result.told(language)}"
    if reminder_wish.kind == "cancel":
        return Call("cancel_reminder", {"reminder_id": choices[0].id})
    time = read_moment(reminder_wish.text, now)
    if time.problem:
        return say(f"ask-{time.problem}", language)
    often = {"repeats": time.repeats} if time.repeats != "once" else {}
    return Call("change_reminder", {"reminder_id": choices[0].id, "at": time.at, **often})


def _due_time(row: Mapping[str, Any]) -> datetime | None:
    return datetime.fromisoformat(row["at"]) if row.get("at") else None


def _is_about(question: str, match: re.Match[str]) -> bool:
    """“What did you remind us of?”, 你提醒了谁: a question about reminding."""
    before = _POLITE.sub("", question[: match.start()]).lower()
    before = _CLAUSE.split(before)[-1]
    before = re.sub("(?:don['’]t|do not) forget to ", "", before)
    asks: Callable[[str], object] = re.compile(
        r"\b(?:did|does|have|has|was|were|who|why|didn't|don't)\b|谁|为什么|刚才|别$|不要$|不用$"
    ).search
    return bool(asks(before)) or question[match.end() :].startswith(("了", "过"))


def _bare_reminder(text: str) -> str:
    """Without the words and marks that only join."""
    joined_text = " ".join(text.split())
    while (shorter := _EDGES.sub("", joined_text)) != joined_text:
        joined_text = shorter
    return joined_text


def agenda_call(question: str, before: str = "") -> Call | None:
    """The call that the question asks for; `before`: what was said before it (“make a task of
    this”)."""
    words = _POLITE_AGENDA.sub("", question.strip()[:_LONGEST]).rstrip("?？.。!！ ")
    return (
        _free_call(words) or _due_call(words) or _booking_call(words) or _task_call(words, before)
    )


def _free_call(words: str) -> Call | None:
    for pattern in _FREE:
        if match := pattern.search(words):
            groups = match.groupdict()
            who = _people(groups["who"] or groups.get("who2") or "")
            when = groups["when"] or groups.get("when2") or ""
            return Call("look_at_calendar", {"who": who, "when": when.strip() or "today"})
    return None


def _due_call(words: str) -> Call | None:
    match = _DUE.search(words)
    if not match:
        return None
    when = (match["when"] or match["zh"] or "").removeprefix(" do i have").strip()
    return Call("list_due_tasks", {"when": when or "this week"})


def _booking_call(words: str) -> Call | None:
    for pattern in _BOOK:
        match = pattern.search(words)
        if not match:
            continue
        groups = match.groupdict()
        who, when = groups["who"], groups["when"] or groups.get("when2")
        if not who and not when:
            continue
        arguments = {
            "title": _bare_title(groups["title"] or ""),
            "at": (when or "").strip(" ,，"),
            "with_whom": _people(who or ""),
            "minutes": _minutes(groups.get("length") or groups.get("length2") or ""),
        }
        return Call("book_meeting", arguments)
    return None


def _task_call(words: str, before: str) -> Call | None:
    for pattern in _TASK:
        match = pattern.search(words)
        if not match:
            continue
        groups = match.groupdict()
        title = _bare_title(groups["what"] or "") or before
        who = _people(groups["who"] or groups.get("who2") or "me")
        due = groups["due"] or groups.get("due2") or ""
        arguments = {"title": title[:200], "for_whom": who[0] if who else "me", "due": due}
        return Call("make_task", arguments)
    return None


def _people(names: str) -> list[str]:
    names_found = [one.strip().lstrip("@") for one in _NAMES.split(names.strip())]
    return ["me" if one.lower() in ("i", "you", "we") else one for one in names_found if one]


def _minutes(length: str) -> int:
    """Of “half an hour”, 两个半小时; an hour where nothing is said."""
    if not length:
        return _HOUR
    figure = re.search(r"\d+", length)
    number = int(figure[0]) if figure else _NUMBERS.get(length[0], 1)
    if "minute" in length.lower() or "min" in length.lower() or "分" in length:
        return int(number)
    if length.lower().startswith("half"):
        return _HOUR // 2
    half = _HOUR // 2 if "半小时" in length[1:] else 0
    return int(number * _HOUR) + half


def _bare_title(title: str) -> str:
    return title.strip(" ,，。.\"'“”‘’「」《》:：")
