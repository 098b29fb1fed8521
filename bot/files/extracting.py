"""Extracts the text of one file, in a process of its own that reads hostile files: nothing else is
in it.

    python -m bot.files.extracting ENDING MOST_CHARS SECONDS MEGABYTES < file > answer

The answer is JSON: `{"text", "cut", "remarks"}`, or `{"refused": reason}` with a reason of
`reading.Reason`. Each remark says, in words of this module only, what the text may lack. Memory
and processor time are limits of the process; the libraries are loaded after they are set. A
process that uses up its time is ended by SIGXCPU."""

from __future__ import annotations

import io
import json
import os
import posixpath
import re
import resource
import sys
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

from bot.files.decoding import decode
from bot.files.number_formats import EAST_ASIAN_FORMATS, shown
from bot.files.pdf_forms import form_values, remarks_on
from bot.files.word import document_lines, elements

_SCHEMAS_OF = b"http://schemas.openxmlformats.org/"
_STRICT_ROOT = b"http://purl.oclc.org/ooxml/"
_STRICT = (  # how Word and Excel name things in "Strict Open XML", and what the libraries know
    (_STRICT_ROOT + b"wordprocessingml/", _SCHEMAS_OF + b"wordprocessingml/2006/"),
    (_STRICT_ROOT + b"spreadsheetml/", _SCHEMAS_OF + b"spreadsheetml/2006/"),
    (_STRICT_ROOT + b"drawingml/", _SCHEMAS_OF + b"drawingml/2006/"),
    (_STRICT_ROOT + b"officeDocument/", _SCHEMAS_OF + b"officeDocument/2006/"),
)
_FORMULA = re.compile(rb"<(?:[\w.-]+:)?f[\s>/]")
_FORMULAS_SHOWN = "formulas without stored values are shown as formulas"
_LONGEST_TAG = 200
# Programs that cannot compute store 0 for every formula, and have Excel compute when it loads.
_COMPUTED_LATER = re.compile(rb"fullCalcOnLoad=[\"'](?:1|true)")

# Source: Unicode, EquivalentUnifiedIdeograph.txt, for what has no compatibility decomposition.
_SUPPLEMENT = dict(
    zip(
        "⺁⺄⺅⺆⺉⺊⺋⺌⺎⺏⺐⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺶⺹⺺⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
        "厂乙亻冂刂卜㔾小兀尣尢巳幺彑彐忄㣺扌攵旡日月歺民氵氺灬爫丬牛犭王疋目示礻竹糹纟罓罒羊耂肀聿肉臼艹艹艹虎衤覀西见角讠贝足车辶辶辶阝钅長镸长门阜阝雨青韦页风飞食飠饣首马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
        strict=True,
    )
)
_LOOK_ALIKE = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\ufb00-\ufb06]")

MOST_PAGES = 500
_MOST_PARTS = 5_000
_MOST_UNPACKED = 300_000_000
_ENOUGH_OF_TIME = 0.7  # then what is there is given, as the beginning
_NICE = 10  # answers go before files
_CODE_MB = 50  # which the process maps and does not allocate
_ADDRESSES = 4  # times the data: libraries reserve addresses that they never fill
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an Office file of before 2007, or one with a password
_XML_LIMITS = (2, 89, 114)  # libxml2: no memory, entity loop, resource limit
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")
_LARGEST = 5_000_000  # bytes of a part of a workbook


def plain_characters(text: str) -> str:
    """The text with the characters that people type."""
    return _LOOK_ALIKE.sub(_plain_character, text)


def _plain_character(match: re.Match[str]) -> str:
    return _SUPPLEMENT.get(match[0]) or unicodedata.normalize("NFKC", match[0])


class NoText(Exception):
    """The file gives no text; the argument is the reason."""


class _Enough(Exception):
    """There is more, and it is not read."""


def main(arguments: list[str]) -> int:
    """Reads the file from standard input; the answer is printed, also when it is a refusal."""
    ending, most_chars, seconds, megabytes = arguments[0], *map(int, arguments[1:4])
    data = sys.stdin.buffer.read()
    limit(seconds, megabytes)
    answer: dict[str, Any]
    try:
        answer = extract(ending, data, most_chars, seconds * _ENOUGH_OF_TIME)
    except NoText as exc:
        answer = {"refused": str(exc)}
    except Exception as exc:  # noqa: BLE001  whatever a library makes of a hostile file
        answer = {"refused": "too_complex" if _is_at_limit(exc) else "damaged"}
    sys.stdout.buffer.write(json.dumps(answer).encode())
    return 0


