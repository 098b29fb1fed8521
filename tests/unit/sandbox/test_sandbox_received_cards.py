"""Cards of other apps come back in the forms that Feishu documents, and in those bots report."""

import json

import pytest

PLACEHOLDER = "请升级至最新版本客户端，以查看内容"
ORIGINAL = {"card_msg_content_type": "user_card_content"}


def version_2(text):
    return {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": text}]}}


def version_1(text):
    button = {"tag": "button", "text": {"tag": "plain_text", "content": "Open"}, "value": {"a": 1}}
    return {
        "header": {"title": {"tag": "plain_text", "content": "Disk full"}},
        "elements": [
            {"tag": "div", "text": {"tag": "lark_md", "content": text}},
            {"tag": "note", "elements": [{"tag": "plain_text", "content": "by Pager"}]},
            {"tag": "action", "actions": [button]},
        ],
    }


@pytest.fixture
def post(tenant):
    """Posts a card as another bot; its message_id."""
    bot = tenant.control("POST", "people", {"name": "Pager", "kind": "bot"})["open_id"]
    tenant.control("POST", "join", {"chat_id": tenant.group, "open_id": bot, "silently": True})

    def posted(card):
        content = json.dumps(card)
        body = {"as": bot, "chat_id": tenant.group, "message_type": "interactive"}
        return tenant.control("POST", "messages", {**body, "content": content})["message_id"]

    return posted


def got(tenant, message_id, **query):
    items = tenant.call("GET", f"/im/v1/messages/{message_id}", **query).json["data"]["items"]
    return json.loads(items[0]["body"]["content"])


def pushed(tenant, message_id):
    found = [one["event"]["message"] for one in tenant.pushed() if "message" in one["event"]]
    (event,) = [one for one in found if one["message_id"] == message_id]
    return event


def test_a_version_2_card_is_wrapped_beside_the_placeholder_also_in_events(tenant, post):
    sent = post(version_2("**due**"))
    event = json.loads(pushed(tenant, sent)["content"])
    for shown in (event, got(tenant, sent, **ORIGINAL)):
        assert shown["elements"][1] == [{"tag": "text", "text": PLACEHOLDER}]
        assert json.loads(shown["user_dsl"]) == version_2("**due**")
    assert "user_dsl" not in got(tenant, sent)
    assert PLACEHOLDER in json.dumps(got(tenant, sent), ensure_ascii=False)


def test_a_version_1_card_comes_as_sent_or_as_simplified_rows(tenant, post):
    sent = post(version_1("see [wiki](https://w.example)"))
    assert got(tenant, sent, **ORIGINAL) == version_1("see [wiki](https://w.example)")
    for shown in (got(tenant, sent), json.loads(pushed(tenant, sent)["content"])):
        assert shown["title"] == "Disk full"
        assert shown["elements"] == [
            [
                {"tag": "text", "text": "see "},
                {"tag": "a", "href": "https://w.example", "text": "wiki"},
            ],
            [{"tag": "note", "elements": [{"tag": "text", "text": "by Pager"}]}],
            [{"tag": "button", "text": "Open"}],
        ]


def test_lists_hand_cards_over_as_single_messages_do(tenant, post):
    sent = [post(version_2("two")), post(version_1("one"))]
    query = {"container_id_type": "chat", "container_id": tenant.group}
    for more in ({}, ORIGINAL):
        items = tenant.call("GET", "/im/v1/messages", **query, **more).json["data"]["items"]
        listed = {one["message_id"]: json.loads(one["body"]["content"]) for one in items}
        assert [listed[one] for one in sent] == [got(tenant, one, **more) for one in sent]


@pytest.mark.parametrize("version", [version_1, version_2])
def test_at_tags_bear_foreign_ids_and_the_keys_of_mentions(tenant, post, version):
    bob = tenant.people["Bob"]
    sent = post(version(f"ask <at id={bob}></at> and <at id=all></at>"))
    (mention,) = pushed(tenant, sent)["mentions"]
    assert (mention["key"], mention["id"]["open_id"]) == ("@_user_1", bob)
    original = json.dumps(got(tenant, sent, **ORIGINAL))
    assert "mention_key=@_user_1>" in original
    assert "<at id=all></at>" in original
    assert bob not in original


def test_own_cards_come_as_they_were_sent(tenant):
    sent = tenant.reply_card(tenant.say("hello"), "**one**").json["data"]["message_id"]
    assert got(tenant, sent, **ORIGINAL)["schema"] == "2.0"


def test_a_merged_forward_holds_its_messages_and_those_of_forwards_in_it(tenant, post):
    first, second = tenant.say("first"), post(version_2("card"))

    def forward(*ids):
        body = {"as": tenant.people["Bob"], "chat_id": tenant.group, "message_ids": ids}
        return tenant.control("POST", "forward", body)["message_id"]

    inner = forward(first, second)
    outer = forward(inner, first)
    items = tenant.call("GET", f"/im/v1/messages/{outer}", **ORIGINAL).json["data"]["items"]
    assert [(one["message_id"], one.get("upper_message_id")) for one in items] == [
        (outer, None),
        (inner, outer),
        (first, inner),
        (second, inner),
        (first, outer),
    ]
    assert items[0]["body"]["content"] == "Merged and Forwarded Message"
    assert "user_dsl" in items[3]["body"]["content"]


def test_a_single_message_is_forwarded_as_a_copy(tenant, post):
    sent = post(version_2("card"))
    body = {"as": tenant.people["Bob"], "chat_id": tenant.group, "message_ids": [sent]}
    event = pushed(tenant, tenant.control("POST", "forward", body)["message_id"])
    assert event["message_type"] == "interactive"
    assert "user_dsl" in event["content"]


def test_a_click_in_a_card_of_another_app_is_not_told_to_ours(tenant, post):
    sent = post(version_1("x"))
    answer = tenant.http.post(
        "/sandbox/api/click",
        json={"as": tenant.people["Bob"], "message_id": sent, "value": {"a": 1}},
    )
    assert (answer.status_code, "another app" in answer.json["error"]) == (400, True)


def test_what_is_no_card_is_not_posted_as_one(tenant):
    body = {"as": tenant.people["Bob"], "chat_id": tenant.group, "message_type": "interactive"}
    for content in ("", "[]", "no json"):
        answer = tenant.http.post("/sandbox/api/messages", json={**body, "content": content})
        assert answer.status_code == 400


def test_text_may_touch_a_mention(tenant):
    tenant.control("POST", "switches", {"tight_mentions": True})
    sent = tenant.say("@Bob 9:00 standup")
    assert json.loads(pushed(tenant, sent)["content"])["text"] == "@_user_19:00 standup"
    assert tenant.control("GET", f"messages/{sent}")["text"] == "@Bob9:00 standup"
