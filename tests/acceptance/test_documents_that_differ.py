"""Documents that everybody in a group can open, and that show each of them something else: what
the asker sees in them is told to the asker alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_documents import alice, alone, asked, known
from tests.support import profiles

SECRET = "Gallowglass thirty"
__all__ = ["alice", "known"]

OPEN = {"link": "tenant_readable"}


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


def made(world: World, **body: Any) -> dict[str, Any]:
    asker = world.people["Alice"]
    return dict(world.platform.post("/documents", **{"as": asker, "title": "Launch plan"} | body))


def docx_with(world: World, kind: str, source: str = "", **sharing: Any) -> dict[str, Any]:
    said = f"The launch code is {SECRET}."
    blocks = [{"kind": "text", "text": "Launch"}, {"kind": kind, "source": source, "text": said}]
    return made(world, blocks=blocks, **(OPEN | sharing))


def base(world: World, **sharing: Any) -> dict[str, Any]:
    tables = [{"name": "Codes", "fields": [{"name": "Code", "type": 1}], "records": []}]
    return made(world, kind="bitable", tables=tables, **sharing)


def sheet(world: World, protected: list[dict[str, Any]], **sharing: Any) -> dict[str, Any]:
    sheets = [{"title": "Codes", "rows": [["Launch", SECRET]], "protected": protected}]
    return made(world, kind="sheet", sheets=sheets, **sharing)


WHOLE = [{"protectId": "1", "sheetId": "sh0000"}]
COLUMN = [{"protectId": "1", "dimension": {"majorDimension": "COLUMNS", "startIndex": 2}}]


def document(world: World, case: str) -> dict[str, Any]:
    match case:
        case "a synced block of a closed document":
            return docx_with(world, "reference", made(world, blocks=[])["token"])
        case "a synced block of an open document with one of a closed document":
            source = docx_with(world, "reference", made(world, blocks=[])["token"])
            return docx_with(world, "reference", source["token"])
        case "a Base with advanced permissions":
            return docx_with(world, "base", base(world, is_advanced=True, **OPEN)["token"] + "_t1")
        case "a closed Base":
            return docx_with(world, "base", base(world)["token"] + "_t1")
        case "a sheet with protected columns":
            return docx_with(world, "sheet", sheet(world, COLUMN, **OPEN)["token"] + "_s1")
        case "a task":
            return docx_with(world, "task")
        case "a block that is not known":
            return docx_with(world, "unknown")
        case "a page of the wiki with a synced block":
            return docx_with(world, "reference", made(world, blocks=[])["token"], wiki=True)
        case "a protected sheet":
            return sheet(world, WHOLE, **OPEN)
    return sheet(world, COLUMN, **OPEN)


@pytest.mark.parametrize(
    "case",
    [
        "a synced block of a closed document",
        "a synced block of an open document with one of a closed document",
        "a Base with advanced permissions",
        "a closed Base",
        "a sheet with protected columns",
        "a task",
        "a block that is not known",
        "a page of the wiki with a synced block",
        "a protected sheet",
        "a protected column",
    ],
)
def test_what_may_differ_is_told_to_the_asker_alone(
    alice: World, known: set[str], case: str
) -> None:
    question, said = asked(alice, document(alice, case)["url"], secret=SECRET)
    assert SECRET not in said
    assert SECRET in markdown(alone(alice, question, known))


@pytest.mark.parametrize("case", ["synced", "reference", "base", "sheet", "plain sheet", "wiki"])
def test_what_everybody_sees_alike_is_told_to_the_group(alice: World, case: str) -> None:
    match case:
        case "reference":
            shown = docx_with(alice, case, made(alice, blocks=[], **OPEN)["token"])
        case "base":
            shown = docx_with(alice, case, base(alice, **OPEN)["token"] + "_t1")
        case "sheet":
            shown = docx_with(alice, case, sheet(alice, [], **OPEN)["token"] + "_s1")
        case "plain sheet":
            shown = sheet(alice, [], **OPEN)
        case _:
            shown = docx_with(alice, "synced", wiki=case == "wiki")
    assert SECRET in asked(alice, shown["url"], secret=SECRET)[1]
