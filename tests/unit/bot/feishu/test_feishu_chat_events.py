"""News of chats, as Feishu pushes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.feishu.events import MalformedEvent, parse_delivery, parse_envelope
from bot.feishu.other_events import CHAT_EVENTS, ChatNews, parse_chat_news
from memory.scope import FeishuPerson
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "feishu"
CHAT = "oc_413871888e0d5492e25b173f0812efb7"
TENANT = "2ca1d211f64f6438"
AT_MS = 1608725989000
GUEST = FeishuPerson("3774yuu3743", "ou_84aad35d084aa403a838cf73ee18467")


def pushed(name: str) -> Any:
    return json.loads((DATA / f"event_im_chat_{name}_v1.json").read_text())


def news(payload: Any) -> ChatNews:
    return parse_chat_news(parse_envelope(payload), received_ms=7)


@every_row(
    ("name", "what", "people"),
    [
        ("member_user_added", "joined", (GUEST,)),
        ("member_user_deleted", "left", (GUEST,)),
        ("member_user_withdrawn", "left", (GUEST,)),
        ("member_bot_added", "entered", ()),
        ("member_bot_deleted", "gone", ()),
        ("disbanded", "gone", ()),
        ("updated", "renamed", ()),
    ],
)
def test_each_event_says_what_happened_when_and_to_whom(name, what, people):
    found = news(pushed(name))
    assert found == ChatNews(
        what, CHAT, TENANT, AT_MS, people, "群名称测试", found.operator, found.topics
    )


def test_a_group_that_turns_into_topics_says_so():
    changed = pushed("updated")
    assert news(changed).topics is True
    del changed["event"]["after_change"]["group_message_type"]
    assert news(changed).topics is None


def test_who_added_the_bot_is_told():
    assert news(pushed("member_bot_added")).operator == "ou_84aad35d084aa403a838cf73ee18467"


def test_every_kind_of_news_is_parsed_from_a_stored_payload():
    stored = {
        json.loads(path.read_text())["header"]["event_type"]
        for path in DATA.glob("event_im_chat_*.json")
    }
    assert set(CHAT_EVENTS) <= stored


def test_the_same_news_delivered_twice_is_one_delivery():
    once, again = pushed("member_user_added"), pushed("member_user_added")
    assert parse_delivery(once).key == parse_delivery(again).key


def test_people_without_an_id_are_left_out_and_without_a_tenant_are_of_ours():
    payload = pushed("member_user_added")
    payload["event"]["users"] = [
        {"user_id": {"open_id": "ou_here"}},
        {"user_id": {"union_id": "on_only"}},
        "nobody",
    ]
    assert news(payload).people == (FeishuPerson(TENANT, "ou_here"),)


def test_without_a_time_it_is_of_when_it_was_received():
    payload = pushed("member_user_deleted")
    del payload["header"]["create_time"]
    assert news(payload).at_ms == 7


def test_without_a_chat_it_is_malformed():
    payload = pushed("disbanded")
    del payload["event"]["chat_id"]
    with pytest.raises(MalformedEvent, match="chat_id"):
        news(payload)


@every_row("junk", [None, 7, [], "x", {"users": 7}, {"users": [None, {"user_id": 3}]}])
def test_whatever_stands_in_the_event_nothing_else_is_raised(junk):
    payload = pushed("member_user_added")
    payload["event"] = {"chat_id": CHAT, **junk} if isinstance(junk, dict) else junk
    if isinstance(junk, dict):
        assert news(payload).people == ()
    else:
        with pytest.raises(MalformedEvent):
            news(payload)
