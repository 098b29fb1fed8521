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
        "upper_message_id": "",
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


def test_a_card_that_shows_what_is_stored_is_right() -> None:
    assert difference("**Hello** 你好", [_message(_card("**Hello** 你好"))]) is None


def test_a_card_below_user_dsl_is_read_as_well() -> None:
    wrapped = json.dumps({"user_dsl": _card("Hello"), "elements": [[]]})

    assert difference("Hello", [_message(wrapped)]) is None


def test_a_text_message_is_compared_with_its_text() -> None:
    sent = _message(text_content("Hello"), message_type="text")

    assert difference("Hello", [sent]) is None
    assert difference("Hullo", [sent]) is not None


def test_an_at_tag_may_name_the_person_by_another_id() -> None:
    shown = "<at id=cu_9 mention_key=@_user_1></at> yes"

    assert difference("<at id=ou_alice></at> yes", [_message(_card(shown))]) is None
    assert difference("yes", [_message(_card(shown))]) is not None


def test_a_difference_is_told_without_the_words() -> None:
    found = difference("my secret", [_message(_card("another"))])

    assert found is not None
    assert "secret" not in found
    assert "another" not in found


def test_a_message_that_was_taken_back_is_not_compared() -> None:
    assert difference("Hello", [_message("This message was recalled", deleted=True)]) is None


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
