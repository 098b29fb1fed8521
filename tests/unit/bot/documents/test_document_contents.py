"""What Feishu exports becomes sections with readable tables; sections are found and outlined."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from bot.documents.document import (
    MOST_BYTES,
    MOST_OUTLINED,
    MOST_TABLES,
    SHORT,
    Comment,
    ReadDocument,
    Section,
    chosen_section,
    comment_lines,
    outline,
    split_sections,
)
from bot.documents.formats import base_cell, column_name, row_text, sections_of, sheet_cell
from bot.feishu.documents import BaseField
from tests.support.rows import every_row

TABLE = (
    "<table><tbody>\n<tr>\n<td>\n\n**Who**\n\n</td>\n<td>\n\nWhat|so\n\n</td>\n</tr>\n"
    "<tr>\n<td>\n\nBob &amp; co\n\n</td>\n<td>\n\n- Slides\n\n    - Talk\n\n</td>\n</tr>\n"
    "</tbody></table>"
)


def document(*sections: Section, **more: object) -> ReadDocument:
    return ReadDocument("https://a.feishu.cn/docx/x", "x", "docx", "Plan", sections, **more)  # type: ignore[arg-type]


def test_headings_part_the_text_and_escapes_and_tags_are_gone() -> None:
    text = "Before\n\n# Plan \\*A\\*\n\nat open\\.feishu\\.cn <b>soon</b>\n\n## Who\n\nBob\n"
    sections, cuts = sections_of(text)
    assert cuts == []
    assert sections == [
        Section("", 0, "Before"),
        Section("Plan *A*", 1, "at open.feishu.cn soon"),
        Section("Who", 2, "Bob"),
    ]


def test_a_table_becomes_rows_of_cells() -> None:
    ((section,), _) = sections_of(f"# T\n\n{TABLE}\n\nafter")
    assert section.text.splitlines() == [
        "**Who** | What/so", "Bob & co | - Slides - Talk", "", "after",
    ]  # fmt: skip


def test_what_looks_like_a_heading_in_code_is_code() -> None:
    ((section,), _) = sections_of("# Code\n\n```\n# no heading \\*\n<b>x</b>\n```\n\ntext \\*")
    assert section.text == "```\n# no heading \\*\n<b>x</b>\n```\n\ntext *"


def test_the_201st_table_is_left_out_and_said_to_be() -> None:
    sections, cuts = sections_of("\n\n".join([TABLE] * 201))
    assert cuts == ["tables"]
    assert sum("Who" in line for line in sections[0].text.splitlines()) == MOST_TABLES
    assert sections_of("\n\n".join([TABLE] * 200))[1] == []


def test_of_six_megabytes_the_first_five_are_read_within_seconds() -> None:
    started = time.process_time()
    sections, cuts = sections_of(f"# 计划\n\n{'一二三四五六七八九十 ' * 190_000}")
    assert cuts == ["bytes"]
    assert MOST_BYTES - 40 < len(sections[0].text.encode()) <= MOST_BYTES
    sections_of("<table><td>" * 400_000)
    sections_of("<a" * 2_000_000)
    assert time.process_time() - started < 20


@given(st.text(alphabet="#<>/tablerd\\`*| \n甲", max_size=300))
def test_whatever_is_exported_becomes_sections(text: str) -> None:
    sections, _ = sections_of(text)
    assert all(isinstance(one.text, str) for one in split_sections(sections))


def test_a_long_section_is_cut_at_ends_of_lines_and_each_part_repeats_its_head() -> None:
    rows = [f"row {number} | x" for number in range(2000)]
    parts = split_sections([Section("Tasks", 1, "\n".join(rows), "Name | N")])
    assert [one.title for one in parts[:2]] == ["Tasks", "Tasks (2)"]
    assert all(one.text.startswith("Name | N\nrow ") for one in parts)
    assert all(len(one.text) <= SHORT + 20 for one in parts)
    kept = [line for one in parts for line in one.text.splitlines()[1:]]
    assert kept == rows


@given(st.lists(st.text(alphabet="ab\n", max_size=40), max_size=8), st.integers(5, 30))
def test_parting_loses_nothing_but_line_ends(texts: list[str], longest: int) -> None:
    parts = split_sections([Section("", 0, one) for one in texts], longest)
    assert "".join(one.text for one in parts).replace("\n", "") == "".join(texts).replace("\n", "")


def test_a_section_is_chosen_by_number_or_heading() -> None:
    plan = document(Section("", 0, "a"), Section("Launch Plan", 1, "b"), Section("Plan", 2, "c"))
    assert chosen_section(plan, "2") == plan.sections[1]
    assert chosen_section(plan, "plan") == plan.sections[2]
    assert chosen_section(plan, " launch ") == plan.sections[1]
    for wrong in ("0", "4", "9" * 30, "none", ""):
        assert chosen_section(plan, wrong) is None


def test_an_outline_numbers_the_sections_and_ends() -> None:
    text = outline(document(Section("", 0, "a"), Section("Plan", 1, "b" * 1200)))
    assert text.splitlines() == ["1. (beginning) (1 characters)", "2. Plan (1,200 characters)"]
    many = outline(document(*(Section(str(number), 2, "") for number in range(100))))
    assert len(many.splitlines()) == MOST_OUTLINED + 1
    assert many.endswith("… and 20 more sections")


def test_a_comment_names_its_passage_and_author() -> None:
    comments = (Comment("Why\nMarch?", "3 March", "ou_1"), Comment("Good", is_solved=True))
    lines = comment_lines(document(comments=comments), {"ou_1": "Bob"})
    assert lines == ["- on “3 March”, Bob: Why March?", "- someone: Good (solved)"]


@every_row(
    ("value", "kind", "text"),
    [
        ([{"text": "a", "type": "text"}, {"text": "@Bob", "type": "mention"}], 1, "a@Bob"),
        (3.0, 2, "3"),
        (0.5, 2, "0.5"),
        ("Open", 3, "Open"),
        (["a", "b"], 4, "a, b"),
        (1772496000000, 5, "2026-03-03"),
        (1772530200000, 1001, "2026-03-03 09:30"),
        (True, 7, "yes"),
        ([{"id": "ou_1", "name": "Bob"}], 11, "Bob"),
        ({"link": "https://x", "text": "x"}, 15, "x"),
        ({"type": 2, "value": [3]}, 20, "3"),
        ({"link_record_ids": ["rec1"]}, 18, ""),
        (None, 1, ""),
        (10**30, 5, str(10**30)),
    ],
)
def test_a_field_of_a_base_becomes_text(value: object, kind: int, text: str) -> None:
    assert base_cell(value, BaseField("n", kind)) == text


@every_row(
    ("value", "number_format", "currency", "text"),
    [
        (0.25, "0%", "", "25%"),
        (0.125, "0.00%", "", "12.50%"),
        (0.5, "%", "", "50%"),
        (1234.5, "1,000.00", "", "1,234.50"),
        (1234, "1,000", "", "1,234"),
        (-12, "0.00", "EUR", "-€12.00"),
        (9, "0", "MOP", "MOP 9"),
        (8.5, "¥0.00", "", "¥8.50"),
        (8, "¥", "", "¥8"),
        ({"type": 2, "value": [0.25]}, "0.0%", "", "25.0%"),
        ([0.25, 0.5], "0%", "", "0.25, 0.5"),
        (True, "0%", "", "yes"),
        (None, "0%", "", ""),
    ],
)
def test_a_number_of_a_base_is_shown_as_its_field_shows_it(
    value: object, number_format: str, currency: str, text: str
) -> None:
    assert base_cell(value, BaseField("n", 2, number_format, currency)) == text


def test_cells_of_a_sheet_stand_in_one_line() -> None:
    row = [
        sheet_cell(one) for one in ("a\nb", None, 3, [{"text": "x"}, {"text": "y"}], "a|b", None)
    ]
    assert row_text(row) == "a b |  | 3 | xy | a/b"


def test_columns_are_lettered_as_in_a_sheet() -> None:
    assert [column_name(number) for number in (1, 26, 27, 52, 100)] == ["A", "Z", "AA", "AZ", "CV"]
