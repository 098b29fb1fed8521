"""After the questions of the labelled set the bot offers what helps, and little else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.evaluate.offers import load_offer_cases, offers_made, report

pytestmark = pytest.mark.anyio

CASES = load_offer_cases(Path(__file__).parents[2] / "data" / "private_offers.jsonl")


@pytest.mark.parametrize("split", ["tune", "held"])
async def test_offers_help_and_few_are_missed(database_url: str, split: str) -> None:
    cases = [one for one in CASES if one.split == split]

    figures = report(cases, await offers_made(database_url, cases))

    assert figures.precision >= 0.9, figures.wrong
    assert figures.missed_share <= 0.2, figures.missed
