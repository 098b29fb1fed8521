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
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ENTRIES = "<w:listEntry w:val='Red'/><w:listEntry w:val='Blue'/>"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def read(name: str, data: bytes | None = None) -> dict[str, Any]:
    ending = name.rpartition(".")[2]
    return extract(ending, (DATA / name).read_bytes() if data is None else data, 20_000, 30)


def document(body: str, **parts: str) -> bytes:
    """A document with that XML as its body."""
    whole = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return packed_again(made.docx("placeholder"), {"word/document.xml": whole, **parts})


def sheet(rows: str) -> bytes:
    """A workbook with that XML as the rows of its only sheet."""
    whole = f"<worksheet xmlns='{MAIN}'><sheetData>{rows}</sheetData></worksheet>"
    return packed_again(made.xlsx({"Sheet": ()}), {"xl/worksheets/sheet1.xml": whole})


def packed_again(file: bytes, parts: dict[str, str]) -> bytes:
    """The file with those parts."""
    with zipfile.ZipFile(io.BytesIO(file)) as old:
        kept: dict[str, bytes | str] = {name: old.read(name) for name in old.namelist()}
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


def repacked(data: bytes, **changes: tuple[str, str]) -> bytes:
    """The package with one text replaced by another in every part."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            for before, after in changes.values():
                content = content.replace(before.encode(), after.encode())
            new.writestr(name, content)
    return out.getvalue()


def strict(data: bytes) -> bytes:
    """As Word and Excel save “Strict Open XML”."""
    old, new = "http://schemas.openxmlformats.org/", "http://purl.oclc.org/ooxml/"
    kinds = ("wordprocessingml", "spreadsheetml", "drawingml", "officeDocument")
    names = {kind: (f"{old}{kind}/2006/", f"{new}{kind}/") for kind in kinds}
    return repacked(data, **names)


def test_strict_open_xml_is_read() -> None:
    assert read("a.docx", strict(made.docx("HERON")))["text"] == "HERON"
    assert read("a.xlsx", strict(made.xlsx({"Q1": (("a", 1),)})))["text"] == "# Q1\na | 1"


@every_row(
    ("body", "shown"),
    [
        ('<w:r><w:sym w:font="Arial" w:char="20AC"/></w:r>' + run("5"), "€5"),
        ('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>' + run("5"), "\ufffd5"),
        (
            f"<w:r><w:ruby><w:rt>{run('かんじ')}</w:rt>"
            f"<w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby></w:r>",
            "漢字(かんじ)",
        ),
    ],
)
def test_symbols_and_readings_stand_where_a_person_sees_them(body: str, shown: str) -> None:
    assert read("a.docx", document(f"<w:p>{body}</w:p>"))["text"] == shown


def test_the_words_of_a_diagram_are_read() -> None:
    relation = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Type="diagramData" Target="diagrams/data1.xml"/></Relationships>'
    )
    diagram = '<d xmlns:a="a"><a:p><a:r><a:t>HERON</a:t></a:r></a:p></d>'
    parts = {"word/_rels/document.xml.rels": relation, "word/diagrams/data1.xml": diagram}
    text = read("a.docx", document(f"<w:p>{run('Plan')}</w:p>", **parts))["text"]
    assert text == "Plan\nDiagram: HERON"


def test_an_embedded_document_is_remarked() -> None:
    found = read("a.docx", document(f"<w:p>{run('Plan')}</w:p><w:altChunk/>"))
    assert found["remarks"] == ["documents embedded in it are not read"]


@every_row("tag", ["<x:f>", "<f\n>"])
def test_a_formula_is_found_however_its_tag_is_written(tag: str) -> None:
    prefix, _, _ = tag.strip("<>").rpartition("f")
    end = f"</{prefix}f>" if prefix else "</f>"
    declared = ("<sheetData>", '<sheetData xmlns:x="' + MAIN + '">')
    data = made.xlsx({"Q1": (("sum", "=1+1"),)})
    changed = repacked(data, names=declared, begin=("<f>", tag), end=("</f>", end))
    assert "sum | =1+1" in read("a.xlsx", changed)["text"]


def test_a_list_in_a_form_shows_its_words_and_a_long_value_is_read() -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import (
        ArrayObject,
        DecodedStreamObject,
        DictionaryObject,
        NameObject,
        TextStringObject,
    )

    writer, out = PdfWriter(PdfReader(io.BytesIO(made.pdf("Plan")))), io.BytesIO()
    memo = DecodedStreamObject()
    memo.set_data(b"a long memo")
    kind, name, value, choices = map(NameObject, ("/FT", "/T", "/V", "/Opt"))
    pair = ArrayObject(map(TextStringObject, ("1", "Turku")))
    town = {kind: NameObject("/Ch"), value: TextStringObject("1"), choices: ArrayObject([pair])}
    text = {kind: NameObject("/Tx"), value: writer._add_object(memo)}
    fields = [
        writer._add_object(DictionaryObject({name: TextStringObject(key), **field}))
        for key, field in (("town", town), ("memo", text))
    ]
    form = DictionaryObject({NameObject("/Fields"): ArrayObject(fields)})
    writer._root_object[NameObject("/AcroForm")] = writer._add_object(form)
    writer.write(out)
    lines = read("a.pdf", out.getvalue())["text"].splitlines()
    assert lines[-2:] == ["town: Turku", "memo: a long memo"]


def filled_in(fields: list[Any], *, listed: bool = True, xfa: Any = None, **page: Any) -> bytes:
    """A page with a form. A field is a dictionary in pypdf's terms; its `/Kids` stand in it."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return ArrayObject(map(kept, value))
        if hasattr(value, "get_data"):
            return writer._add_object(value)
        if isinstance(value, dict):
            named = {NameObject(key): kept(one) for key, one in value.items()}
            return writer._add_object(DictionaryObject(named))
        return value

    writer, out = PdfWriter(PdfReader(io.BytesIO(made.pdf("Plan")))), io.BytesIO()
    objects = kept(fields)
    form = {"/Fields": objects if listed else [], **({"/XFA": xfa} if xfa else {})}
    writer._root_object[NameObject("/AcroForm")] = kept(form)
    widgets = objects if not listed else kept(page.get("notes", []))
    writer.pages[0][NameObject("/Annots")] = writer._add_object(widgets)
    writer.write(out)
    return out.getvalue()


