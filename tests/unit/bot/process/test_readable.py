"""The log's lines as people read them."""

from __future__ import annotations

import json
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from bot.process.log_lines import console_format

AT = "2026-11-23T17:39:58.517220Z"
CLOCK = f"{datetime.fromisoformat(AT).astimezone():%H:%M:%S}"


def line(**fields: object) -> str:
    return console_format(json.dumps(fields, ensure_ascii=False) + "\n")


def test_a_line_begins_with_the_time_and_what_happened() -> None:
    told = line(slot=1, name="worker-1", event="started", level="info", timestamp=AT)
    assert told == f"{CLOCK} started  slot=1  name=worker-1\n"


def test_what_is_wrong_is_named_and_its_stack_stands_below_it() -> None:
    told = line(error="KeyError", stack="File a\n  b", event="broken", level="error", timestamp=AT)
    assert told == f"{CLOCK} ERROR broken  error=KeyError\n    File a\n      b\n"


def test_a_value_of_several_words_is_quoted() -> None:
    assert (
        line(event="said", text='to "Bob"', none=None) == 'said  text="to \\"Bob\\""  none=null\n'
    )


def test_that_everything_works_is_one_sentence() -> None:
    assert line(event="ready", address="http://127.0.0.1:80", level="info", timestamp=AT) == (
        "Ready: http://127.0.0.1:80\n"
    )


@given(st.dictionaries(st.text(max_size=9), st.text() | st.integers(), max_size=6), st.text())
def test_no_line_holds_what_a_terminal_obeys(fields: dict[str, object], text: str) -> None:
    for shown in (line(**{"event": text, "stack": text, **fields}), console_format(text)):
        assert shown.endswith("\n")
        assert all(one.isprintable() for one in shown.split("\n"))
