"""What people read of a tool's result."""

from __future__ import annotations

import json
from typing import Any

from bot.text.json_text import readable_lines
from tests.support.rows import every_row


@every_row(
    ("value", "lines"),
    [
        ({"code": 0, "msg": "success", "data": {"message_id": "om_5f3b2c1d9e8a7b6c"}}, ""),
        (
            {"data": {"title": "Stand-up", "start_time": "09:00", "event_id": "x"}, "ok": True},
            "title: Stand-up\nstart time: 09:00",
        ),
        ({"message": "The desk is booked."}, "The desk is booked."),
        ({"error": "The room is taken; ask Lin.", "code": 7}, "The room is taken; ask Lin."),
        ([{"roomName": "OAK"}, {"roomName": "ELM"}], "room name: OAK\nroom name: ELM"),
        ({"url": "https://example.com/d/abc"}, "url: https://example.com/d/abc"),
        ({"count": 3, "sessionToken": "s3cret"}, "count: 3"),
        (["two", 3], "two\n3"),
        ({}, ""),
    ],
)
def test_of_json_only_what_says_something_to_people_is_shown(value: Any, lines: str) -> None:
    assert readable_lines(json.dumps(value)) == lines
    assert readable_lines(json.dumps(value, indent=1)) == lines


@every_row(
    ("text", "lines"),
    [
        ('{"body": {"content": "{\\"text\\": \\"hello\\"}"}, "msg_type": "text"}', "hello"),
        ('[{"type": "text", "text": "[{\\"title\\": \\"OAK\\"}]"}]', "title: OAK"),
        ('Sent. {"title": "OAK", "message_id": "om_1"}\nDone for today.',
         "Sent.\ntitle: OAK\nDone for today."),
        ('```json\n{"title": "OAK"}\n```', "title: OAK"),
        ('```\n["OAK", 7]\n```', "OAK\n7"),
        ('{"title": "OAK"}\n{"title": "ELM"}\n', "title: OAK\ntitle: ELM"),
        ('\ufeff{"title": "OAK"}', "title: OAK"),
    ],
)  # fmt: skip
def test_json_in_text_and_in_json_is_read_too(text: str, lines: str) -> None:
    assert readable_lines(text) == lines


@every_row(
    "text", ["See [1] and {it}.", "Published: hello", "", "[draft] of the plan", "{not json"]
)
def test_words_stay_as_they_are(text: str) -> None:
    assert readable_lines(text) == text


def test_a_long_result_is_cut() -> None:
    shown = readable_lines(json.dumps({"rows": [f"row {number}" for number in range(50)]}))
    assert shown.splitlines()[0] == "rows: row 0"
    assert len(shown.splitlines()) == 9
