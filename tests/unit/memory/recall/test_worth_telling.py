"""How many of the passages found a prompt tells."""

from __future__ import annotations

from dataclasses import replace

from memory.recall.passages import Passage
from memory.recall.selection import MOST_IN_PROMPT, passages_for_prompt
from tests.support.rows import every_row

HIT = Passage("t", 1, "c", "oc", "2026-01-01T00:00:00+00:00", "ou", "Ann", "said", "", score=20.0)
LONG = "The van of the caterers arrives with forty chairs at the rear entrance. " * 4


def hits(count: int, score: float, said: str = "said") -> list[Passage]:
    return [replace(HIT, turn_id=f"t{n}", score=score - n, question=said) for n in range(count)]


def test_a_prompt_tells_ten_where_the_best_probably_answers() -> None:
    assert len(passages_for_prompt(hits(20, 20, LONG))) == MOST_IN_PROMPT == 10


@every_row(("score", "count"), [(20, 5), (5, 4)])
def test_long_ones_leave_less_room_but_some_are_told_in_any_case(score: float, count: int) -> None:
    assert len(passages_for_prompt(hits(10, score, "数据迁移计划" * 90))) == count


def test_a_question_that_finds_little_gets_no_long_prompt() -> None:
    assert len(passages_for_prompt(hits(10, 5, LONG))) == 4
    assert len(passages_for_prompt(hits(10, 5, "lunch at noon"))) == 10


def test_where_even_the_best_says_little_four_are_told_and_then_the_newest() -> None:
    weak = [replace(hit, score=3 - n / 10) for n, hit in enumerate(hits(8, 3))]
    newest = [replace(HIT, turn_id=f"n{n}", score=0) for n in range(3)]
    assert passages_for_prompt([*weak, *newest]) == (*weak[:4], *newest)
    assert passages_for_prompt([*weak, *newest], by_meaning=True) == (*weak, *newest[:2])


def test_the_best_are_told() -> None:
    found = hits(10, 5, LONG)
    assert passages_for_prompt(found) == tuple(found[:4])
    assert passages_for_prompt([]) == ()
