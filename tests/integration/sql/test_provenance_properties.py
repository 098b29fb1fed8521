"""What is taken back is gone, with all that tells it, and nothing else is: over random histories.

`PROVENANCE_COUNT=n` plays so many histories, of seeds from `PROVENANCE_FROM` on if
that is given; `PROVENANCE_SEED=n` repeats one.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
from collections.abc import Callable, Iterable

import psycopg
import pytest

from tests.support import depth
from tests.support.interleavings import empty
from tests.support.provenance import SEEN, History, Item, Wrong

COUNT = depth.count("PROVENANCE_COUNT", short=30, deep=1000)
SEED = os.environ.get("PROVENANCE_SEED")
FROM = os.environ.get("PROVENANCE_FROM")
_EMPTIED_AFTER = 200
_MOST = 300

# Each breaks one rule; none may go unseen.
BREAKS = {
    "what tells it stays": """
        create or replace function public.take_back_told(
          p_turn public.agent_turns, p_ids text[], p_units jsonb, p_sources text[], p_gone text[],
          p_since timestamptz
        ) returns boolean language sql as 'select false'""",
    "what is made from it stays": """
        create or replace function bot_private.made_from(p_messages text[], p_turns text[])
        returns table (turn_id text, whole boolean) language sql
        as 'select null::text, false where false'""",
    "vectors stay": """
        alter table public.agent_embeddings drop constraint agent_embeddings_id_fkey""",
    "files leave no hashes": """
        create or replace function bot_private.keep_source_terms(
          p_turn_id text, p_messages jsonb, p_texts jsonb
        ) returns void language sql as ''""",
    "what is read of a picture leaves no hashes": """
        create or replace function bot_private.keep_told_terms(p_turn_id text) returns void
        language sql as ''""",
    "talk leaves no hashes": """
        create or replace function bot_private.keep_talk_terms(p_chat_id text, p_gone jsonb)
        returns void language sql as ''""",
    "an answer is not known by its turn": """
        create or replace function bot_private.noted_sources(p_ids jsonb, p_most integer)
        returns text[] language sql as 'select array(select jsonb_array_elements_text(p_ids))'""",
    "what was never given it goes": """
        create or replace function bot_private.turns_given(p_sources text[], p_since timestamptz)
        returns setof public.agent_turns language sql as 'select * from public.agent_turns'""",
    "everyday words tell": """
        create or replace function bot_private.everyday_words() returns text[]
        language sql immutable as $$ select '{}'::text[] $$""",
    "what stands elsewhere tells": """
        create or replace function bot_private.from_elsewhere(
          p_turn public.agent_turns, p_terms text[], p_sources text[], p_gone text[]
        ) returns text[] language sql as $$ select '{}'::text[] $$""",
}


class Shows(History):
    """Histories that show what few random ones do."""

    def answer_of(self, *given: str, told: Iterable[str]) -> Item:
        item = self.new()
        item.told = frozenset(told)
        item.chat = next((one.chat for one in self.items if one.id in given), item.chat)
        self.finish(item, self.begin(item, self.say()), given)
        return item

    def talk_is_over(self) -> None:
        talk = self.new()
        self.hear(talk)
        self.answer_of(talk.id, told=[talk.token])
        self.talk_ends(talk.chat)
        self.take_back()

    def a_card_is_gone_first(self) -> None:
        sources = [self.new(), self.new("more")]
        for source in sources:
            source.chat = sources[0].chat
            self.hear(source)
        both = self.answer_of(*(one.id for one in sources), told=[one.token for one in sources])
        for source in sources:
            self.answer_of(both.card, told=[source.token])
        self.take_back()
        self.take_back()


SHOWN_BY = {
    "an answer is not known by its turn": Shows.a_card_is_gone_first,
    "talk leaves no hashes": Shows.talk_is_over,
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


def show(connection: psycopg.Connection, history: Callable[[Shows], None] | None) -> None:
    if history:
        history(Shows(connection, random.Random(1), "shown", story=["shown"]))
    else:
        play(connection, (new_seed() for _ in range(_MOST)))


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_that_is_broken_is_caught(connection: psycopg.Connection, rule: str) -> None:
    connection.execute(BREAKS[rule].encode())
    with pytest.raises(Wrong):
        show(connection, SHOWN_BY.get(rule))


@pytest.mark.parametrize("history", SHOWN_BY.values())
def test_what_shows_a_broken_rule_is_right_without(
    connection: psycopg.Connection, history: Callable[[Shows], None]
) -> None:
    show(connection, history)
