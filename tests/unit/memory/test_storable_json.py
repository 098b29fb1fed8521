"""JSON for the memory: whatever a text holds, Postgres can keep it."""

import json

from memory.text import as_json
from tests.support.rows import every_row


@every_row(
    ("value", "kept"),
    [
        ({"a": "x\x00y"}, {"a": "xy"}),
        ({"a\x00": ["\x00", 1, {"b": "\x00"}]}, {"a": ["", 1, {"b": ""}]}),
        ({"a": r"\u0000"}, {"a": r"\u0000"}),
        ({"a": "\\\x00"}, {"a": "\\"}),
        ({"a": "half \ud83d"}, {"a": "half ?"}),
        ({"a": 2**70}, {"a": 2**70}),
        ([("a", None)], [["a", None]]),
    ],
)
def test_what_postgres_cannot_keep_is_taken_out_and_nothing_else(
    value: object, kept: object
) -> None:
    assert json.loads(as_json(value)) == kept
    as_json(value).encode()
