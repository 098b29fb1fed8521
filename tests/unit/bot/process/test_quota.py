"""What is left of a month's calls, and what waits to be counted."""

from __future__ import annotations

from bot.process.usage import MonthlyQuota, UsageCounter, UsedCalls
from tests.support.rows import every_row


@every_row(
    ("heard", "told"),
    [
        ([100, 799], [None, None]),
        ([800, 850, 900, 999, 1000, 1200], [0.8, None, 0.9, None, 1.0, None]),
        ([950], [0.9]),
        ([850, 3, 810], [0.8, None, 0.8]),  # a new month
    ],
)
def test_each_level_is_told_once_a_month(heard: list[int], told: list[float | None]) -> None:
    quota = MonthlyQuota(1000)

    assert [quota.hear(used) for used in heard] == told
    assert quota.is_short == (heard[-1] >= 800)


def test_without_a_quota_nothing_is_near_it() -> None:
    quota = MonthlyQuota(0)

    assert quota.hear(10**9) is None
    assert not quota.is_short


def test_what_could_not_be_written_is_added_to_what_comes_meanwhile() -> None:
    tally = UsageCounter()
    tally.count_call("reply")
    tally.count_request("judge", 100, 2)
    taken = tally.take()
    tally.count_call("reply")
    tally.count_request("judge", 10, 1)
    tally.put_back(taken)

    assert set(tally.take()) == {
        UsedCalls("feishu", "reply", 2),
        UsedCalls("model", "judge", 2, 110, 3),
    }
    assert tally.take() == []
