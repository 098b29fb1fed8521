"""The text of a Word document, line by line.

A formula stands in one line, as people type it: (a+b)/2, x_1^2, ∑_(i=1)^n i. Source: ECMA-376
part 1, 22.1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bot.files.packages import Package
from bot.files.word_lists import ListNumbers, attribute, element_name, first, named, value_in

_SKIPPED = frozenset(
    "del moveFrom delText delInstrText instrText sectPr sdtPr sdtEndPr rPr pPr tblPr"
    " tblGrid trPr tcPr fldData".split()
)
_TEXTS = ("t", "sym")
_ALTERNATIVES = {"docPr": ("descr", "title"), "shape": ("alt",)}
_OFF = ("0", "false", "off")
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_WORD_PARTS = (
    ("header", "Header"),
    ("footer", "Footer"),
    ("footnotes", "Footnote"),
    ("endnotes", "Endnote"),
    ("comments", "Comment"),
    ("data", "Diagram"),
)

_Number = Callable[[Any], str]  # of an item of a list


def document_lines(package: Package, document: Any) -> Iterator[str]:
    """Paragraphs and rows of tables in their order, then what stands outside of the body.
    `document` is the XML of the main part."""
    yield from _word_blocks(document, _list_numbers(package))
    seen_lines = set()
    for part in package.parts_from(package.main_part()):
        name = part.rpartition("/")[2]
        label = next((label for kind, label in _WORD_PARTS if name.startswith(kind)), "")
        root = package.root(part) if label else None
        for line in _word_blocks(root) if root is not None else ():
            if (line_text := line.strip()) and (label, line_text) not in seen_lines:
                seen_lines.add((label, line_text))
                yield f"{label}: {line_text}"


def _no_number(_: Any) -> str:
    return ""


def _list_numbers(package: Package) -> _Number:
    parts = {one.kind: one.target for one in package.relationships(package.main_part())}
    numbering = package.root(parts.get("numbering", ""))
    if numbering is None:
        return _no_number
    return ListNumbers(package.root(parts.get("styles", "")), numbering).label


def _word_blocks(element: Any, number: _Number = _no_number) -> Iterator[str]:
    before = ""  # of a paragraph whose end was deleted: the next one goes on with it
    for child in _children(element):
        match element_name(child):
            case "p":
                line = before + "".join(_inline(child))
                is_joined = _has(child, "pPr", "rPr", "del")
                before = line if is_joined else ""
                if not before:
                    is_gone = is_joined or _has(child, "pPr", "rPr", "moveFrom")
                    yield line if is_gone else number(child) + line
                yield from _boxes(child, number)
            case "tbl":
                rows = (row for row in elements(child, "tr") if not _has(row, "trPr", "del"))
                yield from (_word_row(row, number) for row in rows)
            case name if name and name not in _SKIPPED:
                yield from _word_blocks(child, number)
    if before:
        yield before


def _has(element: Any, *path: str) -> bool:
    """True if there is a property of that path, and it is not off."""
    for name in path:
        element = first(element, name)
        if element is None:
            return False
    return _value(element) not in _OFF


def _word_row(row: Any, number: _Number) -> str:
    there = (cell for cell in elements(row, "tc") if not _has(cell, "tcPr", "cellDel"))
    cells = (" ".join(line for line in _word_blocks(cell, number) if line) for cell in there)
    return " | ".join(cell.replace("\n", " ").rstrip() for cell in cells).rstrip(" |")


def elements(element: Any, wanted_name: str) -> Iterator[Any]:
    """The elements of that name, inside wrappers but not inside each other."""
    for child in _children(element):
        name = element_name(child)
        if name == wanted_name:
            yield child
        elif name and name not in _SKIPPED:
            yield from elements(child, wanted_name)


def _inline(element: Any) -> Iterable[str]:
    for child in _children(element):
        name = element_name(child)
        if name == "t":
            yield child.text or ""
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif alternative := _alternative_text(child):
            yield f"[picture: {alternative}]"
        elif name == "sym":
            yield _symbol(child)
        elif name == "textpath":
            yield child.get("string") or ""
        elif name in FORMULAS and child.tag.endswith(f"/math}}{name}"):
            yield _formula(child, name)
        elif name == "ffData":
            yield _form_value(child)
        elif name == "ruby":
            yield from _inline_of(child, "rubyBase")
            yield from ("(", *_inline_of(child, "rt"), ")")
        elif name == "r" and _has(child, "rPr", "vanish"):
            continue
        elif name and name not in _SKIPPED and name != "txbxContent":
            yield from _raised(child) if name == "r" else _inline(child)


def _raised(run: Any) -> Iterator[str]:
    """The run; the number of a note must not grow together with the number before it."""
    text = "".join(_inline(run))
    place = value_in(first(run, "rPr"), "vertAlign")
    yield f"^{text}" if text and place == "superscript" else text


def _formula(element: Any, name: str) -> str:
    def parts(wanted: str) -> list[str]:
        return [
            _formula(one, wanted) if wanted in FORMULAS else "".join(_inline(one))
            for one in named(element, wanted)
        ]

    def sign(wanted: str, default: str) -> str:
        return value_in(first(element, f"{name}Pr"), wanted, default)

    return formula_text(name, parts, sign)


def _form_value(form: Any) -> str:
    """What is chosen in a form field of the older kind; what is typed into one is plain text."""
    for one in elements(form, "ddList"):
        entries = [_value(entry) for entry in elements(one, "listEntry")]
        chosen = next(map(_value, [*elements(one, "result"), *elements(one, "default")]), "0")
        return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""
    for one in elements(form, "checkBox"):
        checked = next(map(_value, [*elements(one, "checked"), *elements(one, "default")]), "0")
        return "☐" if checked in _OFF else "☒"
    return ""


def _value(element: Any) -> str:
    """Its `val`; without one it is on."""
    return attribute(element, "val") or "1"


def _inline_of(element: Any, wanted_name: str) -> Iterator[str]:
    for part in elements(element, wanted_name):
        yield from _inline(part)


def _symbol(element: Any) -> str:
    """A character by its number; U+FFFD for a sign that only its font knows."""
    number = element.get(element.tag.replace("}sym", "}char")) or ""
    known = re.fullmatch("[0-9A-Fa-f]{4}", number) and not 0xD800 <= int(number, 16) < 0xF900
    return chr(int(number, 16)) if known else "\ufffd"


def _boxes(paragraph: Any, number: _Number) -> Iterator[str]:
    for box in elements(paragraph, "txbxContent"):
        yield from _word_blocks(box, number)


def _children(element: Iterable[Any]) -> Iterator[Any]:
    """The children, of alternatives for newer and older programs those of the first with text."""
    for child in element:
        if element_name(child) == "AlternateContent":
            yield from _children(next(filter(_has_text, child), ()))
        else:
            yield child


def _has_text(element: Any) -> bool:
    return any(
        one.text or one.attrib if element_name(one) in _TEXTS else _alternative_text(one)
        for one in element.iter()
    )


def _alternative_text(element: Any) -> str:
    """What is written for people who cannot see the picture."""
    names = _ALTERNATIVES.get(element_name(element), ())
    text = next(filter(None, map(element.get, names)), "")
    return " ".join(text.split())


Parts = Callable[[str], list[str]]  # the texts of the children of that name
Sign = Callable[[str, str], str]  # what a property of that name says, else the default


def formula_text(name: str, parts: Parts, sign: Sign) -> str:
    """The text of an element whose name is one of `FORMULAS`."""
    return _WRITTEN[name](parts, sign)


def _joined(*names_and_signs: str) -> Callable[[Parts, Sign], str]:
    """What stands between signs; a sign alone has an empty name before it."""

    def write(parts: Parts, _: Sign) -> str:
        text = ""
        for before, name in zip(names_and_signs[::2], names_and_signs[1::2], strict=True):
            part = _grouped("".join(parts(name)))
            text += before + part if part else ""
        return text

    return write


def _root(parts: Parts, _: Sign) -> str:
    degree, radicand = "".join(parts("deg")), "".join(parts("e"))
    return f"{_grouped(degree)}√{_grouped(radicand)}"


def _operator(parts: Parts, sign: Sign) -> str:
    limits = _joined("_", "sub", "^", "sup")(parts, sign)
    return f"{sign('chr', '∫')}{limits} {''.join(parts('e'))}"


def _in_brackets(parts: Parts, sign: Sign) -> str:
    inside = sign("sepChr", "|").join(parts("e"))
    return f"{sign('begChr', '(')}{inside}{sign('endChr', ')')}"


def _matrix(parts: Parts, _: Sign) -> str:
    return f"[{'; '.join(parts('mr'))}]"


def _row(parts: Parts, _: Sign) -> str:
    return ", ".join(parts("e"))


def _grouped(text: str) -> str:
    """A part, in brackets where it is more than one number or name."""
    is_whole = not text or text.isalnum() or (text[0] == "(" and text.find(")") == len(text) - 1)
    return text if is_whole else f"({text})"


_WRITTEN: dict[str, Callable[[Parts, Sign], str]] = {
    "f": _joined("", "num", "/", "den"),
    "sSup": _joined("", "e", "^", "sup"),
    "sSub": _joined("", "e", "_", "sub"),
    "sSubSup": _joined("", "e", "_", "sub", "^", "sup"),
    "rad": _root,
    "nary": _operator,
    "d": _in_brackets,
    "m": _matrix,
    "mr": _row,
}
FORMULAS = frozenset(_WRITTEN)
