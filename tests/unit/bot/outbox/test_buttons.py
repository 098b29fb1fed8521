"""Buttons as they are made from an answer, shown on a card, and read back from a click."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.agents.prompts.prompt import AgentAnswer, PendingAction
from bot.feishu.cards import answer_card
from bot.feishu.drawable_markdown import MAX_MARKDOWN_BYTES
from bot.feishu.events import CardAction
from bot.outbox.buttons import (
    card_buttons,
    click_of,
    follow_ups,
    label,
    offered_buttons,
    pressed_id,
    reply_of,
    toast,
)
from bot.text.follow_ups import MOST_COLUMNS, MOST_FOLLOW_UPS
from memory.models import CardButton
from memory.tables.cards import NewButton, new_button_id
from tests.support.cards import card_bytes
from tests.support.rows import every_row

MAIL = PendingAction(
    id="opaque",
    tool="mail__send",
    arguments={"to": "ann@example.com"},
    description="mail__send: …",
    actor_id="ou_alice",
    conversation_id="feishu:oc_a:om_a",
    question="Shall I run “mail__send” with this?\n- to: ann@example.com",
)


def test_follow_ups_are_buttons_and_never_text() -> None:
    questions = ("Who comes?", "When?", "Where?", "Why?")
    reply = reply_of(
        AgentAnswer("The text.", follow_ups=questions), chat_type="group", language="en"
    )

    assert reply.text == "The text."
    assert [button.label for button in reply.buttons] == ["Who comes?", "When?", "Where?"]
    assert len(reply.buttons) == MOST_FOLLOW_UPS


def test_a_button_shows_the_whole_text_it_asks() -> None:
    (button,) = follow_ups(["  Which of these\nmany questions? "], "group")

    assert button.label == "Which of these many questions?"
    assert button.payload == {"text": button.label}


def test_a_question_too_long_for_a_button_is_refused_and_never_cut() -> None:
    fits, chinese = "x" * MOST_COLUMNS, "问" * (MOST_COLUMNS // 2)
    made = follow_ups([f"{fits}y", fits, f"{chinese}吗", chinese], "group")

    assert [button.label for button in made] == [fits, chinese]


COMMANDS = [
    "/forget",
    "/forget all",
    "／忘记 全部",
    "/anything",
    "quiet",
    "安静",
    "help",
    "新对话。",
]


@every_row("command", [*COMMANDS, "@Memo /forget", "\u200b/forget", " \n/new"])
def test_what_a_model_writes_on_a_button_is_never_a_command(command: str) -> None:
    assert follow_ups([command], "group") == ()


def test_commands_of_ours_stand_on_buttons() -> None:
    (button,) = offered_buttons(["/memory"], "group")
    assert (button.label, button.payload) == ("/memory", {"text": "/memory"})


def test_what_waits_for_a_confirmation_is_written_out_in_full() -> None:
    answer = AgentAnswer("I can do that.", pending_actions=(MAIL,))
    reply = reply_of(answer, chat_type="group", language="en")

    assert reply.text == f"I can do that.\n\n{MAIL.question}"
    assert [button.label for button in reply.buttons] == ["Confirm", "Cancel"]


def test_confirm_and_cancel_are_one_group_and_actions_are_not() -> None:
    answer = AgentAnswer("Two things.", pending_actions=(MAIL, MAIL), follow_ups=("And then?",))
    reply = reply_of(answer, chat_type="p2p", language="zh")
    first, second, third, fourth, follow_up = reply.buttons

    assert [button.label for button in reply.buttons[:4]] == [
        "确认 1",
        "取消 1",
        "确认 2",
        "取消 2",
    ]
    assert first.group_id == second.group_id
    assert third.group_id == fourth.group_id
    assert len({first.group_id, third.group_id, follow_up.group_id}) == 3
    assert first.payload["decision"] == "confirm"
    assert second.payload["decision"] == "cancel"
    assert first.payload["arguments"] == MAIL.arguments


def test_a_payload_holds_nothing_that_the_database_refuses() -> None:
    odd = PendingAction(
        "id", "t\x00", {"a\x00": ["\ud800", {"b": "\x00"}], "n": 1}, "", "ou_a", "c"
    )
    reply = reply_of(
        AgentAnswer("", pending_actions=(odd,), follow_ups=("a\x00b",)),
        chat_type="group",
        language="en",
    )

    for button in reply.buttons:
        text = json.dumps(button.row(), ensure_ascii=False)
        assert "\\u0000" not in text
        text.encode()


@given(st.text(max_size=200))
def test_a_label_is_one_short_line(text: str) -> None:
    made = label(text)

    assert len(made) <= 40
    assert made == "" or made.isprintable()


def test_a_label_of_the_longest_length_is_shown_whole() -> None:
    assert label("x" * 40) == "x" * 40
    assert label("x" * 41) == "x" * 39 + "…"


def test_a_card_with_the_longest_text_and_all_buttons_is_within_the_limit() -> None:
    buttons = card_buttons([CardButton(new_button_id(), "按钮" * 20) for _ in range(9)])

    assert card_bytes(answer_card("字" * (MAX_MARKDOWN_BYTES // 3), buttons=buttons)) < 30_000


def test_the_callback_says_an_opaque_id_and_nothing_else() -> None:
    made = NewButton("Confirm", "confirm", {"tool": "mail__send"}, "group", 60)
    (shown,) = card_buttons([CardButton(made.id, made.label)])

    assert shown.value == {"b": made.id}
    assert pressed_id(shown.value) == made.id


@every_row(
    "value", [None, 7, "", "text", '{"b": "x"}', [], {}, {"b": 1}, {"b": "short"}, {"b": "é" * 22}]
)
def test_what_is_no_button_of_ours_is_no_click(value: Any) -> None:
    assert pressed_id(value) is None
    assert click_of(action(value)) is None


def test_a_click_without_an_operator_is_no_click() -> None:
    assert click_of(action({"b": new_button_id()})) is not None
    assert click_of(action({"b": new_button_id()}, operator="")) is None


def action(value: Any, *, operator: str = "ou_alice") -> CardAction:
    return CardAction(
        event_id="event",
        operator_open_id=operator,
        tenant_key="tenant",
        value=value,
        open_message_id="om_card",
        open_chat_id="oc_here",
        create_time_ms=0,
    )


@given(st.sampled_from(["accepted", "later", "used", "expired", "not_yours", "unknown", "away"]))
def test_every_verdict_has_a_toast_in_both_languages(kind: Any) -> None:
    shown = toast(kind)["toast"]

    assert shown["type"] in ("info", "success", "error", "warning")
    assert shown["content"] == f"{shown['i18n']['zh_cn']} / {shown['i18n']['en_us']}"
