"""Imported history shows nobody what they could not read, in whatever order people come and go.

`IMPORT_COUNT=n` plays so many histories, of seeds from `IMPORT_FROM` on if that is
given.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterable

import psycopg
import pytest

from tests.support import depth
from tests.support.imported_history import PastGroup

COUNT = depth.count("IMPORT_COUNT", short=30, deep=500)
FROM = int(os.environ.get("IMPORT_FROM") or depth.dice().randrange(1_000_000))
_MOST = 1500

_SINCE = "import_since"
_READABLE = "readable_imports"

# Each replaces a part of a function; none may go unseen.
BREAKS = {
    "join dates of events": (_SINCE, "greatest(m.joined_at, k.since)", "k.since"),
    "all members": (
        _READABLE, "case when v_p2p then public.claim('actor') end", "public.claim('actor')",
    ),
}  # fmt: skip


class Leak(AssertionError):
    """Somebody read what they could not."""


def look(group: PastGroup, seen: Counter[str], seed: int) -> None:
    members = group.members()
    for person in members:
        for privately in (True, False):
            readers = [person] if privately else members
            rows, found = group.read(person, privately=privately)
            seen["privately" if privately else "in the group"] += len(rows)
            seen["found"] += len(found)
            for message in rows | found:
                if not group.could_read(message, readers):
                    raise Leak(f"seed {seed}: {person} read {message}, privately: {privately}")
    if members and group.rng.random() < 0.2:
        group.remove()
        for person in members:
            if set().union(*group.read(person, privately=group.rng.random() < 0.5)):
                raise Leak(f"seed {seed}: {person} reads what is being removed")


def play(connection: psycopg.Connection, seeds: Iterable[int]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        with connection.transaction(force_rollback=True):
            group = PastGroup(connection, random.Random(seed))
            group.play()
            look(group, seen, seed)
        seen["histories"] += 1
    return seen


def test_imported_history_has_no_new_reader(database: psycopg.Connection) -> None:
    seen = play(database, itertools.islice(itertools.count(FROM), COUNT))

    print(f"\n{dict(seen)}")
    assert min(seen["privately"], seen["in the group"], seen["found"]) > COUNT


def test_an_import_is_read_from_when_its_readers_are_known_to_have_been_there(
    database: psycopg.Connection,
) -> None:
    def since(person: str | None) -> str:
        query = "select bot_private.import_since(%s, %s)::date::text"
        [day] = database.execute(query, [import_id, person]).fetchone() or [""]
        return str(day)

    with database.transaction(force_rollback=True):
        [import_id] = database.execute(
            "insert into chat_imports (tenant_key, chat_id, chat_type, until)"
            " values ('t', 'oc_past', 'group', now()) returning id"
        ).fetchone() or [0]
        for person, joined, left in (
            ("early", None, None), ("late", "2026-03-01", None), ("gone", "2026-06-01", "now"),
        ):  # fmt: skip
            database.execute(
                "insert into chat_members (tenant_key, chat_id, open_id, joined_at, left_at)"
                " values ('t', 'oc_past', %s, %s, %s)",
                [person, joined, left],
            )
            database.execute(
                "insert into bot_private.import_members values (%s, %s, '2026-01-01')",
                [import_id, person],
            )

        assert [since(one) for one in ("early", "late")] == ["2026-01-01", "2026-03-01"]
        assert [since(one) for one in ("gone", "a stranger")] == ["infinity"] * 2
        for read_at, day in (("yesterday", "infinity"), ("now", "2026-03-01")):
            database.execute(
                "insert into chats (tenant_key, chat_id, members_read_at)"
                " values ('t', 'oc_past', %s::timestamptz - interval '1 hour')"
                " on conflict (tenant_key, chat_id) do update"
                " set members_read_at = excluded.members_read_at",
                [read_at],
            )
            assert since(None) == day


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_that_is_broken_is_caught(database: psycopg.Connection, rule: str) -> None:
    function, part, instead = BREAKS[rule]
    [whole] = database.execute(
        "select pg_get_functiondef(%s::regproc)", [f"bot_private.{function}"]
    ).fetchone() or [""]
    assert part in whole
    with database.transaction(force_rollback=True):
        database.execute(whole.replace(part, instead).encode())
        with pytest.raises(Leak):
            play(database, itertools.islice(itertools.count(FROM), _MOST))
