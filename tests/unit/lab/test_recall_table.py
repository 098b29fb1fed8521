"""What the evaluation of recall prints."""

from __future__ import annotations

from lab.evaluation.recall_asking import PromptShare, RecallLatency, RecallReport
from lab.evaluation.recall_table import (
    BM25,
    VECTORS,
    WORDS,
    Measured,
    bars_table,
    found_table,
    prompt_table,
)


def measured(way: str, at_5: float, tokens_elsewhere: float = 100) -> Measured:
    report = RecallReport(
        "in other words",
        60,
        True,
        {1: 0.1, 5: at_5, 10: at_5},
        RecallLatency(1, 2),
        prompt=PromptShare(at_5, 0.2, 150, 3, tokens_elsewhere),
        kinds={"Chinese": {1: 0, 5: at_5, 10: 1}},
    )
    return Measured.of(way, report)


def test_the_ways_stand_beside_each_other_and_kinds_below_their_set() -> None:
    plain = Measured(BM25, "in other words", 60, {1: 0, 5: 0.2, 10: 0.3}, {})

    head, total, kind = found_table([plain, measured(WORDS, 0.5)]).splitlines()

    assert head.split("  ")[-1].strip() == "words R@1/5/10"
    assert total.split() == [
        *"in other words 60".split(), *"0.0 / 20.0 / 30.0".split(), *"10.0 / 50.0 / 50.0".split()
    ]  # fmt: skip
    assert kind.split() == ["Chinese", *"0.0 / 50.0 / 100.0".split()]


def test_a_bar_is_kept_or_missed_where_it_can_be_measured() -> None:
    assert bars_table([measured(WORDS, 0.5)]) == ""

    rows = bars_table([measured(VECTORS, 0.9)]).splitlines()[1:]

    assert [row.split()[-1] for row in rows] == ["kept", "missed"]
    assert "90.0" in rows[0]


def test_prompts_are_told_of_with_what_they_cost_elsewhere() -> None:
    [_, row] = prompt_table([measured(WORDS, 0.5)]).splitlines()

    assert row.split()[-5:] == ["50.0%", "20.0%", "150", "3.0", "100"]
