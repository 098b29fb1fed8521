"""Which messages are read again while the model works, in case they were edited."""

from __future__ import annotations

from dataclasses import replace

from bot.answering.answer_sources import to_reread
from memory.recall.passages import Passage
from tests.support.rows import every_row

QUESTION = "when is the handover?"


def said(number: int, text: str) -> Passage:
    at = f"2026-11-28T05:{number:02}:00+00:00"
    return Passage(f"om_{number}", number, "feishu:c:t", "c", at, "ou_a", "Alice", text, "")


HANDOVER = said(1, "the handover is on 3 March")
MOVED = said(2, "the handover moved to 10 March")
ASKED = said(3, "when is the handover?")
OTHER = said(4, "lunch is at noon")


def read(*passages: Passage, quoted: str = "", **before: float) -> list[str]:
    return to_reread(passages, QUESTION, quoted, before, 1000.0)


def test_the_newest_statements_on_the_matter_are_read_again() -> None:
    assert read(HANDOVER, MOVED, ASKED, OTHER) == ["om_2", "om_1"]


def test_what_is_quoted_comes_first() -> None:
    assert read(HANDOVER, quoted="om_9") == ["om_9", "om_1"]


@every_row(("at", "again"), [(940.0, True), (941.0, False)])
def test_no_message_is_read_twice_within_a_minute(at: float, again: bool) -> None:
    assert (read(HANDOVER, om_1=at) == ["om_1"]) is again


def test_at_most_three_are_read() -> None:
    many = [said(n, f"the handover is on {n} March") for n in range(1, 20)]
    assert read(*many) == ["om_19", "om_18", "om_17"]


def test_what_is_no_message_of_feishu_or_was_imported_is_not_read() -> None:
    imported = replace(HANDOVER, source="import")
    assert read(imported, replace(HANDOVER, turn_id="button:om_1")) == []
