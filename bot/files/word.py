"""The text of a Word document, line by line. Its library is loaded by whoever opens the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

_SKIPPED = frozenset(
    "del moveFrom delText delInstrText instrText sectPr sdtPr sdtEndPr rPr pPr tblPr"
    " tblGrid trPr tcPr fldData".split()
)
_TEXTS = ("t", "sym")
_CHECKED = {"0": "☐", "false": "☐", "off": "☐"}
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_WORD_PARTS = (
    ("header", "Header"),
    ("footer", "Footer"),
    ("footnotes", "Footnote"),
    ("endnotes", "Endnote"),
    ("comments", "Comment"),
    ("data", "Diagram"),
)


def document_lines(document: Any) -> Iterator[str]:
    """Paragraphs and rows of tables in their order, then what stands outside of the body."""
    yield from _word_blocks(document.element.body)
    seen_lines = set()
    for part in document.part.package.iter_parts():
        name = str(part.partname).rpartition("/")[2]
        label = next((label for kind, label in _WORD_PARTS if name.startswith(kind)), "")
        root = getattr(part, "element", None) if label else None
        if label and root is None:
            from lxml import etree  # type: ignore[import-untyped]

            root = etree.fromstring(part.blob, etree.XMLParser(resolve_entities=False))
        for line in _word_blocks(root) if root is not None else ():
            if (line_text := line.strip()) and (label, line_text) not in seen_lines:
                seen_lines.add((label, line_text))
                yield f"{label}: {line_text}"


def _word_blocks(element: Any) -> Iterator[str]:
    for child in _children(element):
        match _element_name(child):
            case "p":
                yield "".join(_inline(child))
                yield from _boxes(child)
            case "tbl":
                yield from map(_word_row, elements(child, "tr"))
            case name if name and name not in _SKIPPED:
                yield from _word_blocks(child)


def _word_row(row: Any) -> str:
    cells = (" ".join(line for line in _word_blocks(cell) if line) for cell in elements(row, "tc"))
    return " | ".join(cell.replace("\n", " ") for cell in cells).rstrip(" |")


def elements(element: Any, wanted_name: str) -> Iterator[Any]:
    """The elements of that name, inside wrappers but not inside each other."""
    for child in _children(element):
        name = _element_name(child)
        if name == wanted_name:
            yield child
        elif name and name not in _SKIPPED:
            yield from elements(child, wanted_name)


def _inline(element: Any) -> Iterable[str]:
    for child in _children(element):
        name = _element_name(child)
        if name == "t":
            yield child.text or ""
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name == "sym":
            yield _symbol(child)
        elif name == "f" and child.tag.endswith("/math}f"):
            yield from (*_inline_of(child, "num"), "/", *_inline_of(child, "den"))
        elif name == "ffData":
            yield _form_value(child)
        elif name == "ruby":
            yield from _inline_of(child, "rubyBase")
            yield from ("(", *_inline_of(child, "rt"), ")")
        elif name and name not in _SKIPPED and name != "txbxContent":
            yield from _inline(child)


def _form_value(form: Any) -> str:
    """What is chosen in a form field of the older kind; what is typed into one is plain text."""
    for one in elements(form, "ddList"):
        entries = [_value(entry) for entry in elements(one, "listEntry")]
        chosen = next(map(_value, [*elements(one, "result"), *elements(one, "default")]), "0")
        return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""
    for one in elements(form, "checkBox"):
        checked = next(map(_value, [*elements(one, "checked"), *elements(one, "default")]), "0")
        return _CHECKED.get(checked, "☒")
    return ""


def _value(element: Any) -> str:
    """Its `val`; without one it is on."""
    return element.get(element.tag.rpartition("}")[0] + "}val") or "1"


def _inline_of(element: Any, wanted_name: str) -> Iterator[str]:
    for part in elements(element, wanted_name):
        yield from _inline(part)


def _symbol(element: Any) -> str:
    """A character by its number; U+FFFD for a sign that only its font knows."""
    number = element.get(element.tag.replace("}sym", "}char")) or ""
    known = re.fullmatch("[0-9A-Fa-f]{4}", number) and not 0xD800 <= int(number, 16) < 0xF900
    return chr(int(number, 16)) if known else "\ufffd"


def _boxes(paragraph: Any) -> Iterator[str]:
    for box in elements(paragraph, "txbxContent"):
        yield from _word_blocks(box)


def _children(element: Iterable[Any]) -> Iterator[Any]:
    """The children, of alternatives for newer and older programs those of the first with text."""
    for child in element:
        if _element_name(child) == "AlternateContent":
            yield from _children(next(filter(_has_text, child), ()))
        else:
            yield child


def _has_text(element: Any) -> bool:
    return any(one.text or one.attrib for one in element.iter() if _element_name(one) in _TEXTS)


def _element_name(element: Any) -> str:
    """The name without its namespace; "" for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
