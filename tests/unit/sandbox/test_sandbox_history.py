"""`GET /im/v1/messages` lists as open.feishu.cn says: pages, threads, system messages, refusals."""

import json

LIST = "/im/v1/messages"


def listed(tenant, **query):
    preset = {"container_id_type": "chat", "container_id": tenant.group}
    return tenant.call("GET", LIST, **(preset | query)).json


def texts(answer):
    return [json.loads(one["body"]["content"]).get("text") for one in answer["data"]["items"]]


def say_at_intervals(tenant, count):
    for number in range(count):
        tenant.say(f"m{number}")
        tenant.clock.now += 10


def test_pages_go_on_where_they_were_though_more_is_said_meanwhile(tenant):
    say_at_intervals(tenant, 5)
    for order, expected in (
        ("ByCreateTimeAsc", ["m0", "m1", "m2", "m3", "m4", "new"]),
        ("ByCreateTimeDesc", ["new", "m4", "m3", "m2", "m1", "m0"]),
    ):
        page = listed(tenant, page_size=2, sort_type=order)
        found = texts(page)
        if order == "ByCreateTimeAsc":
            tenant.say("new")
        else:
            tenant.say("too new")
        while page["data"]["has_more"]:
            token = page["data"]["page_token"]
            page = listed(tenant, page_size=2, sort_type=order, page_token=token)
            found += texts(page)
        assert "page_token" not in page["data"]
        assert found == expected


def test_a_page_token_is_good_for_its_own_request_alone(tenant):
    say_at_intervals(tenant, 3)
    token = listed(tenant, page_size=1)["data"]["page_token"]
    assert listed(tenant, page_size=1, page_token=token)["code"] == 0
    other = tenant.chats["Kitchen"]
    for wrong in (
        {"sort_type": "ByCreateTimeDesc"},
        {"container_id": other},
    ):
        assert listed(tenant, page_size=1, page_token=token, **wrong)["code"] == 230001
    for nonsense in ("1", "W10=", "bm90IGpzb24="):
        assert listed(tenant, page_token=nonsense)["code"] == 230001
    assert listed(tenant, page_size=51)["code"] == 230001


def test_the_first_second_and_the_last_are_part_of_a_time_range(tenant):
    say_at_intervals(tenant, 4)
    start = int(tenant.clock.now) - 30
    answer = listed(tenant, start_time=str(start), end_time=str(start + 10))
    assert texts(answer) == ["m1", "m2"]


def test_a_thread_is_not_listed_by_time(tenant):
    asked = tenant.say("hello")
    thread = tenant.reply(asked, reply_in_thread=True).json["data"]["thread_id"]
    within = {"container_id_type": "thread", "container_id": thread}
    assert len(listed(tenant, **within)["data"]["items"]) == 2
    assert listed(tenant, start_time="1", **within)["code"] == 230001


def test_nobody_lists_a_chat_without_the_bot(tenant):
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.bot})
    assert listed(tenant)["code"] == 230002


def test_what_was_taken_back_is_listed_without_its_words(tenant):
    said = tenant.say("@Bob a secret")
    tenant.control("POST", "recall", {"message_id": said, "as": tenant.people["Alice"]})
    [one] = listed(tenant)["data"]["items"]
    assert one["deleted"] is True
    assert one["body"]["content"] == "This message was recalled"
    assert "mentions" not in one


def test_a_thread_older_than_the_bot_is_hidden_until_it_is_mentioned_there(tenant):
    membership = {"chat_id": tenant.group, "open_id": tenant.bot}
    tenant.control("POST", "leave", membership)
    root = tenant.say("before you came")
    tenant.say("a reply", reply_to=root)
    tenant.clock.now += 60
    tenant.control("POST", "join", membership)
    thread = tenant.platform.world.messages[root].thread_id
    within = {"container_id_type": "thread", "container_id": thread}
    assert listed(tenant, **within)["code"] == 0
    tenant.control("POST", "switches", {"history_hidden": True})
    assert listed(tenant, **within)["code"] == 230073

    tenant.say("@Memo look", reply_to=root)
    assert texts(listed(tenant, **within))[:2] == ["before you came", "a reply"]
    newer = tenant.say("after you came")
    tenant.say("a reply", reply_to=newer)
    within["container_id"] = tenant.platform.world.messages[newer].thread_id
    assert listed(tenant, **within)["code"] == 0


def test_who_joins_and_leaves_is_a_message_of_nobody_that_holds_names_alone(tenant):
    bob = {"chat_id": tenant.group, "open_id": tenant.people["Bob"]}
    tenant.control("POST", "leave", bob)
    tenant.control("POST", "leave", bob)
    tenant.control("POST", "join", bob | {"silently": True})
    left, joined = listed(tenant)["data"]["items"]
    assert {one["msg_type"] for one in (left, joined)} == {"system"}
    blank = {"id": "", "id_type": "", "sender_type": "", "tenant_key": ""}
    assert left["sender"] == blank
    told = json.loads(joined["body"]["content"])
    assert told["template"] == "{from_user} invited {to_chatters} to this chat."
    assert (told["from_user"], told["to_chatters"]) == (["Alice"], ["Bob"])
    shown = tenant.control("GET", f"messages/{left['message_id']}")
    assert shown["text"] == "Bob left this chat."
