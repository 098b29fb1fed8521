"""Reads requests for reminders, for the offline model. Pure.

It knows the sentences that people use most, in English and Chinese; everything else is for a
language model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bot.text.moments import read_moment
from memory.dates import DATE_EXPRESSIONS, DAY_EXPRESSIONS, named_days
from memory.text import HAN

_PEOPLE = r"(?:(?:[、和与,，\s]| and )*@[^\s@,，、]+)*"

# Somebody by name: with a capital letter, or in Chinese characters within English words.
_NAME = r"(?-i:[A-Z][a-z]+(?:[-'’ ][A-Z][a-z]+)*)"
_NO_NAME = (
    r"(?!(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|every|this|that"
    r"|at\b"
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
_DAY_ZH = r"(?:[今明后]天|[这本下]?(?:周|星期)[一二三四五六日天]|\d{1,2}月\d{1,2}[日号])"
_LIST = re.compile(
    r"\bwhen(?:['’]s| is| are| will) (?P<en>[^,.;]{1,60}?) reminders?\b"
    r"|^\W*(?P<zh>[^，。,.]{1,20}?)的?提醒(?:是|在|定在|设在)?(?:几点|什么时候|何时|哪一?天|多会儿)"
    r"|\bwhat(?:['’]s| is) coming up\b|^\W*还剩下?(?:些|几[个条]|哪些|什么)*的?提醒"
    r"|\b(?:list|show|what|which|any|how many)\b.{0,30}\breminders\b"
    r"|^\W*(?:(?:please|see|view|check|all|of|my|our|the)\b\W*){0,4}reminders(?: please)?\W*$"
    r"|^\W*do (?:i|we) have (?:any )?reminders(?: (?:today|tomorrow|left))?\W*$"
    r"|\bwhat (?:will you|do you (?:have|need) to|are you going to|did i (?:ask"
    r"|tell) you to) remind"
    r" (?:me|us)"
    r"(?: (?:of|about))?(?: (?:today|tomorrow))?\W*$"
    r"|(?:列出|看[看下]|看一下|查[看下]|查一下|显示|有哪些|有什么).{0,6}提醒"
    r"|提醒.{0,4}(?:列表|列[出一]|有哪些)|^\W*(?:我们?|这里|群里|所有|全部)的?提醒[吗呢]?\W*$"
    r"|^(?:我们?|这里|群里|[今明后]天|[这本下]周)*(?:还?有没有|还有)(?:什么|别的"
    r"|其他)?提醒[吗呢]?\W*$"
    r"|提醒(?:我们?|大家)?(?:些|做|干)?(?:什么|哪些|啥)"
    rf"|^\W*(?:{_DAY_ZH}|[这本下]周)?(?:我们?|大家)?(?:一共|总共)?有(?:没有)?(?:什么|几[个条]|多少)?提醒[吗么]?\W*$",
    re.IGNORECASE,
)
DAY_EN = r"today|tomorrow|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_NTH = (
    r"(?:\d{1,3}(?:st|nd|rd|th)?|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
    r"|last)"
)
_CANCEL = re.compile(
    r"^\W*(?P<zh_but>(?:[^，,。]{0,10}除了?|[只仅]保?留下?)[^。]{1,30}?(?:都|全部?"
    r"|统统))(?:给我)?取消掉?[了吧啦]*\W*$"
    r"|\b(?:cancel|delete|remove|stop|drop|scrap|clear|get rid of|turn off|don['’]?t need"
    r"|never ?mind"
    r"|skip|forget(?: about)?)\b"
    r"(?P<before>.{0,60}?)\breminders?\b(?P<en>.*)"
    rf"|\b(?:cancel|scrap|call off) (?P<one>(?:the|that) (?:[\w'’-]{{1,15}} ){{0,6}}one\b.{{0,40}}"
    r"|the (?:\d{1,3}(?:st|nd|rd|th)|first|second|third|fourth|fifth|last|next)"
    r"|(?-i:[A-Z][a-z]+)['’]s"
    rf"|(?:{DAY_EN})['’]s|(?:number |#)?\d{{1,3}})\W*$"
    rf"|\b(?:delete|remove|drop|scrap) (?P<of_day>(?:the|that) (?:(?:{DAY_EN}) one"
    rf"|one (?:on|of|for|from) (?:{DAY_EN})\b.{{0,20}}))\W*$"
    r"|\b(?:cancel|scrap|call off) (?P<but>(?:all|everything)(?: of (?:them|these|those))?"
    r" (?:except|but|apart from|besides|other than)\b.{1,40}?)\W*$"
    r"|\b(?:cancel|scrap|call off) (?P<many>(?:(?:them |these |those )?(?:all|both)|each|every one"
    r"|everything)"
    rf"(?: (?:of|them|these|those|my|our|the|(?:on |for )?(?:{DAY_EN})(?:['’]s)?|ones?|please))*"
    rf"|(?:the |number )?{_NTH}(?: one)?"
    rf"(?:(?:,|,? and|,? &) (?:the |number )?{_NTH}(?: ones?)?)+)\W*$"
    rf"|^\W*(?:请|麻烦|帮我|把)*(?P<zh_all>(?:{_DAY_ZH}的)?(?:[这那]?[两三][个条项]|全部|所有的?"
    rf"|统统|都)都?)"
    r"(?:给我)?取消掉?[了吧啦]*\W*$"
    rf"|取消(?P<zh_many>(?:{_DAY_ZH}的)?(?:[这那]?[两三][个条项]|全部|所有))\W*$"
    r"|(?:取消|删除|删掉|去掉)(?P<zh>.*?)的?提醒(?P<number> ?\d{1,3})?"
    r"|把(?P<ba>.{0,40}?)的?提醒(?:给|都)?(?:取消|删除|删掉|删|去掉)"
    r"|把(?P<ba_nth>[^，。,.]{1,20}(?:[个条项]|的))(?:给|都)?取消掉?\W*$"
    r"|取消(?P<nth>[^，。,.]{1,20}(?:[个条项]|的))\W*$"
    rf"|(?:删除|删掉|去掉)(?P<zh_day>{_DAY_ZH}"
    r"[^，。,.]{0,10}(?:[个条项]|的))\W*$",
    re.IGNORECASE | re.DOTALL,
)
# “no need to remind me about lunch”, 不用提醒休息了, 演示的不用提醒了
_NO_MORE = re.compile(
    r"\b(?:no need to|do(?:n['’]?| no)t|stop|no longer|you (?:can|may) stop) remind(?:ing)?\b"
    r"(?: (?:me|us|everyone|everybody|about|of|to|that))*(?P<en>.{0,60}?)"
    r"(?:\s+(?:any ?more|any longer|please|now))*\W*$"
    r"|^\W*(?P<before>[^，。,.]{0,20}?)(?:不用|不必|不要|(?<![分特个])别|无需|不需要)再?提醒(?:我们?|大家|咱们)?"
    r"(?P<zh>[^，。,.]{0,30}?)[了啦吧]*\W*$",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:move|push|change|postpone|reschedule"
    r"|shift)\b(?P<before>.{0,60}?)\breminder\b(?P<en>.{0,200}?)"
    r"\bto (?P<to>.+)"
    r"|\b(?:move|push|change|postpone|reschedule|shift) "
    r"(?P<one>(?:the|that) (?:[\w'’-]{1,15} ){0,6}one\b.{0,40}?) to (?P<oto>.+)"
    r"|\A把(?P<nth>[^，。,.]{1,20}[个条项])(?:改到|推迟到|提前到|挪到)(?P<nto>.+)"
    r"|\A把?(?P<zh>.*?)的?提醒(?:时间)?(?:改到|改成|改为|推迟到|提前到|挪到)(?P<zto>.+)"
    r"|\A把?(?P<of>[^，。,.]{1,20}的)(?:改[到成为]|推迟到|提前到|挪到)(?P<ofto>[^，。,.]+)",
    re.IGNORECASE | re.DOTALL,
)
# “delay the plumber reminder by half an hour”
_LATER = re.compile(
    r"\b(?:delay|postpone|push|move|snooze)\b(?: back)?(?P<before>.{0,60}?)\breminder\b(?: back)?"
    r" (?:by|for) (?P<by>[\w .]{1,30})"
    r"|\A把?(?P<zh>.{0,40}?)的?提醒(?:时间)?(?:推迟|延后|往后推)(?P<zby>[^到，。]{1,12}?)吧?\W*\Z",
    re.IGNORECASE,
)
_NEW_TIME = ("to", "oto", "nto", "zto", "ofto")
_ARTICLE = re.compile(r"^\W*(?:the|my|our|that|this|a)\b\s*", re.IGNORECASE)

# One of these stands in each of the patterns above, which take longer to try.
_MAY_WISH = re.compile(
    r"remind|coming up|ping|nudge|poke|alert|notify|wake|text|buzz|forget|cancel|delete|remove"
    r"|drop|scrap"
    r"|never ?mind|skip|move|push|change|postpone|reschedule|shift|提醒|叫|喊|通知|呼|取消|删|去掉"
    r"|[改推提挪].{0,1}到|改[成为]"
)
_EDGES = re.compile(
    r"^(?:[\s,，。:：;；、.!！?？-]|\b(?:to|that|about|of|for|please|and|then|on|at)\b"
    r"|if (?:you can|possible)\b|请|麻烦|帮我?|记得|记着|到时候?|一下"
    r"|一声|要|去|在(?=\s)|(?<![^\s])的(?=\s))+"
    r"|(?:[\s,，。:：;；、.!！?？~～-]|\b(?:please|pls|at|on|by|and|thx"
    r"|cheers|ta|ok(?:ay)?|if (?:you can|possible)"
    r"|(?:thanks|thank you)(?: a lot| so much| very much| in advance)?)\b|[吧哦哈啊呀哟啦]"
    r"|(?:谢谢|多谢|非常感谢|感谢)[你您]?|到时候?|拜托了?|辛苦了|(?:可以|好|行)[吗么]"
    r"|[别不]要?(?:让我|给)?忘了|一下)+$",
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
_AGAIN = re.compile(r"(?:once )?(?:more|again)|再次?|在", re.IGNORECASE)
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


ANY_DAY = datetime(2000, 1, 3)  # noqa: DTZ001
DAYS = (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS)


@dataclass(frozen=True, slots=True)
class ReminderWish:
    """What somebody wants done with reminders: set, list, change, later or cancel. `about` are
    words that name one; `text` is what is said besides."""

    kind: str
    text: str = ""
    whom: tuple[str, ...] = ()
    about: str = ""


def reminder_wish(question: str) -> ReminderWish | None:
    """The wish in `question`, if it is about reminders; none in a long text."""
    if len(question) > _LONGEST_WISH or not _MAY_WISH.search(question.lower()):
        return None
    question = question.replace(_HERE, " ")
    if match := _LATER.search(question):
        span = f"in {match['by']}" if match["by"] else f"{match['zby']}后"
        return ReminderWish(
            "later", span, about=_bare_reminder(match["before"] or match["zh"] or "")
        )
    if (match := _CHANGE.search(question)) and _is_of_time(match):
        return ReminderWish("change", _new_time(match), about=_about(match))
    if match := _LIST.search(question):
        return ReminderWish("list", question, about=match["en"] or match["zh"] or "")
    if match := _CANCEL.search(question) or _NO_MORE.search(question):
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


def _is_of_time(match: re.Match[str]) -> bool:
    """True if the new time is one; what is called a reminder need not give one at once."""
    new_time = match["oto"] or match["ofto"]
    return not new_time or _names_time(new_time)


def _names_time(words: str) -> bool:
    is_day = any(named_days(words, DAYS, ANY_DAY.date()))
    return is_day or read_moment(words, ANY_DAY).problem in ("", "halves")


def _new_time(match: re.Match[str]) -> str:
    return next(match[name] for name in _NEW_TIME if match[name])


def _about(match: re.Match[str]) -> str:
    """The words that name the reminder: before and after that word."""
    words = {name: text or "" for name, text in match.groupdict().items() if name not in _NEW_TIME}
    words["before"] = _ARTICLE.sub("", words["before"])
    return _bare_reminder(" ".join(filter(None, words.values())))


def _match_call(question: str) -> re.Match[str] | None:
    """“ping me at 3”, 明早八点叫我起床: a reminder where a time is said."""
    match = _CALL.search(question)
    if not match:
        return None
    rest = f"{question[: match.start()]} {question[match.end() :]}"
    return match if read_moment(rest, ANY_DAY).problem != "missing" else None


def call_in(question: str) -> str:
    """The words that ask for a reminder: “remind me”, 提醒大家; "" if there are none."""
    match = _SET.search(question) or _match_call(question)
    return match[0] if match else ""


def words_to_remind_of(words: str) -> str:
    """What comes after the wish; what comes before it, a greeting or how it came to it, only where
    nothing does. “Remind me again” names nothing."""
    before, _, after = words.partition(_HERE)
    text = _bare_reminder(after) or _bare_reminder(_GREETING.sub("", before))
    return "" if _AGAIN.fullmatch(text) else text


def without_clause_before(words: str) -> str:
    """Without what stands in a clause before the wish, where a time may be of something else."""
    return _CLAUSE_BEFORE.sub("", words)


def _is_about(question: str, match: re.Match[str]) -> bool:
    """“What did you remind us of?”, 你提醒了谁: a question about reminding."""
    before = _POLITE.sub("", question[: match.start()]).lower()
    before = _CLAUSE.split(before)[-1]
    before = re.sub("(?:don['’]t|do not) forget to ", "", before)
    asks: Callable[[str], object] = re.compile(
        r"\b(?:did|does|have|has|was|were|who|why|didn't|don't)\b|谁|为什么|刚才|(?<![分特个])别$|不要$|不用$"
    ).search
    return bool(asks(before)) or question[match.end() :].startswith(("了", "过"))


def _bare_reminder(text: str) -> str:
    """Without the words and marks that only join."""
    joined_text = " ".join(text.split())
    while (shorter := _EDGES.sub("", joined_text)) != joined_text:
        joined_text = shorter
    return joined_text
