"""The id of a turn is a key: it is made in one place and taken apart in none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memory.models import MESSAGE_ORIGIN, Origin
from tests.support.rows import every_row

ROOT = Path(__file__).parents[2]
# What told the origin of a turn before there was a column for it.
OLD = re.compile(r"""['"](click|reaction|timer|private|offer):|~\(?again|~anew|, '~'""")
ID = r"(turn_id|\b[tfc]\.id|event\.message_id)"
PARSING = re.compile(
    rf"(split_part|substr|substring|starts_with|regexp_\w+|strpos)\({ID}\b"
    rf"|{ID} (not )?(i?like|!?~) |{ID}\.(r?partition|split|removeprefix|startswith)\("
)
SOURCES = sorted(
    file
    for folder in ("bot", "memory", "scripts", "lab", "sandbox", "sql")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in (".py", ".sql", ".html")
)


@pytest.mark.parametrize("pattern", [OLD, PARSING], ids=["prefixes", "parsing"])
def test_no_id_of_a_turn_tells_anything(pattern: re.Pattern[str]) -> None:
    assert len(SOURCES) > 300
    found = {str(file): pattern.findall(file.read_text("utf-8")) for file in SOURCES}

    assert {name: hits for name, hits in found.items() if hits} == {}


@every_row(
    "line",
    ["'click:' || b.id", 'f"timer:{id}"', "split_part(t.id, '~', 1)", 'turn_id.partition("~")',
     "t.id like 'om_%'", "x ~ '~again[0-9]'", "'^(.*)~again'"],
)  # fmt: skip
def test_what_took_ids_apart_would_be_seen(line: str) -> None:
    assert OLD.search(line) or PARSING.search(line)


def test_an_id_follows_from_the_origin_and_from_all_of_it() -> None:
    one = Origin("button", "om_1", "b1")
    others = [
        Origin("private_answer", "om_1", "b1"),
        Origin("button", "om_1b", "1"),
        Origin("button", "om_1"),
        MESSAGE_ORIGIN,
    ]
    assert one.turn_id == Origin("button", "om_1", "b1").turn_id
    assert one.turn_id not in {other.turn_id for other in others}
