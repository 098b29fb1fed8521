"""What stands below an answer: one folded line, and what can be pressed. Pure.

It is no part of what is said: it holds names and times, and of words only those that were heard in
a voice message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bot.agents.prompts.prompt import Ended
from bot.feishu import cards, markup
from bot.feishu.applink import chat_link
from bot.outbox.texts import say
from bot.text.dates import spoken
from bot.text.languages import Language, join_list

Where = Literal["thread", "chat", "elsewhere"]

_MOST_TOOLS, _MOST_SOURCES = 12, 8
_NAME_CHARS = 40
_HEARD_CHARS = 300


@dataclass(frozen=True, slots=True)
class RecalledSource:
    """Something that was recalled: when it was said (ISO 8601), and where, seen from the answer.

    `chat_id`: the chat of an imported message, `position` its number there (0: not known), and
    `author` who wrote it; "" for all that the bot heard itself.
    """

    at: str
    where: Where
    author: str = ""
    chat_id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Foot:
    """`seconds` from the question to the answer; `tools` by name in the order of the calls, with
    whether they worked. `ended`: why the answer came no further. `without_memory`: it was made
    without knowing what was said before. `bare`: only these are shown, where nothing can be
    pressed. `heard`: what the voice message said that is answered."""

    language: Language
    seconds: float
    tools: tuple[tuple[str, bool], ...] = ()
    recalled: tuple[RecalledSource, ...] = ()
    ended: Ended = ""
    bare: bool = False
    heard: str = ""
    without_memory: bool = False

    def row(self) -> dict[str, Any]:
        """As it is kept with the turn: of imported messages those that are shown."""
        shown = enumerate(self.recalled[:_MOST_SOURCES])
        imported = [
            [n, one.author[:_NAME_CHARS], one.chat_id, one.position]
            for n, one in shown
            if one.chat_id
        ]
        return {
            "language": self.language,
            "seconds": round(self.seconds, 1),
            "tools": [list(tool) for tool in self.tools[:50]],
            "recalled": [[source.at, source.where] for source in self.recalled],
            **({"imported": imported} if imported else {}),
            **({"ended": self.ended} if self.ended else {}),
            **({"bare": True} if self.bare else {}),
            **({"heard": self.heard[:_HEARD_CHARS]} if self.heard else {}),
            **({"without_memory": True} if self.without_memory else {}),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any] | None) -> Foot | None:
        """What was kept; None without anything."""
        if not row:
            return None
        imported = {n: more for n, *more in row.get("imported", ())}
        return cls(
            row["language"],
            row["seconds"],
            tuple((name, ok) for name, ok in row["tools"]),
            tuple(
                RecalledSource(at, where, *imported.get(n, ()))
                for n, (at, where) in enumerate(row["recalled"])
            ),
            row.get("ended", ""),
            row.get("bare", False),
            row.get("heard", ""),
            row.get("without_memory", False),
        )


def card_foot(
    foot: Foot, now: datetime, *, applink: str = "", again: bool = True
) -> cards.CardFoot:
    """As the card shows it; times are in the zone of `now`. `applink`: where links to chats begin.
    Without `again`: it was pressed."""
    language = foot.language
    notices = [say(f"ended-{foot.ended}", language)] if foot.ended else []
    if foot.without_memory:
        notices.append(say("without-memory", language))
    if foot.heard:
        notices.insert(0, say("heard", language, words=_short(foot.heard)))
    notice = "\n".join(notices)
    if foot.bare:
        return cards.CardFoot("", (), (), notice)
    handles = [cards.Button("👍", {"h": "helpful"}), cards.Button("👎", {"h": "unhelpful"})]
    if again:
        handles.append(cards.Button(say("again", language), {"h": "again"}))
    heard = [one for one in foot.recalled[:_MOST_SOURCES] if not one.chat_id]
    imported = [one for one in foot.recalled[:_MOST_SOURCES] if one.chat_id]
    details = _details(foot, heard, now)
    sources = _imported(imported, language, now, applink)
    if sources and not heard and len(foot.recalled) > _MOST_SOURCES:
        sources = [*sources, say("and-more", language)]
    return cards.CardFoot(_line(foot), tuple(details), tuple(handles), notice, tuple(sources))


def _short(words: str) -> str:
    return words if len(words) <= _HEARD_CHARS else f"{words[: _HEARD_CHARS - 1]}…"


def _line(foot: Foot) -> str:
    language, parts = foot.language, []
    if foot.tools:
        parts.append(say("tool-calls", language, n=len(foot.tools)))
    if foot.recalled:
        parts.append(say("earlier-exchanges", language, n=len(foot.recalled)))
    whole = round(foot.seconds)
    took = say("seconds" if foot.seconds >= 1 else "at-once", language, seconds=whole)
    return " · ".join([took, *parts])


def _details(foot: Foot, heard: Sequence[RecalledSource], now: datetime) -> Sequence[str]:
    language = foot.language
    told = [say("took", language, seconds=f"{foot.seconds:.1f}")]
    if foot.tools:
        tools = _few(_counted(foot), _MOST_TOOLS, language)
        told.append(say("tools", language, tools=tools))
    if heard:
        places = [*dict.fromkeys(_place(source, now, language) for source in heard)]
        if len(foot.recalled) > _MOST_SOURCES:
            places.append(say("and-more", language))
        told.append(say("recalled-from", language, sources=join_list(places, language)))
    return told


def _imported(
    sources: Sequence[RecalledSource], language: Language, now: datetime, applink: str
) -> Sequence[str]:
    """A heading and a line for each imported message, in Markdown."""
    if not sources:
        return []
    lines = dict.fromkeys(_message(one, language, now, applink) for one in sources)
    return [say("imported-from", language), *lines]


def _message(source: RecalledSource, language: Language, now: datetime, applink: str) -> str:
    when = spoken.moment(_moment(source, now), language, now=now)
    if applink:
        when = f"[{when}]({chat_link(applink, source.chat_id, source.position)})"
    author = markup.as_words(source.author) or say("unknown-author", language)
    return say("imported-message", language, when=when, author=author)


def _counted(foot: Foot) -> list[str]:
    counted = []
    for (name, ok), count in Counter(foot.tools).items():
        tool = name + (f" ×{count}" if count > 1 else "")
        counted.append(tool if ok else say("tool-failed", foot.language, tool=tool))
    return counted


def _few(parts: Sequence[str], most: int, language: Language) -> str:
    more = [say("and-more", language)] if len(parts) > most else []
    return join_list([*parts[:most], *more], language)


def _place(source: RecalledSource, now: datetime, language: Language) -> str:
    place = say(f"place-{source.where}", language)
    return say(
        "source", language, when=spoken.moment(_moment(source, now), language, now=now), place=place
    )


def _moment(source: RecalledSource, now: datetime) -> datetime:
    return datetime.fromisoformat(source.at).astimezone(now.tzinfo)