def test_what_people_wrote_into_a_pdf_is_read_however_it_is_stored() -> None:
    from pypdf.generic import NameObject, NullObject, NumberObject, TextStringObject

    text, name = TextStringObject, NameObject
    button, words = {"/FT": name("/Btn")}, {"/FT": name("/Tx")}
    rich = text("<body><p>OAK is <b>free</b></p></body>")
    kid = {"/Subtype": name("/Widget"), "/AS": name("/1")}
    colours = [text("Red"), text("Blue")]
    radio = {**button, "/T": text("colour"), "/V": name("/1"), "/Opt": colours, "/Kids": [kid]}
    person = {**words, "/T": text("person"), "/Kids": [{"/T": text("name"), "/V": text("Lin")}]}
    signed = {"/FT": name("/Sig"), "/T": text("seal"), "/V": {"/Name": text("Lin")}}
    due = {**words, "/T": text("a"), "/TU": text("Day"), "/V": text("1 May")}
    for fields, line in (
        ([radio], "colour: Blue"),
        ([{**button, "/T": text("agreed"), "/AS": name("/Yes")}], "agreed: yes"),
        ([{**words, "/T": text("room"), "/RV": rich}], "room: OAK is free"),
        ([{**words, "/T": text("count"), "/V": NumberObject(7)}], "count: 7"),
        ([{**words, "/T": text("⼈"), "/V": text("⽉")}], "人: 月"),
        ([person], "person.name: Lin"),
        ([{**button, "/T": text("agreed"), "/V": name("/Off")}], "agreed: no"),
        ([signed], "seal: signed by Lin"),
        ([due, {**due, "/T": text("b"), "/V": text("2 May")}], "Day: 1 May\nDay: 2 May"),
    ):
        assert line in read("a.pdf", filled_in(fields))["text"]
    widget = {**words, "/T": text("room"), "/V": text("OAK"), "/Subtype": name("/Widget")}
    assert "room: OAK" in read("a.pdf", filled_in([widget], listed=False))["text"]
    notes = [NullObject(), {"/Subtype": name("/FreeText"), "/RC": rich}]
    assert "Note: OAK is free" in read("a.pdf", filled_in([], notes=notes))["text"]
    file = {"/Subtype": name("/FileAttachment"), "/FS": {"/UF": text("plan.xlsx")}}
    read_text = read("a.pdf", filled_in([], notes=[file]))["text"]
    assert "Attached file, not read: plan.xlsx" in read_text


