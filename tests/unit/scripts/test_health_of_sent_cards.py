"""What a card in Feishu shows, compared with what is stored."""

from __future__ import annotations

import json
from typing import Any

from bot.feishu.cards import answer_card, card_content, text_content
from bot.feishu.models import RawMessage
from scripts.operating.stored_rows import difference, is_verifiable, shown_text
from tests.support.rows import every_row


def _message(content: str, *, message_type: str = "interactive", **changes: Any) -> RawMessage:
    fields: dict[str, Any] = {
        "message_id": "om_1",
        "root_id": "",
        "parent_id": "",
        "thread_id": "",
        "chat_id": "oc_1",
        "message_type": message_type,
        "sender_id": "cli_1",
        "sender_id_type": "app_id",
        "sender_type": "app",
        "create_time_ms": 0,
        "deleted": False,
        "content": content,
        "mentions": (),
    }
    return RawMessage(**{**fields, **changes})


def _card(markdown: str) -> str:
    return card_content(answer_card(markdown, note="a note"))


TAGGED = _message(_card("<at id=cu_9 mention_key=@_user_1></at> yes"))
TEXT = _message(text_content("Hello"), message_type="text")


@every_row(
    ("why", "stored", "shown", "is_same"),
    [
        ("a card", "**Hello** 你好", _message(_card("**Hello** 你好")), True),
        ("a card below user_dsl", "Hello",
         _message(json.dumps({"user_dsl": _card("Hello"), "elements": [[]]})), True),
        ("a text", "Hello", TEXT, True),
        ("another text", "Hullo", TEXT, False),
        ("an at-tag may name the person by another id", "<at id=ou_alice></at> yes", TAGGED, True),
        ("and is not left out", "yes", TAGGED, False),
        ("a message that was taken back is not compared", "Hello",
         _message("This message was recalled", deleted=True), True),
    ],
)  # fmt: skip
def test_what_is_shown_is_compared_with_what_is_stored(
    why: str, stored: str, shown: RawMessage, is_same: bool
) -> None:
    assert (difference(stored, [shown]) is None) is is_same


def test_a_difference_is_told_without_the_words() -> None:
    found = difference("my secret", [_message(_card("another"))])

    assert found is not None
    assert "secret" not in found
    assert "another" not in found


@every_row(
    "content",
    ["", "null", "[]", '{"user_dsl": "{"}', '{"type":"card","data":{"card_id":"7"}}',
     '{"body": {"elements": "none"}}'],
)  # fmt: skip
def test_what_cannot_be_compared_is_said(content: str) -> None:
    assert shown_text(_message(content)) is None
    assert "cannot be compared" in str(difference("Hello", [_message(content)]))


def test_an_unknown_message_is_found() -> None:
    assert difference("Hello", []) == "Feishu does not know the message"


@every_row(
    ("role", "status", "message_id", "expected"),
    [
        ("assistant", "sent", "om_1", True),
        ("assistant", "pending", None, False),
        ("assistant", "sent", None, False),
        ("user", "received", "om_1", False),
    ],
)
def test_only_sent_cards_are_compared(
    role: str, status: str, message_id: str | None, expected: bool
) -> None:
    row = {"role": role, "status": status, "message_id": message_id}

    assert is_verifiable(row) is expected
