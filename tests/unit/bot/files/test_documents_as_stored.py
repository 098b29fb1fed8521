"""Documents as Word, Excel and PDF store them: what a person sees is in their text."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from bot.files.extracting import extract
from tests.support import hostile_files as made
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "files"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def read(name: str, data: bytes | None = None) -> dict[str, Any]:
    ending = name.rpartition(".")[2]
    return extract(ending, (DATA / name).read_bytes() if data is None else data, 20_000, 30)


def document(body: str, **parts: str) -> bytes:
    """A document with that XML as its body."""
    file = io.BytesIO(made.docx("placeholder"))
    whole = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    with zipfile.ZipFile(file) as old:
        kept = {name: old.read(name) for name in old.namelist()}
    kept["word/document.xml"] = whole.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in {**kept, **parts}.items():
            packed.writestr(name, data)
    return out.getvalue()


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def test_tracked_insertions_are_read_and_deletions_are_not() -> None:
    text = read("r15_tracked.docx")["text"]
    assert "The budget is 4200 euros." in text
    assert "the owner is Bob" in text


def test_content_controls_are_read_wherever_they_stand() -> None:
    text = read("r16_content_controls.docx")["text"]
    assert text.splitlines() == [
        "Plain line.",
        "BLOCK control: the deadline is 9 May.",
        "Name: INLINE Alice Example.",
        "TABLE in a control | 77",
        "cell | CELL control 88",
        "ROW control | 99",
        "last | WHOLECELL 66",
    ]


@every_row(
    "wrapped",
    [
        "<w:smartTag>{}</w:smartTag>",
        '<w:fldSimple w:instr="AUTHOR">{}</w:fldSimple>',
        "<w:customXml>{}</w:customXml>",
        '<w:moveTo w:id="1">{}</w:moveTo>',
        '<w:hyperlink w:anchor="a">{}</w:hyperlink>',
        "<w:ins><w:sdt><w:sdtContent><w:smartTag>{}</w:smartTag></w:sdtContent></w:sdt></w:ins>",
        "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>",
        '<w:bdo w:val="ltr">{}</w:bdo>',
    ],
)
def test_every_wrapper_of_text_is_opened(wrapped: str) -> None:
    inside = wrapped.format(run("HERON"))
    gone = f'<w:del w:id="2">{run("GONE")}</w:del><w:moveFrom w:id="3">{run("GONE")}</w:moveFrom>'
    text = read("a.docx", document(f"<w:p>{run('Name: ')}{inside}{gone}</w:p>"))["text"]
    assert "HERON" in text
    assert "GONE" not in text


def test_formulas_without_values_are_shown_with_a_remark() -> None:
    found = read("r17_formula_no_cache.xlsx")
    assert "=SUM(B2:B3)" in found["text"]
    assert found["remarks"] == ["formulas without stored values are shown as formulas"]


def test_a_workbook_without_formulas_has_no_remark() -> None:
    found = read("a.xlsx", made.xlsx({"Q1": (("a", 1), ("b", None))}))
    assert (found["text"], found["remarks"]) == ("# Q1\na | 1\nb", [])


def test_array_formulas_and_links_are_shown() -> None:
    from openpyxl import Workbook
    from openpyxl.worksheet.formula import ArrayFormula

    book, out = Workbook(), io.BytesIO()
    sheet = book.active
    sheet["A1"], sheet["A2"] = "total", '=HYPERLINK("https://x.test","the plan")'
    sheet["B1"] = ArrayFormula("B1:B2", "=SUM(C1:C2*D1:D2)")
    book.save(out)
    text = read("a.xlsx", out.getvalue())["text"]
    assert "total | =SUM(C1:C2*D1:D2)" in text
    assert "https://x.test" in text


def test_radicals_and_ligatures_become_the_characters_that_people_type() -> None:
    from bot.files.extracting import plain_characters

    assert "人力月用日" in read("r18_kangxi.pdf")["text"].replace(" ", "")
    assert plain_characters("⼈⼒⻔⺠ oﬃce ﬁle Ⅷ²") == "人力门民 office file Ⅷ²"


def test_values_of_a_form_are_read() -> None:
    text = read("r19_acroform.pdf")["text"]
    assert "Alice Example" in text
    assert "4200 EUR" in text
    assert "yes" in text.lower()


def test_a_note_on_a_page_is_read() -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.annotations import FreeText

    writer, out = PdfWriter(PdfReader(io.BytesIO(made.pdf("Plan")))), io.BytesIO()
    writer.add_annotation(0, FreeText(text="Ask Lin first", rect=(10, 10, 100, 50)))
    writer.write(out)
    assert "Note: Ask Lin first" in read("a.pdf", out.getvalue())["text"]
