"""Items of a Word document's lists have the numbers that Word shows; pictures have their words."""

from __future__ import annotations

import io
from typing import Any

from bot.files.extracting import extract
from bot.files.word_lists import written
from tests.support.rows import every_row

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
DELETED = '<w:rPr><w:del w:id="1" w:author="x"/></w:rPr>'
Level = tuple[str, str, str]  # the form, the text, and what else its definition says


def level(number: int, kind: str, text: str, more: str) -> str:
    form = f'<w:numFmt w:val="{kind}"/>{more}<w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/>{form}</w:lvl>'


def add_list(document: Any, *levels: Level, restarted: int = 0) -> None:
    """Adds list 901, and 902 of the same definition, which begins anew with `restarted`."""
    from docx.oxml import parse_xml

    numbering = document.part.numbering_part.element
    definition = "".join(level(number, *one) for number, one in enumerate(levels))
    restart = f'<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{restarted}"/></w:lvlOverride>'
    first = f'<w:abstractNum {W} w:abstractNumId="900">{definition}</w:abstractNum>'
    numbering.insert(0, parse_xml(first))
    for number, more in ((901, ""), (902, restart if restarted else "")):
        numbered = f'<w:abstractNumId w:val="900"/>{more}'
        numbering.append(parse_xml(f'<w:num {W} w:numId="{number}">{numbered}</w:num>'))


def put_in(paragraph: Any, level: int, number: int = 901, more: str = "") -> None:
    from docx.oxml import parse_xml

    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    properties = parse_xml(f"<w:pPr {W}>{place}{more}</w:pPr>")
    paragraph._p.get_or_add_pPr().extend(list(properties))


def text_of(document: Any) -> list[str]:
    out = io.BytesIO()
    document.save(out)
    text = extract("docx", out.getvalue(), 10_000, 30)["text"]
    return [line for line in str(text).splitlines() if line]


@every_row(
    ("levels", "items", "lines"),
    [
        ([("decimal", "%1.", "")], [("a", 0), ("b", 0)], ["1. a", "2. b"]),
        (
            [("decimal", "%1.", ""), ("decimal", "%1.%2", "")],
            [("A", 0), ("a", 1), ("b", 1), ("B", 0), ("c", 1)],
            ["1. A", "1.1 a", "1.2 b", "2. B", "2.1 c"],
        ),
        (
            [("chineseCounting", "（%1）", '<w:suff w:val="nothing"/>')],
            [("范围", 0), ("附则", 0)],
            ["（一）范围", "（二）附则"],
        ),
        (
            [("upperRoman", "%1.", ""), ("decimal", "%1.%2", "<w:isLgl/>")],
            [("A", 0), ("B", 0), ("c", 1)],
            ["I. A", "II. B", "2.1 c"],
        ),
        (
            [("decimal", "%1.", ""), ("lowerLetter", "%2)", '<w:lvlRestart w:val="0"/>')],
            [("A", 0), ("x", 1), ("B", 0), ("y", 1)],
            ["1. A", "a) x", "2. B", "b) y"],
        ),
        ([("bullet", "\uf0b7", ""), ("none", "", "")], [("a", 0), ("b", 1)], ["• a", "b"]),
    ],
)
def test_items_have_the_numbers_of_their_level(
    levels: list[Level], items: list[tuple[str, int]], lines: list[str]
) -> None:
    from docx import Document

    document = Document()
    add_list(document, *levels)
    for text, place in items:
        put_in(document.add_paragraph(text), place)

    assert text_of(document) == lines


def test_a_list_goes_on_after_other_text_unless_another_restarts_it() -> None:
    from docx import Document

    document = Document()
    add_list(document, ("decimal", "%1.", ""), restarted=5)
    for text, number in (("a", 901), ("plain", 0), ("b", 901), ("c", 902), ("d", 902)):
        put_in(document.add_paragraph(text), 0, number)
    gone = document.add_paragraph()
    put_in(gone, 0, 902, DELETED)
    put_in(document.add_paragraph("e"), 0, 902)

    assert text_of(document) == ["1. a", "plain", "2. b", "5. c", "6. d", "7. e"]


def test_a_style_and_a_cell_without_text_are_numbered() -> None:
    from docx import Document

    document = Document()
    add_list(document, ("decimal", "%1", ""))
    document.add_paragraph("one", style="List Number")
    document.add_paragraph("two", style="List Number")
    table = document.add_table(2, 2)
    for row, name in zip(table.rows, ("OAK", "ELM"), strict=True):
        put_in(row.cells[0].paragraphs[0], 0)
        row.cells[1].text = name

    assert text_of(document) == ["1. one", "2. two", "1 | OAK", "2 | ELM"]


def test_the_words_for_a_picture_are_read_in_their_place() -> None:
    from docx import Document
    from docx.oxml import parse_xml

    document = Document()
    drawing = '<wp:docPr id="1" name="P" descr="Site plan&#10;of HERON"/>'
    space = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
    shape = '<v:shape xmlns:v="urn:schemas-microsoft-com:vml" alt="Seal"/>'
    older = f"<w:r {W}><w:pict>{shape}</w:pict></w:r>"
    newer = (
        f'<w:r {W} xmlns:wp="{space}"><w:drawing><wp:inline>{drawing}</wp:inline></w:drawing></w:r>'
    )
    paragraph = document.add_paragraph("see ")
    paragraph._p.append(parse_xml(newer))
    paragraph.add_run(", ")
    paragraph._p.append(parse_xml(older))

    assert text_of(document) == ["see [picture: Site plan of HERON], [picture: Seal]"]


@every_row(
    ("kind", "number", "text"),
    [
        ("chineseCountingThousand", 12, "十二"),
        ("chineseCountingThousand", 101, "一百零一"),
        ("chineseCountingThousand", 1010, "一千零一十"),
        ("chineseLegalSimplified", 21, "贰拾壹"),
        ("ideographTraditional", 3, "丙"),
        ("decimalEnclosedCircle", 20, "⑳"),
        ("decimalEnclosedCircle", 21, "21"),
        ("decimalZero", 7, "07"),
        ("upperLetter", 28, "BB"),
        ("lowerRoman", 1994, "mcmxciv"),
        ("ordinal", 22, "22nd"),
        ("ordinal", 112, "112th"),
        ("cardinalText", 4, "4"),
        ("lowerRoman", 0, "0"),
    ],
)
def test_a_number_is_written_in_its_form(kind: str, number: int, text: str) -> None:
    assert written(kind, number) == text


@every_row("value", ["", "x", "-3", "9" * 30])
def test_a_definition_that_makes_no_sense_is_harmless(value: str) -> None:
    from docx import Document

    document = Document()
    add_list(document, ("decimal", "%1.", f'<w:lvlRestart w:val="{value}"/>'))
    put_in(document.add_paragraph("a"), 0)
    start = document.part.numbering_part.element[0][0][0]
    start.set(next(iter(start.attrib)), value)

    assert text_of(document)[0].endswith("a")
