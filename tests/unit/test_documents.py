"""What the documents say is there: settings, commands, links; and the Chinese ones keep step."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from bot.settings import NAMES
from lab.pictures import __main__ as pictures
from tests.support.rows import every_row

ROOT = Path(__file__).parents[2]
SETTINGS = {name.upper() for name in NAMES}
OTHERS_VARIABLES = {
    "MEMORY_OUTAGE_SECONDS", "MEMORY_OUTAGE_QUESTIONS_PER_S", "POSTGRES_PASSWORD",
}  # fmt: skip
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: path.as_posix()
)
TWINS = {
    "README.md": "README.zh.md",
    "SECURITY.md": "SECURITY.zh.md",
    **{f"docs/{file.name}": f"docs/zh/{file.name}" for file in (ROOT / "docs" / "zh").glob("*.md")},
}
MOST_LINES_OF_TWO_SCREENS = 100
MOST_BYTES_OF_A_PICTURE = 120_000
MOST_WORDS_OF_A_DECISION = 80
MOST_WORDS_OF_DECISIONS = 5_000
LIST_OF_DEPENDENCIES = "Every dependency has a reason"
MOST_TERMS = 60
MOST_LINES_OF_CHANGES = 40
MOST_LETTERS_OF_A_CHANGE = 180


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def settings_rows(path: str) -> list[tuple[str, ...]]:
    """The names in the first column of the table of settings, row by row."""
    first = re.findall(r"^\| (`[A-Z_`, ]+`) \|", text(path), re.MULTILINE)
    return [tuple(re.findall(r"`([A-Z_]+)`", cell)) for cell in first]


def named(path: str) -> set[str]:
    """Variables of ours that a text names, outside of links."""
    return set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)+\b", text(path)))


def commands(path: str) -> list[str]:
    """What stands in blocks of code, without remarks and what is to be filled in."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text(path), re.MULTILINE | re.DOTALL)
    lines = [
        line.split("  #")[0].split("   ")[0].strip() for b in blocks for line in b.splitlines()
    ]
    return [line for line in lines if line]


def inline(path: str) -> Counter[str]:
    """Scripts, paths, scopes, events and fields of logs in inline code; what people say is in
    their language."""
    prose = re.sub(r"^```.*?^```", "", text(path), flags=re.MULTILINE | re.DOTALL)
    codes = [code for code in re.findall(r"`([^`\n]+)`", prose) if not code.startswith("@Memo ")]
    return Counter(code for code in codes if code.isascii())


def headings(path: str) -> list[int]:
    prose = re.sub(r"^```.*?^```", "", text(path), flags=re.MULTILINE | re.DOTALL)
    return [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]


