"""What people do in the sandbox, and the events the app receives for it."""

import json
from pathlib import Path

import pytest

from sandbox.world.actors import with_mentions
from sandbox.world.entities import SandboxPerson

DATA = Path(__file__).parents[2] / "data" / "sandbox"
FEISHU = DATA.parent / "feishu"


def shape(value):
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


def message(event):
    return event["event"]["message"]


def test_a_thread_reply_is_pushed_in_feishus_shape(tenant):
    root = tenant.say("hello")
    tenant.pushed()
    tenant.say("@Memo and this?", reply_to=root)
    known = json.loads((DATA / "receive_group_reply_in_thread.json").read_text())
    (event,) = tenant.pushed()
    assert shape(event) == shape(known)
    assert message(event)["root_id"] == message(event)["parent_id"] == root
    assert event["header"]["token"] == tenant.config.verification_token
    assert json.loads(message(event)["content"])["text"] == "@_user_1 and this?"


def test_a_quote_has_no_thread(tenant):
    root = tenant.say("hello")
    tenant.say("as you say", reply_to=root, quote=True)
    quoted = message(tenant.pushed()[-1])
    assert quoted["parent_id"] == root
    assert "thread_id" not in quoted


def test_a_message_without_mentions_has_no_mentions_key(tenant):
    tenant.say("just talk")
    assert "mentions" not in message(tenant.pushed()[0])


def test_names_become_mentions_longest_first_and_at_word_ends():
    people = [
        SandboxPerson("ou_1", "Ann"),
        SandboxPerson("ou_2", "Ann Lee"),
        SandboxPerson("ou_3", "陈晨"),
    ]
    text, found = with_mentions("@Ann Lee, @ann @Anna @陈晨你好 mail@Ann.com", people)
    assert text == "@_user_1, @_user_2 @Anna @_user_3你好 mail@Ann.com"
    assert [one.open_id for one in found] == ["ou_2", "ou_1", "ou_3"]


def test_the_same_person_twice_has_two_keys(tenant):
    tenant.say("@Bob @Bob hi")
    assert [one["key"] for one in message(tenant.pushed()[0])["mentions"]] == [
        "@_user_1",
        "@_user_2",
    ]


def test_at_all_is_in_the_text_and_not_among_the_mentions(tenant):
    tenant.say("@all lunch")
    event = message(tenant.pushed()[0])
    assert json.loads(event["content"])["text"] == "@_all lunch"
    assert "mentions" not in event


def test_raw_text_stays_as_it_is_and_mentions_can_be_given_by_hand(tenant):
    tenant.say("@Bob", raw=True)
    assert json.loads(message(tenant.pushed()[0])["content"])["text"] == "@Bob"
    tenant.say("@_user_1 x", mentions=[{"open_id": tenant.bot}])
    (mention,) = message(tenant.pushed()[0])["mentions"]
    assert (mention["id"]["open_id"], mention["mentioned_type"]) == (tenant.bot, "bot")


def test_any_message_type_can_be_sent_as_raw_content(tenant):
    tenant.say("", message_type="sticker", content='{"file_key":"file_x"}')
    event = message(tenant.pushed()[0])
    assert (event["message_type"], event["content"]) == ("sticker", '{"file_key":"file_x"}')


def test_without_the_group_scope_only_mentions_of_the_bot_and_p2p_arrive(tenant):
    tenant.control("POST", "switches", {"im:message.group_msg": False})
    tenant.say("nobody in particular")
    tenant.say("@Bob hello")
    tenant.say("@all hello")
    assert tenant.pushed() == []
    tenant.say("@Memo hello")
    tenant.say("hello", chat=tenant.chats["Alice"])
    assert [message(one)["chat_type"] for one in tenant.pushed()] == ["group", "p2p"]


