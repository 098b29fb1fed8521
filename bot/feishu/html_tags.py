"""Writes the HTML that models put into Markdown as Markdown: Feishu would show its tags. Pure.

Only tags that decorate, in pairs, and line breaks are read; all others are left as text, and
whatever they may mean to Feishu is escaped afterwards."""

from __future__ import annotations

import re

from memory.text import HAN

_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
_PLAIN = "u|ins|sub|sup|small|big|mark|center|p|div|span"
_PAIR = re.compile(
    rf"<(?P<tag>{'|'.join(_MARKS)}|{_PLAIN}|summary)(?:\s[^<>\n]{{0,200}})?>"
    r"(?P<text>[^<>\n]{1,2000})</(?P=tag)\s*>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s{0,4}/?>(?! tags?\b)[ \t]{0,80}", re.IGNORECASE)
_GONE = re.compile(r"</?details(?:\s[^<>\n]{0,200})?>|<!--[^<>\n]{0,2000}-->", re.IGNORECASE)
_CODE = re.compile(r"(`{1,8}[^`\n]{1,2000}`{1,8})")
_HAN_BEFORE = re.compile(rf"[{HAN}，。；：、！？）”]$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_DEEPEST = 3  # tags in tags


def without_html(line: str) -> list[str]:
    """The lines that a line of prose stands for; inline code stays as it is."""
    if "<" not in line and "&nbsp;" not in line:
        return [line]
    parts = _CODE.split(line)
    text = "".join(one if at % 2 else _as_markdown(one) for at, one in enumerate(parts))
    if "|" in line:  # a row of a table is one line
        return [_in_one_line(text)]
    inner = "  " if _ITEM.match(line) else ""
    first, *others = text.split("\n")
    return [first, *(inner + one for one in others)]


def _as_markdown(text: str) -> str:
    for _ in range(_DEEPEST):
        text = _PAIR.sub(_marked, text)
    *lines, last = _BREAK.split(_GONE.sub("", text.replace("&nbsp;", " ")))
    return "\n".join((*(line.rstrip(" \t") for line in lines), last))


def _marked(match: re.Match[str]) -> str:
    mark = "**" if match["tag"].lower() == "summary" else _MARKS.get(match["tag"].lower(), "")
    inside = match["text"].strip()
    return f"{mark}{inside}{mark}" if inside else ""


def _in_one_line(text: str) -> str:
    first, *others = text.split("\n")
    for one in others:
        first += ("；" if _HAN_BEFORE.search(first) else "; ") + one
    return first
