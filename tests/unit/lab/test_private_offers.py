"""The figures of labelled offers, and that the set is what it is said to be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lab.evaluate.offers import OfferCase, load_offer_cases, report

CASES = load_offer_cases(Path(__file__).parents[2] / "data" / "private_offers.jsonl")


def case(name: str, *, helps: bool) -> OfferCase:
    return OfferCase(name, "tune", "en", "told", helps, "asked?", "answer", (), (), ())


def test_offers_without_help_and_help_without_an_offer_are_counted() -> None:
    cases = [case("a", helps=True), case("b", helps=True), case("c", helps=False)]

    figures = report(cases, {"a": True, "b": False, "c": True})

    assert (figures.offered, figures.would_help) == (2, 2)
    assert (figures.wrong, figures.missed) == (("c",), ("b",))
    assert (figures.precision, figures.missed_share) == (0.5, 0.5)


def test_half_of_the_cases_are_chinese_and_each_half_has_both_labels() -> None:
    languages = Counter(one.lang for one in CASES)
    assert len(CASES) >= 80
    assert languages["zh"] == languages["en"]
    for split in ("tune", "held"):
        assert {one.helps for one in CASES if one.split == split} == {True, False}
    assert len({one.id for one in CASES}) == len(CASES)
