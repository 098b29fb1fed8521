"""What the documents say is there: settings, commands, links; and the Chinese ones keep step."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bot.settings import NAMES

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
MOST_LINES_OF_A_SCREEN = 55


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
    """Scripts, paths, scopes, events and fields of logs in inline code."""
    prose = re.sub(r"^```.*?^```", "", text(path), flags=re.MULTILINE | re.DOTALL)
    return Counter(code for code in re.findall(r"`([^`\n]+)`", prose) if code.isascii())


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
    for name in re.findall(r"\bscripts/(\w+)", written):
        assert (ROOT / "scripts" / name).exists() or (ROOT / "scripts" / f"{name}.py").exists()
    for name in re.findall(r"`((?:deploy|docs|sql|tests|bot|memory)/[\w./]+\w)`", written):
        assert (ROOT / name).exists(), name


def test_the_readme_is_one_screen_and_begins_with_two_commands() -> None:
    for path in ("README.md", "README.zh.md"):
        assert len(text(path).splitlines()) <= MOST_LINES_OF_A_SCREEN
        ours = [line for line in commands(path) if line.startswith("scripts/")]
        assert ours == ["scripts/start", "scripts/test"]


def test_guides_of_set_up_and_operation_are_there_in_chinese() -> None:
    needed = {
        "setup-feishu.md", "feishu-app.md", "setup-supabase.md", "settings.md", "operating.md",
        "deploying.md", "on-time.md", "first-day.md",
    }  # fmt: skip
    assert {Path(path).name for path in TWINS} == {"README.md", "SECURITY.md", *needed}


@pytest.mark.parametrize("english", TWINS)
def test_the_chinese_twin_keeps_step(english: str) -> None:
    """The same outline, the same commands, the same settings and the same names in code."""
    chinese = TWINS[english]
    assert headings(chinese) == headings(english)
    assert commands(chinese) == commands(english)
    assert named(chinese) == named(english)
    assert settings_rows(chinese) == settings_rows(english)
    assert set(inline(chinese)) == set(inline(english))


@pytest.mark.parametrize("english", TWINS)
def test_what_looks_like_a_setting_is_one(english: str) -> None:
    assert named(english) - OTHERS_VARIABLES <= SETTINGS
