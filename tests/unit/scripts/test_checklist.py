"""Lines of the doctor on a screen: no wider than it is, nothing lost, no stop at a beginning."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lab.doubles.processes import ROOT
from scripts.operating.arguments import language
from scripts.operating.checklist import wrapped
from scripts.operating.words import counted
from tests.support.rows import every_row

WORDS = st.text(st.sampled_from("ab 一二，。：（）/-"), max_size=120)


@given(WORDS, st.integers(min_value=4, max_value=40))
def test_lines_fit_and_keep_every_character(text: str, width: int) -> None:
    lines = wrapped(text, width)

    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_chinese_breaks_between_characters_and_keeps_its_stops() -> None:
    lines = wrapped("没有 OPENAI_API_KEY：由离线模型回答；请设置密钥。", 21)

    assert lines == ["没有 OPENAI_API_KEY：", "由离线模型回答；请设", "置密钥。"]


def test_an_opening_mark_does_not_end_a_line() -> None:
    assert wrapped("响应动作选“推送事件”，飞书拒收（230002）。", 12) == [
        "响应动作选",
        "“推送事件”，",
        "飞书拒收",
        "（230002）。",
    ]


def test_words_stay_whole() -> None:
    assert wrapped("add card.action.trigger to it", 20) == ["add", "card.action.trigger", "to it"]


@every_row(
    ("given", "environment", "expected"),
    [
        ("zh", {"LANG": "en_US.UTF-8"}, "zh"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {}, "en"),
    ],
)
def test_the_language_is_the_terminals_unless_one_is_asked_for(
    given: str | None, environment: dict[str, str], expected: str
) -> None:
    assert language(given, environment) == expected


def test_scripts_count_in_the_singular_and_in_the_plural() -> None:
    nouns = (
        "alarm|conversation|embedding|error|finding|job|leak|message|page|receipt|row|table|turn"
    )
    fixed = re.compile(rf"""["' ]\{{[\w.()]+\}} (?:{nouns})s\b""")
    sources = [one for one in (ROOT / "scripts").rglob("*.py") if one.name != "words.py"]

    found = [one.name for one in sources if fixed.search(one.read_text(encoding="utf-8"))]

    assert found == []
    assert (counted(1, "row"), counted(0, "row"), counted(2, "row")) == (
        "1 row",
        "0 rows",
        "2 rows",
    )
