"""Whatever is told of a group, in whatever order and however often: nobody is in by mistake."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from uuid import uuid4

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PEOPLE = ("ou_a", "ou_b")
STEP_MS = 20_000  # three of them are as long as the clocks are doubted
STEPS = 24
CALLS = {
    "add": "select add_chat_members('t', %(chat)s, %(people)s, %(at)s)",
    "remove": "select remove_chat_members('t', %(chat)s, %(people)s, %(at)s)",
    "list": "select save_chat_members(%(chat)s, %(people)s, %(at)s)",
    "gone": "select leave_chat('t', %(chat)s, %(at)s)",
    "enter": "select enter_chat('t', %(chat)s, 'Team', %(at)s)",
}


@dataclass(frozen=True)
class News:
    """Something that is told about the group at a step of time."""

    what: str
    step: int
    people: frozenset[str]

    def says(self, person: str) -> bool | None:
        """Whether the person is in as of its step; None: it says nothing about them."""
        if self.what in ("add", "remove"):
            return self.what == "add" if person in self.people else None
        if self.what == "list":
            return person in self.people
        return False if self.what == "gone" else None


def news() -> st.SearchStrategy[list[News]]:
    """Several pieces, no two of one time."""
    one = st.builds(
        News,
        st.sampled_from(list(CALLS)),
        st.integers(1, STEPS),
        st.sets(st.sampled_from(PEOPLE), min_size=1).map(frozenset),
    )
    return st.lists(one, min_size=1, max_size=7, unique_by=lambda piece: piece.step)


def tell(database: psycopg.Connection, chat: str, piece: News, start_ms: int) -> None:
    people = json.dumps([{"tenant_key": "t", "open_id": one} for one in sorted(piece.people)])
    at_ms = start_ms + piece.step * STEP_MS
    database.execute(CALLS[piece.what].encode(), {"chat": chat, "people": people, "at": at_ms})


def inside(database: psycopg.Connection, chat: str) -> set[str]:
    rows = database.execute(
        "select open_id from chat_members where chat_id = %s and left_at is null", [chat]
    )
    return {open_id for (open_id,) in rows}


def latest_says_in(told: list[News], person: str) -> bool:
    """What the latest piece that says anything about them says; nobody said: out."""
    about = [piece for piece in told if piece.says(person) is not None]
    return bool(about) and bool(max(about, key=lambda piece: piece.step).says(person))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_is_in_whom_the_latest_news_puts_out(
    database: psycopg.Connection, data: st.DataObject
) -> None:
    pieces = data.draw(news())
    again = data.draw(st.lists(st.sampled_from(pieces), max_size=3))
    order = data.draw(st.permutations([*pieces, *again]))
    chat, start_ms = f"oc_{uuid4().hex}", int(time.time() * 1000) - (STEPS + 9) * STEP_MS
    told: list[News] = []
    with database.transaction(force_rollback=True):
        tell(database, chat, News("enter", 0, frozenset()), start_ms)
        for piece in order:
            tell(database, chat, piece, start_ms)
            told.append(piece)
            for person in inside(database, chat):
                assert latest_says_in(told, person), (person, told)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_next_list_makes_everything_right(
    database: psycopg.Connection, data: st.DataObject
) -> None:
    pieces = data.draw(news())
    order = data.draw(st.permutations(pieces))
    there = data.draw(st.sets(st.sampled_from(PEOPLE)).map(frozenset))
    chat, start_ms = f"oc_{uuid4().hex}", int(time.time() * 1000) - (STEPS + 9) * STEP_MS
    with database.transaction(force_rollback=True):
        tell(database, chat, News("enter", 0, frozenset()), start_ms)
        for piece in order:
            tell(database, chat, piece, start_ms)
        tell(database, chat, News("enter", STEPS + 1, frozenset()), start_ms)
        tell(database, chat, News("list", STEPS + 5, there), start_ms)
        assert inside(database, chat) == there
