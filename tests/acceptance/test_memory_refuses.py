"""Supabase answers, but not with the memory: wrong keys, limits, trouble of its own. People are
answered within a moment all the same, nothing is lost, and operators are told what it is.

MEMORY_TROUBLE_SECONDS makes the trouble of Postgres longer.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest
import requests

from lab.doubles.faulty_api import ApiFault, FaultyApi, faulty_api
from lab.doubles.lite import SupabaseLite
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.support import depth
from tests.support.outage import Talk, assert_stored_in_order

pytestmark = pytest.mark.slow

ANSWERED_WITHIN_S = 1.0


@dataclass(frozen=True)
class Refusal:
    """What the gateway says, and what is said about it in the log and by /readyz."""

    fault: ApiFault
    error: str
    sentence: str


def _fault(status: int, *, of_people: bool = False, **body: Any) -> ApiFault:
    return ApiFault(status, json.dumps(body), of_people=of_people)


REFUSALS = {
    "wrong key": Refusal(
        _fault(401, message="Invalid API key", hint="Double check your Supabase key"),
        "KeyRefused",
        "Supabase refuses the key (401): check SUPABASE_SECRET_KEY",
    ),
    "wrong JWT secret": Refusal(
        _fault(401, of_people=True, code="PGRST301", message="No suitable key or wrong key type"),
        "KeyRefused",
        "Supabase cannot verify our token (PGRST301): check SUPABASE_JWT_SECRET",
    ),
    "limit": Refusal(
        _fault(429, message="API rate limit exceeded"), "StoreUnavailable", "Supabase answers 429"
    ),
    "trouble in JSON": Refusal(
        _fault(500, code=500, message="An unexpected error occurred"),
        "StoreUnavailable",
        "Supabase answers 500",
    ),
    "internal error of Postgres": Refusal(
        _fault(500, code="XX000", message="cache lookup failed for relation 4711"),
        "StoreUnavailable",
        "Supabase answers 500 (XX000: internal error)",
    ),
    "statement stopped": Refusal(
        _fault(500, code="57014", message="canceling statement due to statement timeout"),
        "StoreUnavailable",
        "Supabase answers 500 (57014: stopped by the server)",
    ),
    "not migrated": Refusal(
        _fault(404, code="PGRST202", message="Could not find the function in the schema cache"),
        "NotMigrated",
        "in the schema cache: run scripts/migrate",
    ),
}

_CODES = ("57P03", "XX000", "58030", "53200", "2F005")
TROUBLE = [
    _fault(500, code=code, message="none of your business")
    for code in _CODES[: depth.count("MEMORY_TROUBLES", short=2, deep=5)]
]
TROUBLE_S = float(os.environ.get("MEMORY_TROUBLE_SECONDS", "2"))
UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"


@pytest.fixture(scope="module")
def api(supabase_lite: SupabaseLite) -> Iterator[FaultyApi]:
    with faulty_api(supabase_lite.port) as running:
        yield running


@pytest.fixture(scope="module")
def bot_options(supabase_lite: SupabaseLite, api: FaultyApi) -> dict[str, str]:
    return {
        "SUPABASE_URL": api.url,
        "SUPABASE_PUBLISHABLE_KEY": supabase_lite.publishable_key,
        "SUPABASE_SECRET_KEY": supabase_lite.secret_key,
        "SUPABASE_JWT_SECRET": supabase_lite.jwt_secret,
    }


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_people_are_answered_at_once_and_operators_told_what_it_is(
    world: World, api: FaultyApi, supabase_lite: SupabaseLite, refusal: Refusal
) -> None:
    queue_url, world.database_url = world.database_url, supabase_lite.database_url
    worker = world.bot.workers[0]
    said_before = len(worker.output())

    api.fault = refusal.fault
    took_s = [_seconds(world, "Bob") for _ in range(5)]  # the first waits until every worker knows
    question, card = world.ask("Alice", "what is a plum?")
    ready = requests.get(f"{world.bot.url}/readyz", timeout=9)
    eventually(lambda: "memory.away" in worker.output()[said_before:], what="the outage is told")
    said = _line(worker.output()[said_before:], "memory.away")
    comings_and_goings = re.findall(r"memory\.(?:away|back)\b", worker.output()[said_before:])

    api.fault = None
    Talk(world, supabase_lite.database_url, queue_url).drained()
    (row,) = world.settled(question)

    assert median(took_s) < ANSWERED_WITHIN_S
    assert said["error"] == refusal.error
    assert comings_and_goings == ["memory.away"]
    assert (ready.status_code, ready.json()["degraded"]) == (200, ["memory"])
    assert refusal.sentence in ready.json()["checks"]["memory"]
    assert row["content"] == card
    eventually(lambda: "memory.back" in worker.output()[said_before:], what="it is back")


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
def test_a_result_that_went_missing_neither_loses_nor_doubles_an_answer(
    world: World, api: FaultyApi, supabase_lite: SupabaseLite, done: bool
) -> None:
    talk = Talk(world, supabase_lite.database_url, world.database_url)
    api.fault = ApiFault(200, "", every=4, done=done)

    questions = [world.ask("Alice", f"what about item {n}?")[0] for n in range(8)]

    api.fault = None
    talk.drained()
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")
    answers = [[markdown(card) for card in world.answers(asked)] for asked in questions]
    assert [len(cards) for cards in answers] == [1] * 8
    assert [card for (card,) in answers if "Sorry" in card] == []


def test_nobody_is_given_up_while_postgres_has_trouble_of_its_own(
    world: World, api: FaultyApi, supabase_lite: SupabaseLite
) -> None:
    talk = Talk(world, supabase_lite.database_url, world.database_url)
    threads = talk.open_threads(("Alice", "Bob", "陈晨"), 2)
    ask = talk.ask_in_turn

    for trouble in TROUBLE:
        for fault in (trouble, None):  # some are under way when it comes, others when it goes
            api.fault = fault
            until = time.monotonic() + TROUBLE_S
            list(ask(threads, every_s=0.2, while_=lambda until=until: time.monotonic() < until))
    talk.answered(talk.asked, within_s=120)
    talk.drained(within_s=60 * TROUBLE_S)  # one after the other, over HTTP
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")

    texts = [markdown(card) for cards in talk.cards(talk.asked).values() for card in cards]
    assert [text for text in texts if "what about item" not in text] == []
    assert talk.queue_rows("select 1 from feishu_bot.jobs where status = 'failed'") == []
    for thread in threads:
        assert_stored_in_order(talk, thread)


def _seconds(world: World, who: str) -> float:
    began = time.monotonic()
    world.ask(who, "what is a quince?")
    return time.monotonic() - began


def _line(output: str, event: str) -> dict[str, Any]:
    lines = (line for line in output.splitlines() if f'"event": "{event}"' in line)
    found: dict[str, Any] = json.loads(next(lines))
    return found
