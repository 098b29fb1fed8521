"""Extracts the text of one file, in a process of its own that reads hostile files: nothing else is
in it.

    python -m bot.files.extracting ENDING MOST_CHARS SECONDS MEGABYTES < file > answer

The answer is JSON: `{"text", "cut", "remarks"}`, or `{"refused": reason}` with a reason of
`reading.Reason`. Each remark says, in words of this package only, what the text may lack. Memory
and processor time are limits of the process; the libraries are loaded after they are set. A
process that uses up its time is ended by SIGXCPU."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from bot.files.decoding import decode
from bot.files.packages import XML_LIMITS, Archive, Package
from bot.files.pdf_fonts import has_unknown_characters, teach_encodings
from bot.files.pdf_forms import form_values, remarks_on
from bot.files.word import document_lines, elements
from bot.files.workbooks import workbook_lines

# Source: Unicode, EquivalentUnifiedIdeograph.txt, for what has no compatibility decomposition.
_SUPPLEMENT = dict(
    zip(
        "⺁⺄⺅⺆⺉⺊⺋⺌⺎⺏⺐⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺶⺹⺺⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
        "厂乙亻冂刂卜㔾小兀尣尢巳幺彑彐忄㣺扌攵旡日月歺民氵氺灬爫丬牛犭王疋目示礻竹糹纟罓罒羊耂肀聿肉臼艹艹艹虎衤覀西见角讠贝足车辶辶辶阝钅長镸长门阜阝雨青韦页风飞食飠饣首马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
        strict=True,
    )
)
_LOOK_ALIKE = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\ufb00-\ufb06]")

_UNKNOWN_CHARACTERS = "it does not say the characters of a font, so words may be wrong"
MOST_PAGES = 500
_MOST_PARTS = 5_000
_MOST_UNPACKED = 300_000_000
_ENOUGH_OF_TIME = 0.7  # then what is there is given, as the beginning
_NICE = 10  # answers go before files
_CODE_MB = 50  # which the process maps and does not allocate
_ADDRESSES = 4  # times the data: libraries reserve addresses that they never fill
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an Office file of before 2007, or one with a password
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")


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
        or getattr(failure, "code", None) in XML_LIMITS
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

    teach_encodings()
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise NoText("encrypted")
    for number, page in enumerate(reader.pages, 1):
        if number > MOST_PAGES:
            raise _Enough
        yield page.extract_text()
        if _UNKNOWN_CHARACTERS not in remarks and has_unknown_characters(page):
            remarks.append(_UNKNOWN_CHARACTERS)
        yield from remarks_on(page)
    try:
        yield from list(form_values(reader))
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, NotImplementedError,
            RecursionError, SyntaxError, TypeError, ValueError):  # fmt: skip
        remarks.append("the values of its form could not be read")


def _docx(data: bytes, remarks: list[str]) -> Iterator[str]:
    _check_size(data, "word/", remarks)
    package = Package(data, remarks)
    document = package.root(package.main_part())
    yield from document_lines(package, document)
    if next(elements(document, "altChunk"), None) is not None:
        remarks.append("documents embedded in it are not read")


def _xlsx(data: bytes, remarks: list[str]) -> Iterator[str]:
    _check_size(data, "xl/", remarks)
    yield from workbook_lines(data, remarks)


def _check_size(data: bytes, folder: str, remarks: list[str]) -> None:
    """Before anything is unpacked: what it would come to. No part gives more than it says."""
    if data.startswith(_OLE):
        raise NoText("encrypted")
    try:
        with Archive(io.BytesIO(data)) as archive:
            parts, names = archive.infolist(), [one.lower() for one in archive.namelist()]
    except zipfile.BadZipFile as exc:
        raise NoText("other_content" if not data.startswith(b"PK") else "damaged") from exc
    if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > _MOST_UNPACKED:
        raise NoText("too_complex")
    if not any(name.startswith(folder) for name in names):
        raise NoText("other_content")
    if any(name.startswith((f"{folder}media/", f"{folder}charts/")) for name in names):
        remarks.append("pictures and charts in it are not read")


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
