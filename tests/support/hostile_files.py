"""Files as people send them, and as attackers make them. Each is bytes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping

from docx import Document
from openpyxl import Workbook
from pypdf import PdfWriter

_RELATIONS = "application/vnd.openxmlformats-officedocument"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Override PartName="/word/document.xml" '
    f'ContentType="{_RELATIONS}.wordprocessingml.document.main+xml"/>'
    "</Types>"
)
_RELS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/officeDocument"/></Relationships>'
)
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(*paragraphs: str, table: tuple[tuple[str, ...], ...] = ()) -> bytes:
    document, out = Document(), io.BytesIO()
    for text in paragraphs:
        document.add_paragraph(text)
    if table:
        made = document.add_table(rows=len(table), cols=len(table[0]))
        for row, cells in zip(made.rows, table, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    document.save(out)
    return out.getvalue()


def xlsx(sheets: Mapping[str, tuple[tuple[object, ...], ...]]) -> bytes:
    book, out = Workbook(write_only=True), io.BytesIO()
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(out)
    return out.getvalue()


def pdf(*pages: str, password: str = "", script: str = "") -> bytes:
    """Pages of Latin text, made by hand: pypdf writes none."""
    opening = f"/OpenAction << /S /JavaScript /JS ({script}) >>" if script else ""
    objects = [f"<< /Type /Catalog /Pages 2 0 R {opening} >>".encode(), b""]
    kids = []
    for text in pages:
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents %d 0 R /Resources "
            b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
            % len(objects)
        )
        kids.append(len(objects))
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (listed, len(kids))
    plain = _written(objects)
    if not password:
        return plain
    writer, out = PdfWriter(clone_from=io.BytesIO(plain)), io.BytesIO()
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


def pdf_of_loops() -> bytes:
    """A tree of pages whose only branch is itself."""
    return _written(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 9 >>"]
    )


def zip_bomb(name: str = "word/document.xml", megabytes: int = 400) -> bytes:
    """Small, and so many megabytes once unpacked."""
    return _zip({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELS}, {name: megabytes})


def lying_zip_bomb() -> bytes:
    """A bomb that says in its list that it is small."""
    data = bytearray(zip_bomb())
    size = (400 << 20).to_bytes(4, "little")
    return bytes(data.replace(size, (1000).to_bytes(4, "little")))


def laughing_docx() -> bytes:
    """A billion laughs in the main part."""
    lines = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    xml = (
        f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY l0 "ha">{lines}]>'
        f"<w:document {_WORD}><w:body><w:p><w:r><w:t>&l9;</w:t></w:r></w:p></w:body></w:document>"
    )
    return _zip({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELS, "word/document.xml": xml}, {})


def prying_docx(path: str) -> bytes:
    """An entity that stands for a file of the machine."""
    xml = (
        f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY own SYSTEM "file://{path}">]>'
        f"<w:document {_WORD}><w:body><w:p><w:r><w:t>seen: &own;</w:t></w:r></w:p></w:body>"
        "</w:document>"
    )
    return _zip({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELS, "word/document.xml": xml}, {})


def deep_docx(depth: int = 200_000) -> bytes:
    xml = f"<w:document {_WORD}><w:body>{'<w:p>' * depth}{'</w:p>' * depth}</w:body></w:document>"
    return _zip({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELS, "word/document.xml": xml}, {})


def wide_xlsx(rows: int) -> bytes:
    """A sheet of a million cells and more, 1000 in each row, without the slow openpyxl."""
    book, out = io.BytesIO(xlsx({"Wide": ()})), io.BytesIO()
    cells = "".join(f"<row>{f'<c><v>{n}</v></c>' * 1000}</row>" for n in range(rows))
    with zipfile.ZipFile(book) as small, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wide:
        for name in small.namelist():
            data = small.read(name)
            if name.startswith("xl/worksheets/"):
                sheet = f"<sheetData>{cells}</sheetData>".encode()
                data = data.replace(b"<sheetData></sheetData>", sheet)
            wide.writestr(name, data)
    return out.getvalue()


def locked_office() -> bytes:
    """How Office files with a password begin."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"EncryptedPackage".ljust(4096, b"\0")


def _written(objects: list[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, value in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, value)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )
    return bytes(out)


def _zip(parts: Mapping[str, str], bombs: Mapping[str, int]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
        for name, megabytes in bombs.items():
            with packed.open(name, "w") as part:
                for _ in range(megabytes):
                    part.write(b" " * (1 << 20))
    return out.getvalue()


def pdf_of_operators(operators: int = 1_000_000) -> bytes:
    """One page of so many text operators, packed small."""
    drawn = zlib.compress(b"BT /F1 12 Tf " + b"(a) Tj " * operators + b"ET", 9)
    return _written(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 3 0 R /Resources "
            b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        ]
    )


def slow_pdf(operators: int = 15_000, pages: int = 400) -> bytes:
    """Pages that all draw the same many operators: little memory, and minutes of work."""
    drawn = zlib.compress(b"BT /F1 12 Tf " + b"() Tj " * operators + b"ET", 9)
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 3 0 R /Resources "
        b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
    )
    kids = b" ".join(b"%d 0 R" % (number + 4) for number in range(pages))
    return _written(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            *[page] * pages,
        ]
    )


def spanning_docx(columns: int = 20_000_000) -> bytes:
    """One cell of a table that says it spans so many columns."""
    xml = (
        f"<w:document {_WORD}><w:body><w:tbl><w:tr><w:tc><w:tcPr>"
        f'<w:gridSpan w:val="{columns}"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl></w:body>'
        "</w:document>"
    )
    return _zip({"[Content_Types].xml": _TYPES, "_rels/.rels": _RELS, "word/document.xml": xml}, {})
