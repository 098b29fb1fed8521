"""Files that the bot makes of a text: what is stored until one is sent, and its bytes. Pure.

The libraries are loaded when a file of their kind is made.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from bot.text.file_names import ending_of, safe_name
from bot.text.markdown import FENCE, closes_fence

Kind = Literal["table", "document", "text", "qr_code"]

LONGEST = 200_000
_LONGEST_CODE = 1_000
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "table": ("csv",),
    "document": ("docx",),
    "text": ("txt", "md"),
    "qr_code": ("png",),
}
_PLAIN_NUMBER = re.compile(r"[+-]?[\d.,]+%?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_RULE = re.compile(r"\s*:?-+:?\s*")
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_ITEM = re.compile(r"\s*(?:[-*+]|(\d{1,3})[.)])\s+(.+)")
_MARKS = re.compile(r"(\*\*|__|`)(.+?)\1")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Unwritable(Exception):
    """No file can be made of this; the message says what would be one."""


def file_to_send(name: str, kind: Kind, content: str) -> dict[str, str]:
    """What is stored of a file until it is sent: {name, kind, content}. Raises `Unwritable`."""
    if not content.strip():
        raise Unwritable("The content is empty.")
    most = _LONGEST_CODE if kind == "qr_code" else LONGEST
    if len(content) > most:
        raise Unwritable(f"The content has {len(content)} characters; at most {most} can be sent.")
    endings, safe = _ENDINGS[kind], safe_name(name)
    if ending_of(safe) not in endings:
        stem = safe.rpartition(".")[0] if ending_of(safe) else safe
        safe = safe_name(f"{stem}.{endings[0]}")
    return {"name": safe, "kind": kind, "content": content}


def is_image(file: Mapping[str, Any]) -> bool:
    return bool(file["kind"] == "qr_code")


def history_text(file: Mapping[str, Any]) -> str:
    """How a message of that file is rendered: what history says of it."""
    return "[image]" if is_image(file) else f"[file: {file['name']}]"


def file_bytes(file: Mapping[str, Any]) -> bytes:
    """Its bytes, the same each time but for times that a format notes."""
    content = str(file["content"])
    match file["kind"]:
        case "table":
            return _table(content)
        case "document":
            return _document(content)
        case "qr_code":
            return _code(content)
        case _:
            return content.encode("utf-8")


def _table(content: str) -> bytes:
    """CSV for Excel, which takes it for UTF-8 by its mark. No cell is a formula."""
    out = io.StringIO()
    csv.writer(out).writerows([[_inert(cell) for cell in row] for row in _rows(content)])
    return out.getvalue().encode("utf-8-sig")


def _rows(content: str) -> Iterable[list[str]]:
    lines = content.strip().splitlines()
    if all(line.lstrip().startswith("|") for line in lines if line.strip()):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        return [row for row in rows if not all(map(_RULE.fullmatch, row))]
    return csv.reader(lines)


def _inert(cell: str) -> str:
    text = cell.lstrip(" ")
    return f"'{cell}" if text.startswith(_FORMULA) and not _PLAIN_NUMBER.fullmatch(text) else cell


def _document(content: str) -> bytes:
    """A Word document with the headings, lists, paragraphs and code of a Markdown text."""
    from docx import Document

    document, out, mark = Document(), io.BytesIO(), ""
    for line in _NOT_XML.sub("", content).splitlines():
        fence = FENCE.fullmatch(line)
        if mark and closes_fence(line, mark):
            mark = ""
        elif mark:
            document.add_paragraph(style="No Spacing").add_run(line).font.name = "Courier New"
        elif fence:
            mark = fence[1]
        else:
            _add_line(document, _MARKS.sub(r"\2", line))
    document.save(out)
    return out.getvalue()


def _add_line(document: Any, line: str) -> None:
    if heading := _HEADING.fullmatch(line):
        document.add_heading(heading[2], min(len(heading[1]), 4))
    elif item := _ITEM.fullmatch(line):
        document.add_paragraph(item[2], style="List Number" if item[1] else "List Bullet")
    elif line.strip():
        document.add_paragraph(line)


def _code(content: str) -> bytes:
    import segno

    out = io.BytesIO()
    segno.make(content, micro=False).save(out, kind="png", scale=8)
    return out.getvalue()
