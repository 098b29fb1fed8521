"""What a group settled in its imported past is found, by the labelled questions."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.evaluate.past import evaluate_past, past_questions
from sandbox.past.script import episodes

pytestmark = pytest.mark.anyio


def test_half_of_the_questions_are_chinese_a_third_by_person_and_a_third_by_date() -> None:
    asked = past_questions()
    assert len(asked) >= 60
    assert Counter(one.language for one in asked)["zh"] == len(asked) / 2
    kinds = Counter(one.kind for one in asked)
    assert min(kinds["person"], kinds["date"]) > 0.3 * len(asked)
    keys = {one.key for one in episodes("scenes.txt")}
    assert {key for one in asked for key in one.evidence} <= keys


async def test_nine_of_ten_labelled_messages_are_among_the_first_five(database_url: str) -> None:
    found = await evaluate_past(database_url, 3000, [1, 5], print)
    assert found.shares[0].found[5] >= 0.9, found.missed
    assert found.shares[0].found[1] >= 0.7
    assert min(one.found[5] for one in found.shares) >= 0.8
