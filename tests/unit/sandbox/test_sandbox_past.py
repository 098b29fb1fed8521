"""A group with a past: the same for the same seed, and Feishu lists it as what it is."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from sandbox.past.cast import CAST
from sandbox.past.days import WEEK_MS, day_of
from sandbox.past.making import ENDS_MS, PastRequest, make_past
from sandbox.past.script import episodes

SMALL = PastRequest(messages=3000)


@pytest.fixture(scope="module")
def past():
    return make_past(SMALL)


def text_of(message):
    return str(json.loads(message.content).get("text", ""))


def test_the_same_request_gives_the_same_past_and_another_seed_another(past):
    assert make_past(SMALL) == past
    other = make_past(replace(SMALL, seed=2))
    assert {one.message_id for one in other.messages}.isdisjoint(
        one.message_id for one in past.messages
    )
    assert other.evidence.keys() & past.evidence.keys() >= {"tech.queue", "customer.harbor"}


def test_every_matter_stands_in_a_message_that_is_still_there(past):
    scenes = list(episodes("scenes.txt"))
    keys = [one.key for one in scenes]
    assert len(keys) == len(set(keys)) >= 70
    assert set(keys) <= past.evidence.keys()
    by_id = {one.message_id: one for one in past.messages}
    assert not any(by_id[one].deleted for ids in past.evidence.values() for one in ids)
    [harbor] = past.evidence["customer.harbor"]
    assert "240,000 euros over three years" in text_of(by_id[harbor])


def test_messages_come_by_time_and_only_from_who_was_there(past):
    times = [one.create_ms for one in past.messages]
    assert times == sorted(times)
    assert len(past.messages) == SMALL.messages
    by_id = {one.open_id: one for one in CAST}
    strangers = [
        (by_id[one.sender].key, day_of(one.create_ms))
        for one in past.messages
        if one.sender and not _was_there(by_id[one.sender], day_of(one.create_ms))
    ]
    assert strangers == []


def _was_there(member, day):
    return any(since <= day and (not until or day < until) for since, until in member.stays)


def test_half_of_it_is_chinese_and_every_kind_of_message_occurs(past):
    chinese = sum(
        any("\u4e00" <= one <= "\u9fff" for one in said.content) for said in past.messages
    )
    assert 0.4 < chinese / len(past.messages) < 0.6
    kinds = Counter(one.msg_type for one in past.messages)
    wanted = "text post image file sticker interactive merge_forward system".split()
    assert all(kinds[one] for one in wanted), kinds
    assert sum(one.deleted for one in past.messages) > 5
    schemas = {
        json.loads(one.content).get("schema", "1.0")
        for one in past.messages
        if one.msg_type == "interactive"
    }
    assert schemas == {"1.0", "2.0"}


def test_threads_have_a_root_and_quotes_have_none(past):
    by_id = {one.message_id: one for one in past.messages}
    replies = [one for one in past.messages if one.thread_id and one.root_id]
    assert len(replies) > 300
    assert all(by_id[one.root_id].thread_id == one.thread_id for one in replies)
    assert all(not by_id[one.root_id].root_id for one in replies)
    quotes = [one for one in past.messages if one.root_id and not one.thread_id]
    assert len(quotes) > 20
    assert all(one.parent_id in by_id for one in quotes)


def test_system_messages_say_who_came_and_left_with_names_that_two_may_share(past):
    told = [json.loads(one.content) for one in past.messages if one.msg_type == "system"]
    assert [one["template"] for one in told if "创建" in one["template"]] == []
    invited = [
        name for one in told if "{to_chatters}" in one["template"] for name in one["to_chatters"]
    ]
    assert invited.count("王磊") == 2
    assert invited.count("陈晨") == 2
    assert any(one["template"] == "{from_user} 退出了群聊" for one in told)
    assert any(one["template"] == " " for one in told)


def test_a_past_that_ends_today_keeps_weekdays_and_moves_the_dates_it_speaks_of():
    later = make_past(replace(SMALL, ends_ms=ENDS_MS + 10 * WEEK_MS + 5000))
    by_id = {one.message_id: one for one in later.messages}
    [trip] = later.evidence["travel.lyon"]
    assert "on the 30th" in text_of(by_id[trip]), "the 19th of February is the 30th of April then"
    assert later.messages[-1].create_ms <= ENDS_MS + 10 * WEEK_MS + 5000


def test_too_few_messages_are_refused(tenant):
    answer = tenant.http.post("/sandbox/api/pasts", json={"messages": 3})
    assert answer.status_code == 400
    assert "500" in answer.json["error"]


def test_the_group_is_listed_with_its_past_and_the_bot_comes_last(tenant):
    made = tenant.control("POST", "pasts", {"messages": 600, "seed": 1})
    assert made["messages"] == 600
    assert made["members"][-1] == tenant.bot
    [added] = tenant.pushed()
    assert added["header"]["event_type"] == "im.chat.member.bot.added_v1"
    query = {"container_id_type": "chat", "container_id": made["chat_id"], "page_size": 50}
    items, threads, token = [], set(), ""
    while True:
        data = tenant.call("GET", "/im/v1/messages", page_token=token, **query).json["data"]
        items += data["items"]
        if not data["has_more"]:
            break
        token = data["page_token"]
    threads = {one["thread_id"] for one in items if "thread_id" in one}
    for thread in sorted(threads):
        within = {"container_id_type": "thread", "container_id": thread, "page_size": 50}
        found = tenant.call("GET", "/im/v1/messages", **within).json["data"]["items"]
        items += [one for one in found if "root_id" in one and one["root_id"] != one["message_id"]]
        tenant.clock.now += 0.1
    assert len({one["message_id"] for one in items}) == 600 + 1, "and that the bot was invited"
    assert (
        tenant.http.post("/sandbox/api/pasts", json={"messages": 600, "seed": 1}).status_code == 400
    )


def test_the_page_is_given_the_newest_of_each_chat_and_what_was_before(tenant):
    made = tenant.control("POST", "pasts", {"messages": 600})
    tenant.say("hello")
    first = tenant.control("GET", "messages", newest=50)["items"]
    assert Counter(one["chat_id"] for one in first) == {made["chat_id"]: 50, tenant.group: 1}
    here = [one for one in first if one["chat_id"] == made["chat_id"]]
    before = tenant.control(
        "GET", "messages", newest=50, chat_id=made["chat_id"], before=here[0]["position"]
    )["items"]
    assert before[-1]["position"] == here[0]["position"] - 1
    assert len(before) == 50


def test_somebody_of_the_past_can_take_back_what_they_said(tenant):
    made = tenant.control("POST", "pasts", {"messages": 600})
    past = [
        one
        for one in tenant.control("GET", "messages", chat_id=made["chat_id"])["items"]
        if one["msg_type"] == "text" and not one["deleted"]
    ]
    tenant.pushed()
    body = {"message_id": past[3]["message_id"], "as": past[3]["sender"]["open_id"]}
    tenant.control("POST", "recall", body)
    kinds = [one["header"]["event_type"] for one in tenant.pushed()]
    assert kinds == ["im.message.recalled_v1"]


def test_a_page_of_many_messages_costs_what_a_page_of_few_does(tenant):
    container = {}
    for size in (600, 6000):
        made = tenant.control("POST", "pasts", {"messages": size, "name": f"of {size}"})
        container[size] = tenant.platform.world.containers[made["chat_id"]]
    looked_at = Counter()

    class Counted(list):
        def __getitem__(self, index):
            part = list.__getitem__(self, index)
            looked_at[len(self)] += len(part) if isinstance(index, slice) else 1
            return part

    for size, one in container.items():
        one.entries = Counted(one.entries)
        query = {"container_id_type": "chat", "container_id": made["chat_id"], "page_size": 50}
        if size == 600:
            query["container_id"] = next(
                chat.chat_id
                for chat in tenant.platform.world.chats.values()
                if chat.name == "of 600"
            )
        assert len(tenant.call("GET", "/im/v1/messages", **query).json["data"]["items"]) == 50
    assert max(looked_at.values()) < 100, "the page, and the way to it"
