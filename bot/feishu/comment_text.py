"""What is said in comments, as text and as Feishu's elements. Pure.

An answer is plain text after a mention of whom it is for. It is kept as `<at id=…></at> text`, and
nothing but that beginning becomes a mention: tags in what people or models wrote stay words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.feishu import markup
from bot.feishu.fields import as_dict, as_text
from bot.feishu.other_events import CommentReply

LONGEST = 4000  # characters of one reply; Feishu takes 10,000, and nobody reads them in a margin
MOST_REPLIES = 3
_AT = re.compile(r"<at id=(ou_\w+)></at> ")
_ENDS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"(?<=[.!?])\s|(?<=[。！？])", r"\s")))
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_FENCE = re.compile(r"^```[^\n]*\n?", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(([^\s()]{1,2000}(?:\([^\s()]{0,500}\))?[^\s()]{0,500})\)")


def reply_text(reply: CommentReply, names: Mapping[str, str], *, without: str = "") -> str:
    """A reply as people read it: mentions as @Name, links as they are. The mention of `without`, an
    open id, is left out."""
    return "".join(_words(as_dict(one), names, without) for one in reply.elements).strip()


def mentioned_in(reply: CommentReply) -> tuple[str, ...]:
    """The open ids of whom a reply mentions."""
    people = (as_dict(as_dict(one).get("person")) for one in reply.elements)
    return tuple(id for one in people if (id := as_text(one.get("user_id"))))


def replies_of(text: str, addressee: str, *, note: str) -> list[str]:
    """The replies that say `text` to `addressee`, an open id: in parts where it is long. What does
    not fit into three is left out, and `note` stands in its place."""
    parts, rest = list[str](), plain_text(text)
    while rest and len(parts) < MOST_REPLIES:
        part, rest = _part(rest, LONGEST)
        parts.append(part)
    if rest:
        parts[-1] = f"{_part(parts[-1], LONGEST - len(note) - 2)[0]}\n\n{note}"
    first, *others = parts or [""]
    return [f"{markup.at_tag(addressee)} {first}", *others]


def elements_of(content: str) -> list[dict[str, Any]]:
    """The elements of a kept reply."""
    match = _AT.match(content)
    rest = content[match.end() :] if match else content
    run = {"type": "text_run", "text_run": {"text": f" {rest}" if match else rest}}
    return [{"type": "person", "person": {"user_id": match[1]}}, run] if match else [run]


def is_said(reply: CommentReply, content: str) -> bool:
    """Whether a reply says what was kept as `content`."""
    return _mentions_and_words(reply.elements) == _mentions_and_words(elements_of(content))


def plain_text(text: str) -> str:
    """Markdown as plain text: comments show marks as they are written."""
    text_left = _SPAN.sub(r"\1", _FENCE.sub("", _HEADING.sub("", text)))
    text_left = _LINK.sub(lambda link: _link(link[1], link[2]), _EMPHASIS.sub(r"\2", text_left))
    return markup.with_marks(text_left).strip()


def _link(label: str, target: str) -> str:
    return f"{label} ({target})" if label and label != target else target


def _part(text: str, longest: int) -> tuple[str, str]:
    """The beginning of `text`, cut where a paragraph, a line, a sentence or a word ends; and the
    rest."""
    if len(text) <= longest:
        return text, ""
    end_positions = (
        [one.start() for one in end.finditer(text, longest // 2, longest)] for end in _ENDS
    )
    at = next((ends[-1] for ends in end_positions if ends), longest)
    return text[:at].rstrip(), text[at:].lstrip()


def _words(element: Mapping[str, Any], names: Mapping[str, str], without: str) -> str:
    if person := as_text(as_dict(element.get("person")).get("user_id")):
        return "" if person == without else f"@{names.get(person, 'someone')}"
    text = as_text(as_dict(element.get("text_run")).get("text"))
    return text or as_text(as_dict(element.get("docs_link")).get("url"))


def _mentions_and_words(elements: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Mentions and words, joined where they stand side by side, spaces at the ends apart."""
    spans: list[tuple[str, str]] = []
    for one in map(as_dict, elements):
        person = as_text(as_dict(one.get("person")).get("user_id"))
        kind, value = ("person", person) if person else ("text", _words(one, {}, ""))
        if kind == "text" and spans and spans[-1][0] == "text":
            value, _ = spans.pop()[1] + value, None
        spans.append((kind, value))
    return [(kind, " ".join(value.split())) for kind, value in spans if value.strip()]
