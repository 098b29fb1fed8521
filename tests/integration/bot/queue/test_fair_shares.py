"""Persons share workers and conversations: counted in a real Postgres."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from bot.process.usage import PersonRates
from bot.queue.inbox import Inbox
from memory.scope import FeishuPerson
from tests.support.queue import job_table

pytestmark = pytest.mark.anyio

ALICE = FeishuPerson("t", "ou_alice")


def message(open_id: str, number: int) -> dict[str, Any]:
    sender = {"sender_id": {"open_id": open_id}}
    return {"event": {"sender": sender, "message": {"message_id": f"om_{open_id}_{number}"}}}


async def test_two_workers_count_the_same_requests(database_url: str) -> None:
    now = time.time()
    async with job_table(database_url) as table:
        workers = [PersonRates(40), PersonRates(40)]
        passed = 0
        for _ in range(5):  # rounds of a second in which nothing fills
            for rates in workers:
                passed += sum(rates.take(ALICE, now) for _ in range(4))
                rates.hear(await table.share_person_rates(rates.take_unshared(), 40))
        assert 10 <= passed <= 14

        fresh = PersonRates(40)  # a worker that was just started
        assert fresh.take(ALICE, now)
        fresh.hear(await table.share_person_rates(fresh.take_unshared(), 40))
        assert not fresh.take(ALICE, now)


@pytest.mark.parametrize("waited_s", [700, 7200])
async def test_a_backlog_that_waited_for_long_passes_no_more_than_a_burst(
    database_url: str, waited_s: int
) -> None:
    came = time.time() - waited_s
    async with job_table(database_url) as table:
        rates, passed = PersonRates(40), 0
        for _ in range(10):
            passed += sum(rates.take(ALICE, came) for _ in range(4))
            rates.hear(await table.share_person_rates(rates.take_unshared(), 40))
            rates.forget_idle(time.time())
        assert passed == 10


async def test_what_all_workers_let_through_at_first_is_made_up_for(database_url: str) -> None:
    now = time.time()
    async with job_table(database_url) as table:
        for _ in range(5):
            rates = PersonRates(40)
            assert sum(rates.take(ALICE, now) for _ in range(20)) == 10
            rates.hear(await table.share_person_rates(rates.take_unshared(), 40))
        assert not rates.take(ALICE, now + 60), "at most a minute's worth is owed"
        assert rates.take(ALICE, now + 62)


async def test_one_worker_tells_the_person_once_in_a_flood(database_url: str) -> None:
    now = time.time()
    async with job_table(database_url) as table:

        async def ask(at_s: float) -> None:
            rates = PersonRates(8)
            rates.take(ALICE, at_s)
            await table.share_person_rates(rates.take_unshared(), 8)

        await ask(now)
        assert [await table.tell_person_rate(ALICE) for _ in range(3)] == [True, False, False]
        await ask(now + 5)
        assert not await table.tell_person_rate(ALICE)
        await ask(now + 200)
        assert await table.tell_person_rate(ALICE)


async def test_the_edge_knows_who_has_nothing_left(database_url: str) -> None:
    now = time.time()
    inbox = Inbox(database_url)
    async with job_table(database_url) as table:
        rates = PersonRates(24)
        for _ in range(6):
            rates.take(ALICE, now)
        assert not inbox.is_over_rate(ALICE, int(now * 1000), 24)
        await table.share_person_rates(rates.take_unshared(), 24)
        assert inbox.is_over_rate(ALICE, int(now * 1000), 24)
        assert not inbox.is_over_rate(ALICE, int(now * 1000) + 2_600, 24)
    inbox.close()


async def test_what_somebody_asked_before_being_forgotten_is_not_kept(database_url: str) -> None:
    now = time.time()
    async with job_table(database_url) as table:
        before, after = PersonRates(24), PersonRates(24)
        before.take(ALICE, now - 5)
        after.take(ALICE, now + 5)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "insert into forgotten_people (mark) values (person_mark(%s))", [ALICE.open_id]
            )
            counted = "select count(*) from feishu_bot.person_rates"
            await table.share_person_rates(before.take_unshared(), 24)
            assert connection.execute(counted).fetchone() == (0,)
            await table.share_person_rates(after.take_unshared(), 24)
            assert connection.execute(counted).fetchone() == (1,)


async def test_others_go_before_a_persons_fourth_message_in_a_conversation(
    database_url: str,
) -> None:
    inbox = Inbox(database_url)

    def put(open_id: str, number: int) -> None:
        payload = message(open_id, number)
        inbox.enqueue(f"{open_id} {number}", payload, lock="thread", received_ms=0)

    for number in range(10):
        put("ou_mallory", number)
    put("ou_bob", 0)
    put("ou_mallory", 10)
    put("ou_bob", 1)
    inbox.close()

    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "select args #>> '{payload,event,message,message_id}'"
            " from feishu_bot.jobs order by priority desc, id"
        ).fetchall()
    order = [row[0].removeprefix("om_ou_") for row in found]
    assert order[:5] == ["mallory_0", "mallory_1", "mallory_2", "bob_0", "bob_1"]
    assert order[5:] == [f"mallory_{number}" for number in range(3, 11)]
