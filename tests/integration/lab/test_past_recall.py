"""What a group settled in its imported past is found, by the labelled questions."""

from __future__ import annotations

import re
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
    first, five = await evaluate_past(database_url, 3000, [1, 5])
    assert (five.name, five.verdict) == ("past of 3,000: R@5", "ok"), five.note
    assert first.value >= 70
    of_kinds = [float(share) for share in re.findall(r" ([\d.]+)[,;]", five.note)]
    assert len(of_kinds) == 4
    assert min(of_kinds) >= 80
