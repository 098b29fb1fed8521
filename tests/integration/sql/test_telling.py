"""Whether one text tells what another said, in the ways in which people write numbers and names."""

from __future__ import annotations

import psycopg
import pytest

_TELLS = """
    with own as (select array(select bot_private.telling_terms(%s)) as terms),
         told as (select array(select bot_private.telling_terms(%s)) as terms)
    select bot_private.tells(
      array(select unnest(own.terms) intersect select unnest(told.terms)), own.terms)
    from own, told"""


def tells(database: psycopg.Connection, source: str, text: str) -> bool:
    row = database.execute(_TELLS, [source, text]).fetchone()
    assert row
    return bool(row[0])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The budget is 1,250,000 euros", "It is 1250000"),
        ("The budget is 1250000 euros", "It is €1,250,000."),
        ("预算￥1,250,000元", "预算是1250000元"),
        ("Das Budget ist 1'250'000", "1250000"),
        ("电话 138 0013 8000", "13800138000"),
        ("call +86 138-0013-8000", "13800138000"),
        ("rooms 101,102", "room 102"),
    ],
)
def test_a_number_is_the_same_in_groups_and_in_one_piece(
    connection: psycopg.Connection, source: str, text: str
) -> None:
    assert tells(connection, source, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The budget is 1,250,000 euros", "We have 5,000 visitors"),
        ("<at id=ou_89fcd4></at> Zebra", "<at id=ou_89fcd4></at> the room is on floor three"),
        ("<at id=all></at> Zebra", "<at id=all></at> lunch"),
        ("om_6e102769 Zebra", "om_6e102770 was sent to oc_1"),
    ],
)
def test_round_numbers_mentions_and_ids_tell_nothing(
    connection: psycopg.Connection, source: str, text: str
) -> None:
    assert not tells(connection, source, text)
