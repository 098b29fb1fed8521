"""What of a conversation is sent to the store."""

from __future__ import annotations

import json

from bot.listening.conversation_store import heard_args, tell_conversation_args
from bot.listening.transcript import KEPT_CHARACTERS, MAX_MESSAGES, MessageRecord
from memory.text import as_json
from tests.support.rows import every_row

TAKEN = 1_048_576  # bytes, by the SQL functions


def record(number: int, content: str) -> MessageRecord:
    return MessageRecord("Alice", "ou_alice", content, number, False, message_id=f"om_{number}")


@every_row("character", ["a", "中", "😀", '"', "\\", "\x01"])
def test_a_conversation_of_the_longest_messages_is_taken(character: str) -> None:
    said = [record(n, character * 150_000) for n in range(MAX_MESSAGES)]

    for args in (tell_conversation_args(said, 1, 1), heard_args(said[-1], 1)):
        assert len(as_json(args).encode()) <= TAKEN
        sent = json.loads(str(args["p_records"]))
        assert sent[-1]["message_id"] == said[-1].message_id
        assert sent[-1]["content"] == character * KEPT_CHARACTERS


def test_an_ordinary_conversation_is_sent_whole() -> None:
    said = [record(n, "see you at nine") for n in range(MAX_MESSAGES)]

    assert len(json.loads(str(tell_conversation_args(said, 1, 1)["p_records"]))) == MAX_MESSAGES
