"""No reader is ever new, through whole turns: the model prints its whole prompt, and nothing in it
or in a card comes from where somebody in the audience could not read.

`AUDIENCE_TURNS=n` plays so many histories, `AUDIENCE_API=n` so many through Supabase's API, of
seeds from `AUDIENCE_FROM` on if that is given; `AUDIENCE_SEED=n` repeats one.
"""

from __future__ import annotations

import faulthandler
import logging
import os
from collections.abc import Iterator

import psycopg
import pytest
import structlog

from lab.doubles.lite import SupabaseLite
from tests.support import depth
from tests.support.postgres import Server
from tests.support.whole_turns import SEEN, Leak, Stage, play, stage

pytestmark = pytest.mark.anyio

TURNS = depth.count("AUDIENCE_TURNS", short=4, deep=50)
API = depth.count("AUDIENCE_API", short=2, deep=20)
DICE = depth.dice()
SEED = os.environ.get("AUDIENCE_SEED")
FROM = os.environ.get("AUDIENCE_FROM")

# Facts follow the person, whoever reads the answer: a history that shows it, tried at first. The
# mutants of lab/mutants break the other rules, at the level of the database.
BROKEN = """
    alter policy agent_working_memory_select on agent_working_memory using (
      user_id = (select claim('sub')))"""
SHOWN_BY = 7378538056308


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Half a dozen lines a turn tell nothing here."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**before)


async def until(on: Stage, most: int) -> int:
    """So many histories; returns how many."""
    faulthandler.cancel_dump_traceback_later()  # whoever asks for many waits for them
    if SEED:
        await play(on, int(SEED))
        return 1
    for number in range(most):
        await play(on, int(FROM) + number if FROM else DICE.randrange(10**13))
    return most


def told(count: int, record_property: object) -> None:
    print(f"\n{count} histories of whole turns, {dict(SEEN)}")
    record_property("histories", count)  # type: ignore[operator]
    if not SEED:
        assert SEEN["prompt"]
        assert SEEN["card"]


async def test_no_reader_is_ever_new(
    database_url: str, record_property: pytest.FixtureRequest
) -> None:
    SEEN.clear()
    async with stage(database_url) as on:
        count = await until(on, TURNS)
    told(count, record_property)


async def test_no_reader_is_ever_new_where_it_finds_by_meaning(
    database_url: str, record_property: pytest.FixtureRequest
) -> None:
    SEEN.clear()
    async with stage(database_url, vectors=True) as on:
        count = await until(on, TURNS)
        embedded = on.database.execute("select count(*) from agent_embeddings").fetchone()
        asked = on.services.embedder
    told(count, record_property)
    assert asked is not None
    assert not asked.is_away
    assert embedded is not None
    assert embedded[0] > count


async def test_a_list_of_an_answer_goes_with_it(database_url: str) -> None:
    """A history that was found once: `/memory` quoted an answer that told what was taken back."""
    async with stage(database_url) as on:
        await play(on, 9515480593250)


async def test_no_reader_is_ever_new_through_supabases_api(
    postgres_server: Server, supabase_lite: SupabaseLite, record_property: pytest.FixtureRequest
) -> None:
    SEEN.clear()
    async with stage(
        supabase_lite.database_url,
        supabase_url=supabase_lite.url,
        supabase_publishable_key=supabase_lite.publishable_key,
        supabase_secret_key=supabase_lite.secret_key,
        supabase_jwt_secret=supabase_lite.jwt_secret,
    ) as on:
        count = await until(on, API)
    told(count, record_property)


async def test_a_rule_that_is_broken_is_caught(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(BROKEN.encode())
    async with stage(database_url) as on:
        with pytest.raises(Leak):
            await play(on, SHOWN_BY)
