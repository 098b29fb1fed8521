"""The figures of recall: bars, kinds, and what prompts tell."""

from __future__ import annotations

from lab.evaluate.recall import PromptShare, RecallLatency, RecallReport, _figures

FOUND = {1: 0.1, 5: 0.5, 10: 0.9}


def report(corpus: str) -> RecallReport:
    return RecallReport(
        corpus,
        60,
        FOUND,
        RecallLatency(1, 2),
        PromptShare(0.5, 0.2, 150, 3, 100),
        {"Chinese": FOUND},
    )


def test_a_bar_of_vectors_is_absolute_or_above_what_words_found() -> None:
    own = {figure.name: figure for figure in _figures("vectors", report("in other words"), FOUND)}
    public = {figure.name: figure for figure in _figures("vectors", report("LoCoMo, 1/3"), FOUND)}

    assert own["in other words, vectors: R@5"].verdict == "miss"
    assert own["in other words, vectors: R@5"].bar == 85
    assert public["LoCoMo, 1/3, vectors: R@10"].bar == 91
    assert public["LoCoMo, 1/3, vectors: R@1"].bar is None


def test_kinds_stand_beside_their_set_and_prompts_with_what_they_cost_elsewhere() -> None:
    found = {figure.name: figure for figure in _figures("words", report("BEAM"))}

    assert found["BEAM, words: R@5"].note == "Chinese 50.0"
    assert found["BEAM, words: told in prompts"].note == "150 tokens"
    assert found["BEAM, words: told where the answer is not"].note == "100 tokens"
