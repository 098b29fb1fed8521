"""What is taken back is gone, with all that tells it, and nothing else is: over random histories.

`PROVENANCE_COUNT=n` plays so many histories, of seeds from `PROVENANCE_FROM` on if
that is given; `PROVENANCE_SEED=n` repeats one.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
from collections.abc import Iterable

import psycopg
import pytest

from tests.support import depth
from tests.support.interleavings import empty
from tests.support.provenance import SEEN, History, Wrong

COUNT = depth.count("PROVENANCE_COUNT", short=30, deep=1000)
SEED = os.environ.get("PROVENANCE_SEED")
FROM = os.environ.get("PROVENANCE_FROM")
_EMPTIED_AFTER = 200
_MOST = 300

# Each breaks one rule. test_taking_back_contract.py has examples of the others; lab/mutants breaks
# those.
BREAKS = {
    "what tells it stays": """
        create or replace function public.take_back_told(
          p_turn public.agent_turns, p_ids text[], p_units jsonb, p_sources text[], p_gone text[],
          p_since timestamptz
        ) returns boolean language sql as 'select false'""",
    "vectors stay": """
        alter table public.agent_embeddings drop constraint agent_embeddings_id_fkey""",
}


_DICE = depth.dice()


def new_seed() -> int:
    return _DICE.getrandbits(40)


def live(database: psycopg.Connection, seed: int) -> None:
    try:
        History(database, random.Random(seed), f"{seed:010x}").live()
    except Exception as exc:
        exc.add_note(f"PROVENANCE_SEED={seed}")
        raise


def play(database: psycopg.Connection, seeds: Iterable[int]) -> int:
    count = 0
    for count, seed in enumerate(seeds, 1):
        live(database, seed)
        if count % _EMPTIED_AFTER == 0:
            empty(database)
    return count


def seeds(count: int) -> Iterable[int]:
    if SEED:
        return [int(SEED)]
    if FROM:
        return itertools.islice(itertools.count(int(FROM)), count)
    return (new_seed() for _ in range(count))


def test_what_tells_it_goes_and_nothing_else(
    connection: psycopg.Connection, record_property: pytest.FixtureRequest
) -> None:
    if COUNT > 500:  # whoever asks for many waits for them
        faulthandler.cancel_dump_traceback_later()
    SEEN.clear()
    count = play(connection, seeds(COUNT))
    print(f"\n{count} histories, {dict(SEEN)}")
    record_property("histories", count)  # type: ignore[operator]
    if not SEED:
        assert SEEN.pop("forgotten") > count // 10
        assert min(SEEN.values()) > count // 2


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_that_is_broken_is_caught(connection: psycopg.Connection, rule: str) -> None:
    connection.execute(BREAKS[rule].encode())
    with pytest.raises(Wrong):
        play(connection, (new_seed() for _ in range(_MOST)))
