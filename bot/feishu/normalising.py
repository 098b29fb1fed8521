"""Markdown as models write it, in the form in which Feishu draws it. Pure, linear.

Feishu nests lists by four spaces a level and takes a code block only from the beginning of a line.
Source: Feishu, "Rich text (Markdown)", JSON 2.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bot.text.markdown import FENCE, ITEM, closes

_TAB = 4
_DEEPEST = 8
_INDENT = re.compile(r"[ \t]*")
# Control characters, and those that Unicode never assigns: Feishu refuses or drops some of them.
_NO_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
_LANGUAGE = re.compile(r"[0-9A-Za-z_+#.-]{0,20}")


def normalised(text: str) -> str:
    """`text` without control characters, with `\\n` as its only line break, lists nested by four
    spaces, code blocks at the beginning of lines, in three backticks where these do, and closed.

    Normalising a normalised text changes nothing.
    """
    reader = _Reader()
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    for line in _NO_CHARACTERS.sub("", unified).split("\n"):
        reader.read(line)
    return "\n".join(reader.finished())


@dataclass
class _Fence:
    """A code block that is being read; `indent` columns are taken from each of its lines."""

    mark: str
    language: str
    indent: int
    body: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        plain = not any("```" in line for line in self.body)
        mark = "```" if plain else self.mark
        return [f"{mark}{self.language}", *self.body, mark]


class _Reader:
    """The lines so far. `_items` are the indents of the list items that are open; `_inside` is the
    indent of a code block that stood in a list and now stands before the rest of its item."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._items: list[int] = []
        self._inside = 0
        self._fence: _Fence | None = None

    def read(self, line: str) -> None:
        if self._fence:
            self._in_code(self._fence, line)
        elif not line.strip():
            self._lines.append(line)
        else:
            self._prose(line)

    def finished(self) -> list[str]:
        if self._fence:
            self._close(self._fence)
        return self._lines

    def _prose(self, line: str) -> None:
        indent = _columns(line)
        if indent == 0:
            self._inside = 0
        text = line.lstrip(" \t")
        if indent >= _TAB and not self._items and not self._inside:
            self._lines.append(line)  # indented code
        elif mark := FENCE.fullmatch(text):
            self._open(mark[1], mark[2].strip(), indent)
        elif ITEM.fullmatch(text):
            self._item(text, indent)
        else:
            self._text(line, text, indent)

    def _open(self, mark: str, info: str, indent: int) -> None:
        language = info.split(maxsplit=1)[0] if info else ""
        match = _LANGUAGE.fullmatch(language)
        self._fence = _Fence(mark, language if match else "", indent)

    def _in_code(self, fence: _Fence, line: str) -> None:
        if closes(line, fence.mark):
            self._close(fence)
            return
        fence.body.append(_without(line, fence.indent))

    def _close(self, fence: _Fence) -> None:
        self._lines += fence.lines()
        self._inside = fence.indent if self._items or self._inside else 0
        self._items.clear()
        self._fence = None

    def _item(self, text: str, indent: int) -> None:
        while self._items and indent < self._items[-1]:
            self._items.pop()
        if not self._items or indent > self._items[-1] + 1:
            self._items.append(indent)
        level = min(len(self._items) - 1, _DEEPEST)
        self._lines.append(" " * (_TAB * level) + text)

    def _text(self, line: str, text: str, indent: int) -> None:
        """What is no item: it goes on with one when it is indented, else it ends the list."""
        if self._items and indent > 0:
            level = min(len(self._items), _DEEPEST)
            self._lines.append(" " * (_TAB * level) + text)
            return
        after_blank = not self._lines or not self._lines[-1].strip()
        if indent == 0 and (after_blank or text.startswith(("#", ">", "|"))):
            self._items.clear()
        self._lines.append(text if self._inside else line)


def _columns(line: str) -> int:
    indent = _INDENT.match(line)
    return len(indent[0].expandtabs(_TAB)) if indent else 0


def _without(line: str, columns: int) -> str:
    """`line` with at most that many columns of its indentation gone."""
    if not columns:
        return line
    indent = _columns(line)
    return " " * max(indent - columns, 0) + line.lstrip(" \t")