def test_other_bots_are_heard_as_bots_or_not_at_all(tenant):
    other = tenant.control("POST", "people", {"name": "Ticker", "kind": "bot"})
    tenant.people["Ticker"] = other["open_id"]
    tenant.control("POST", "join", {"chat_id": tenant.group, "open_id": other["open_id"]})
    tenant.pushed()
    asked = tenant.say("@Memo status?", speaker="Ticker")
    assert tenant.pushed()[0]["event"]["sender"]["sender_type"] == "bot"
    item = tenant.call("GET", f"/im/v1/messages/{asked}").json["data"]["items"][0]
    assert item["sender"]["sender_type"] == "app"
    tenant.control(
        "POST",
        "switches",
        {
            "im:message.group_at_msg.include_bot:readonly": False,
            "im:message.group_msg.include_bot:read": False,
        },
    )
    tenant.say("@Memo status?", speaker="Ticker")
    assert tenant.pushed() == []


def test_the_bots_own_messages_are_not_pushed(tenant):
    asked = tenant.say("hello")
    tenant.pushed()
    tenant.reply(asked)
    assert tenant.pushed() == []


def test_one_message_can_be_delivered_often_with_the_same_or_new_event_ids(tenant):
    asked = tenant.say("hello", count=3)
    same = tenant.pushed()
    assert len(same) == 3
    assert len({one["header"]["event_id"] for one in same}) == 1
    tenant.control("POST", "redeliver", {"message_id": asked, "times": 2, "new_event_id": True})
    again = tenant.pushed()
    assert len({one["header"]["event_id"] for one in again}) == 2
    assert {message(one)["message_id"] for one in same + again} == {asked}


def test_a_recall_is_pushed_and_shown(tenant):
    asked = tenant.say("a secret")
    tenant.pushed()
    tenant.control("POST", "recall", {"message_id": asked, "as": tenant.people["Alice"]})
    (event,) = tenant.pushed("im.message.recalled_v1")
    assert event["event"]["message_id"] == asked
    assert event["event"]["recall_type"] == "message_owner"
    assert "a secret" not in json.dumps(tenant.control("GET", f"messages/{asked}"))


def test_reactions_toggle_and_are_pushed(tenant):
    body = {"as": tenant.people["Bob"], "message_id": tenant.say("hi"), "emoji_type": "THUMBSUP"}
    tenant.pushed()
    tenant.control("POST", "reactions", body)
    tenant.control("POST", "reactions", body)
    kinds = [one["header"]["event_type"] for one in tenant.pushed()]
    assert kinds == ["im.message.reaction.created_v1", "im.message.reaction.deleted_v1"]


def test_a_new_group_tells_the_bot_that_it_was_added(tenant):
    made = tenant.control("POST", "chats", {"name": "New", "members": [tenant.people["Bob"]]})
    (event,) = tenant.pushed("im.chat.member.bot.added_v1")
    assert event["event"]["chat_id"] == made["chat_id"]


def test_a_member_who_leaves_cannot_speak(tenant):
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.people["Bob"]})
    assert tenant.pushed("im.chat.member.user.deleted_v1")
    with pytest.raises(AssertionError, match="not in that chat"):
        tenant.say("hello", speaker="Bob")


@pytest.mark.parametrize(
    ("doing", "more", "event_type", "fixture"),
    [
        ("join", {}, "member.user.added", "member_user_added"),
        ("leave", {}, "member.user.deleted", "member_user_deleted"),
        ("withdraw", {}, "member.user.withdrawn", "member_user_withdrawn"),
        ("dissolve", {}, "disbanded", "disbanded"),
        ("rename", {"name": "New"}, "updated", "updated"),
    ],
)
def test_what_happens_to_a_group_is_pushed(tenant, doing, more, event_type, fixture):
    bob = tenant.people["Bob"]
    tenant.control("POST", doing, {"chat_id": tenant.group, "open_id": bob, **more})

    (event,) = tenant.pushed(f"im.chat.{event_type}_v1")
    official = json.loads((FEISHU / f"event_im_chat_{fixture}_v1.json").read_text())
    assert event["event"]["chat_id"] == tenant.group
    assert set(event["event"]) == set(official["event"])
    if "users" in event["event"]:
        [user] = event["event"]["users"]
        assert user["user_id"]["open_id"] == bob
        assert set(user) == set(official["event"]["users"][0])


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("@Memo look", ["@_user_1", " look"]),
        ("hi @Bob and @陈晨", ["hi ", "@_user_1", " and ", "@_user_2"]),
        ("@all: lunch", ["@_all", ": lunch"]),
        ("a@bob.example", ["a@bob.example"]),
    ],
)
def test_a_mention_in_a_post_is_an_element(tenant, text, keys):
    tenant.say(text, message_type="post")

    (event,) = tenant.pushed("im.message.receive_v1")
    message = event["event"]["message"]
    (row,) = json.loads(message["content"])["content"]
    assert [one["user_id" if one["tag"] == "at" else "text"] for one in row] == keys
    names = {one["key"]: one["name"] for one in message.get("mentions", [])}
    at = [one for one in row if one["tag"] == "at"]
    assert all(one["user_name"] == names.get(one["user_id"], "all") for one in at)


