"""What the memory keeps about a person or in a conversation, in `scripts/memory get`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from bot.text.languages import Sentence
from scripts.operating.arguments import language
from scripts.operating.console import Screen, print_json
from scripts.operating.desk import OperatorDesk


async def show_person(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Working memory with, on request, its changes; of a person how much is stored besides."""
    filters = {"user_id": given.person, "conversation_id": given.conversation}
    memories = await desk.operations.working_memory(**filters)
    changes = await desk.operations.working_memory_changes(**filters) if given.history else ()
    counts = await desk.operations.count_person(given.person, given.tenant) if given.person else {}
    if given.json:
        print_json({"working_memory": memories, "changes": changes, "rows": counts})
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    if given.person:
        _say_whom(screen, given.person, counts)
    screen.table(
        "Working memory",
        ("scope", "person", "conversation", "changed", "content"),
        [
            (row["scope"], row["user_id"], row["conversation_id"], desk.shown(row["updated_at"]),
             _dump(row["content"]))
            for row in memories
        ],
    )  # fmt: skip
    if given.history:
        screen.table(
            "Changes",
            ("time", "by", "scope", "was", "became"),
            [
                (desk.shown(row["at"], timespec="seconds"), row["actor_id"], row["scope"],
                 _dump(row["was"]), _dump(row["became"]))
                for row in reversed(changes)
            ],
        )  # fmt: skip
    if given.person:
        screen.table("Rows stored", ("table", "rows"), rows_there(counts))
    return 0


def _say_whom(screen: Screen, open_id: str, counts: Mapping[str, int]) -> None:
    """Who it is and how much is kept, before the tables."""
    total, name = sum(counts.values()), screen.named(open_id)
    rows = Sentence(f"{total} rows of {name}", f"{name} 的 {total} 行数据")
    screen.verdict("memory", rows, good=True)


def rows_there(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Tables that hold something; zeros say nothing."""
    return [(table, rows) for table, rows in counts.items() if rows]


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
