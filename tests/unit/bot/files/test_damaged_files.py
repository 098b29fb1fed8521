"""Files with parts that are missing, odd or damaged: the rest of their text is read."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from openpyxl import Workbook

from bot.files.extracting import extract
from bot.files.packages import DAMAGED_PARTS
from tests.support import hostile_files as made
from tests.support.rows import every_row

DOCX = made.docx("The owner is Bob.")
XLSX = made.xlsx({"A": (("x", 1), ("total", 42)), "B": (("y", 2),)})
SHEETS = "# A\nx | 1\ntotal | 42\n# B\ny | 2"
KIND = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
STRINGS = '<c t="inlineStr"><is><t>total</t></is></c>'


def read(ending: str, data: bytes) -> dict[str, Any]:
    return extract(ending, data, 20_000, 30)


def parts_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def changed(data: bytes, part: str, old: str, new: str) -> bytes:
    """The file with one text of a part replaced by another."""
    parts = parts_of(data)
    assert old.encode() in parts[part]
    return packed(parts | {part: parts[part].replace(old.encode(), new.encode())})


def without(data: bytes, part: str) -> bytes:
    return packed({name: one for name, one in parts_of(data).items() if name != part})


def leading_to(target: str) -> bytes:
    """The document with a relationship to what is not there."""
    relationship = f'<Relationship Id="rId99" Type="x/image" Target="{target}"/></Relationships>'
    return changed(DOCX, "word/_rels/document.xml.rels", "</Relationships>", relationship)


@every_row(
    "data",
    [
        *map(leading_to, ("NULL", "../NULL", "#_top", "media/image1.png", "")),
        changed(DOCX, "[Content_Types].xml", KIND, "application/vnd.ms-word.document."
                "macroEnabled.main+xml"),
        changed(DOCX, "[Content_Types].xml", "document.main+xml", "template.main+xml"),
        without(DOCX, "[Content_Types].xml"),
        without(DOCX, "docProps/core.xml"),
        without(DOCX, "word/styles.xml"),
        packed(parts_of(DOCX) | {"docProps/core.xml": b"<broken"}),
        packed({name.replace("/", "\\"): one for name, one in parts_of(DOCX).items()}),
        packed({name.upper(): one for name, one in parts_of(DOCX).items()}),
    ],
)  # fmt: skip
def test_what_a_document_does_not_need_does_not_make_it_unreadable(data: bytes) -> None:
    assert read("docx", data) == {"text": "The owner is Bob.", "cut": False, "remarks": []}


@every_row(
    ("part", "old", "new"),
    [
        ("xl/styles.xml", '<color theme="1"/>', '<color rgb="red"/>'),
        ("xl/styles.xml", "<fill><patternFill/></fill>", "<fill/>"),
        ("xl/styles.xml", '<family val="2"/>', '<family val="99"/>'),
        ("xl/styles.xml", 'xfId="0" builtinId', 'xfId="9" builtinId'),
        ("xl/workbook.xml", 'visibility="visible"', 'visibility="odd"'),
        ("xl/workbook.xml", "<definedNames/>",
         '<definedNames><definedName localSheetId="x">#REF!</definedName></definedNames>'),
        ("xl/worksheets/sheet1.xml", "</sheetData>",
         '</sheetData><autoFilter ref="A1"><filterColumn colId="x"/></autoFilter>'),
        ("xl/worksheets/sheet1.xml", "</sheetData>",
         '</sheetData><pageSetup orientation="odd" fitToWidth="x"/>'),
        ("docProps/core.xml", "<dcterms:created", "<<"),
        ("[Content_Types].xml", "sheet.main+xml", "odd+xml"),
    ],
)  # fmt: skip
def test_what_a_workbook_does_not_need_does_not_make_it_unreadable(
    part: str, old: str, new: str
) -> None:
    data = changed(XLSX, part, old, new)
    assert read("xlsx", data) == {"text": SHEETS, "cut": False, "remarks": []}


def test_a_page_with_a_chart_costs_no_sheet() -> None:
    book, out = Workbook(), io.BytesIO()
    book.active["A1"] = "x"
    book.create_chartsheet("Chart")
    book.create_sheet("After")["A1"] = "y"
    book.save(out)
    assert read("xlsx", out.getvalue())["text"] == "# Sheet\nx\n# After\ny"


def test_names_of_parts_are_found_in_any_writing() -> None:
    book, out = Workbook(), io.BytesIO()
    book.active["A1"] = "shared"
    book.save(out)
    parts = parts_of(out.getvalue())
    for write in (lambda name: name.replace("/s", "/S"), lambda name: name.replace("/", "\\")):
        data = packed({write(name): one for name, one in parts.items()})
        assert read("xlsx", data)["text"] == "# Sheet\nshared"


def sheet(cells: str) -> bytes:
    return changed(
        XLSX, "xl/worksheets/sheet1.xml", "<sheetData>", f"<sheetData><row>{cells}</row>"
    )


@every_row(
    ("cell", "shown"),
    [
        ('<c r="A1"><v>1,5</v></c>', "1,5"),
        ('<c r="A1" t="d"><v>31/12/2026</v></c>', "31/12/2026"),
        ('<c r="A1" t="b"><v>true</v></c>', "true"),
        ('<c r="A1" s="99"><v>7</v></c>', "7"),
        ('<c r="A1" s="x"><v>7</v></c>', "7"),
        ('<c r="A$1$"><v>7</v></c>', "7"),
        ('<c r="A1" t="s"><v>99</v></c>', ""),
        ('<c r="A1"><f t="dataTable" odd="1">x</f></c>', "=x"),
    ],
)
def test_a_cell_that_makes_no_sense_costs_no_other(cell: str, shown: str) -> None:
    lines = read("xlsx", sheet(cell + STRINGS))["text"].splitlines()
    assert lines[1] == f"{shown} | total"
    assert lines[-1] == "y | 2"


@every_row("part", ["xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"])
def test_a_sheet_that_breaks_off_is_read_up_to_there(part: str) -> None:
    parts = parts_of(XLSX)
    whole, _, _ = parts[part].partition(b"</sheetData>")
    found = read("xlsx", packed(parts | {part: whole}))
    assert found == {"text": SHEETS, "cut": False, "remarks": [DAMAGED_PARTS]}


@every_row("odd", ["owner&#0;", "owner<w:t", "owner</w:p>"])
def test_a_damaged_document_is_read_as_far_as_it_can_be(odd: str) -> None:
    found = read("docx", changed(DOCX, "word/document.xml", "owner", odd))
    assert found["text"].startswith("The owner")
    assert found["remarks"] == [DAMAGED_PARTS]


@every_row("hide", ["sheet", "row", "column"])
def test_what_is_hidden_in_a_workbook_is_remarked(hide: str) -> None:
    book, out = Workbook(), io.BytesIO()
    first, second = book.active, book.create_sheet("Rates")
    first["A1"], first["B2"], second["A1"] = "x", "y", "z"
    first.row_dimensions[2].hidden = hide == "row"
    first.column_dimensions["B"].hidden = hide == "column"
    second.sheet_state = "veryHidden" if hide == "sheet" else "visible"
    book.save(out)
    found = read("xlsx", out.getvalue())
    assert found["text"] == "# Sheet\nx\n | y\n# Rates\nz"
    assert found["remarks"] == ["hidden sheets, rows or columns are shown too"]


def pdf(encoding: str, codes: bytes) -> bytes:
    """A page whose text is in that encoding of a composite font."""
    font = (
        f"/Subtype /Type0 /BaseFont /Song /Encoding /{encoding} /DescendantFonts "
        "[<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Song /DW 1000 "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>]"
    )
    page = made.pdf("PLACE").replace(b"/Subtype /Type1 /BaseFont /Helvetica", font.encode())
    return page.replace(b"(PLACE)", b"<" + codes.hex().encode() + b">")


@every_row(
    ("encoding", "codec", "text"),
    [
        ("GBKp-EUC-H", "gbk", "预算是四千二百元 Bob"),
        ("UniGB-UTF8-H", "utf-8", "预算是四千二百元 Bob"),
        ("UniGB-UTF32-V", "utf-32-be", "预算"),
        ("HKscs-B5-H", "big5hkscs", "預算是四千"),
        ("B5pc-V", "big5", "預算是四千"),
        ("90msp-RKSJ-H", "cp932", "予算は四千"),
        ("EUC-H", "euc_jp", "予算は四千"),
        ("KSCms-UHC-H", "cp949", "예산 사천"),
        ("UniKS-UTF16-H", "utf-16-be", "예산"),
    ],
)
def test_east_asian_encodings_of_a_pdf_are_read(encoding: str, codec: str, text: str) -> None:
    found = read("pdf", pdf(encoding, text.encode(codec)))
    assert found == {"text": text, "cut": False, "remarks": []}


@every_row("encoding", ["Identity-H", "Odd-H"])
def test_a_pdf_that_does_not_say_its_characters_is_remarked(encoding: str) -> None:
    (remark,) = read("pdf", pdf(encoding, bytes.fromhex("0f3d0a1b")))["remarks"]
    assert remark == "it does not say the characters of a font, so words may be wrong"
