"""What a turn is opened for: a message as it stands, or what a press, a reaction, a timer asks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.feishu.events import parse_envelope, parse_message, question_text
from bot.listening.turn_request import TurnRequest
from memory.models import Origin

ROOT = Path(__file__).parents[4]
MESSAGES = sorted((ROOT / "tests" / "data" / "feishu").glob("receive_*.json"))
BOT = "ou_e6e14f667cfe239d7b129b521dce0569"
PRESS = TurnRequest(
    id="a key",
    origin=Origin("button", "om_1", "b1"),
    sender_open_id="ou_ann",
    tenant_key="t",
    chat_id="oc_1",
    chat_type="group",
    text="And then?",
    create_time_ms=1,
    root_id="om_1",
    threaded=True,
    reply_to="om_card",
)


@pytest.mark.parametrize("file", MESSAGES, ids=lambda file: file.stem)
def test_a_message_is_a_request_with_all_that_it_says(file: Path) -> None:
    loaded = json.loads(file.read_text())
    event = parse_message(parse_envelope(loaded.get("plaintext", loaded)))
    request = TurnRequest.of(event)

    kept = {name: getattr(event, name) for name in event.__slots__ if name != "event_id"}
    assert {name: getattr(request, name) for name in kept} == kept
    assert (request.id, request.reply_to, request.origin.kind) == (event.message_id, "", "message")
    assert question_text(request, BOT) == question_text(event, BOT)


def test_a_turn_of_another_id_keeps_the_message_that_it_is_about() -> None:
    loaded = json.loads(MESSAGES[0].read_text())
    event = parse_message(parse_envelope(loaded.get("plaintext", loaded)))
    again = replace(TurnRequest.of(event), id="another turn")
    assert again.message_id == event.message_id != again.id


def test_what_nobody_wrote_is_put_to_the_bot_and_brings_nothing_but_its_text() -> None:
    assert PRESS.is_for(BOT)
    assert question_text(PRESS, BOT) == "And then?"
    assert (PRESS.message_id, PRESS.message_type, PRESS.attachments) == ("a key", "text", ())
    assert PRESS.parent_id == ""
    assert (PRESS.quotes, PRESS.root_of_thread, PRESS.mentions_all) == ("", "om_1", False)
    assert replace(PRESS, threaded=False).root_of_thread == ""


def test_an_event_of_feishu_is_made_by_its_parser_alone() -> None:
    made = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "bot").rglob("*.py")
        if re.search(r"\bMessageEvent\(\n? *\w+=", file.read_text("utf-8"))
    ]
    assert made == ["bot/feishu/events.py"]
