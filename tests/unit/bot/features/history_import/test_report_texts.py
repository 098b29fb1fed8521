"""What a chat is told of its import."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

from bot.features.history_import import reporting
from bot.features.history_import.reporting import Refusal
from memory.tables.imports import HistoryImport
from tests.support.rows import every_row

NOW = datetime(2026, 11, 26, tzinfo=UTC)
DONE = HistoryImport(
    id=1, tenant_key="t", chat_id="oc_1", chat_type="group", started_by="ou_ann",
    since_ms=None, until_ms=0, state="done", phase="finishing", position="", estimated=0, pages=3,
    messages=1204, report={"deleted": 1, "old_threads": 2, "system": 7, "own": 5}, error="",
    started_ms=0, updated_ms=0, finished_ms=0,
)  # fmt: skip


def finished(found: HistoryImport = DONE, **given: object) -> str:
    told: dict[str, object] = {"who": "Ann", "oldest": None, "now": NOW, "is_shown": False, **given}
    return reporting.finished_text(found, "en", **told)  # type: ignore[arg-type]


def test_the_card_says_who_imported_what_and_what_is_missing():
    text = finished()
    assert "1204 messages, asked for by Ann" in text
    assert "from its beginning" in text
    assert "only about what was said since they joined" in text
    assert "2 threads from before I joined" in text
    assert "1 recalled message" in text
    assert "7" not in text.replace("1204", "")
    assert "use the button in `/import`" in text


def test_the_card_says_since_when_and_that_all_may_read_it():
    text = finished(oldest=datetime(2026, 10, 27, tzinfo=UTC), is_shown=True, who="")
    assert "since 27 Oct" in text
    assert "Every member can ask about all of it" in text
    assert "one of my operators" in text


def test_a_name_is_no_markup():
    assert "<at" not in finished(who="<at id=all></at>")


def test_in_p2p_nobody_else_is_spoken_of():
    text = finished(replace(DONE, chat_type="p2p"))
    assert "our chat" in text
    assert "member" not in text


@every_row("language", ["en", "zh"])
@every_row("refusal", get_args(Refusal))
def test_every_refusal_has_its_sentence(refusal, language):
    found = replace(DONE, state="failed", error=refusal)
    assert reporting.say(f"failed-{refusal}", language) in reporting.failure_text(found, language)
    assert "1204" in reporting.failure_text(found, language)
