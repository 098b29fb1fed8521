"""The cards of reminders, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.feishu import markup
from bot.outbox.mentioning_all import AT_ALL
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language
from bot.text.roster import Person
from memory.tables.timers import Timer

say = Catalogue(__file__).say


def as_asked(timer: Timer) -> str:
    """What stands in the history as the question to which the card is the answer."""
    if timer.kind == "digest":
        return say("digest-due", language(timer))
    return say("reminder-due", language(timer), text=timer.plan.content)


def card(
    timer: Timer,
    people: Sequence[Person],
    *,
    author: str,
    now: datetime,
    mentions_all: bool = False,
    late_since: datetime | None = None,
    missed_count: int = 0,
) -> str:
    """The markdown of the card. In a group it addresses those it is for; `author` is named to those
    who did not set it themselves. Times are in the zone of `now`."""
    tongue, context = language(timer), timer.context
    tags = [tag for one in people if (tag := one.at_tag)] if context.chat_type != "p2p" else []
    if mentions_all and timer.plan.for_all and context.chat_type != "p2p":
        tags = [AT_ALL]
    text = say("reminder", tongue, text=markup.card_markdown(timer.plan.content))
    if context.chat_type != "p2p" and list(timer.plan.for_people) != [context.actor_id]:
        text += say("by", tongue, name=markup.escape(author))
    lines = [" ".join([*tags, text])]
    if late_since:
        due = spoken.moment(late_since.astimezone(now.tzinfo), tongue, now=now)
        lines.append(
            say("late-and-missed" if missed_count else "late", tongue, when=due, n=missed_count)
        )
    return "\n\n".join(lines)


def language(timer: Timer) -> Language:
    return "zh" if timer.plan.language == "zh" else "en"
