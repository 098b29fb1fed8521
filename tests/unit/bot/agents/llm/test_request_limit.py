"""What a model shows of its limits lowers how many requests it is sent, and what it does well
raises it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bot.agents.llm.endpoint import RequestLimit


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def limited() -> tuple[RequestLimit, Clock]:
    clock = Clock()
    return RequestLimit(clock), clock


def test_there_is_no_limit_before_the_model_shows_one() -> None:
    limit, clock = limited()
    for _ in range(100):
        limit.note_answer(clock.now - 2, 500, was_crowded=False)

    assert limit.most(clock.now) == math.inf


def test_refusals_lower_it_below_what_the_model_holds() -> None:
    limit, clock = limited()
    for others in range(299, 49, -1):
        assert limit.note_refusal(others, clock.now)

    assert limit.most(clock.now) == 45


def test_answers_raise_it_by_a_tenth_with_all_that_are_under_way() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    limit.note_refusal(100, clock.now)
    for _ in range(90):
        limit.note_answer(clock.now - 2, 90, was_crowded=True)

    assert 98 < limit.most(clock.now) < 100


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    limit.note_refusal(100, clock.now)
    for _ in range(500):
        limit.note_answer(clock.now - 2, 10, was_crowded=False)

    assert limit.most(clock.now) == 90


def test_a_minute_without_trouble_lifts_it() -> None:
    limit, clock = limited()
    limit.note_refusal(10, clock.now)
    for _ in range(59):
        clock.now += 1
        limit.note_answer(clock.now, 1, was_crowded=False)
    assert limit.most(clock.now) == 9
    clock.now += 2

    assert limit.most(clock.now) == math.inf


def test_a_first_refusal_leaves_a_few_and_others_lower_it_to_one() -> None:
    limit, clock = limited()
    assert limit.note_refusal(0, None)
    assert limit.most(None) == 4
    assert limit.note_refusal(1, clock.now)
    assert limit.most(clock.now) == 1


def test_each_second_without_a_refusal_lets_one_more_through() -> None:
    limit, clock = limited()
    limit.note_refusal(0, None)
    limit.try_more()
    assert limit.most(None) == 4
    for most in (5, 6, 7):
        clock.now += 1
        limit.try_more()
        assert limit.most(None) == most


def test_lateness_is_not_tried_away() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    limit.note_answer(clock.now - 15, 100, was_crowded=True)
    clock.now += 1
    limit.try_more()
    assert limit.most(clock.now) == 70


def test_a_model_that_refuses_everybody_is_not_waited_for() -> None:
    limit, clock = limited()
    assert limit.note_refusal(0, None)
    clock.now += 9
    assert limit.note_refusal(0, None)
    clock.now += 2
    assert not limit.note_refusal(0, None)
    assert not limit.note_refusal(5, clock.now - 0.1)
    assert limit.most(None) == math.inf


def test_a_model_that_has_taken_requests_is_waited_for() -> None:
    limit, clock = limited()
    assert limit.note_refusal(40, clock.now)
    clock.now += 25

    assert limit.note_refusal(40, clock.now - 25)
    assert limit.most(clock.now - 25) == 36


def test_answers_that_begin_much_later_than_usual_lower_it_once_for_all_sent_before() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    for _ in range(10):
        limit.note_answer(clock.now - 15, 100, was_crowded=True)

    assert 70 <= limit.most(clock.now) < 80


def test_lateness_alone_does_not_lower_it_to_nothing() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    for _ in range(30):
        clock.now += 20
        limit.note_answer(clock.now - 19, 3, was_crowded=False)

    assert limit.most(clock.now) >= 8


def test_a_model_that_is_always_slow_is_not_late() -> None:
    limit, clock = limited()
    for _ in range(50):
        clock.now += 25
        limit.note_answer(clock.now - 25, 200, was_crowded=False)

    assert limit.most(clock.now) == math.inf


def test_a_model_that_hangs_is_not_waited_for_in_line() -> None:
    limit, clock = limited()
    limit.note_answer(clock.now - 2, 1, was_crowded=False)
    limit.note_answer(clock.now - 15, 100, was_crowded=True)
    assert limit.most(clock.now) == 70
    clock.now += 31

    assert limit.most(clock.now - 31) == math.inf