@pytest.mark.parametrize(
    ("answer", "error"),
    [("same", ""), ("another", "the challenge did not come back"), (None, "refused")],
)
def test_the_address_is_verified_with_a_challenge(tenant, answer, error):
    def during():
        (asked,) = tenant.receiver.events
        assert asked["type"] == "url_verification"
        assert asked["token"] == tenant.config.verification_token
        tenant.receiver.answer = {"challenge": asked["challenge"] if answer == "same" else answer}

    tenant.receiver.status, tenant.receiver.during = 200 if answer else 0, during

    assert tenant.control("POST", "verify", {})["error"] == error


def test_a_bot_that_is_removed_hears_of_that_and_of_nothing_after_it(tenant):
    bob, group = tenant.people["Bob"], tenant.group
    tenant.control("POST", "leave", {"chat_id": group, "open_id": tenant.bot})
    tenant.control("POST", "leave", {"chat_id": group, "open_id": bob})
    tenant.control("POST", "dissolve", {"chat_id": group})

    kinds = [one["header"]["event_type"] for one in tenant.pushed()]
    assert kinds == ["im.chat.member.bot.deleted_v1"]


def test_an_event_of_a_member_can_be_lost(tenant):
    body = {"chat_id": tenant.group, "open_id": tenant.people["Bob"], "silently": True}
    tenant.control("POST", "leave", body)

    assert tenant.pushed() == []
    members = tenant.call("GET", f"/im/v1/chats/{tenant.group}/members").json["data"]["items"]
    assert [one["name"] for one in members] == ["Alice", "陈晨"]


def test_a_p2p_chat_is_no_group(tenant):
    chat = tenant.platform.world.p2p_chat(tenant.people["Bob"]).chat_id
    for doing in ("join", "leave", "withdraw", "dissolve", "rename"):
        body = {"chat_id": chat, "open_id": tenant.people["Alice"], "name": "x"}
        answer = tenant.http.post(f"/sandbox/api/{doing}", json=body)
        assert answer.status_code == 400
        assert "p2p" in answer.json["error"]


BUTTONS = {
    "schema": "2.0",
    "config": {"update_multi": True},
    "body": {
        "elements": [
            {
                "tag": "button",
                "text": {"tag": "plain_text", "content": str(n)},
                "behaviors": [{"type": "callback", "value": {"n": n}}],
            }
            for n in range(2)
        ]
    },
}


@pytest.fixture
def card(tenant):
    """A card with two buttons in the group, as (tenant, message id)."""
    body = {"msg_type": "interactive", "content": json.dumps(BUTTONS)}
    sent = tenant.call("POST", f"/im/v1/messages/{tenant.say('hello')}/reply", body)
    tenant.pushed()
    return tenant, sent.json["data"]["message_id"]


def click(card, **more):
    tenant, sent = card
    body = {"as": tenant.people["Bob"], "message_id": sent, "index": 1, **more}
    return tenant.control("POST", "click", body)


def test_a_click_is_pushed_in_feishus_shape_with_microseconds(card):
    tenant, sent = card
    click(card)
    (event,) = tenant.pushed("card.action.trigger")
    known = json.loads((DATA / "callback_card_button.json").read_text())
    assert set(event["event"]) == set(known["event"])
    assert event["event"]["action"]["value"] == {"n": 1}
    assert event["event"]["operator"]["open_id"] == tenant.people["Bob"]
    assert event["event"]["context"]["open_message_id"] == sent
    assert len(event["header"]["create_time"]) == 16


