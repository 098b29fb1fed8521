"""Reads the text of a Word document from its XML, whatever wraps it. Pure.

python-docx reads the plain runs of a paragraph only. Word wraps text in tracked insertions, content
controls, fields, smart tags, custom XML and text boxes (ECMA-376, part 1, 17.3 to 17.5). Deleted
text is left out, as in Word's view without markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_SKIPPED = frozenset(
    "del moveFrom delText delInstrText instrText Fallback sectPr sdtPr sdtEndPr rPr pPr tblPr"
    " tblGrid trPr tcPr fldData ffData".split()
)
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_PARTS = (
    ("header", "Header"),
    ("footer", "Footer"),
    ("footnotes", "Footnote"),
    ("endnotes", "Endnote"),
    ("comments", "Comment"),
)


def document_lines(document: Any) -> Iterator[str]:
    """Paragraphs and rows of tables in their order, then what stands outside of the body."""
    yield from _blocks(document.element.body)
    seen_lines = set()
    for part in document.part.package.iter_parts():
        name = str(part.partname).rpartition("/")[2]
        label = next((label for kind, label in _PARTS if name.startswith(kind)), "")
        root = getattr(part, "element", None) if label else None
        if label and root is None:
            from lxml import etree  # type: ignore[import-untyped]

            root = etree.fromstring(part.blob, etree.XMLParser(resolve_entities=False))
        for line in _blocks(root) if root is not None else ():
            if (line_text := line.strip()) and (label, line_text) not in seen_lines:
                seen_lines.add((label, line_text))
                yield f"{label}: {line_text}"


def _blocks(element: Any) -> Iterator[str]:
    for child in element:
        match _name(child):
            case "p":
                yield "".join(_inline(child))
                yield from _boxes(child)
            case "tbl":
                yield from map(_row, _found(child, "tr"))
            case name if name and name not in _SKIPPED:
                yield from _blocks(child)


def _row(row: Any) -> str:
    cells = (" ".join(line for line in _blocks(cell) if line) for cell in _found(row, "tc"))
    return " | ".join(cell.replace("\n", " ") for cell in cells).rstrip(" |")


def _found(element: Any, wanted_name: str) -> Iterator[Any]:
    """The elements of that name, inside wrappers but not inside each other."""
    for child in element:
        name = _name(child)
        if name == wanted_name:
            yield child
        elif name and name not in _SKIPPED:
            yield from _found(child, wanted_name)


def _inline(element: Any) -> Iterable[str]:
    for child in element:
        name = _name(child)
        if name == "t":
            yield child.text or ""
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name and name not in _SKIPPED and name != "txbxContent":
            yield from _inline(child)


def _boxes(paragraph: Any) -> Iterator[str]:
    for box in _found(paragraph, "txbxContent"):
        yield from _blocks(box)


def _name(element: Any) -> str:
    """The name without its namespace; "" for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
