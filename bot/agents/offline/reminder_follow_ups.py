"""Completes what somebody says in answer to the bot into a whole request for a reminder, for the
offline model: “at 7 pm”, “the second one”, “actually make it 3 pm”. Pure."""

from __future__ import annotations

import re

from bot.agents.offline.choosing import is_only_position, list_position
from bot.agents.offline.reminders import ANY_DAY, DAYS, reminder_wish
from bot.text.moments import read_moment
from bot.text.times import TIME_PATTERN
from memory.dates import named_days

ASKS = ("ask-missing", "ask-clock", "ask-halves", "ask-which")
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
_TOLD_TEXT = re.compile("“([^“”]{1,60})”")


def with_time(request: str, answer: str) -> str:
    """The request for a reminder with the time that `answer` gives, if it gives only that; a day
    replaces the one before. Else `answer`."""
    time = read_moment(answer, ANY_DAY)
    if time.problem not in ("", "halves") or time.rest.strip(" ,.，。!！"):
        return answer
    day = next(named_days(request, DAYS, ANY_DAY.date()), None)
    if day and any(named_days(answer, DAYS, ANY_DAY.date())):
        request = f"{request[: day.start]} {request[day.end :]}"
    if TIME_PATTERN.search(answer):
        request = TIME_PATTERN.sub(" ", request)  # “at 6”, of which the half of the day was asked
    return f"{request} {answer}"


def with_new_time(request: str, answer: str, last_answer: str) -> str:
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


def with_choice(request: str, answer: str) -> str:
    """The request to cancel a reminder with the number that `answer` gives, if it gives only that.
    Else `answer`."""
    wish, number = reminder_wish(request), list_position(answer, 0)
    if not wish or wish.kind != "cancel" or not number or not is_only_position(answer):
        return answer
    return f"cancel reminder {number}" if request.isascii() else f"取消提醒 {number}"
