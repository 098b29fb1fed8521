"""What a thread without notes is told of those of other threads: few words, the likeliest first."""

from __future__ import annotations

from bot.agents.offline.notes import known_notes, notes_meant_by
from bot.agents.prompts.prompt import REGISTRY
from bot.agents.prompts.tool_context import MOST_USED, registry_table
from memory.context import estimate_tokens
from memory.tables.notes import RegisteredNote


def _note(letter: str, recency: int, shown: int | None = None, title: str = "") -> RegisteredNote:
    return RegisteredNote(
        id=f"note_{letter * 10}",
        title=title or f"Note {letter}",
        tags=("x",),
        ordinal=recency,
        recency=recency,
        last_action="read",
        here=False,
        shown=shown,
        elsewhere=True,
    )


def test_a_line_a_note_used_last_first_with_its_place_in_the_last_list() -> None:
    told = registry_table([_note("a", 1), _note("c", 3, 1), _note("b", 2, 2)])

    assert told.splitlines() == [
        MOST_USED,
        '- "Note a" (ID: note_aaaaaaaaaa)',
        '2. "Note b" (ID: note_bbbbbbbbbb)',
        '1. "Note c" (ID: note_cccccccccc)',
    ]


def test_it_costs_little_however_long_the_titles_are() -> None:
    for title in ("很长的标题" * 40, "a long title " * 15):
        told = registry_table([_note(letter, n, title=title) for n, letter in enumerate("abcdef")])
        assert estimate_tokens(told) <= 120
        assert "note_aaaaaaaaaa" in told
    five = registry_table([_note(letter, n, title="周会纪要") for n, letter in enumerate("abcde")])
    assert five.count("ID: ") == 5


def test_the_offline_model_reads_it_and_knows_no_order_of_creation() -> None:
    told = registry_table([_note("a", 1), _note("c", 3, 1), _note("b", 2, 2)])
    known = known_notes(f"Rules\n\n{REGISTRY}\n{told}\n\nNow", ())

    assert notes_meant_by("that note", known)[0].id == "note_aaaaaaaaaa"
    assert [note.id for note in notes_meant_by("第二条笔记", known)] == ["note_bbbbbbbbbb"]
    assert [note.id for note in notes_meant_by("note b", known)] == ["note_bbbbbbbbbb"]
    unlisted = known_notes(f"{REGISTRY}\n{registry_table([_note('a', 1), _note('b', 2)])}", ())
    assert notes_meant_by("the first note", unlisted) == []
    assert notes_meant_by("the latest note", unlisted)[0].id == "note_aaaaaaaaaa"
