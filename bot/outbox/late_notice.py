"""What stands above an answer that comes late: which question it is for, and from when. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from bot.feishu import markup
from bot.outbox.texts import say
from bot.text.dates import spoken
from bot.text.languages import language_of
from memory.text import one_line

LATE_S = 600.0
_QUOTED_CHARS = 60
_MARKS = re.compile(r"[*_`~#>|<\[\]()!\\@]+")


def late_note(question: str, asked_ms: int, now: datetime) -> str:
    """Markdown in the question's language, to be put before the answer; "" for one in time.

    `asked_ms` is ms since epoch; `now` is aware: times are shown in its zone.
    """
    if not asked_ms or now.timestamp() - asked_ms / 1000 < LATE_S:
        return ""
    asked_at = datetime.fromtimestamp(asked_ms / 1000, now.tzinfo)
    language = language_of([question])
    when = say("at", language, time=f"{asked_at:%H:%M}")
    if asked_at.date() != now.date():
        when = say("on", language, moment=spoken.moment(asked_at, language, now=now))
    words = one_line(_MARKS.sub(" ", question)).strip()
    quotation = words if len(words) <= _QUOTED_CHARS else f"{words[:_QUOTED_CHARS]}…"
    note = say("late-answer", language, when=when, question=markup.escape(quotation))
    return f"{note}\n\n"
