"""What becomes of a job that did not succeed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.queue.jobs import EVENT_TASK, Dead, Hopeless, Job, Later, RunAgain, after_failure

DAY_S = 24 * 3600
NOW_S = 1_800_000_000.0


def job(*, attempt: int = 1, waited_s: float = 0, **noted: object) -> Job:
    received_ms = int((NOW_S - waited_s) * 1000)
    return Job(1, EVENT_TASK, {"payload": {}, "received_ms": received_ms, **noted}, "lock", attempt)


@given(st.integers(1, 10_000), st.floats(0, DAY_S - 1), st.booleans())
def test_what_may_pass_by_itself_is_tried_for_a_day_with_bounded_pauses(
    attempt: int, waited_s: float, behind: bool
) -> None:
    outcome = after_failure(
        job(attempt=attempt, waited_s=waited_s), Later("away", behind=behind), NOW_S
    )

    assert isinstance(outcome, RunAgain)
    assert 2 <= outcome.pause_s <= (10 if behind else 120)
    assert outcome.behind is behind


def test_the_pauses_grow_with_the_time_waited_however_many_attempts_it_took() -> None:
    for attempt in (1, 20):
        pauses = [
            after_failure(job(attempt=attempt, waited_s=waited), Later("away"), NOW_S)
            for waited in (0, 4, 40, 400, 4000)
        ]
        found = [again.pause_s for again in pauses if isinstance(again, RunAgain)]
        assert found == [2, 2, 10, 100, 120]


def test_what_is_no_event_waits_by_its_attempts() -> None:
    tending = [Job(1, EVENT_TASK, {}, "lock", attempt) for attempt in (1, 3, 9)]
    pauses = [after_failure(one, Later("away"), NOW_S) for one in tending]
    assert pauses == [RunAgain(pause_s, reason="away") for pause_s in (2, 8, 120)]


def test_a_wish_for_a_longer_pause_is_respected() -> None:
    again = after_failure(job(), Later("slow down", wait_s=300), NOW_S)
    assert again == RunAgain(300, reason="slow down")


def test_after_a_day_it_is_given_up() -> None:
    assert after_failure(job(waited_s=DAY_S), Later("away"), NOW_S) == RunAgain(120, reason="away")
    late = after_failure(job(waited_s=DAY_S + 1), Later("away"), NOW_S)
    assert late == RunAgain(0.0, note={"given_up": "away"})


def test_what_an_operator_tries_again_has_a_day_from_then_on() -> None:
    old = job(waited_s=9 * DAY_S, retried_ms=int(NOW_S * 1000))
    assert after_failure(old, Later("away"), NOW_S) == RunAgain(2, reason="away")


def test_what_a_failure_notes_is_kept_with_the_job() -> None:
    assert after_failure(job(), Later("away", note={"page": 3}), NOW_S).note == {"page": 3}


def test_what_retrying_cannot_cure_is_tried_once_more_and_then_given_up() -> None:
    first = after_failure(job(attempt=7), KeyError("text of somebody"), NOW_S)
    assert isinstance(first, RunAgain)
    assert first.reason == "KeyError"

    second = after_failure(job(attempt=8, **first.note), KeyError("text of somebody"), NOW_S)
    assert second == RunAgain(0.0, note={"given_up": "KeyError"})


def test_what_only_an_operator_can_mend_is_given_up_at_once() -> None:
    assert after_failure(job(), Hopeless(), NOW_S) == RunAgain(0.0, note={"given_up": "hopeless"})


def test_what_is_given_up_is_over_when_nobody_can_be_told_why() -> None:
    told = job(given_up="KeyError", failed_once=True)

    assert isinstance(after_failure(told, Later("away"), NOW_S), RunAgain)
    assert after_failure(told, RuntimeError("no"), NOW_S) == Dead("KeyError")
    tired = job(given_up="KeyError", waited_s=DAY_S + 1)
    assert after_failure(tired, Later("away"), NOW_S) == Dead("KeyError")
