"""Brings a message into whole requests that the rules can read, for the offline model: respelled,
divided where it asks for several things, completed by what was said before. Pure.

“Remember that …, and remind me …” is two requests. “Remind me to call Bob and delete the draft” is
one: what a reminder, a note or a fact says is not carried out. “At 7 pm”, “the second one” and
“actually make it 3 pm” are completed. The spelling is corrected only in what is not understood as
it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.choosing import is_only_position, list_position
from bot.agents.offline.commands import command
from bot.agents.offline.facts import fact_to_remember
from bot.agents.offline.notes import say
from bot.agents.offline.reminder_times import requests_for_each_time
from bot.agents.offline.reminder_wishes import ANY_DAY, DAYS, reminder_wish
from bot.text.languages import LANGUAGES, Language
from bot.text.moments import read_moment
from bot.text.other_clocks import without_lunar_days, without_zones
from bot.text.times import PERIOD_PATTERN, TIME_PATTERN, read_time
from memory.dates import named_days
from memory.text import has_han

_MOST = 4
_LONGEST = 400
_JOINT = re.compile(
    r"[.!?;。！？；,，]?\s(?:and|then|also)(?: also| then)?\s|[.!?;]\s|[。！？；]"
    r"|[，,](?:顺便|然后|另外|还有|同时|并且|也|再)?",
    re.IGNORECASE,
)
_OWN_DAY = re.compile(r"\bin \w|\b(?:every|each|daily|weekly|monthly)\b|每|过|后", re.IGNORECASE)
_TELLS = frozenset({"make", "set", "remember", "agenda"})
_READS = frozenset({"list", "find"})


def requests_in(question: str) -> list[str]:
    """The requests in `question`, each whole by itself; it alone if it makes no more than one."""
    if len(question) > _LONGEST:
        return [question]
    requests: list[str] = []
    for group in _groups(question):
        divided = requests_for_each_time(group.text)
        if len(divided) == 1 and group.pieces > 1:
            return [question]
        requests += divided
    kinds = [_kind(part) for part in requests]
    if not 2 <= len(requests) <= _MOST or not all(kinds):
        return [question]
    after_text = kinds[next((n for n, one in enumerate(kinds) if one in _TELLS), len(kinds)) :]
    if not set(after_text) <= _TELLS | _READS:
        return [question]
    return _on_the_day_before(requests, kinds)


@dataclass(frozen=True, slots=True)
class _Group:
    """A piece of a message that asks for something, with the pieces after it that do not."""

    text: str
    pieces: int


def _groups(question: str) -> list[_Group]:
    joints = [(match.start(), match.end()) for match in _JOINT.finditer(question)]
    starts, ends = [0, *(end for _, end in joints)], [*(at for at, _ in joints), len(question)]
    groups: list[tuple[int, int, int]] = []  # start, end, pieces
    for start, end in zip(starts, ends, strict=True):
        piece = question[start:end].strip()
        if groups and piece and not _kind(piece):
            first, _, pieces = groups[-1]
            groups[-1] = (first, end, pieces + 1)
        elif piece:
            groups.append((start, end, 1))
    return [_Group(question[start:end].strip(), pieces) for start, end, pieces in groups]


def _on_the_day_before(parts: list[str], kinds: list[str]) -> list[str]:
    """A reminder without a day is for the day of the one before: “tomorrow at 9 …, at 11 …”."""
    day, requests = "", []
    for part, kind in zip(parts, kinds, strict=True):
        named = next(named_days(part, DAYS, ANY_DAY.date()), None)
        if named:
            day = part[named.start : named.end]
        elif day and kind == "set" and not _OWN_DAY.search(part):
            part = f"{day}{part}" if has_han(part) else f"{part} {day}"
        requests.append(part)
    return requests


def _kind(text: str) -> str:
    """What `text` asks for; "" if it is no request by itself."""
    if fact_to_remember(text):
        return "remember"
    if wish := reminder_wish(text):
        return wish.kind
    if note_request := command(text):
        return note_request.kind
    return "agenda" if agenda_call(text) else ""


_ASKS = ("ask-missing", "ask-clock", "ask-halves", "ask-which", "ask-zone", "ask-lunar")
# “actually make it 3 pm”, 还是改成三点吧: said of the reminder just set or changed
_MAKE_IT = re.compile(
    r"\W{0,9}(?:(?:no|actually|sorry|wait|hmm|oh|ok(?:ay)?|please|can you|could you|let['’]?s"
    r"|better|rather)\b[\s,.]{0,5}){0,4}"
    r"(?:(?:make|change|move|push|shift|set) (?:it|that|this)(?: to| for| at)?|i mean[t]?(?: at)?)"
    r" (?P<en>.{1,60}?)"
    r"(?: instead| please){0,2}\W{0,9}"
    r"|\W{0,9}(?:不对?|算了|还是|那就?|请|帮我|麻烦|把?它|把?这个|时间|[，,\s]){0,6}"
    r"(?:改[成到为]|挪到|推迟到|提前到|换[成到])(?P<zh>.{1,30}?)吧?\W{0,9}",
    re.IGNORECASE,
)
_ANY_ZONE = "\x1e"
_TOLD_TEXT = re.compile("“([^“”]{1,60})”")


def completed(question: str, before: str, answer: str) -> str:
    """`question`, after the request `before` it if it only gives what the bot's `answer` to that
    asked for: “at 7 pm”, “the second one”."""
    asked = {key for key in _ASKS for one in LANGUAGES if _is_asked(key, one, answer)}
    if not before:
        return question
    if not asked:
        return _with_new_time(before, question, answer)
    if "ask-which" in asked:
        return _with_choice(before, question)
    return _with_time(before, question)


def _is_asked(key: str, language: Language, answer: str) -> bool:
    """True if `answer` is that question, whatever zone it names."""
    parts = say(key, language, zone=_ANY_ZONE).split(_ANY_ZONE)
    return all(part in answer for part in parts)


def _with_time(request: str, answer: str) -> str:
    """The request for a reminder with the time that `answer` gives, if it gives only that; a day
    replaces the one before. Of several reminders that is the first whose half of the day is open:
    the others are set. Else `answer`."""
    request = next(filter(_leaves_half_open, requests_in(request)), request)
    time = read_moment(answer, ANY_DAY)
    if time.problem not in ("", "halves") or time.rest.strip(" ,.，。!！"):
        return answer
    request = without_lunar_days(without_zones(request))
    if PERIOD_PATTERN.search(answer):
        request = PERIOD_PATTERN.sub(" ", request)
    day = next(named_days(request, DAYS, ANY_DAY.date()), None)
    if day and any(named_days(answer, DAYS, ANY_DAY.date())):
        request = f"{request[: day.start]} {request[day.end :]}"
    if TIME_PATTERN.search(answer):
        request = TIME_PATTERN.sub(" ", request)  # “at 6”, of which the half of the day was asked
    return f"{request} {answer}"


def _leaves_half_open(request: str) -> bool:
    match = TIME_PATTERN.search(request)
    time = read_time(match, "") if match and not PERIOD_PATTERN.search(request) else None
    return bool(time and not time.sure)


def _with_new_time(request: str, answer: str, last_answer: str) -> str:
    """The request to move the reminder that `last_answer` tells of, if `request` was about one and
    `answer` gives only its new time. Else `answer`."""
    new_time, told_text = _MAKE_IT.fullmatch(answer), _TOLD_TEXT.search(last_answer)
    wish = reminder_wish(request)
    is_of_reminder = _MAKE_IT.fullmatch(request) or (
        wish and wish.kind in ("set", "change", "later")
    )
    if not (new_time and told_text and is_of_reminder):
        return answer
    time = new_time["en"] or new_time["zh"]
    is_day = any(named_days(time, DAYS, ANY_DAY.date()))
    if not is_day and read_moment(time, ANY_DAY).problem not in ("", "halves"):
        return answer
    text = told_text[1]
    return f"把{text}的提醒改到{time}" if new_time["zh"] else f"move the {text} reminder to {time}"


def _with_choice(request: str, answer: str) -> str:
    """The request to cancel a reminder with the number that `answer` gives, if it gives only that.
    Else `answer`."""
    wish, number = reminder_wish(request), list_position(answer, 0)
    if not wish or wish.kind != "cancel" or not number or not is_only_position(answer):
        return answer
    return f"cancel reminder {number}" if request.isascii() else f"取消提醒 {number}"


_WORDS = (
    "remind reminder reminders remember cancel delete create forget summarize summary digest search"
    " schedule meeting calendar tasks notes tomorrow"
).split()
_SHORT = (
    (re.compile(r"\b(what|where|who|when|how)s\b", re.IGNORECASE), r"\1's"),
    (re.compile(r"\b(?:pls|plz|plase)\b", re.IGNORECASE), "please"),
    (re.compile(r"题醒|提配|提星|题型(?=我|大家)"), "提醒"),
    (re.compile(r"笔计|比记"), "笔记"),
    (re.compile(r"取削|取销"), "取消"),
)
_LONGEST_RESPELT = 200
_WORD = re.compile(r"[a-z]{5,12}", re.IGNORECASE)


def respelled(text: str) -> str:
    """`text` with the words of requests as they are spelt."""
    if len(text) > _LONGEST_RESPELT:
        return text
    for pattern, usual in _SHORT:
        text = pattern.sub(usual, text)
    return _WORD.sub(lambda match: _nearest(match[0]), text)


def _nearest(word: str) -> str:
    lowered = word.lower()
    if lowered in _WORDS:
        return word
    return next((one for one in _WORDS if _is_one_slip(lowered, one)), word)


def _is_one_slip(word: str, right: str) -> bool:
    """True if one letter is missing, too much, wrong, or two are swapped."""
    if abs(len(word) - len(right)) > 1 or word[0] != right[0]:
        return False
    start = next((n for n, (a, b) in enumerate(zip(word, right, strict=False)) if a != b), None)
    if start is None:
        return len(word) != len(right)
    rest, right_rest = word[start:], right[start:]
    return (
        rest[1:] == right_rest
        or rest == right_rest[1:]
        or rest[1:] == right_rest[1:]
        or (rest[1::-1] + rest[2:] == right_rest and len(rest) > 1)
    )
