"""What a worker holds of transcripts: bounded, and gone where a message is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.listening.transcript import HeldTranscript, HeldTranscripts


def row(chat: str, *lines: tuple[str, int], **more: Any) -> Mapping[str, Any]:
    said = [(f"om_{text}", None, "A", "ou_a", text, at, False, False, "") for text, at in lines]
    nothing = {"topics": {}, "answered": [], "goes_on": False, "mark": {"last": 1}}
    where = {"channel_id": chat, "started_at": 0, "last_activity": 1, "quiet": False}
    return {**where, **nothing, "messages": said, **more}


def contents(held: HeldTranscript) -> list[str]:
    return [one.content for one in held.messages]


def test_what_is_new_follows_what_is_held_in_the_order_of_time() -> None:
    held = HeldTranscript().extend(row("oc", ("one", 1), ("three", 3)))
    later = held.extend(row("oc", ("two", 2), goes_on=True, topics={"om_one": 1}))
    last = later.extend(row("oc", ("four", 4), goes_on=True, answered=["om_three"]))

    assert contents(last) == ["one", "two", "three", "four"]
    assert [(one.topic, one.answered) for one in last.messages] == [
        (1, False), (None, False), (None, True), (None, False),
    ]  # fmt: skip
    assert contents(held) == ["one", "three"]


def test_what_is_told_in_whole_replaces_what_is_held() -> None:
    held = HeldTranscript().extend(row("oc", ("one", 1)))
    assert contents(held.extend(row("oc", ("two", 2)))) == ["two"]


def test_the_chats_that_were_heard_longest_ago_are_let_go() -> None:
    size = HeldTranscript().extend(row("oc_1", ("line", 1))).size
    transcripts = HeldTranscripts(most_bytes=2 * size)
    for chat in ("oc_1", "oc_2", "oc_1", "oc_3"):
        told = row(chat, ("line", 1))
        transcripts.conversation("t", transcripts.of("t", chat), told)

    kept = [chat for chat in ("oc_1", "oc_2", "oc_3") if transcripts.of("t", chat).mark]
    assert kept == ["oc_1", "oc_3"]


def test_a_memory_that_says_no_mark_is_asked_for_everything_again() -> None:
    transcripts = HeldTranscripts()
    told = {**row("oc", ("line", 1)), "mark": None}
    found = transcripts.conversation("t", HeldTranscript(), told)
    assert [one.content for one in found.messages] == ["line"]
    assert transcripts.of("t", "oc") == HeldTranscript()


def test_nothing_is_held_of_a_chat_in_which_a_message_was_taken_back() -> None:
    transcripts = HeldTranscripts()
    transcripts.conversation("t", HeldTranscript(), row("oc", ("line", 1)))
    transcripts.drop("oc")
    assert transcripts.of("t", "oc") == HeldTranscript()
