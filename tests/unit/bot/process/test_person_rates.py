"""How much one person may ask for, in one worker and in several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.process.usage import PersonRates
from memory.scope import FeishuPerson

ALICE, BOB = FeishuPerson("t", "ou_alice"), FeishuPerson("t", "ou_bob")


def taken(rates: PersonRates, asker: FeishuPerson, *times: float) -> int:
    return sum(rates.take(asker, at) for at in times)


def test_a_quarter_of_a_minute_may_come_at_once_and_then_requests_come_evenly() -> None:
    rates = PersonRates(24)
    assert taken(rates, ALICE, *[100.0] * 20) == 6
    assert taken(rates, ALICE, 102.4) == 0
    assert taken(rates, ALICE, 102.5, 102.5) == 1
    assert taken(rates, ALICE, *[1000.0] * 20) == 6


def test_one_person_takes_nothing_from_another_nor_from_their_namesake_of_another_tenant() -> None:
    rates = PersonRates(12)
    assert taken(rates, ALICE, *[0.0] * 9) == 3
    assert taken(rates, BOB, 0.0) == 1
    assert taken(rates, FeishuPerson("other", ALICE.open_id), 0.0) == 1


def test_without_a_limit_everything_goes() -> None:
    rates = PersonRates(0)
    assert taken(rates, ALICE, *[0.0] * 500) == 500
    assert rates.take_unshared() == []


def test_a_slow_worker_lets_no_more_through() -> None:
    """Requests count by the time at which they arrived, whenever they are looked at."""
    rates = PersonRates(24)
    assert taken(rates, BOB, 500.0) == 1
    assert taken(rates, ALICE, *[100.0] * 10) == 6


@given(
    st.integers(1, 30),
    st.lists(st.floats(0, 300), max_size=200).map(sorted),
    st.floats(0, 300),
    st.floats(1, 120),
)
def test_no_window_of_time_lets_through_more_than_the_rate_and_one_burst(
    per_minute: int, times: list[float], start: float, length: float
) -> None:
    rates = PersonRates(per_minute)
    passed = [at for at in times if rates.take(ALICE, at)]
    within = [at for at in passed if start <= at <= start + length]
    assert len(within) <= per_minute * (1 + length / 60) + 1


def test_the_first_refusal_is_told_once_until_the_level_is_full_again() -> None:
    rates = PersonRates(24)
    taken(rates, ALICE, *[0.0] * 7)
    assert rates.is_first_refusal(ALICE, 1.0)
    assert not rates.is_first_refusal(ALICE, 2.0)
    taken(rates, ALICE, *[10.0] * 9)
    assert not rates.is_first_refusal(ALICE, 10.0), "it is the same flood"
    taken(rates, ALICE, *[200.0] * 9)
    assert rates.is_first_refusal(ALICE, 200.0)


def test_an_idle_level_that_is_full_again_is_dropped() -> None:
    rates = PersonRates(24)
    taken(rates, ALICE, 0.0)
    rates.take_unshared()
    rates.forget_idle(1.0)
    rates.forget_idle(600.0)
    assert rates._levels
    rates.forget_idle(601.0)
    assert not rates._levels


def test_a_level_with_unshared_requests_is_not_dropped() -> None:
    rates = PersonRates(24)
    taken(rates, ALICE, 0.0)
    for now in (1.0, 700.0, 1400.0):
        rates.forget_idle(now)
    assert [row["requests"] for row in rates.take_unshared()] == [1]


@pytest.mark.parametrize("each_s", [0.4, 5.0, 300.0])
def test_a_burst_that_is_worked_off_slowly_passes_no_more_than_a_burst(each_s: float) -> None:
    """150 requests arrive at once; the worker looks at one every `each_s` and tidies up between."""
    rates = PersonRates(60)
    passed = 0
    for number in range(150):
        passed += rates.take(ALICE, 100.0)
        rates.take_unshared()
        rates.forget_idle(100.0 + number * each_s)
    assert passed == 15


@given(st.integers(1, 60), st.data())
def test_neither_the_order_nor_the_clock_of_the_worker_lets_more_through(
    per_minute: int, data: st.DataObject
) -> None:
    rates, now, passed = PersonRates(per_minute), 300.0, 0
    steps = st.sampled_from(("take", "count", "plenty", "refused", "share", "idle"))
    for step in data.draw(st.lists(steps, max_size=150)):
        at = data.draw(st.floats(0, 300))
        match step:
            case "take":
                passed += rates.take(ALICE, at)
            case "count":
                rates.count(ALICE, at)
            case "plenty":
                rates.has_plenty(ALICE, at)
            case "refused":
                rates.is_first_refusal(ALICE, at)
            case "share":
                rates.take_unshared()
            case "idle":
                now += data.draw(st.floats(0, 500))
                rates.forget_idle(now)
    assert passed <= rates.at_once + per_minute * 5


def test_levels_that_were_heard_leave_out_what_is_not_shared_yet() -> None:
    rates = PersonRates(40)
    taken(rates, ALICE, *[0.0] * 4)
    [row] = rates.take_unshared()
    assert row == {"tenant_key": "t", "open_id": "ou_alice", "requests": 4, "at_ms": 0}
    taken(rates, ALICE, 0.0)
    rates.hear([{"tenant_key": "t", "open_id": "ou_alice", "level": 2, "at_ms": 0}])
    assert taken(rates, ALICE, *[0.0] * 9) == 1, "another worker let four through"


def test_what_could_not_be_shared_is_shared_later() -> None:
    rates = PersonRates(40)
    taken(rates, ALICE, 0.0)
    rates.put_back(rates.take_unshared())
    taken(rates, ALICE, 0.0)
    assert [row["requests"] for row in rates.take_unshared()] == [2]


def test_who_has_been_told_that_it_is_too_much_is_known_until_there_is_room() -> None:
    rates = PersonRates(60)
    assert not rates.knows_refusal(ALICE, 0.0)
    while rates.take(ALICE, 0.0):
        assert not rates.knows_refusal(ALICE, 0.0)
    assert not rates.knows_refusal(ALICE, 0.0), "the next request is told why"
    assert rates.is_first_refusal(ALICE, 0.0)
    assert rates.knows_refusal(ALICE, 0.5)
    assert not rates.knows_refusal(ALICE, 1.1)
    assert not rates.knows_refusal(BOB, 0.5)
