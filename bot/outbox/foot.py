"""Builds what stands around an answer: the footer below it and the notice above a late one. Pure.

It is no part of the answer. Of the messages that the answer rests on only the ids are stored. Their
words are read when the card is drawn, so none of them outlives its message."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from bot.agents.prompts.prompt import Ended
from bot.feishu import cards, markup
from bot.feishu.markup import chat_link
from bot.outbox.texts import say
from bot.text import times
from bot.text.languages import Language, language_of, nest_quotations, shorten

Where = Literal["thread", "chat", "elsewhere"]
_MOST_SOURCES = 8
_AUTHOR_CHARS, _QUOTED_CHARS, _REPLACED_CHARS = 40, 80, 40
_HEARD_CHARS = 300

LATE_S = 600.0
_NOTICE_CHARS = 60
_MARKS = re.compile(r"[*_`~#>|<\[\]()!\\@]+")


@dataclass(frozen=True, slots=True)
class RecalledSource:
    """A message that an answer rests on: when it was said (ISO 8601), and where, seen from the
    answer. `id` names it in the memory, `replaces` the message that it replaced, or "".

    The other fields are the message's own and are not stored with the answer: the memory adds them
    for as long as the message is there. `position` is its number in its chat (0: not known).
    """

    at: str
    where: Where
    id: str = ""
    replaces: str = ""
    author: str = ""
    words: str = ""
    replaced_words: str = ""
    chat_id: str = ""
    position: int = 0

    def row(self) -> list[str]:
        return [self.at, self.where, self.id, *([self.replaces] if self.replaces else [])]

    @classmethod
    def of_row(cls, row: Sequence[str], quotes: Mapping[str, Mapping[str, Any]]) -> RecalledSource:
        """`quotes`: id → {words, author, chat_id, position} of the messages that are there."""
        at, where, id, replaces = (*row, "", "")[:4]
        quote, before = quotes.get(id, {}), quotes.get(replaces, {})
        return cls(
            at,
            cast(Where, where),
            id,
            replaces,
            quote.get("author") or "",
            quote.get("words") or "",
            before.get("words") or "",
            quote.get("chat_id") or "",
            quote.get("position") or 0,
        )


@dataclass(frozen=True, slots=True)
class AnswerFooter:
    """`seconds` from the question to the answer. `ended`: why the answer came no further.
    `without_memory`: it was made without knowing what was said before. `bare`: only these are
    shown, because nothing can be pressed. `heard`: the words of the voice message it answers.
    `apology`: there is no answer, so nobody is asked whether it helped."""

    language: Language
    seconds: float
    recalled: tuple[RecalledSource, ...] = ()
    ended: Ended = ""
    bare: bool = False
    heard: str = ""
    without_memory: bool = False
    apology: bool = False

    def row(self) -> dict[str, Any]:
        """As it is stored with the turn; of sources only their ids, and those that are shown."""
        return {
            "language": self.language,
            "seconds": round(self.seconds, 1),
            "recalled": [one.row() for one in self.recalled[:_MOST_SOURCES]],
            **({"ended": self.ended} if self.ended else {}),
            **({"bare": True} if self.bare else {}),
            **({"heard": self.heard[:_HEARD_CHARS]} if self.heard else {}),
            **({"without_memory": True} if self.without_memory else {}),
            **({"apology": True} if self.apology else {}),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any] | None) -> AnswerFooter | None:
        """What was stored, with the words that the memory added; None without anything."""
        if not row:
            return None
        quotes = row.get("quotes") or {}
        return cls(
            row["language"],
            row["seconds"],
            tuple(RecalledSource.of_row(one, quotes) for one in row.get("recalled") or ()),
            row.get("ended", ""),
            row.get("bare", False),
            row.get("heard", ""),
            row.get("without_memory", False),
            row.get("apology", False),
        )


def card_footer(
    foot: AnswerFooter, now: datetime, *, applink: str = "", again: bool = True
) -> cards.CardFoot:
    """As the card shows it; times are in the zone of `now`. `applink`: where links to chats begin.
    Without `again`: it was pressed."""
    language = foot.language
    notices = [say(f"ended-{foot.ended}", language)] if foot.ended else []
    if foot.without_memory:
        notices.append(say("without-memory", language))
    if foot.heard:
        notices.insert(0, say("heard", language, words=shorten(foot.heard, _HEARD_CHARS)))
    notice = "\n".join(notices)
    if foot.bare:
        return cards.CardFoot("", (), (), notice)
    thumbs = [cards.Button("👍", {"h": "helpful"}), cards.Button("👎", {"h": "unhelpful"})]
    handles = [] if foot.apology else thumbs
    if again:
        handles.append(cards.Button(say("again", language), {"h": "again"}))
    took = say("took", language, seconds=f"{foot.seconds:.1f}")
    sources = [_quote_source(one, language, now, applink) for one in _readable(foot)]
    return cards.CardFoot(_line(foot), (took,), tuple(handles), notice, tuple(sources))


def _readable(foot: AnswerFooter) -> list[RecalledSource]:
    """The sources whose words are known, the newest first."""
    return [one for one in reversed(foot.recalled[:_MOST_SOURCES]) if one.words]


def _line(foot: AnswerFooter) -> str:
    language, seconds = foot.language, round(foot.seconds)
    took = say("seconds" if foot.seconds >= 1 else "at-once", language, seconds=seconds)
    count = len(_readable(foot))
    return f"{took} · {say('sources', language, n=count)}" if count else took


def _quote_source(source: RecalledSource, language: Language, now: datetime, applink: str) -> str:
    """“Alice, 28 Nov at 05:37: ‘the handover moved to 10 March’”, a line of Markdown in which no
    word of theirs is a mark."""
    at = datetime.fromisoformat(source.at).astimezone(now.tzinfo)
    when = times.moment_text(at, language, now=now)
    if applink and source.chat_id:
        when = f"[{when}]({chat_link(applink, source.chat_id, source.position)})"
    author = _words(source.author, _AUTHOR_CHARS) or say("unknown-author", language)
    words = _words(source.words, _QUOTED_CHARS)
    line = say("quoted-source", language, author=author, when=when, words=words)
    if source.replaced_words:
        before = _words(source.replaced_words, _REPLACED_CHARS)
        line += say("replaces", language, words=before)
    return f"{line} · {say('place-elsewhere', language)}" if source.where == "elsewhere" else line


def _words(text: str, most: int) -> str:
    return markup.plain_words(nest_quotations(shorten(text, most)))


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
        when = say("on", language, moment=times.moment_text(asked_at, language, now=now))
    quotation = shorten(_MARKS.sub(" ", question), _NOTICE_CHARS)
    note = say("late-answer", language, when=when, question=markup.escape(quotation))
    return f"{note}\n\n"
