"""Describes documents: links, sections and comments, why one was not read, and what a turn learned
of them. Pure.

Source of links: Feishu, “Cloud documents FAQ”, how to get the token of a document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from bot.feishu.errors import FeishuError, FeishuFailure, ResourceTooLarge
from bot.text.languages import Catalogue, Language
from memory.text import HAN

# What was left out, in a sentence of the catalogue `cut-…`.
Cut = Literal["bytes", "tables", "rows", "comments"]
MOST_BYTES = 5_000_000
MOST_TABLES = 200
MOST_ROWS = 10_000
MOST_COMMENTS = 200
SHORT = 6_000  # characters that are shown whole, and those of a part of a longer section
MOST_OUTLINED = 80
_QUOTE = 80

LinkKind = Literal["docx", "sheet", "bitable", "wiki", "other"]
MOST_LINKS = 5
_KINDS: dict[str, LinkKind] = {
    "docx": "docx",
    "sheets": "sheet",
    "base": "bitable",
    "wiki": "wiki",
    **dict.fromkeys(("docs", "file", "mindnotes", "slides", "minutes", "board"), "other"),
}
_DOMAINS = (".feishu.cn", ".larksuite.com", ".larkoffice.com")
_URL = re.compile(rf"https://[^\s<>\"'()\[\]{{}}|，。；、！？（）《》【】“”{HAN}]{{1,500}}")
_TOKEN = re.compile(r"[A-Za-z0-9]{10,64}")
_PART = re.compile(r"[A-Za-z0-9]{1,64}")

Reason = Literal[
    "link", "kind", "tenant", "not_found", "deleted", "forbidden", "size", "empty",
    "not_connected", "not_approved", "app_scope", "token", "busy", "unavailable", "section",
]  # fmt: skip
_REASONS: dict[int, Reason] = {
    **dict.fromkeys(
        (2889914, 1770002, 131005, 1310214, 90214, 91402, 1254040, 1254041, 1069307), "not_found"
    ),
    **dict.fromkeys((2889906, 1770003, 1310249, 1069304, 1063005), "deleted"),
    **dict.fromkeys(
        (2889902, 1770032, 131006, 1310213, 90213, 91403, 1254302, 1069303), "forbidden"
    ),
    **dict.fromkeys((2889925, 1770033, 1254030), "size"),
    99991679: "not_approved",
    99991672: "app_scope",
    **dict.fromkeys((99991677, 99991668, 99991661, 99991671), "token"),
    **dict.fromkeys((99991400, 90217, 1063006, 1254290, 1277001), "busy"),
}
TEXTS = Catalogue(__file__)
say = TEXTS.say


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
    is_solved: bool = False


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


def split_sections(sections: Sequence[Section], longest: int = SHORT) -> tuple[Section, ...]:
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
        f"{' (solved)' if one.is_solved else ''}"
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


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """`kind` is that of the link's path; a `wiki` page leads to a document of another kind, and
    `other` are those that cannot be read. `host` is "" where only the document is known. `table`:
    the table or sheet that the link opens."""

    kind: LinkKind
    token: str
    host: str = ""
    table: str = ""

    @property
    def url(self) -> str:
        """The link without what it says of views and people."""
        path = next(path for path, kind in _KINDS.items() if kind == self.kind)
        parameter = {"bitable": "?table=", "sheet": "?sheet="}.get(self.kind, "?table=")
        return f"https://{self.host}/{path}/{self.token}" + (
            f"{parameter}{self.table}" if self.table else ""
        )


def document_link(url: str) -> DocumentLink | None:
    """What `url` leads to, or None if it is no link to a document of Feishu's."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return None
    path = parts.path.strip("/").split("/")
    if parts.scheme != "https" or not host.endswith(_DOMAINS) or len(path) < 2:
        return None
    kind, token = _KINDS.get(path[0]), path[1]
    if kind is None or not _TOKEN.fullmatch(token):
        return None
    query = parse_qs(parts.query)
    table = (query.get("table") or query.get("sheet") or [""])[-1]
    return DocumentLink(kind, token, host, table if _PART.fullmatch(table) else "")


def without_links(text: str) -> str:
    """`text` without what looks like a link."""
    return _URL.sub(" ", text)


def links_in(text: str) -> list[DocumentLink]:
    """The links to documents in a text, each once, at most five."""
    candidates = (document_link(one) for one in _URL.findall(text))
    return list(dict.fromkeys(link for link in candidates if link))[:MOST_LINKS]


@dataclass(frozen=True, slots=True)
class UnreadDocument:
    """Why there is no text. `scopes`: those of which the person, or the app, lacks one."""

    reason: Reason
    scopes: tuple[str, ...] = ()


def unread_document(failure: FeishuFailure) -> UnreadDocument:
    """What a failed call means for whoever asked."""
    if isinstance(failure, ResourceTooLarge):
        return UnreadDocument("size")
    if not isinstance(failure, FeishuError):
        return UnreadDocument("unavailable")
    return UnreadDocument(_REASONS.get(failure.code, "unavailable"), failure.scopes)


def refusal_text(refusal: UnreadDocument, language: Language) -> str:
    """One sentence to people."""
    scopes = ", ".join(refusal.scopes)
    return say(f"why-{refusal.reason}", language, scopes=scopes)


def cut_text(cut: Cut, language: Language) -> str:
    """One sentence on what was not read."""
    megabytes = MOST_BYTES // 1_000_000
    return say(f"cut-{cut}", language, megabytes=megabytes, tables=MOST_TABLES, rows=MOST_ROWS)