def test_the_answer_to_a_click_shows_a_toast(card):
    tenant, _ = card
    tenant.receiver.answer = {"toast": {"type": "success", "content": "ok"}}
    seen = click(card, index=None, value={"n": 0})
    assert (seen["toast"]["content"], seen["code"]) == ("ok", 0)


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (0, {}, 200341),
        (500, {}, 200671),
        (200, [], 200672),
        (200, {"toast": {"type": "loud"}}, 200672),
        (200, {"card": {"type": "raw", "data": {"schema": "2.0"}}}, 200673),
    ],
)
def test_a_failed_callback_shows_its_code_and_leaves_the_card(card, status, answer, code):
    tenant, sent = card
    tenant.receiver.status, tenant.receiver.answer = status, answer
    assert click(card)["code"] == code
    assert tenant.control("GET", f"messages/{sent}")["card"] == BUTTONS


def test_a_forged_value_is_sent_though_no_button_has_it(card):
    tenant, _ = card
    click(card, index=None, value={"forged": True})
    assert tenant.pushed()[0]["event"]["action"]["value"] == {"forged": True}


def test_a_card_entity_does_not_change_while_a_click_is_answered(tenant):
    body = {
        "type": "card_json",
        "data": json.dumps({**BUTTONS, "config": {"streaming_mode": False}}),
    }
    card_id = tenant.call("POST", "/cardkit/v1/cards", body).json["data"]["card_id"]
    content = json.dumps({"type": "card", "data": {"card_id": card_id}})
    reply = {"msg_type": "interactive", "content": content}
    sent = tenant.call("POST", f"/im/v1/messages/{tenant.say('x')}/reply", reply)
    settings = {"settings": '{"config":{"streaming_mode":true}}', "sequence": 1}
    path, seen = f"/cardkit/v1/cards/{card_id}/settings", []

    def interfere():
        seen.append(tenant.call("PATCH", path, settings))

    tenant.receiver.during = interfere
    click((tenant, sent.json["data"]["message_id"]))
    assert seen[0].json["code"] == 200810
    tenant.receiver.during = lambda: None
    assert (
        tenant.call("PATCH", f"/cardkit/v1/cards/{card_id}/settings", settings).status_code == 200
    )


def test_a_fault_answers_in_place_of_the_platform_as_often_as_wanted(tenant):
    fault = {
        "path_prefix": "/open-apis/im/v1/messages",
        "method": "post",
        "status": 429,
        "code": 99991400,
        "headers": {"x-ogw-ratelimit-reset": "2"},
        "times": 2,
    }
    tenant.control("POST", "faults", fault)
    asked = tenant.say("hello")
    answers = [tenant.reply(asked) for _ in range(3)]
    assert [one.status_code for one in answers] == [429, 429, 200]
    assert answers[0].json["code"] == 99991400
    assert answers[0].headers["x-ogw-ratelimit-reset"] == "2"
    assert len(tenant.control("GET", "messages", sender="bot")["items"]) == 1


def test_a_dropped_answer_leaves_the_message_sent(tenant):
    asked = tenant.say("hello")
    tenant.control("POST", "faults", {"path_prefix": "/open-apis/im", "drop": True})
    assert tenant.reply(asked, uuid="u").status_code == 502
    (sent,) = tenant.control("GET", "messages", sender="bot")["items"]
    assert tenant.reply(asked, uuid="u").json["data"]["message_id"] == sent["message_id"]


def test_a_fault_can_be_meant_for_paths_with_an_ending(tenant):
    replies = {"path_prefix": "/open-apis/im/v1/messages/", "path_suffix": "/reply"}
    tenant.control("POST", "faults", {**replies, "status": 500})
    asked = tenant.say("hello")
    assert tenant.call("GET", f"/im/v1/messages/{asked}").status_code == 200
    assert [tenant.reply(asked).status_code for _ in range(2)] == [500, 200]


