import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.context import Calibration, estimate_tokens, token_cost
from tests.support.rows import every_row

SAMPLES = json.loads((Path(__file__).parents[2] / "data/tokens/reference.json").read_text("utf-8"))[
    "samples"
]


@pytest.mark.parametrize(
    "sample", SAMPLES, ids=[f"{number}-{s['kind']}" for number, s in enumerate(SAMPLES)]
)
def test_the_estimate_is_within_15_percent_of_the_reference_tokenizer(sample):
    assert estimate_tokens(sample["text"]) == pytest.approx(sample["o200k_base"], rel=0.15)


def test_over_a_kind_of_text_the_errors_nearly_cancel_out():
    estimated, counted = defaultdict(int), defaultdict(int)
    for sample in SAMPLES:
        estimated[sample["kind"]] += estimate_tokens(sample["text"])
        counted[sample["kind"]] += sample["o200k_base"]

    for kind in ("chinese", "english", "chat", "python", "json", "markdown", "ids"):
        assert estimated[kind] == pytest.approx(counted[kind], rel=0.08), kind


def test_calibration_learns_a_tokenizer_that_counts_chinese_differently():
    chinese = [sample for sample in SAMPLES if sample["kind"] == "chinese"]
    calibration = Calibration()
    for sample in chinese * 3:
        calibration = calibration.observe(estimate_tokens(sample["text"]), sample["cl100k_base"])

    estimated = sum(estimate_tokens(sample["text"]) for sample in chinese)
    counted = sum(sample["cl100k_base"] for sample in chinese)
    assert estimated < 0.75 * counted
    assert calibration.reported_tokens(estimated) == pytest.approx(counted, rel=0.15)


def test_only_an_empty_text_costs_nothing():
    assert estimate_tokens("") == 0
    assert [estimate_tokens(text) for text in (" ", "a", "的", "\x00", "\ud800")] == [1, 1, 1, 1, 2]
    assert estimate_tokens("\x00" * 1000) > 100


@given(st.lists(st.text(st.sampled_from(" \t\nab1Z.,_的譲…，🙂é")), max_size=6))
def test_a_text_never_costs_more_than_its_lines(lines):
    text = "\n".join(lines)

    assert token_cost(text) <= sum(map(token_cost, text.splitlines(keepends=True))) + 1e-9


@given(st.integers(1, 10**6), st.lists(st.tuples(st.integers(-5, 10**6), st.integers(-5, 10**6))))
def test_calibration_stays_bounded_and_never_affords_too_much(budget, pairs):
    calibration = Calibration()
    for estimated, reported in pairs:
        calibration = calibration.observe(estimated, reported)

    assert 0.5 <= calibration.scale <= 2
    assert calibration.reported_tokens(calibration.affordable(budget)) <= budget
    assert calibration.reported_tokens(calibration.affordable(budget) + 1) >= budget


def test_one_absurd_report_moves_a_settled_calibration_by_a_tenth():
    settled = Calibration()
    for _ in range(50):
        settled = settled.observe(1000, 1200)

    moved = settled.observe(1000, 1_000_000)

    assert settled.scale == pytest.approx(1.2, abs=0.02)
    assert moved.scale - settled.scale == pytest.approx(0.1 * (2 - settled.scale))


@every_row(("estimated", "reported"), [(0, 10), (10, 0), (-1, 10), (10, -1)])
def test_a_request_without_usage_teaches_nothing(estimated, reported):
    calibration = Calibration(1.3, 7)

    assert calibration.observe(estimated, reported) is calibration
