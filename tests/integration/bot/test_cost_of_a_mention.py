"""What a plain mention costs, in counts: they are the same on a busy machine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import eventually
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

_ROOT = Path(__file__).parents[3]
_OURS = tuple(str(_ROOT / package) for package in ("bot", "memory"))
_COUNTED = 5  # mentions
_FUNCTIONS = "select sum(calls) / %s from pg_stat_user_functions"
_ENDED = """select count(*) = 0 from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()"""


class PythonCalls:
    """Counts the calls of our own code, and how often a generator or coroutine goes on."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        self.count += event == "call" and frame.f_code.co_filename.startswith(_OURS)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_plain_mention_runs_few_functions(database_url: str, in_thread: bool) -> None:
    calls, root = PythonCalls(), ""
    with psycopg.connect(database_url, autocommit=True) as database:
        try:
            async with stage(database_url, history_messages=10, summary_after_messages=30) as on:
                platform = on.town.platform
                ann, bob = (platform.actors.add_person(name).open_id for name in ("Ann", "Bob"))
                group = platform.groups.add("Garden", [ann, bob]).chat_id
                for number in range(2 * _COUNTED):
                    if number == _COUNTED:  # by now the chat is known, and welcomed
                        database.execute("alter system set track_functions = 'all'")
                        database.execute("select pg_reload_conf()")
                        sys.setprofile(calls)
                    asker, question = (ann, bob)[number % 2], f"when is trip {number} to Lisbon?"
                    said = await on.mention(asker, group, question, root)
                    root = root or (said if in_thread else "")
        finally:
            sys.setprofile(None)
            database.execute("alter system reset track_functions")
            database.execute("select pg_reload_conf()")
        # a session tells what it ran when it ends
        eventually(lambda: database.execute(_ENDED).fetchone() == (True,), what="all sessions end")
        [functions] = database.execute(_FUNCTIONS, [_COUNTED]).fetchone() or [0]

    assert 20 < functions <= 32, functions
    assert 1000 < calls.count / _COUNTED <= 2700, calls.count