def test_faults_can_be_lifted(tenant):
    tenant.control("POST", "faults", {"path_prefix": "/open-apis", "status": 500, "times": None})
    assert tenant.call("GET", "/bot/v3/info").status_code == 500
    tenant.control("DELETE", "faults")
    assert tenant.call("GET", "/bot/v3/info").status_code == 200


def test_calls_are_recorded_without_secrets(tenant):
    tenant.call("GET", "/bot/v3/info")
    items = tenant.control("GET", "requests")["items"]
    assert [one["path"] for one in items][-1] == "/open-apis/bot/v3/info"
    assert items[0]["body"]["app_secret"] == "***"


def test_messages_can_be_followed_from_a_position(tenant):
    tenant.say("one")
    position = tenant.control("GET", "state")["position"]
    tenant.say("two")
    found = tenant.control("GET", "messages", chat_id=tenant.group, since=position)
    assert [one["text"] for one in found["items"]] == ["two"]


def test_the_inspector_is_asked_for_the_chat(make_tenant):
    tenant = make_tenant(inspector=lambda chat_id: {"sections": [{"title": chat_id, "rows": []}]})
    assert tenant.control("GET", "inspect", chat_id="oc_1")["sections"][0]["title"] == "oc_1"
    assert make_tenant().http.get("/sandbox/api/inspect").status_code == 404


def test_another_web_page_cannot_post_without_json(tenant):
    answer = tenant.http.post("/sandbox/api/messages", data="{}", content_type="text/plain")
    assert answer.status_code == 415


def test_the_chat_survives_a_restart_with_its_journal(make_tenant, tmp_path):
    journal = tmp_path / "deep" / "journal.jsonl"
    first = make_tenant(journal=journal)
    asked = first.say("@Memo remember")
    sent = first.reply(asked, "noted", uuid="u1", reply_in_thread=True).json["data"]
    first.platform.close()
    with journal.open("a") as file:
        file.write('{"kind": "message", "entity": {"mess')
    second = make_tenant(journal=journal)
    assert [one["text"] for one in second.control("GET", "messages")["items"]] == [
        "@Memo remember",
        "noted",
    ]
    again = second.reply(asked, "noted", uuid="u1", reply_in_thread=True).json["data"]
    assert again["message_id"] == sent["message_id"]
    assert again["thread_id"] == sent["thread_id"]


def test_the_journal_shrinks_to_one_line_per_entity_at_the_next_start(make_tenant, tmp_path):
    journal = tmp_path / "journal.jsonl"
    first = make_tenant(journal=journal)
    asked = first.say("hi")
    for _ in range(9):
        first.control(
            "POST", "reactions", {"as": first.bot, "message_id": asked, "emoji_type": "OK"}
        )
    first.platform.close()
    second = make_tenant(journal=journal)
    second.platform.close()
    lines = journal.read_text().splitlines()
    ids = [json.loads(line)["entity"].get("message_id") for line in lines]
    assert ids.count(asked) == 1


def test_people_edit_their_own_texts_and_the_app_is_not_told(tenant):
    asked = tenant.say("@Memo lunch at nine?")
    tenant.pushed()
    body = {"message_id": asked, "as": tenant.people["Alice"], "text": "@Bob lunch at noon?"}
    tenant.control("POST", "edit", body)

    assert tenant.pushed() == []
    (shown,) = tenant.control("GET", "messages")["items"]
    assert (shown["text"], shown["updated"]) == ("@Bob lunch at noon?", True)
    read = tenant.call("GET", f"/im/v1/messages/{asked}").json["data"]["items"][0]
    assert read["updated"] is True
    assert [one["name"] for one in read["mentions"]] == ["Bob"]

    for change in ({"as": tenant.people["Bob"]}, {"text": "  "}, {"message_id": "om_none"}):
        answer = tenant.http.post("/sandbox/api/edit", json={**body, **change})
        assert answer.status_code == 400
    tenant.control("POST", "recall", {"message_id": asked, "as": tenant.people["Alice"]})
    assert tenant.http.post("/sandbox/api/edit", json=body).status_code == 400


def ids(event):
    """root, parent and thread of a pushed message, as far as they are there."""
    return {name: message(event).get(f"{name}_id") for name in ("root", "parent", "thread")}


