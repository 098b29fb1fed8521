"""The text of an Excel workbook, sheet by sheet: values as cells show them, formulas without stored
values, comments.

Only rows, strings and number formats are read. A chart, a colour or a filter that the library does
not understand costs nothing, and a cell that makes no sense is shown as it is stored."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError

from bot.files.number_formats import EAST_ASIAN_FORMATS, shown
from bot.files.packages import DAMAGED_PARTS, Package, Relationship

_SCHEMAS_OF = b"http://schemas.openxmlformats.org/"
_STRICT_ROOT = b"http://purl.oclc.org/ooxml/"
_STRICT = (  # how Excel names things in "Strict Open XML", and what the library knows
    (_STRICT_ROOT + b"spreadsheetml/", _SCHEMAS_OF + b"spreadsheetml/2006/"),
    (_STRICT_ROOT + b"drawingml/", _SCHEMAS_OF + b"drawingml/2006/"),
    (_STRICT_ROOT + b"officeDocument/", _SCHEMAS_OF + b"officeDocument/2006/"),
)
_FORMULAS_SHOWN = "formulas without stored values are shown as formulas"
_HIDDEN_SHOWN = "hidden sheets, rows or columns are shown too"
_IN_A_ROW = ("c", "v", "f", "is", "t", "r")
_ON = ("1", "true")
_STYLES_KEPT = ("numFmts", "numFmt", "cellXfs", "xf")
_LARGEST = 5_000_000  # bytes of a part beside the sheets


class _Cell(NamedTuple):
    value: object
    kind: str  # "str" for a text that was computed and is empty
    number_format: str
    formula: object


class _Formats(NamedTuple):
    """The number formats of a workbook by the styles of its cells."""

    codes: list[str]
    dates: set[int]
    durations: set[int]


def workbook_lines(data: bytes, remarks: list[str]) -> Iterator[str]:
    """The sheets in their order, each below its name. `remarks` gets what the text may lack."""
    package = Package(_transitional(data), remarks)
    part = package.main_part()
    relationships = package.relationships(part)
    by_id = {one.id: one for one in relationships}
    root = package.root(part)
    # Programs that cannot compute store 0 for every formula, and have Excel compute later.
    is_computed_later = any(one.get("fullCalcOnLoad") in _ON for one in root.iter("{*}calcPr"))
    sheets = _Sheets(package, relationships, root)
    for sheet in root.iter("{*}sheet"):
        found = by_id.get(_relationship_id(sheet))
        if found is None or found.kind != "worksheet":
            continue
        if sheet.get("state", "visible") != "visible":
            _remark(remarks, _HIDDEN_SHOWN)
        yield f"# {sheet.get('name', '')}"
        rows = sheets.rows(found.target, remarks)
        lines = (_row(_texts(row, is_computed_later, remarks)) for row in rows)
        yield from _without_gaps(lines)
        yield from cell_comments(package, found.target)


class _Sheets:
    """Reads the rows of sheets with what they share."""

    def __init__(self, package: Package, relationships: list[Relationship], root: Any) -> None:
        from openpyxl.reader.strings import read_string_table

        self._archive = package.archive
        parts = {one.kind: one.target for one in relationships}
        self._strings: list[str] = []
        if "sharedStrings" in parts:
            with self._archive.open(parts["sharedStrings"]) as source:
                self._strings = read_string_table(source)
        self._formats = _formats(package.root(parts.get("styles", "")))
        old = any(one.get("date1904") in _ON for one in root.iter("{*}workbookPr"))
        self._epoch = dt.datetime(1904, 1, 1) if old else dt.datetime(1899, 12, 30)  # noqa: DTZ001

    def rows(self, part: str, remarks: list[str]) -> Iterator[list[_Cell | None]]:
        """The rows of a sheet up to where it is damaged; rows that are missing are an empty one."""
        parser_of = _parser_class()
        last = 0
        with self._archive.open(part) as source:
            parser = parser_of(source, self._strings, self._epoch, self._formats)
            try:
                for number, cells in parser.parse():
                    if number > last + 1:
                        yield []
                    last = number
                    yield _in_columns(cells)
            except ParseError:
                _remark(remarks, DAMAGED_PARTS)
        if parser.has_hidden:
            _remark(remarks, _HIDDEN_SHOWN)


def _in_columns(cells: list[dict[str, Any]]) -> list[_Cell | None]:
    row: list[_Cell | None] = [None] * max((one["column"] for one in cells), default=0)
    for one in cells:
        row[one["column"] - 1] = one["cell"]
    return row


def _parser_class() -> Any:
    """The library's reader of cells, reduced to rows. Made here, because libraries are loaded after
    the limits of the process are set."""
    from openpyxl.worksheet._reader import COL_TAG, FORMULA_TAG, ROW_TAG, WorkSheetParser
    from openpyxl.xml.functions import iterparse

    namespace = ROW_TAG.removesuffix("row")
    kept = {namespace + name for name in _IN_A_ROW}

    class Rows(WorkSheetParser):  # type: ignore[misc]
        def __init__(self, source: Any, strings: list[str], epoch: Any, formats: _Formats) -> None:
            dates, durations = formats.dates, formats.durations
            super().__init__(source, strings, True, epoch, dates, durations)
            self.codes = formats.codes
            self.has_hidden = False

        def parse(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
            for _, element in iterparse(self.source):
                if element.tag in (ROW_TAG, COL_TAG) and element.get("hidden") in _ON:
                    self.has_hidden = True
                if element.tag == ROW_TAG:
                    yield self.parse_row(element)
                if element.tag not in kept:
                    element.clear()

        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell = self._parsed(element)
            style = cell["style_id"]
            code = self.codes[style] if style < len(self.codes) else "General"
            formula = None
            if element.find(FORMULA_TAG) is not None:
                formula = self._formula(element)
            return {
                "column": cell["column"],
                "cell": _Cell(cell["value"], cell["data_type"], code, formula),
            }

        def _parsed(self, element: Any) -> Any:
            try:
                return super().parse_cell(element)
            except (ValueError, LookupError, TypeError, OverflowError):
                # As text, and where its place makes no sense either, beside the one before.
                counter: int = self.col_counter  # type: ignore[has-type]
                is_of_table = element.get("t") == "s"
                element.set("t", "inlineStr" if is_of_table else "str")
                element.attrib.pop("s", None)
            try:
                return super().parse_cell(element)
            except (ValueError, LookupError, TypeError):
                self.col_counter = counter
                element.attrib.pop("r", None)
                return super().parse_cell(element)

        def _formula(self, element: Any) -> object:
            try:
                return self.parse_formula(element)
            except Exception:  # noqa: BLE001  its reader of formulas fails in many ways
                return f"={element.findtext(FORMULA_TAG) or ''}"

    return Rows


def _formats(root: Any) -> _Formats:
    """Of the styles only what says how numbers are shown: the rest may be anything."""
    from lxml import etree  # type: ignore[import-untyped]
    from openpyxl.styles.numbers import BUILTIN_FORMATS
    from openpyxl.styles.stylesheet import Stylesheet

    BUILTIN_FORMATS.update(EAST_ASIAN_FORMATS)
    if root is None:
        return _Formats([], set(), set())
    for element in [one for one in root.iter() if one is not root]:
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
        parent = element.getparent()
        if name not in _STYLES_KEPT and parent is not None:
            parent.remove(element)
        for attribute in set(element.attrib) - {"numFmtId", "formatCode"}:
            del element.attrib[attribute]
    styles = Stylesheet.from_tree(root)
    own = styles.number_formats
    numbers = [one.numFmtId for one in styles.cell_styles]
    codes = [
        own[one - 164] if 164 <= one < 164 + len(own) else BUILTIN_FORMATS.get(one, "General")
        for one in numbers
    ]
    return _Formats(codes, styles.date_formats, styles.timedelta_formats)


def _texts(
    row: Iterable[_Cell | None], is_computed_later: bool, remarks: list[str]
) -> Iterator[str]:
    """The values that are stored; the formula where there is none. A text may be empty."""
    for cell in row:
        if cell is None:
            yield ""
            continue
        is_known = cell.value is not None or cell.kind == "str"
        if cell.formula is None or (is_known and not (is_computed_later and cell.value == 0)):
            yield shown(cell.value, cell.number_format)
            continue
        text = _formula(cell.formula)
        _remark(remarks, _FORMULAS_SHOWN)
        yield text


def _formula(value: object) -> str:
    """A formula; one over several cells is an object with its text."""
    if hasattr(value, "dt2D"):  # a table of what-if values
        return "=TABLE()"
    return shown(getattr(value, "text", value), None)


def _row(cells: Iterable[str]) -> str:
    return " | ".join(cells).rstrip(" |")


def _without_gaps(lines: Iterable[str]) -> Iterator[str]:
    """The lines, of empty ones in a row the first: a sheet may have a million of them."""
    last = ""
    for line in lines:
        if line or last:
            yield line
        last = line


def cell_comments(package: Package, sheet: str) -> Iterator[str]:
    """A line for each comment of the `sheet`, named by its part.

    Excel stores a conversation twice, as comments with answers and as a note for older programs,
    which says first what it is.
    """
    for kind, element, text in (
        ("threadedComment", "threadedComment", "text"),
        ("comments", "comment", "t"),
    ):
        roots = [
            package.root(one.target, _LARGEST)
            for one in package.relationships(sheet)
            if one.kind == kind
        ]
        comments = [
            (one.get("ref", ""), _words(one, text))
            for root in roots
            if root is not None
            for one in root.iter(f"{{*}}{element}")
        ]
        yield from (f"Comment at {cell}: {words}" for cell, words in comments if words)
        if comments:
            return


def _words(element: Any, name: str) -> str:
    words = "".join(one.text or "" for one in element.iter(f"{{*}}{name}"))
    return " ".join(words.split())


def _relationship_id(sheet: Any) -> str:
    ids = (value for name, value in sheet.attrib.items() if name.endswith("}id"))
    return next(ids, "")


def _remark(remarks: list[str], remark: str) -> None:
    if remark not in remarks:
        remarks.append(remark)


def _transitional(data: bytes) -> bytes:
    """The file with the names that the library knows."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if not any(_STRICT_ROOT in archive.read(name) for name in _roots(archive)):
            return data
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as renamed:
            for part in archive.namelist():
                content = archive.read(part)
                for strict, transitional in _STRICT if part.endswith((".xml", ".rels")) else ():
                    content = content.replace(strict, transitional)
                renamed.writestr(part, content)
    return packed.getvalue()


def _roots(archive: zipfile.ZipFile) -> list[str]:
    return [one for one in archive.namelist() if one.replace("\\", "/") == "_rels/.rels"]
