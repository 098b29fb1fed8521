"""Names of those who wrote imported messages: asked for once, and kept nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from bot.feishu.errors import Unreachable
from bot.people.people_directory import AuthorNames
from memory.tables.directory import KnownName


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Table:
    """Knows Ann."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def named(self, tenant_key: str, open_ids: Iterable[str]) -> tuple[KnownName, ...]:
        self.asked.append(list(open_ids))
        return (KnownName("ou_ann", "Ann", 1),) if "ou_ann" in self.asked[-1] else ()


class Feishu:
    """Knows Bo, while it can be reached."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.away = False

    async def names(self, open_ids: Iterable[str]) -> dict[str, str]:
        self.asked.append(list(open_ids))
        if self.away:
            raise Unreachable("away")
        return {"ou_bo": "Bo"} if "ou_bo" in self.asked[-1] else {}


def found(authors: AuthorNames, feishu: Any, table: Any, *open_ids: str) -> dict[str, str]:
    return asyncio.run(authors.find("t", open_ids, feishu, table))


def test_names_come_from_the_table_and_else_of_feishu_and_are_asked_for_once():
    authors, feishu, table = AuthorNames(Clock()), Feishu(), Table()
    for _ in range(3):
        assert found(authors, feishu, table, "ou_ann", "ou_bo", "ou_x", "") == {
            "ou_ann": "Ann",
            "ou_bo": "Bo",
        }
    assert table.asked == [["ou_ann", "ou_bo", "ou_x"]]
    assert feishu.asked == [["ou_bo", "ou_x"]]


def test_whom_nobody_knows_is_asked_for_again_after_a_while():
    clock, feishu, table = Clock(), Feishu(), Table()
    authors = AuthorNames(clock)
    found(authors, feishu, table, "ou_x")
    clock.now += 601
    found(authors, feishu, table, "ou_x")
    assert feishu.asked == [["ou_x"], ["ou_x"]]


def test_what_feishu_does_not_answer_is_asked_again():
    feishu, table = Feishu(), Table()
    authors = AuthorNames(Clock())
    feishu.away = True
    assert found(authors, feishu, table, "ou_bo") == {}
    feishu.away = False
    assert found(authors, feishu, table, "ou_bo") == {"ou_bo": "Bo"}


def test_a_tenant_does_not_learn_what_another_knows():
    authors, feishu, table = AuthorNames(Clock()), Feishu(), Table()
    found(authors, feishu, table, "ou_bo")
    asyncio.run(authors.find("other", ["ou_bo"], feishu, table))
    assert len(feishu.asked) == 2


def test_the_oldest_goes_when_there_are_too_many():
    authors, feishu, table = AuthorNames(Clock()), Feishu(), Table()
    found(authors, feishu, table, "ou_bo")
    found(authors, feishu, table, *(f"ou_{number}" for number in range(5000)))
    assert len(authors._known_names) == 5000
    found(authors, feishu, table, "ou_bo")
    assert feishu.asked[-1] == ["ou_bo"]