def test_a_form_says_nothing_of_secrets_and_of_what_nobody_chose() -> None:
    from pypdf.generic import NameObject, NumberObject, TextStringObject

    text, name = TextStringObject, NameObject
    button = {"/FT": name("/Btn"), "/V": name("/Off")}
    fields = [
        {"/FT": name("/Tx"), "/T": text("pin"), "/V": text("4711"), "/Ff": NumberObject(1 << 13)},
        {**button, "/T": text("send"), "/Ff": NumberObject(1 << 16)},
        {**button, "/T": text("size"), "/Ff": NumberObject(1 << 15), "/Kids": [{}]},
        {"/FT": name("/Sig"), "/T": text("seal")},
    ]
    assert read("a.pdf", filled_in(fields))["text"] == "Plan"


def test_the_data_of_an_xfa_form_are_read() -> None:
    from pypdf.generic import DecodedStreamObject, NameObject, TextStringObject

    data = (
        '<x:datasets xmlns:x="http://www.xfa.org/schema/xfa-data/1.0/"><x:data><form>'
        "<Name>Lin</Name><Sum>4200</Sum></form></x:data></x:datasets>"
    )
    pieces: list[Any] = []
    for part, words in (("a", "<xdp>"), ("datasets", data), ("b", "</xdp>")):
        stream = DecodedStreamObject()
        stream.set_data(words.encode())
        pieces += [TextStringObject(part), stream]
    assert "Name: Lin\nSum: 4200" in read("a.pdf", filled_in([], xfa=pieces))["text"]

    pieces[1][NameObject("/Filter")] = NameObject("/None")
    found = read("a.pdf", filled_in([], xfa=pieces))
    assert "Plan" in found["text"]
    assert found["remarks"] == ["the values of its form could not be read"]


def test_zeros_of_a_program_that_cannot_compute_are_no_values() -> None:
    data = made.xlsx({"Q1": (("sum", "=1+1"), (0, "=2+2"))})
    cells = {"one": ("<f>1+1</f><v></v>", "<f>1+1</f><v>0</v>"),
             "two": ("<f>2+2</f><v></v>", "<f>2+2</f><v>4</v>")}  # fmt: skip
    assert "sum | =1+1\n0 | 4" in read("a.xlsx", repacked(data, **cells))["text"]


@every_row(
    ("cells", "shown"),
    [
        ("<c t='str'><f>IF(B1,1,0)</f><v></v></c><c><v>7</v></c>", "| 7"),
        ("<c><f>SUM(B1)</f><v></v></c><c><v>7</v></c>", "=SUM(B1) | 7"),
        ("<c><f t='dataTable' ref='A1:A2' dt2D='1' r1='B1' r2='C1'/></c>", "=TABLE()"),
    ],
)
def test_a_formula_is_shown_unless_its_value_is_stored(cells: str, shown: str) -> None:
    assert read("a.xlsx", sheet(f"<row>{cells}</row>"))["text"].splitlines()[1].strip() == shown


def test_rows_far_apart_are_both_read() -> None:
    rows = (
        "<row r='1'><c r='A1'><v>1</v></c></row><row r='500000'><c r='A500000'><v>2</v></c></row>"
    )
    assert read("a.xlsx", sheet(rows)) == {"text": "# Sheet\n1\n\n2", "cut": False, "remarks": []}


def test_radicals_become_characters_in_every_kind_of_file() -> None:
    assert read("a.xlsx", made.xlsx({"Q1": (("⼈⼒",),)}))["text"] == "# Q1\n人力"
    assert read("a.docx", document(f"<w:p>{run('⼈⼒')}</w:p>"))["text"] == "人力"
    assert read("a.csv", "⼈⼒,ﬁle".encode())["text"] == "人力,file"