def extract(ending: str, data: bytes, most_chars: int, seconds: float) -> dict[str, Any]:
    """Its text, at most `most_chars` characters, as far as `seconds` of processor time suffice.
    Raises `NoText`, or whatever the libraries raise."""
    read = _READERS[ending]
    ends = time.process_time() + seconds
    lines, left, cut = [], most_chars, False
    remarks: list[str] = []
    try:
        for line in map(plain_characters, read(data, remarks)):
            lines.append(line[: max(left, 0)])
            left -= len(line) + 1
            if left < 0 or time.process_time() > ends:
                raise _Enough  # noqa: TRY301
    except _Enough:
        cut = True
    text = "\n".join(lines).strip()
    if not text:
        raise NoText("too_complex" if cut else "no_text")
    return {"text": text, "cut": cut, "remarks": remarks}


def _is_at_limit(failure: BaseException) -> bool:
    """Whether memory ran out, also for a library, or a limit that one sets itself was reached."""
    while failure.__context__ and not isinstance(failure, MemoryError):
        failure = failure.__context__
    return (
        isinstance(failure, MemoryError | ImportError)
        or type(failure).__name__ == "LimitReachedError"
        or getattr(failure, "code", None) in _XML_LIMITS
    )


def limit(seconds: int, megabytes: int) -> None:
    """What this process may use from now on: processor time, memory, and no file."""
    os.nice(_NICE)
    data = max(0, megabytes - _CODE_MB) * 1024 * 1024
    for name, soft, hard in (
        (resource.RLIMIT_DATA, data, data),
        (resource.RLIMIT_AS, _ADDRESSES * data, _ADDRESSES * data),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(name, (soft, hard))


def _text(data: bytes, remarks: list[str]) -> Iterator[str]:
    text, doubtful = decode(data)
    begins = text[:8192]
    most_controls = max(1, len(begins) // 100)
    is_binary = sum(ord(one) in _CONTROLS for one in begins) > most_controls
    if is_binary or data.startswith((b"%PDF-", b"PK\x03\x04", _OLE)):
        raise NoText("other_content")
    if doubtful:
        remarks.append(f"its encoding is guessed ({doubtful})")
    # Not `splitlines`: all lines of a large file at once take many times its size.
    for line in io.StringIO(text, newline=None):
        yield line.removesuffix("\n")


def _pdf(data: bytes, remarks: list[str]) -> Iterator[str]:
    if b"%PDF-" not in data[:1024]:
        raise NoText("other_content")
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise NoText("encrypted")
    for number, page in enumerate(reader.pages, 1):
        if number > MOST_PAGES:
            raise _Enough
        yield page.extract_text()
        yield from remarks_on(page)
    try:
        yield from list(form_values(reader))
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, NotImplementedError,
            RecursionError, SyntaxError, TypeError, ValueError):  # fmt: skip
        remarks.append("the values of its form could not be read")


def _docx(data: bytes, remarks: list[str]) -> Iterator[str]:
    _unpackable(data, "word/", remarks)
    from docx import Document

    document = Document(io.BytesIO(_transitional(data)))
    yield from document_lines(document)
    if next(elements(document.element.body, "altChunk"), None) is not None:
        remarks.append("documents embedded in it are not read")


def _xlsx(data: bytes, remarks: list[str]) -> Iterator[str]:
    _unpackable(data, "xl/", remarks)
    from openpyxl import load_workbook
    from openpyxl.styles.numbers import BUILTIN_FORMATS
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

    data = _transitional(data)
    # It looks for the size of a sheet, and without one reads all of it into memory; and what a
    # sheet says of its size may be anything.
    ReadOnlyWorksheet._get_size = lambda sheet: None
    BUILTIN_FORMATS.update(EAST_ASIAN_FORMATS)

    values, formulas = (
        load_workbook(io.BytesIO(data), read_only=True, data_only=kept, keep_links=False)
        for kept in (True, False)
    )
    with_formulas = _holds(data, "xl/worksheets/", _FORMULA)
    is_computed_later = _holds(data, "xl/workbook.xml", _COMPUTED_LATER)
    for number, sheet in enumerate(values.worksheets, 1):
        yield f"# {sheet.title}"
        if with_formulas:
            pairs = zip(
                sheet.iter_rows(),
                formulas.worksheets[number - 1].iter_rows(values_only=True),
                strict=False,
            )
            rows = (_cells_or_formulas(*pair, is_computed_later, remarks) for pair in pairs)
        else:
            rows = (map(_cell, row) for row in sheet.iter_rows())
        yield from _without_gaps(map(_row, rows))
        yield from cell_comments(data, sheet._worksheet_path)


def _cells_or_formulas(
    cells: Iterable[Any], formulas: Iterable[Any], is_computed_later: bool, remarks: list[str]
) -> Iterator[str]:
    """The values that are stored; the formula where there is none. A text may be empty."""
    for cell, formula in zip_longest(cells, formulas):
        value = None if cell is None else cell.value
        is_known = value is not None or (cell is not None and cell.data_type == "str")
        if is_known and not (is_computed_later and value == 0):
            yield _cell(cell)
            continue
        text = _formula(formula)
        if text.startswith("=") and _FORMULAS_SHOWN not in remarks:
            remarks.append(_FORMULAS_SHOWN)
        yield text


def _without_gaps(lines: Iterable[str]) -> Iterator[str]:
    """The lines, of empty ones in a row the first: a sheet may have a million of them."""
    last = ""
    for line in lines:
        if line or last:
            yield line
        last = line


def _holds(data: bytes, folder: str, wanted: re.Pattern[bytes]) -> bool:
    """True if any part in `folder` may hold what is `wanted`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return any(
            wanted.search(line)
            for part in archive.namelist()
            if part.startswith(folder)
            for line in _pieces(archive, part)
        )


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    with archive.open(part) as part_file:
        end = b""
        while piece := part_file.read(1 << 20):
            yield end + piece
            end = piece[-_LONGEST_TAG:]


def _cell(cell: Any) -> str:
    return shown(cell.value, cell.number_format)


def _formula(value: object) -> str:
    """A formula, or what stands in a cell; one over several cells is an object with its text."""
    if hasattr(value, "dt2D"):  # a table of what-if values
        return "=TABLE()"
    return shown(getattr(value, "text", value), None)


def _row(cells: Iterable[str]) -> str:
    return " | ".join(cells).rstrip(" |")


def _unpackable(data: bytes, folder: str, remarks: list[str]) -> None:
    """Before anything is unpacked: what it would come to. No part gives more than it says."""
    if data.startswith(_OLE):
        raise NoText("encrypted")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile as exc:
        raise NoText("other_content" if not data.startswith(b"PK") else "damaged") from exc
    if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > _MOST_UNPACKED:
        raise NoText("too_complex")
    if not any(part.filename.startswith(folder) for part in parts):
        raise NoText("other_content")
    if any(part.filename.startswith((f"{folder}media/", f"{folder}charts/")) for part in parts):
        remarks.append("pictures and charts in it are not read")


def _transitional(data: bytes) -> bytes:
    """The file with the names that the libraries know."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if _STRICT_ROOT not in archive.read("_rels/.rels"):
            return data
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as renamed:
            for part in archive.namelist():
                content = archive.read(part)
                for strict, transitional in _STRICT if part.endswith((".xml", ".rels")) else ():
                    content = content.replace(strict, transitional)
                renamed.writestr(part, content)
    return packed.getvalue()


def cell_comments(data: bytes, sheet: str) -> Iterator[str]:
    """A line for each comment of the `sheet`, named by its part. `openpyxl` leaves comments out
    where it reads row by row.

    Excel stores a conversation twice, as comments with answers and as a note for older programs,
    which says first what it is.
    """
    folder, name = posixpath.split(sheet.lstrip("/"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        targets = [
            (one.get("Type", ""), one.get("Target", ""))
            for one in _elements(archive, f"{folder}/_rels/{name}.rels", "Relationship")
        ]
        for kind, element, text in (
            ("/threadedComment", "threadedComment", "text"),
            ("/comments", "comment", "t"),
        ):
            comments = [
                (one.get("ref", ""), _words(one, text))
                for type_name, target in targets
                if type_name.endswith(kind)
                for one in _elements(archive, _path(folder, target), element)
            ]
            yield from (f"Comment at {cell}: {words}" for cell, words in comments if words)
            if comments:
                return


def _path(folder: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(folder, target))


def _elements(archive: zipfile.ZipFile, part: str, name: str) -> Iterator[Any]:
    """The elements of that name in a part; none if there is no such part."""
    from lxml import etree  # type: ignore[import-untyped]

    if part not in archive.NameToInfo or archive.getinfo(part).file_size > _LARGEST:
        return
    parser = etree.XMLParser(resolve_entities=False, recover=True)
    root = etree.fromstring(archive.read(part), parser)
    yield from root.iter(f"{{*}}{name}") if root is not None else ()


def _words(element: Any, name: str) -> str:
    words = "".join(one.text or "" for one in element.iter(f"{{*}}{name}"))
    return " ".join(words.split())


_READERS: dict[str, Callable[[bytes, list[str]], Iterator[str]]] = {
    "txt": _text,
    "md": _text,
    "csv": _text,
    "pdf": _pdf,
    "docx": _docx,
    "xlsx": _xlsx,
}
ENDINGS = tuple(_READERS)
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
