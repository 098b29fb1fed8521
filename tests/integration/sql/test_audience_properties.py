"""No reader is ever new: whatever people do, an answer draws on what its readers could read.

`AUDIENCE_COUNT=n` plays so many interleavings (default: 40 and until everything was read), of seeds
from `AUDIENCE_FROM` on if that is given; `AUDIENCE_SEED=n` repeats one.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support import depth
from tests.support.interleavings import SEEN, TABLES, TOOLS, Leak, World, empty
from tests.support.postgres import Server

COUNT = depth.count("AUDIENCE_COUNT", short=0, deep=1000)
SEED = os.environ.get("AUDIENCE_SEED")
FROM = os.environ.get("AUDIENCE_FROM")
_EMPTIED_AFTER = 100
_LEAST, _MOST = 40, 2000

READERS = (
    "begin_turn", "get_working_memory", "list_notes", "search_notes", "get_note", "recall",
    "load_conversation", "open_fold", "said_message", "turn_reply",
)  # fmt: skip

# Each breaks the rule in one place. test_row_level_security.py opens every policy; the mutants of
# lab/mutants break its parts.
BREAKS = {
    "messages": "alter policy agent_messages_select on agent_messages using (true)",
    "whoever left": """
        create or replace function readable_chats() returns jsonb
        language sql stable set search_path = public as $$
          select coalesce(jsonb_object_agg(m.chat_id, coalesce(m.joined_at, '-infinity')), '{}')
          from chat_members m where claim('chat_type') = 'p2p' and m.open_id = claim('actor') $$""",
}


# Interleavings that show it, tried before others: one in a thousand does.
SHOWN_BY = {"whoever left": (5693993549, 802638722012)}


@pytest.fixture
def database(database_url: str) -> Iterator[psycopg.Connection]:
    with connected(database_url) as connection:
        yield connection


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection]:
    """Statements go as one message, as the bot sends them."""
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as database:
        database.execute(TOOLS.encode())
        yield database


def live(database: psycopg.Connection, seed: int) -> None:
    world = World(database, random.Random(seed), f"{seed:x}")
    try:
        world.live()
    except Exception as exc:
        exc.add_note(f"AUDIENCE_SEED={seed}")
        raise


def any_seeds() -> Iterator[int]:
    dice = depth.dice()
    while True:
        yield dice.getrandbits(40)


def play(database: psycopg.Connection, seeds: Iterable[int], enough: Callable[[int], bool]) -> int:
    """Interleavings until there are enough, by how many there were; returns how many."""
    for count, seed in enumerate(seeds):
        if enough(count):
            return count
        if count and count % _EMPTIED_AFTER == 0:
            empty(database)
        live(database, seed)
    raise AssertionError("too few seeds")


def unseen() -> set[str]:
    """What no interleaving has read. Some hold no words."""
    without_words = {"agent_turns", "agent_chats"}
    return {what for what in (*READERS, *TABLES) if not SEEN[what]} - without_words


def test_no_reader_is_ever_new(
    database: psycopg.Connection, record_property: pytest.FixtureRequest
) -> None:
    if SEED:
        live(database, int(SEED))
        return
    if COUNT:  # whoever asks for many waits for them
        faulthandler.cancel_dump_traceback_later()
    SEEN.clear()
    enough = (lambda count: count >= COUNT) if COUNT else _has_seen_it_all
    count = play(database, itertools.count(int(FROM)) if FROM else any_seeds(), enough)

    print(f"\n{count} interleavings, {SEEN.total()} things read")
    record_property("interleavings", count)  # type: ignore[operator]
    assert not unseen()


def _has_seen_it_all(count: int) -> bool:
    return count >= _MOST or (count >= _LEAST and not unseen())


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_that_is_broken_is_caught(
    postgres_server: Server, migrated_template: str, rule: str
) -> None:
    with postgres_server.fresh_database(template=migrated_template) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(BREAKS[rule].encode())
        seeds = itertools.chain(SHOWN_BY.get(rule, ()), any_seeds())
        with connected(url) as database, pytest.raises(Leak):
            play(database, seeds, lambda count: count >= _MOST)
