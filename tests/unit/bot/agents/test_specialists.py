"""Specialists' files: what they may hold, and what a mistake in them says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.agents.manager import own_tools
from bot.agents.specialists import (
    FOLDER,
    TOOL_NAMES,
    Specialist,
    SpecialistInvalid,
    load_specialists,
)
from bot.features.registry import TOOLS

KNOWN = frozenset({"create_note", "recall", "desk__*"})
GOOD = """\
---
name: helper
description: Helps
  with things.
tools: [create_note, desk__add]
model: small-model
auto_mention: false
---

Help **well**.
"""


def _load(folder: Path, **files: str) -> tuple[Specialist, ...]:
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return load_specialists(folder, KNOWN)


def test_a_file_gives_a_specialist(tmp_path: Path) -> None:
    assert _load(tmp_path, helper=GOOD) == (
        Specialist(
            name="helper",
            description="Helps with things.",
            instructions="Help **well**.",
            tools=("create_note", "desk__add"),
            model="small-model",
            auto_mention="off",
        ),
    )


def test_the_shipped_specialists_are_valid_and_differ() -> None:
    shipped = load_specialists(FOLDER, TOOL_NAMES)

    assert [one.name for one in shipped] == ["okr_coach", "summariser", "writer"]
    assert all(len(one.instructions) > 500 for one in shipped)
    assert all(one.auto_mention is None and one.model is None for one in shipped)


@pytest.mark.parametrize(
    ("written", "means"),
    [("sender", "sender"), ("true", "sender"), ("meant", "meant"), ("off", "off"), ("no", "off")],
)
def test_a_specialist_says_whom_its_answers_address(
    tmp_path: Path, written: str, means: str
) -> None:
    (one,) = _load(tmp_path, helper=GOOD.replace("mention: false", f"mention: {written}"))
    assert one.auto_mention == means


def test_an_empty_folder_has_no_specialists(tmp_path: Path) -> None:
    assert load_specialists(tmp_path, KNOWN) == ()


def test_a_specialist_may_use_what_it_lists_and_nothing_else() -> None:
    one = Specialist("a", "b", "c", tools=("create_note", "desk__*", "web__read"))

    assert one.may_use("create_note")
    assert one.may_use("desk__anything")
    assert one.may_use("web__read")
    assert not one.may_use("web__write")
    assert not one.may_use("delete_note")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("name: x", 1, "must begin with ---"),
        ("", 1, "must begin with ---"),
        ("---\nname: x\n", 2, "no closing ---"),
        ("---\nname: [x\n---\nHelp", 2, "YAML is broken"),
        ("---\n- a\n---\nHelp", 2, "key: value"),
        ("---\ndescription: b\n---\nHelp", 1, "name is missing"),
        ("---\nname: x\n---\nHelp", 1, "description is missing"),
        ("---\nname: x\ndescription: 5\n---\nHelp", 3, "description must be a text"),
        ("---\nname: X y\ndescription: b\n---\nHelp", 2, "the name 'X y' must match"),
        ("---\nname: x\ndescription: b\ntool: []\n---\nHelp", 4, "unknown key 'tool'"),
        ("---\nname: x\nname: y\ndescription: b\n---\nHelp", 3, "stands here twice"),
        ("---\nname: x\ndescription: b\ntools:\n- nope\n---\nHelp", 4, "unknown tool 'nope'"),
        ("---\nname: x\ndescription: b\ntools: [other__a]\n---\nHelp", 4, "unknown tool"),
        ("---\nname: x\ndescription: b\ntools: recall\n---\nHelp", 4, "tools must be a list"),
        ("---\nname: x\ndescription: b\nauto_mention: maybe\n---\nH", 4, "sender (true), meant"),
        ("---\nname: x\ndescription: b\nmodel: ''\n---\nHelp", 4, "model must be a text"),
        ("---\nname: x\ndescription: b\n---\n\n  \n", 5, "instructions are empty"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_reason(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    with pytest.raises(SpecialistInvalid) as caught:
        _load(tmp_path, broken=text)

    assert str(caught.value).startswith(f"broken.md:{line}: ")
    assert reason in str(caught.value)


def test_two_specialists_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecialistInvalid, match=r"two\.md:2: another specialist is named 'helper'"):
        _load(tmp_path, one=GOOD, two=GOOD)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"---\nname: \xff\xfe\n---\n")
    with pytest.raises(SpecialistInvalid, match=r"bad\.md:1: the file is not UTF-8"):
        load_specialists(tmp_path, KNOWN)


def test_the_names_that_are_checked_are_the_tools_there_are() -> None:
    assert {tool.name for tool in (*own_tools(with_recall=True), *TOOLS)} == TOOL_NAMES
