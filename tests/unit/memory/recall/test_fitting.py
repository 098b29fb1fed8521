"""Hits among one person's plain statements that do not fit the question are dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.recall.passages import Passage
from memory.recall.selection import fitting_hits

QUESTION = "how do we replay messages from the dead letter queue?"


def hit(number: int, text: str, score: float) -> Passage:
    return Passage(
        f"om_{number}", number, "feishu:oc_1:main", "oc_1", "2026-05-01T04:00:00+00:00", "ou_a", "",
        text, "Noted.", score=score, among=34,
    )  # fmt: skip


BEST = hit(1, "Failed messages go to a dead letter queue and are replayed by hand", 21.0)
BESIDE = hit(2, "Documentation is terse and scannable", 15.5)
FAR = hit(3, "Redis is a cache for messages", 7.0)


def test_only_what_shares_a_word_and_is_near_the_best_is_kept() -> None:
    assert fitting_hits([BEST, BESIDE, FAR], QUESTION) == [BEST]
    near = replace(FAR, score=16.0)
    assert fitting_hits([BEST, near], QUESTION) == [BEST, near]


def test_nothing_is_kept_where_the_best_shares_a_common_word_at_most() -> None:
    assert fitting_hits([replace(BEST, score=3.0), replace(FAR, score=2.0)], QUESTION) == []
    assert fitting_hits([BESIDE], QUESTION) == []


@pytest.mark.parametrize(
    "found",
    [
        [BEST, replace(FAR, question="What about Redis?")],
        [BEST, replace(FAR, before="and how do you cache?")],
        [BEST, replace(FAR, actor_name="Bob")],
        [BEST, replace(FAR, answer="Redis keeps them for a day, then they are dropped for good.")],
        [BEST, replace(FAR, question="缓存用Redis")],
        [replace(one, among=20) for one in (BEST, FAR)],
        [],
    ],
    ids=["asks", "answers", "two people", "long answer", "Chinese", "few turns", "nothing"],
)
def test_talk_is_kept_as_it_was_found(found: list[Passage]) -> None:
    assert fitting_hits(found, QUESTION) == found


def test_the_words_of_somebody_whom_the_question_names_are_kept() -> None:
    named = [replace(one, actor_name="Alice") for one in (BEST, FAR)]

    assert fitting_hits(named, "what did Alice say about messages?") == named


def test_short_words_and_numbers_count_as_words() -> None:
    assert fitting_hits([hit(1, "Ben is on QA this week", 6.0)], "who is on QA?")
    assert fitting_hits([hit(1, "room 12 is taken", 6.0)], "and 12?")
