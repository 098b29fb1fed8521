"""The event that tells of a comment, as Feishu's page has it, and how it is queued."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.feishu import events
from bot.feishu.other_events import (
    CommentReply,
    CommentThread,
    comment_message_key,
    parse_comment,
    place_of_comment_key,
)
from memory.scope import conversation_id, document_chat, split_conversation_id

FIXTURE = Path(__file__).parents[3] / "data/feishu/event_drive_notice_comment_add_v1.json"


@pytest.fixture
def payload():
    return json.loads(FIXTURE.read_text(encoding="utf-8"))


def test_the_documented_event_names_document_thread_reply_and_people(payload):
    notice = parse_comment(events.parse_envelope(payload))
    assert (notice.place.file_token, notice.place.file_type) == (
        "TLLKdcpDro9ijQxA33ycNMabcef",
        "docx",
    )
    assert (notice.place.comment_id, notice.reply_id) == ("7618859513273112345",) * 2
    assert notice.author_open_id == "ou_84aad35d084aa403a838cf73ee18467"
    assert (notice.is_mentioned, notice.by_bot) == (True, False)
    assert notice.create_time_ms == 1608725989000


def test_the_same_comment_under_another_event_id_is_the_same_delivery(payload):
    first = events.parse_delivery(payload)
    payload["header"]["event_id"] = "another"
    assert events.parse_delivery(payload).key == first.key
    payload["event"]["reply_id"] = "7618859513273112346"
    assert events.parse_delivery(payload).key != first.key
    assert first.chat_id == "doc:TLLKdcpDro9ijQxA33ycNMabcef:7618859513273112345"


@pytest.mark.parametrize("missing", ["comment_id", "notice_meta"])
def test_without_its_ids_it_is_no_event(payload, missing):
    del payload["event"][missing]
    with pytest.raises(events.MalformedEvent):
        events.parse_delivery(payload)
    with pytest.raises(events.MalformedEvent):
        parse_comment(events.parse_envelope(payload))


def test_an_older_event_names_the_document_beside_the_comment(payload):
    notice = payload["event"]["notice_meta"]
    for name in ("file_token", "file_type"):
        payload["event"][name] = notice.pop(name)
    assert events.parse_delivery(payload).chat_id.startswith("doc:TLLKdcpDro9ijQxA33ycNMabcef:")
    assert parse_comment(events.parse_envelope(payload)).place.file_type == "docx"


@pytest.mark.parametrize(
    ("said", "may_be"), [(True, True), (None, True), ("true", True), (False, False)]
)
def test_whom_a_comment_mentions_is_looked_up_unless_it_mentions_nobody(payload, said, may_be):
    payload["event"]["is_mentioned"] = said
    assert parse_comment(events.parse_envelope(payload)).is_mentioned is may_be
    del payload["event"]["is_mentioned"]
    assert parse_comment(events.parse_envelope(payload)).is_mentioned


@pytest.mark.parametrize("first_id", ["71", "9000"])
def test_an_event_without_a_reply_is_about_the_comment_itself(payload, first_id):
    payload["event"] |= {"reply_id": None, "comment_id": "71"}
    notice = parse_comment(events.parse_envelope(payload))
    first, second = (CommentReply(one, "ou_a", 0, ()) for one in (first_id, "9001"))
    thread = CommentThread("71", "", False, (first, second))
    assert thread.reply(notice.reply_id) is first
    assert thread.reply("9001") is second
    assert thread.reply("9002") is None
    assert CommentThread("71", "", False, ()).reply("71") is None


def test_a_comment_of_an_app_is_known_as_such(payload):
    payload["event"]["notice_meta"]["from_user_type"] = "app"
    assert parse_comment(events.parse_envelope(payload)).by_bot


def test_a_thread_is_a_place_of_its_own_with_one_name():
    chat = document_chat("Tok", "71")
    assert conversation_id(chat, "main") == "feishu:doc:Tok:71"
    assert split_conversation_id("feishu:doc:Tok:71") == (chat, "main")
    assert split_conversation_id("feishu:oc_1:om_2") == ("oc_1", "om_2")


def test_a_reply_is_named_with_the_kind_of_its_document():
    place, reply_id = place_of_comment_key(comment_message_key("sheet", "72"), "doc:Tok:71")
    assert (place.file_token, place.file_type, place.comment_id) == ("Tok", "sheet", "71")
    assert reply_id == "72"
    with pytest.raises(ValueError):
        place_of_comment_key("om_1", "doc:Tok:71")