def marked(properties: str, text: str) -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def table_row(properties: str, *cells: str) -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p>{run(text)}</w:p></w:tc>"


ENDED = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
SHOWN = "<w:vanish w:val='0'/>"
RAISED = "<w:vertAlign w:val='superscript'/>"


@every_row(
    ("body", "shown"),
    [
        (
            "<w:tbl>"
            + table_row("", cell("kept"), cell("GONE", "<w:cellDel/>"))
            + table_row("<w:del/>", cell("GONE"))
            + table_row("<w:ins/>", cell("new"))
            + "</w:tbl>",
            "kept\nnew",
        ),
        (f"<w:p>{ENDED}{run('one ')}</w:p><w:p>{run('line')}</w:p>", "one line"),
        (f"<w:p>{run('one')}</w:p><w:p>{ENDED}{run('last')}</w:p>", "one\nlast"),
        (f"<w:p>{marked('<w:vanish/>', 'GONE')}{run('seen')}</w:p>", "seen"),
        (f"<w:p>{marked(SHOWN, 'seen')}</w:p>", "seen"),
        (
            f"<w:p>{run('4200')}{marked(RAISED, '1')}</w:p>",
            "4200^1",
        ),
        (
            "<w:p><w:r><w:pict><v:textpath xmlns:v='urn:schemas-microsoft-com:vml'"
            " string='Draft'/></w:pict></w:r></w:p>",
            "Draft",
        ),
    ],
)
def test_what_is_marked_as_deleted_hidden_or_raised_is_read_as_people_see_it(
    body: str, shown: str
) -> None:
    assert read("a.docx", document(body))["text"] == shown


def test_pictures_and_charts_are_remarked() -> None:
    body = f"<w:p>{run('Sales')}</w:p>"
    for part in ("word/media/image1.png", "word/charts/chart1.xml"):
        found = read("a.docx", document(body, **{part: "x"}))
        assert found["remarks"] == ["pictures and charts in it are not read"]
    assert read("a.docx", document(body))["remarks"] == []


def formula(name: str, *parts: tuple[str, str], **properties: str) -> str:
    signs = "".join(f'<m:{one} m:val="{sign}"/>' for one, sign in properties.items())
    inside = "".join(f"<m:{one}><m:r><m:t>{text}</m:t></m:r></m:{one}>" for one, text in parts)
    return f"<m:{name}><m:{name}Pr>{signs}</m:{name}Pr>{inside}</m:{name}>"


SUM = (("e", "a+b"),)
LIMITS = (("sub", "i=1"), ("sup", "n"), ("e", "i"))


@every_row(
    ("written", "text"),
    [
        (formula("f", ("num", "7"), ("den", "9")), "7/9"),
        (formula("f", ("num", "a+b"), ("den", "2")), "(a+b)/2"),
        (formula("d", *SUM) + "<m:r><m:t>c</m:t></m:r>", "(a+b)c"),
        (formula("d", ("e", "x"), ("e", "y"), begChr="[", sepChr=",", endChr="]"), "[x,y]"),
        (formula("d", ("e", "x"), begChr="{", endChr=""), "{x"),
        (formula("nary", *LIMITS, chr="∑"), "∑_(i=1)^n i"),
        (formula("nary", ("e", "x")), "∫ x"),
        (formula("sSubSup", ("e", "x"), ("sub", "1"), ("sup", "2")), "x_1^2"),
        (formula("rad", ("deg", "3"), ("e", "a+b")), "3√(a+b)"),
        ("<m:m><m:mr><m:e><m:r><m:t>1</m:t></m:r></m:e><m:e><m:r><m:t>2</m:t></m:r></m:e></m:mr>"
         "<m:mr><m:e><m:r><m:t>3</m:t></m:r></m:e></m:mr></m:m><!-- a matrix -->", "[1, 2; 3]"),
    ],
)  # fmt: skip
def test_a_formula_is_read_as_people_type_it(written: str, text: str) -> None:
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    body = f"<w:p>{run('up to ')}<m:oMath {math}>{written}</m:oMath></w:p>"
    assert read("a.docx", document(body))["text"] == f"up to {text}"


