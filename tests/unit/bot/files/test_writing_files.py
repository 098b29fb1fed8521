"""Files that the bot makes: tables without formulas, documents, codes; and their limits."""

from __future__ import annotations

import csv
import io

import pytest
from docx import Document
from hypothesis import given
from hypothesis import strategies as st

from bot.files.writing import LONGEST, Unwritable, file_bytes, file_to_send, history_text
from tests.support.rows import every_row


def cells(content: str) -> list[list[str]]:
    data = file_bytes(file_to_send("a.csv", "table", content))
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


@every_row(
    ("cell", "kept"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        (" =1+1", "' =1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|x", "'+cmd|x"),
        ("-2+3", "'-2+3"),
        ("＝1", "'＝1"),
        ("-5", "-5"),
        ("+3.2%", "+3.2%"),
        ("plain", "plain"),
    ],
)
def test_no_cell_is_a_formula(cell: str, kept: str) -> None:
    assert cells(f"a,b\nx,{cell}")[1][1] == kept


@given(st.lists(st.lists(st.text(max_size=20), min_size=1, max_size=4), min_size=1, max_size=4))
def test_whatever_a_table_holds_no_cell_begins_like_a_formula(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    if not out.getvalue().strip():
        return
    for row in cells(out.getvalue()):
        assert not any(cell.startswith(("=", "@")) for cell in row)


def test_a_markdown_table_is_a_table_too() -> None:
    assert cells("| a | b |\n|---|:-:|\n| 1 | 苹果 |") == [["a", "b"], ["1", "苹果"]]


def test_a_document_has_headings_lists_and_paragraphs() -> None:
    text = "# 标题\n\nA **bold** word.\n- one\n2. two\x00\x0b"
    document = Document(io.BytesIO(file_bytes(file_to_send("a", "document", text))))
    assert [(p.style.name, p.text) for p in document.paragraphs] == [
        ("Heading 1", "标题"),
        ("Normal", "A bold word."),
        ("List Bullet", "one"),
        ("List Number", "two"),
    ]


@every_row("mark", ["```", "~~~~"])
def test_code_in_a_document_stays_as_it_is_written(mark: str) -> None:
    code = ["# no heading", "- no **item**", "", "  1. no item", "``"]
    text = "\n".join(["before", f"{mark}py", *code, mark, "# After"])
    document = Document(io.BytesIO(file_bytes(file_to_send("a", "document", text))))
    assert [(p.style.name, p.text) for p in document.paragraphs] == [
        ("Normal", "before"),
        *(("No Spacing", line) for line in code),
        ("Heading 1", "After"),
    ]


def test_the_name_has_the_ending_of_the_kind_and_no_path() -> None:
    assert file_to_send("../x.exe", "table", "a")["name"] == "x.csv"
    assert file_to_send("notes", "text", "a")["name"] == "notes.txt"
    assert file_to_send("notes.md", "text", "a")["name"] == "notes.md"
    assert history_text(file_to_send("a\u202eb.docx", "document", "a")) == "[file: ab.docx]"
    assert history_text(file_to_send("a", "qr_code", "a")) == "[image]"


@every_row(
    ("kind", "content"), [("text", " \n"), ("text", "x" * (LONGEST + 1)), ("qr_code", "x" * 1001)]
)
def test_what_is_empty_or_too_long_is_no_file(kind: str, content: str) -> None:
    with pytest.raises(Unwritable):
        file_to_send("a", kind, content)  # type: ignore[arg-type]
