"""What was read of a document, by section: its outline, one section, its comments. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

# What was left out, in a sentence of the catalogue `cut-…`.
Cut = Literal["bytes", "tables", "rows", "comments"]

MOST_BYTES = 5_000_000
MOST_TABLES = 200
MOST_ROWS = 10_000
MOST_COMMENTS = 200

SHORT = 6_000  # characters that are shown whole, and those of a part of a longer section
MOST_OUTLINED = 80
_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it, until the next. `level` is 0 where there is none. `head`
    is the first line of a table, which each part of it repeats."""

    title: str
    level: int
    text: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """`quote`: the passage it is about, "" for the whole; `author` is an open id."""

    text: str
    quote: str = ""
    author: str = ""
    solved: bool = False


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """`kind`: docx, sheet or bitable. `token` is the document's own, also where the link is that of
    a wiki page."""

    url: str
    token: str
    kind: str
    title: str
    sections: tuple[Section, ...]
    comments: tuple[Comment, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @property
    def size(self) -> int:
        """Characters of its text."""
        return sum(len(one.text) for one in self.sections)


def parted(sections: Sequence[Section], longest: int = SHORT) -> tuple[Section, ...]:
    """The same sections, the long ones in parts: cut at ends of lines, “Plan (2)” after “Plan”."""
    return tuple(part for one in sections for part in _parts(one, longest))


def outline(document: ReadDocument) -> str:
    """Its sections by number, for the choice of one: `3. Plan (1,200 characters)`."""
    lines = [
        f"{'  ' * max(one.level - 1, 0)}{number}. {one.title or '(beginning)'} "
        f"({len(one.text):,} characters)"
        for number, one in enumerate(document.sections[:MOST_OUTLINED], 1)
    ]
    more = len(document.sections) - MOST_OUTLINED
    return "\n".join([*lines, *([f"… and {more} more sections"] if more > 0 else [])])


def chosen_section(document: ReadDocument, wanted_title: str) -> Section | None:
    """The section of that number or heading; else the first whose heading contains
    `wanted_title`."""
    wanted_title = wanted_title.strip()
    if wanted_title.isascii() and wanted_title.isdigit():
        number = int(wanted_title[:9])
        return document.sections[number - 1] if 1 <= number <= len(document.sections) else None
    name = wanted_title.casefold()
    sections_by_title = [(one.title.casefold(), one) for one in document.sections] if name else []
    exact = (one for title, one in sections_by_title if title == name)
    return next(exact, None) or next(
        (one for title, one in sections_by_title if name in title), None
    )


def comment_lines(document: ReadDocument, names: Mapping[str, str]) -> list[str]:
    """One line a comment: the passage, who wrote it, and what."""
    return [
        f"- {_about(one)}{names.get(one.author, 'someone')}: {' '.join(one.text.split())}"
        f"{' (solved)' if one.solved else ''}"
        for one in document.comments
    ]


def _about(comment: Comment) -> str:
    quote = " ".join(comment.quote.split())
    return f"on “{quote[:_QUOTE]}”, " if quote else ""


def _parts(section: Section, longest: int) -> list[Section]:
    parts, rest = [], section.text
    while len(rest) > longest:
        end = rest.rfind("\n", longest // 2, longest)
        end = end if end > 0 else longest
        parts.append(rest[:end])
        rest = rest[end:].lstrip("\n")
    first, *others = [*parts, rest]
    head = f"{section.head}\n" if section.head else ""
    return [
        replace(section, text=head + first),
        *(
            replace(section, title=f"{section.title} ({number})".strip(), text=head + part)
            for number, part in enumerate(others, 2)
        ),
    ]