def test_a_remark_on_what_is_marked_is_read() -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.annotations import Highlight
    from pypdf.generic import ArrayObject, FloatObject, NameObject, TextStringObject

    writer, out = PdfWriter(PdfReader(io.BytesIO(made.pdf("Plan")))), io.BytesIO()
    points = ArrayObject(FloatObject(one) for one in (10, 50, 90, 50, 10, 10, 90, 10))
    marked = Highlight(rect=(10, 10, 90, 50), quad_points=points)
    marked[NameObject("/Contents")] = TextStringObject("Lin has to agree")
    writer.add_annotation(0, marked)
    writer.write(out)
    assert "Note: Lin has to agree" in read("a.pdf", out.getvalue())["text"]


def test_utf8_that_is_cut_at_its_start_is_read() -> None:
    found = read("a.csv", "城市,人口\n上海,2487\n".encode()[1:])
    assert "市,人口\n上海,2487" in found["text"]
    assert found["remarks"] == ["its encoding is guessed (utf-8, damaged)"]


@every_row(
    ("data", "shown"),
    [
        (f"<w:ddList><w:result w:val='1'/>{ENTRIES}</w:ddList>", "Blue"),
        (f"<w:ddList><w:default w:val='1'/>{ENTRIES}</w:ddList>", "Blue"),
        (f"<w:ddList>{ENTRIES}</w:ddList>", "Red"),
        (f"<w:ddList><w:result w:val='9'/>{ENTRIES}</w:ddList>", ""),
        ("<w:checkBox><w:checked/></w:checkBox>", "☒"),
        ("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>", "☐"),
        ("<w:textInput/>", ""),
    ],
)
def test_what_is_chosen_in_a_form_field_is_read(data: str, shown: str) -> None:
    field = f"<w:r><w:fldChar><w:ffData><w:name w:val='x'/>{data}</w:ffData></w:fldChar></w:r>"
    body = f"<w:p>{run('Colour: ')}{field}{run('.')}</w:p>"
    assert read("a.docx", document(body))["text"] == f"Colour: {shown}."


@every_row("choice", ["<w:pict/>", run("same"), ""])
def test_of_alternatives_the_first_with_text_is_read(choice: str) -> None:
    compatible = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    both = f"<mc:Choice Requires='x'>{choice}</mc:Choice><mc:Fallback>{run('same')}</mc:Fallback>"
    body = f"<w:p><mc:AlternateContent {compatible}>{both}</mc:AlternateContent></w:p>"
    assert read("a.docx", document(body))["text"] == "same"


def test_comments_of_cells_are_read_below_their_sheet() -> None:
    from openpyxl import Workbook
    from openpyxl.comments import Comment

    book, out = Workbook(), io.BytesIO()
    first, second = book.active, book.create_sheet("Q2")
    first["A1"], second["A1"] = "sum", "=1+1"
    first["A1"].comment = Comment("Ask Lin\nfirst", "Ann")
    second["B2"].comment = Comment("问李", "Ann")
    book.save(out)
    lines = read("a.xlsx", out.getvalue())["text"].splitlines()
    assert lines.index("Comment at A1: Ask Lin first") < lines.index("# Q2")
    assert lines[-1] == "Comment at B2: 问李"

    threaded = (
        '<ThreadedComments xmlns="x"><threadedComment ref="A1"><text>Is it final?</text>'
        '</threadedComment><threadedComment ref="A1"><text>Yes</text></threadedComment>'
        "</ThreadedComments>"
    )
    changed, old = io.BytesIO(), zipfile.ZipFile(out)
    with old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            extra = b'<Relationship Id="t" Type="x/threadedComment" Target="../threads/one.xml"/>'
            content = old.read(name)
            if name == "xl/worksheets/_rels/sheet1.xml.rels":
                content = content.replace(b"</Relationships>", extra + b"</Relationships>")
            new.writestr(name, content)
        new.writestr("xl/threads/one.xml", threaded)
    text = read("a.xlsx", changed.getvalue())["text"]
    assert "Comment at A1: Is it final?\nComment at A1: Yes\n" in text
    assert "Ask Lin" not in text
