"""What workers count beside their answers comes together in the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import psycopg
import pytest

from bot.operations.maintenance import write_calls
from bot.process.usage import MonthlyQuota, UsageCounter
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from tests.support.queue import fetch, job_table

pytestmark = pytest.mark.anyio

TODAY = datetime(2026, 11, 20, tzinfo=UTC)
TOTALS = "select service, name, calls, tokens_in, tokens_out from feishu_bot.calls order by 1, 2"


@dataclass
class Worker:
    """What counting works with."""

    tally: UsageCounter = field(default_factory=UsageCounter)
    quota: MonthlyQuota = field(default_factory=lambda: MonthlyQuota(100))

    def now(self) -> datetime:
        return TODAY

    @property
    def services(self) -> Services:
        return cast(Services, self)


async def test_counts_of_all_workers_add_up_and_the_month_is_heard(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("""
            insert into feishu_bot.calls (day, service, name, calls)
            values ('2026-10-31', 'feishu', 'reply', 1000), ('2026-11-01', 'feishu', 'stream', 77)
        """)
    first, second = Worker(), Worker()
    first.tally.count_call("reply")
    first.tally.count_call("names")
    first.tally.count_request("summary", 400, 60)
    second.tally.count_call("reply")
    second.tally.count_call("stream")
    async with job_table(database_url) as table:
        await write_calls(table, first.services)
        await write_calls(table, first.services)
        await write_calls(table, second.services)

    assert first.quota.used_calls == 78  # without the names
    assert second.quota.used_calls == 80
    assert second.quota.is_short
    assert fetch(database_url, TOTALS.replace("order", "where day = '2026-11-20' order")) == [
        ("feishu", "names", 1, 0, 0),
        ("feishu", "reply", 2, 0, 0),
        ("feishu", "stream", 1, 0, 0),
        ("model", "summary", 1, 400, 60),
    ]


async def test_while_the_database_is_away_nothing_counted_is_lost() -> None:
    class Away:
        async def keep_calls(self, day: object, used: object) -> int:
            raise QueueUnavailable("away")

    worker = Worker()
    worker.tally.count_call("reply")
    await write_calls(cast(JobTable, Away()), worker.services)

    [kept] = worker.tally.take()
    assert (kept.name, kept.calls) == ("reply", 1)
