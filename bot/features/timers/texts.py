"""The cards of reminders, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bot.feishu import markup
from bot.mentions import Person
from bot.text.languages import Language
from memory.kept.timers import Timer

_HEAD: Mapping[Language, str] = {"zh": "⏰ **提醒**：", "en": "⏰ **Reminder:** "}
_BY: Mapping[Language, str] = {"zh": "（{} 设置）", "en": " (set by {})"}
_LATE: Mapping[Language, str] = {
    "zh": "> 抱歉，这条提醒晚了：原定 {when}，那时我没能发出。{missed}",
    "en": "> Sorry, this reminder is late: it was due {when}, and I could not send it then."
    "{missed}",
}
_MISSED: Mapping[Language, str] = {
    "zh": "之后还错过了 {} 次，不再补发。",
    "en": " {} later times were missed too and are not made up for.",
}
_DIGEST: Mapping[Language, str] = {
    "zh": "[到时间的摘要]",
    "en": "[digest that is due]",
}
_ASKED: Mapping[Language, str] = {"zh": "[到时间的提醒] {}", "en": "[reminder that is due] {}"}


def as_asked(timer: Timer) -> str:
    """What stands in the history as the question to which the card is the answer."""
    if timer.kind == "digest":
        return _DIGEST[language(timer)]
    return _ASKED[language(timer)].format(timer.plan.content)


def card(
    timer: Timer,
    people: Sequence[Person],
    *,
    author: str,
    late_since: datetime | None = None,
    missed: int = 0,
) -> str:
    """The markdown of the card. In a group it addresses those it is for; `author` is named to those
    who did not set it themselves."""
    tongue, context = language(timer), timer.context
    tags = [tag for one in people if (tag := one.at_tag)] if context.chat_type != "p2p" else []
    text = _HEAD[tongue] + markup.card_markdown(timer.plan.content)
    if context.chat_type != "p2p" and list(timer.plan.for_people) != [context.actor_id]:
        text += _BY[tongue].format(markup.escape(author))
    lines = [" ".join([*tags, text])]
    if late_since:
        more = _MISSED[tongue].format(missed) if missed else ""
        when = f"{late_since:%Y-%m-%d %H:%M}"
        lines.append(_LATE[tongue].format(when=when, missed=more))
    return "\n\n".join(lines)


def language(timer: Timer) -> Language:
    return "zh" if timer.plan.language == "zh" else "en"