def test_every_setting_is_explained_once_in_the_example_and_in_the_table() -> None:
    example = re.findall(r"^([A-Z_]+)=", text(".env.example"), re.MULTILINE)
    table = [name for row in settings_rows("docs/settings.md") for name in row]
    assert Counter(example) == Counter(SETTINGS)
    assert Counter(table) == Counter(SETTINGS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", written) + re.findall(r'src="([^"]+)"', written):
        if link.startswith(("http", "mailto:")):
            continue
        file, _, place = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        if place:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert place in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_script_and_file_that_is_named_is_there(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?<!integration/)\bscripts/(\w+)", written):
        assert (ROOT / "scripts" / name).exists() or (ROOT / "scripts" / f"{name}.py").exists()
    for name in re.findall(r"`((?:deploy|docs|sql|tests|bot|memory)/[\w./]+\w)`", written):
        assert (ROOT / name).exists(), name


def pictures_shown() -> set[str]:
    """Those that the documents show, from the root of the checkout."""
    links = [
        (path, link)
        for path in DOCUMENTS
        for link in re.findall(r'!\[[^\]]*\]\(([^)\s]+)\)|src="([^"]+)"', path.read_text("utf-8"))
    ]
    files = [(path.parent / (one or other)).resolve() for path, (one, other) in links]
    return {file.relative_to(ROOT).as_posix() for file in files}


def test_one_script_makes_the_pictures_that_the_documents_show() -> None:
    made = {file.as_posix() for file in pictures.files(pictures.NAMES)}
    there = {file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.png")}

    assert pictures_shown() == made == there


def test_pictures_are_small() -> None:
    for name in pictures_shown():
        assert (ROOT / name).stat().st_size < MOST_BYTES_OF_A_PICTURE, name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_table_has_a_row_twice(path: Path) -> None:
    rows = re.findall(r"^\| (`[^|]+?) \|", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row for row, times in Counter(rows).items() if times > 1] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_table_ends_with_an_empty_line(path: Path) -> None:
    """Otherwise Markdown takes the paragraph below for one more row."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    below = [after for row, after in pairwise(lines) if row.startswith("|") and row.endswith("|")]
    assert [line for line in below if line and not line.startswith("|")] == []


@every_row("chinese", TWINS.values())
def test_a_line_does_not_end_within_chinese(chinese: str) -> None:
    """A browser draws the end of a line as a space."""
    prose = re.sub(r"^ *```.*?^ *```", "", text(chinese), flags=re.MULTILINE | re.DOTALL)
    wide = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
    assert re.findall(rf"^(?![|#>]).*{wide}\n *{wide}.*$", prose, re.MULTILINE) == []


def test_the_readme_is_two_screens_and_begins_with_two_commands() -> None:
    for path in ("README.md", "README.zh.md"):
        assert len(text(path).splitlines()) <= MOST_LINES_OF_TWO_SCREENS
        ours = [line for line in commands(path) if line.startswith("scripts/")]
        assert ours == ["scripts/start", "scripts/setup"]


def test_guides_of_set_up_and_operation_are_there_in_chinese() -> None:
    needed = {
        "setup-feishu.md", "feishu-app.md", "setup-supabase.md", "settings.md", "operating.md",
        "deploying.md", "commands.md", "on-time.md", "first-day.md", "import.md",
        "documents.md", "calendar.md",
    }  # fmt: skip
    assert {Path(path).name for path in TWINS} == {"README.md", "SECURITY.md", *needed}


@every_row("english", TWINS)
def test_the_chinese_twin_keeps_step(english: str) -> None:
    """The same outline, the same commands, the same settings and the same names in code."""
    chinese = TWINS[english]
    assert headings(chinese) == headings(english)
    assert commands(chinese) == commands(english)
    assert named(chinese) == named(english)
    assert settings_rows(chinese) == settings_rows(english)
    assert set(inline(chinese)) == set(inline(english))


@every_row("english", TWINS)
def test_what_looks_like_a_setting_is_one(english: str) -> None:
    assert named(english) - OTHERS_VARIABLES <= SETTINGS


def decisions() -> list[str]:
    """Each entry of docs/decisions.md from its heading on."""
    chapters = re.split(r"^## ", text("docs/decisions.md"), flags=re.MULTILINE)[1:]
    return [entry for chapter in chapters for entry in re.split(r"^### ", chapter, flags=re.M)[1:]]


def test_a_decision_is_short_enough_to_look_up() -> None:
    assert len(text("docs/decisions.md").split()) <= MOST_WORDS_OF_DECISIONS
    for entry in decisions():
        heading, _, reason = entry.partition("\n")
        assert reason.strip(), heading
        if heading != LIST_OF_DEPENDENCIES:
            assert len(entry.split()) <= MOST_WORDS_OF_A_DECISION, heading


def test_every_entry_of_the_decisions_stands_in_a_chapter_once() -> None:
    written = text("docs/decisions.md")
    preface, *chapters = re.split(r"^## (.*)$", written, flags=re.MULTILINE)
    assert all("### " in chapter for chapter in chapters[1::2])
    assert "### " not in preface
    headings_of_entries = re.findall(r"^### (.*)$", written, re.MULTILINE)
    assert max(Counter(headings_of_entries).values()) == 1


def test_measured_times_and_shares_stand_in_the_numbers_alone() -> None:
    measured = [e for e in decisions() if re.search(r"\d(?:\.\d+)? (?:ms of CPU|%|points)", e)]
    assert measured == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    needed = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[=]", requirement)[0] for requirement in needed}
    (table,) = [e for e in decisions() if e.startswith(LIST_OF_DEPENDENCIES)]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*\w[^|]*) \|$", table, re.MULTILINE)
    explained = {name.strip() for names_of_row, _ in rows for name in names_of_row.split(",")}
    assert names - explained == set()


def terms(section: str) -> list[str]:
    """The first column of a table of docs/glossary.md, without what is in brackets."""
    (table,) = re.findall(
        rf"^## {section}\n(.*?)(?=^## |\Z)", text("docs/glossary.md"), re.M | re.S
    )
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    return [re.sub(r" \(.*?\)|`", "", cell) for cell in cells]


def test_the_glossary_is_alphabetical_and_short() -> None:
    first = [term.split(", ")[0].lower() for term in terms("Words")]
    assert first == sorted(first)
    assert len(first) <= MOST_TERMS


def test_every_table_is_explained_where_it_is_made() -> None:
    files = text("sql/schema.sql") + text("sql/functions/vectors.sql")
    unexplained = re.findall(r"^(?!--).*\ncreate table (\S+)", files, re.MULTILINE)
    assert unexplained == []


def test_an_unreleased_change_is_told_in_one_line() -> None:
    _, _, unreleased = text("CHANGELOG.md").partition("## Unreleased\n")
    lines = list(filter(None, unreleased.partition("\n## ")[0].splitlines()))
    assert len(lines) <= MOST_LINES_OF_CHANGES
    for line in lines:
        assert re.match(
            r"(### (Added|Changed|Fixed|Removed|Security)|The first release\.|- \S.*)$", line
        ), line
        assert len(line) <= MOST_LETTERS_OF_A_CHANGE, line
