"""The first or the last of several times: when a question means it, and what is then told."""

from __future__ import annotations

from memory.recall.passages import Passage
from memory.recall.selection import Ordinal, asked_ordinal, hits_to_request, ordered_hits
from tests.support.rows import every_row


@every_row(
    ("question", "meant"),
    [
        ("When did we first talk about the fair?", "first"),
        ("What did the physio say the second time?", "first"),
        ("my very first day?", "first"),
        ("What was said for the first time there?", "first"),
        ("我第一次去厦门住哪里？", "first"),
        ("最早说的方案是什么？", "first"),
        ("When did she last call?", "last"),
        ("What did the most recent meeting decide?", "last"),
        ("我最近一次体检怎么样？", "last"),
        ("上次说的价格？", "last"),
        ("What did we decide last week?", None),
        ("我最近心情不好", None),
        ("What is the price?", None),
        ("第一季度的预算？", None),
    ],
)
def test_a_question_means_the_first_or_the_last_time(question: str, meant: Ordinal | None) -> None:
    assert asked_ordinal(question) == meant


def _hit(day: int, score: float) -> Passage:
    at = f"2026-01-{day:02}T00:00:00+00:00"
    return Passage(f"om_{day}", day, "feishu:oc:om", "oc", at, None, "", "said", "", score=score)


HITS = tuple(_hit(day, 10 - place) for place, day in enumerate((5, 9, 2, 7, 1, 3, 8)))


@every_row(
    ("question", "days"),
    [
        ("When did we first talk?", [5, 1, 9, 2, 7]),
        ("When did we last talk?", [5, 9, 2, 7, 1]),
        ("When did we talk?", [5, 9, 2, 7, 1]),
    ],
)
def test_the_best_and_what_came_first_or_last_is_told(question: str, days: list[int]) -> None:
    told = ordered_hits(HITS, question, 5)

    assert [passage.message_id for passage in told] == days


def test_what_is_about_something_else_is_not_told_for_its_time() -> None:
    other = (*HITS[:2], _hit(1, 0.1))

    assert [p.message_id for p in ordered_hits(other, "When did we first talk?", 2)] == [5, 9]
    assert ordered_hits((), "When did we first talk?", 2) == ()


def test_more_is_asked_for_where_the_time_decides() -> None:
    assert (hits_to_request("the first time?", 5), hits_to_request("the price?", 5)) == (15, 5)