@pytest.mark.parametrize("chat", ["Launch team", "Alice"])
def test_the_ids_of_every_kind_of_reply_are_as_documented(tenant, chat):
    where = {"chat": tenant.chats[chat]}
    first = tenant.say("msg1", **where)
    second = tenant.say("msg2", reply_to=first, quote=True, **where)
    tenant.say("msg3", reply_to=second, quote=True, **where)
    inside = tenant.say("inside", reply_to=second, **where)
    tenant.say("quoting inside", reply_to=inside, quote=True, **where)
    plain, quote, chain, threaded, quoting = map(ids, tenant.pushed())

    assert plain == {"root": None, "parent": None, "thread": None}
    assert quote == {"root": first, "parent": first, "thread": None}
    assert chain == {"root": first, "parent": second, "thread": None}
    assert threaded == {"root": second, "parent": second, "thread": threaded["thread"]}
    assert threaded["thread"].startswith("omt_")
    assert quoting == threaded


def test_in_a_topic_group_every_message_begins_or_continues_a_topic(tenant):
    made = {"name": "Topics", "members": list(tenant.people.values()), "topics": True}
    where = {"chat": tenant.control("POST", "chats", made)["chat_id"]}
    tenant.pushed()
    first = tenant.say("a topic", **where)
    tenant.say("on it", reply_to=first, quote=True, **where)
    answer = tenant.reply(first, reply_in_thread=False).json["data"]
    opened, reply = map(ids, tenant.pushed())

    assert opened == {"root": None, "parent": None, "thread": opened["thread"]}
    assert opened["thread"]
    assert reply == {"root": first, "parent": first, "thread": opened["thread"]}
    assert (answer["root_id"], answer["thread_id"]) == (first, opened["thread"])
    listed = tenant.call(
        "GET", "/im/v1/messages", container_id_type="chat", container_id=where["chat"]
    )
    assert [one["message_id"] for one in listed.json["data"]["items"]] == [first]
    info = tenant.call("GET", f"/im/v1/chats/{where['chat']}").json["data"]
    assert (info["chat_mode"], info["group_message_type"]) == ("topic", "thread")


def test_messages_of_topic_groups_come_without_their_thread_where_that_is_switched_off(tenant):
    tenant.control("POST", "switches", {"topic_thread_ids": False})
    made = {"name": "Topics", "members": list(tenant.people.values()), "topics": True}
    chat = tenant.control("POST", "chats", made)["chat_id"]
    tenant.pushed()
    first = tenant.say("a topic", chat=chat)
    tenant.say("on it", reply_to=first, chat=chat)

    pushed = tenant.pushed()
    assert [ids(one)["root"] for one in pushed] == [None, first]
    assert all("thread_id" not in message(one) for one in pushed)


def test_somebody_of_another_tenant_carries_their_own_everywhere(tenant):
    guest = tenant.control("POST", "people", {"name": "Gus", "tenant_key": "elsewhere"})
    tenant.people["Gus"] = guest["open_id"]
    tenant.control("POST", "join", {"chat_id": tenant.group, "open_id": guest["open_id"]})
    tenant.say("@Gus hello")
    tenant.say("@Alice hello", speaker="Gus")
    joined, to_guest, by_guest = tenant.pushed()
    members = tenant.call("GET", f"/im/v1/chats/{tenant.group}/members").json["data"]["items"]
    own, home = "elsewhere", tenant.config.tenant_key

    assert {one["header"]["tenant_key"] for one in (joined, to_guest, by_guest)} == {home}
    assert joined["event"]["users"][0]["tenant_key"] == own
    assert joined["event"]["external"] is True
    senders = [one["event"]["sender"]["tenant_key"] for one in (to_guest, by_guest)]
    assert senders == [home, own]
    assert message(to_guest)["mentions"][0]["tenant_key"] == own
    assert message(by_guest)["mentions"][0]["tenant_key"] == home
    assert {one["name"]: one["tenant_key"] for one in members} == {
        "Alice": home, "Bob": home, "陈晨": home, "Gus": own,
    }  # fmt: skip
    assert tenant.call("GET", f"/im/v1/chats/{tenant.group}").json["data"]["external"] is True
