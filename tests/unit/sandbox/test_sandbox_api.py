"""The stand-in platform's REST interface answers, and refuses, as Feishu does."""

import io
import json
from pathlib import Path

import pytest

from sandbox.config import SandboxConfig
from tests.support.rows import every_row

DATA = Path(__file__).parents[2] / "data" / "sandbox"
FEISHU = DATA.parent / "feishu"


def code(response):
    return response.status_code, response.json["code"]


def shape(value):
    """Keys and types of a JSON value."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return type(value).__name__


def fixture(name):
    return json.loads((DATA / name).read_text())


def assert_is_fixture(response, name):
    known = fixture(name)
    assert response.status_code == known["http_status"]
    assert response.json == known["body"]


def test_a_reply_has_the_official_shape(tenant):
    answer = tenant.reply(
        tenant.say("hello"), '<at user_id="' + tenant.people["Bob"] + '">Bob</at> hi'
    )
    known = fixture("api_im_message_reply__resp.json")
    data, expected = answer.json["data"], known["data"]
    for key in ("root_id", "parent_id"):
        assert isinstance(data[key], str)
    assert set(data) <= set(expected)
    assert shape(data["sender"]) == shape(expected["sender"])
    assert shape(data["mentions"][0]) == shape(expected["mentions"][0])
    assert data["body"]["content"] == '{"text": "@_user_1 hi"}'


def test_every_answer_carries_a_log_id(tenant):
    assert tenant.call("GET", "/bot/v3/info").headers["X-Tt-Logid"]
    assert tenant.call("GET", "/im/v1/messages/om_nope").headers["X-Tt-Logid"]


def test_bot_info_stands_beside_code_and_not_under_data(tenant):
    assert tenant.call("GET", "/bot/v3/info").json["bot"]["open_id"] == tenant.bot


def test_a_wrong_secret_is_refused(tenant):
    wrong = {"app_id": tenant.config.app_id, "app_secret": "x"}
    answer = tenant.http.post("/open-apis/auth/v3/tenant_access_token/internal", json=wrong)
    assert answer.json["code"] == 10014


def test_a_missing_token_and_a_false_one_have_their_own_codes(tenant):
    tenant.token = ""
    assert_is_fixture(tenant.call("GET", "/bot/v3/info"), "error_99991661_token_missing.json")
    tenant.token = "t-false"
    assert_is_fixture(tenant.call("GET", "/bot/v3/info"), "error_99991663_token_invalid.json")


def test_a_token_is_the_same_until_half_an_hour_is_left_and_then_both_are_valid(tenant):
    first = tenant.token
    tenant.clock.now += 7200 - 1800
    assert tenant.fresh_token() == first
    tenant.clock.now += 1
    second = tenant.fresh_token()
    assert second != first
    for token in (first, second):
        tenant.token = token
        assert tenant.call("GET", "/bot/v3/info").status_code == 200
    tenant.clock.now += 1800
    tenant.token = first
    assert code(tenant.call("GET", "/bot/v3/info")) == (400, 99991663)


def test_the_same_uuid_within_an_hour_gives_the_first_message(tenant):
    asked = tenant.say("hello")
    first = tenant.reply(asked, "one", uuid="u1").json["data"]
    again = tenant.reply(asked, "two", uuid="u1").json["data"]
    assert again["message_id"] == first["message_id"]
    assert json.loads(again["body"]["content"])["text"] == "one"
    tenant.clock.now += 3600
    tenant.token = tenant.fresh_token()
    assert tenant.reply(asked, "two", uuid="u1").json["data"]["message_id"] != first["message_id"]


def test_a_uuid_has_at_most_fifty_characters(tenant):
    assert code(tenant.reply(tenant.say("hello"), uuid="x" * 51)) == (400, 230001)


def test_a_reply_in_thread_opens_a_thread_under_the_message(tenant):
    asked = tenant.say("hello")
    data = tenant.reply(asked, reply_in_thread=True).json["data"]
    assert data["root_id"] == data["parent_id"] == asked
    assert data["thread_id"].startswith("omt_")
    root = tenant.call("GET", f"/im/v1/messages/{asked}").json["data"]["items"][0]
    assert root["thread_id"] == data["thread_id"]


def test_a_reply_to_a_thread_message_stays_in_the_thread_under_its_root(tenant):
    asked = tenant.say("hello")
    first = tenant.reply(asked, reply_in_thread=True).json["data"]
    second = tenant.reply(first["message_id"]).json["data"]
    assert second["root_id"] == second["parent_id"] == asked
    assert second["thread_id"] == first["thread_id"]


def test_a_quote_keeps_the_root_and_names_its_parent(tenant):
    asked = tenant.say("hello")
    first = tenant.reply(asked).json["data"]
    second = tenant.reply(first["message_id"]).json["data"]
    assert (second["root_id"], second["parent_id"]) == (asked, first["message_id"])
    assert "thread_id" not in second


def test_a_recalled_message_cannot_be_answered(tenant):
    asked = tenant.say("hello")
    tenant.control("POST", "recall", {"message_id": asked, "as": tenant.people["Alice"]})
    assert_is_fixture(tenant.reply(asked), "error_230011.json")
    item = tenant.call("GET", f"/im/v1/messages/{asked}").json["data"]["items"][0]
    assert item["deleted"] is True
    assert item["body"]["content"] == "This message was recalled"


def test_more_than_five_messages_a_second_in_a_chat_are_refused(tenant):
    asked = tenant.say("hello")
    assert [tenant.reply(asked).status_code for _ in range(5)] == [200] * 5
    assert_is_fixture(tenant.reply(asked), "error_230020.json")
    tenant.clock.now += 1
    assert tenant.reply(asked).status_code == 200


def test_the_rate_limits_can_be_switched_off(make_tenant):
    tenant = make_tenant(rate_limits=False)
    asked = tenant.say("hello")
    assert {tenant.reply(asked).status_code for _ in range(60)} == {200}


def test_an_app_may_call_one_method_fifty_times_a_second(tenant):
    answers = [tenant.call("GET", "/bot/v3/info") for _ in range(51)]
    assert code(answers[-1]) == (429, 99991400)
    assert answers[-1].headers["x-ogw-ratelimit-reset"] == "1"
    assert answers[-2].status_code == 200


def test_a_card_over_thirty_kilobytes_and_a_text_over_a_hundred_and_fifty_are_refused(tenant):
    asked = tenant.say("hello")
    assert tenant.reply_card(asked, "x" * 29_000).status_code == 200
    assert_is_fixture(tenant.reply_card(asked, "x" * 31_000), "error_230025.json")
    assert tenant.reply(asked, "x" * 140_000).status_code == 200
    assert_is_fixture(tenant.reply(asked, "x" * 154_000), "error_230025.json")


def test_a_card_that_is_refused_names_the_sub_code_in_its_text(tenant):
    asked = tenant.say("hello")
    table = "| a |\n|---|\n| 1 |\n\n"
    answer = tenant.reply_card(asked, table * 6)
    assert_is_fixture(answer, "error_230099_11310_tables.json")
    assert "ErrCode: 100290" in tenant.reply_card(asked, "<at id=ou_nobody></at>").json["msg"]
    assert "ErrCode: 200570" in tenant.reply_card(asked, "![](http://x/y.png)").json["msg"]


def test_somebody_who_left_the_chat_cannot_be_mentioned_in_a_card(tenant):
    asked, bob = tenant.say("hello"), tenant.people["Bob"]
    assert tenant.reply_card(asked, f"<at id={bob}></at>").status_code == 200
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": bob})
    assert "ErrCode: 100290" in tenant.reply_card(asked, f"<at id={bob}></at>").json["msg"]


def test_an_uploaded_image_may_be_used_in_a_card(tenant):
    answer = tenant.http.post(
        "/open-apis/im/v1/images",
        data={"image_type": "message", "image": (io.BytesIO(b"png"), "a.png")},
        headers={"Authorization": f"Bearer {tenant.token}"},
    )
    key = answer.json["data"]["image_key"]
    assert tenant.reply_card(tenant.say("hello"), f"![a]({key})").status_code == 200


def upload(tenant, path, **form):
    headers = {"Authorization": f"Bearer {tenant.token}"}
    return tenant.http.post(f"/open-apis/im/v1/{path}", data=form, headers=headers)


def test_an_uploaded_file_is_sent_under_its_name_and_loaded_from_its_message(tenant):
    form = {"file_type": "stream", "file_name": "报告.csv"}
    key = upload(tenant, "files", **form, file=(io.BytesIO(b"a,b"), "x")).json["data"]["file_key"]
    content = json.dumps({"file_key": key})
    sent = tenant.reply(tenant.say("hello"), msg_type="file", content=content).json["data"]

    shown = json.loads(sent["body"]["content"])
    assert shown == {"file_key": key, "file_name": "报告.csv"}
    path = f"/im/v1/messages/{sent['message_id']}/resources/{key}"
    loaded = tenant.call("GET", path, type="file")
    assert (loaded.data, loaded.headers["Content-Disposition"]) == (b"a,b", "attachment")


def test_all_answers_to_a_quoting_message_are_in_one_thread(tenant):
    quoting = tenant.say("what is it?", reply_to=tenant.say("hello"), quote=True)
    answers = [tenant.reply(quoting, text, reply_in_thread=True).json["data"] for text in "ab"]
    assert len({answer["thread_id"] for answer in answers}) == 1
    assert {answer["root_id"] for answer in answers} == {quoting}


def test_empty_and_oversized_uploads_are_refused(tenant, monkeypatch):
    form = {"file_type": "stream", "file_name": "a.csv"}
    empty = upload(tenant, "files", **form, file=(io.BytesIO(b""), "x"))
    assert code(empty) == (400, 234010)
    monkeypatch.setattr("sandbox.views.messages.MOST_FILE", 2)
    large = upload(tenant, "files", **form, file=(io.BytesIO(b"abc"), "x"))
    assert code(large) == (400, 234006)
    unknown = tenant.reply(tenant.say("hello"), msg_type="file", content='{"file_key": "file_x"}')
    assert code(unknown) == (400, 230001)


def test_a_bot_that_left_the_group_cannot_speak(tenant):
    asked = tenant.say("hello")
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.bot})
    assert_is_fixture(tenant.reply(asked), "error_230002.json")


def test_nobody_speaks_in_a_dissolved_group(tenant):
    asked = tenant.say("hello")
    tenant.control("POST", "dissolve", {"chat_id": tenant.group})
    assert code(tenant.reply(asked)) == (400, 232009)


def test_a_message_can_be_sent_to_a_person(tenant):
    body = {
        "receive_id": tenant.people["Bob"],
        "msg_type": "text",
        "content": '{"text":"hi"}',
    }
    answer = tenant.call("POST", "/im/v1/messages", body, receive_id_type="open_id")
    assert answer.json["data"]["chat_id"] == tenant.chats["Bob"]
    wrong = tenant.call(
        "POST", "/im/v1/messages", {**body, "receive_id": "ou_x"}, receive_id_type="open_id"
    )
    assert code(wrong) == (400, 230034)


@every_row(
    "msg_type, content",
    [
        ("text", "not json"),
        ("text", '{"text": ""}'),
        ("text", "[]"),
        ("text", {"text": "an object, not a string"}),
        ("image", '{"image_key": "img_x"}'),
        ("text", '{"text": "<at user_id=\\"ou_nobody\\">x</at>"}'),
    ],
)
def test_malformed_content_is_an_invalid_parameter(tenant, msg_type, content):
    body = {"msg_type": msg_type, "content": content}
    answer = tenant.call("POST", f"/im/v1/messages/{tenant.say('hello')}/reply", body)
    assert code(answer) == (400, 230001)


DOCUMENTED_CARD = {
    "config": {"wide_screen_mode": True},
    "header": {"title": {"tag": "plain_text", "content": "Title"}, "template": "blue"},
    "elements": [
        {"tag": "div", "text": {"tag": "lark_md", "content": "**Hello**"}},
        {
            "tag": "action",
            "actions": [
                {
                    "tag": "button",
                    "text": {"tag": "plain_text", "content": "Go"},
                    "type": "primary",
                    "value": {"key": "value"},
                }
            ],
        },
    ],
}


def answered_with(tenant, card):
    body = {"msg_type": "interactive", "content": json.dumps(card)}
    return tenant.call("POST", f"/im/v1/messages/{tenant.say('hello')}/reply", body)


def test_a_card_of_version_1_is_shown_and_its_button_pressed(tenant):
    answer = answered_with(tenant, DOCUMENTED_CARD)

    sent = answer.json["data"]["message_id"]
    assert tenant.control("GET", f"messages/{sent}")["card"] == DOCUMENTED_CARD
    pressed = {"as": tenant.people["Alice"], "message_id": sent, "index": 0}
    assert tenant.control("POST", "click", pressed)["code"] == 0
    (event,) = tenant.pushed("card.action.trigger")
    assert event["event"]["action"]["value"] == {"key": "value"}


@every_row(
    "card, sub_code",
    [
        ({"elements": [{"tag": "markdown", "content": "<at id=ou_nobody></at>"}]}, 100290),
        ({"i18n_elements": {"zh_cn": [{"tag": "img", "img_key": "img_x"}]}}, 200570),
        ({"elements": [{"text": "no tag"}]}, 200621),
        ({"header": {}}, 200621),
        ({"type": "template", "data": {}}, 200621),
    ],
)
def test_a_wrong_card_of_version_1_is_refused(tenant, card, sub_code):
    answer = answered_with(tenant, card)

    assert code(answer) == (400, 230099)
    assert str(sub_code) in answer.json["msg"]


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        ({}, ["[AAqk1]"]),
        ({"name": "Ann", "rows": [1]}, ["[AAqk1]", "name: Ann", "rows: [1]"]),
    ],
)
def test_a_card_of_a_template_shows_its_variables(tenant, variables, lines):
    data = {"template_id": "AAqk1", "template_variable": variables}

    sent = answered_with(tenant, {"type": "template", "data": data}).json["data"]["message_id"]

    card = tenant.control("GET", f"messages/{sent}")["card"]
    assert [one["text"]["content"] for one in card["elements"]] == lines


def test_a_card_can_be_patched_five_times_a_second_and_only_by_its_sender(tenant):
    asked = tenant.say("hello")
    sent = tenant.reply_card(asked, "one").json["data"]["message_id"]
    card = {
        "schema": "2.0",
        "config": {"update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": "two"}]},
    }
    body = {"content": json.dumps(card)}
    answers = [tenant.call("PATCH", f"/im/v1/messages/{sent}", body) for _ in range(6)]
    assert [code(one)[1] for one in answers] == [0] * 5 + [230020]
    assert tenant.control("GET", f"messages/{sent}")["card"] == card
    assert code(tenant.call("PATCH", f"/im/v1/messages/{asked}", body)) == (400, 230001)
    unshared = {"content": json.dumps({**card, "config": {}})}
    tenant.clock.now += 1
    assert code(tenant.call("PATCH", f"/im/v1/messages/{sent}", unshared)) == (400, 230001)


def test_a_card_cannot_be_patched_after_fourteen_days(tenant):
    sent = tenant.reply_card(tenant.say("hello"), "one").json["data"]["message_id"]
    tenant.clock.now += 14 * 86400 + 1
    tenant.token = tenant.fresh_token()
    answer = tenant.call("PATCH", f"/im/v1/messages/{sent}", {"content": "{}"})
    assert_is_fixture(answer, "error_230031_patch_after_14_days.json")


def test_only_own_messages_can_be_recalled(tenant):
    asked = tenant.say("hello")
    sent = tenant.reply(asked).json["data"]["message_id"]
    assert code(tenant.call("DELETE", f"/im/v1/messages/{asked}")) == (400, 230026)
    assert code(tenant.call("DELETE", f"/im/v1/messages/{sent}")) == (200, 0)


def test_a_chat_lists_thread_roots_and_a_thread_lists_everything_in_it(tenant):
    asked = tenant.say("hello")
    thread = tenant.reply(asked, reply_in_thread=True).json["data"]
    other = tenant.say("unrelated")
    chat = tenant.call(
        "GET", "/im/v1/messages", container_id_type="chat", container_id=tenant.group
    ).json["data"]
    assert [one["message_id"] for one in chat["items"]] == [asked, other]
    inside = tenant.call(
        "GET", "/im/v1/messages", container_id_type="thread", container_id=thread["thread_id"]
    ).json["data"]
    assert [one["message_id"] for one in inside["items"]] == [asked, thread["message_id"]]
    assert inside["has_more"] is False


def test_a_chat_lists_a_quoting_message_that_has_become_the_root_of_a_thread(tenant):
    said = tenant.say("the launch is in March")
    asked = tenant.say("is it?", reply_to=said, quote=True)
    tenant.reply(asked, reply_in_thread=True)
    chat = tenant.call(
        "GET", "/im/v1/messages", container_id_type="chat", container_id=tenant.group
    ).json["data"]
    assert [one["message_id"] for one in chat["items"]] == [said, asked]


def test_the_original_card_is_returned_only_when_it_is_asked_for(tenant):
    sent = tenant.reply_card(tenant.say("hello"), "**one**").json["data"]["message_id"]
    plain = tenant.call("GET", f"/im/v1/messages/{sent}").json["data"]["items"][0]
    assert "schema" not in json.loads(plain["body"]["content"])
    original = tenant.call(
        "GET", f"/im/v1/messages/{sent}", card_msg_content_type="user_card_content"
    ).json["data"]["items"][0]
    assert json.loads(original["body"]["content"])["schema"] == "2.0"


def test_a_reaction_can_be_put_and_taken_away(tenant):
    asked = tenant.say("hello")
    path = f"/im/v1/messages/{asked}/reactions"
    made = tenant.call("POST", path, {"reaction_type": {"emoji_type": "Typing"}}).json["data"]
    assert tenant.control("GET", f"messages/{asked}")["reactions"][0]["emoji_type"] == "Typing"
    assert tenant.call("DELETE", f"{path}/{made['reaction_id']}").status_code == 200
    assert tenant.control("GET", f"messages/{asked}")["reactions"] == []
    assert code(tenant.call("DELETE", f"{path}/nope")) == (400, 231011)
    assert code(tenant.call("POST", path, {"reaction_type": {"emoji_type": ""}})) == (400, 231001)


def test_names_come_ten_at_a_time_and_five_times_a_second(tenant):
    ids = [tenant.people["Alice"], tenant.people["陈晨"], "ou_unknown"]
    path = "/contact/v3/users/basic_batch"
    answer = tenant.call("POST", path, {"user_ids": ids}, user_id_type="open_id").json
    known = fixture("api_contact_users_basic_batch__resp.json")
    assert shape(answer["data"]["users"][0]) == shape(known["data"]["users"][0])
    assert [one["name"] for one in answer["data"]["users"]] == ["Alice", "陈晨"]
    assert code(tenant.call("POST", path, {"user_ids": ["ou_x"] * 11})) == (400, 40001)
    answers = [tenant.call("POST", path, {"user_ids": ids}) for _ in range(5)]
    assert code(answers[-1]) == (429, 99991400)


def test_chat_and_members_are_described_and_bots_are_left_out(tenant):
    chat = tenant.call("GET", f"/im/v1/chats/{tenant.group}").json["data"]
    assert (chat["name"], chat["chat_mode"], chat["user_count"]) == ("Launch team", "group", "3")
    members = tenant.call("GET", f"/im/v1/chats/{tenant.group}/members").json["data"]
    assert [one["name"] for one in members["items"]] == ["Alice", "Bob", "陈晨"]
    assert code(tenant.call("GET", "/im/v1/chats/oc_nope")) == (400, 232006)


def test_members_come_page_by_page(tenant):
    for number in range(43):
        person = tenant.control("POST", "people", {"name": f"Person {number}"})
        joining = {"chat_id": tenant.group, "open_id": person["open_id"]}
        tenant.control("POST", "join", joining)
    path = f"/im/v1/chats/{tenant.group}/members"
    known = json.loads((FEISHU / "api_im_chat_members__resp.json").read_text())

    first = tenant.call("GET", path).json["data"]
    second = tenant.call("GET", path, page_token=first["page_token"], page_size="100").json["data"]

    assert shape(first["items"][0]) == shape(known["data"]["items"][0])
    # the bot has its place on the first page and is left out
    assert (len(first["items"]), first["has_more"], first["member_total"]) == (19, True, 46)
    assert (len(second["items"]), second["has_more"]) == (27, False)
    assert "page_token" not in second
    for wrong in ({"page_size": "101"}, {"page_size": "0"}, {"page_token": "nope"}):
        assert code(tenant.call("GET", path, **wrong)) == (400, 232001)
    assert code(tenant.call("GET", path, member_id_type="user_id")) == (400, 99991201)


def test_the_groups_of_the_bot_are_listed_page_by_page(tenant):
    path = "/im/v1/chats"
    everything = tenant.call("GET", path).json["data"]
    first = tenant.call("GET", path, page_size="1").json["data"]
    rest = tenant.call("GET", path, page_token=first["page_token"]).json["data"]["items"]
    assert [*first["items"], *rest] == everything["items"]
    assert (first["has_more"], everything["has_more"]) == (True, False)
    listed = {one["chat_id"]: one for one in everything["items"]}
    assert listed[tenant.group]["name"] == "Launch team"
    assert tenant.chats["Alice"] not in listed
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.bot})
    left = tenant.call("GET", path).json["data"]["items"]
    assert listed.keys() - {one["chat_id"] for one in left} == {tenant.group}
    assert code(tenant.call("GET", path, page_size="101")) == (400, 232001)


def test_a_person_is_described_with_all_ids(tenant):
    alice = tenant.platform.world.people[tenant.people["Alice"]]
    user = tenant.call("GET", f"/contact/v3/users/{alice.open_id}").json["data"]["user"]
    assert (user["open_id"], user["union_id"]) == (alice.open_id, alice.union_id)
    assert user["name"] == "Alice"
    assert user["avatar"]["avatar_72"].startswith("https://")
    for nobody in ("ou_nobody", tenant.bot):
        assert code(tenant.call("GET", f"/contact/v3/users/{nobody}")) == (400, 41012)


def test_of_a_chat_without_the_bot_nothing_is_said(tenant):
    path = f"/im/v1/chats/{tenant.group}"
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.bot})
    assert code(tenant.call("GET", f"{path}/members")) == (400, 232011)
    assert code(tenant.call("GET", path)) == (400, 232011)
    assert code(tenant.call("GET", "/im/v1/chats/oc_nope/members")) == (400, 232006)


def test_members_of_a_dissolved_group_are_not_listed(tenant):
    tenant.control("POST", "dissolve", {"chat_id": tenant.group})
    answer = tenant.call("GET", f"/im/v1/chats/{tenant.group}/members")
    official = json.loads((FEISHU / "error_232009.json").read_text())
    assert (answer.status_code, answer.json) == (official["http_status"], official["body"])


def test_a_p2p_chat_says_what_it_is_and_has_no_name(tenant):
    chat = tenant.platform.world.p2p_chat(tenant.people["Bob"])
    data = tenant.call("GET", f"/im/v1/chats/{chat.chat_id}").json["data"]
    assert (data["chat_mode"], data["name"]) == ("p2p", "")


def test_a_resource_belongs_to_its_message(tenant):
    asked = tenant.say("", message_type="image")
    key = json.loads(tenant.control("GET", f"messages/{asked}")["content"])["image_key"]
    path = f"/im/v1/messages/{asked}/resources/{key}"
    answer = tenant.call("GET", path, type="image")
    assert answer.data.startswith(b"\x89PNG")
    assert answer.content_type == "image/png"
    assert code(tenant.call("GET", path)) == (400, 234001)
    other = tenant.say("hello")
    stolen = tenant.call("GET", f"/im/v1/messages/{other}/resources/{key}", type="image")
    assert code(stolen) == (400, 234003)


def show_to(tenant, who, chat=None, **changed):
    """Shows a card to one person of the group."""
    card = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "psst"}]}}
    body = {
        "chat_id": chat or tenant.group,
        "open_id": tenant.people[who],
        "msg_type": "interactive",
        "card": card,
        **changed,
    }
    return tenant.call("POST", "/ephemeral/v1/send", body)


def test_a_card_for_one_person_is_unknown_to_the_message_api_and_to_others(tenant):
    sent = show_to(tenant, "Alice")
    assert sent.json["code"] == 0
    assert list(sent.json["data"]) == ["message_id"]
    card = sent.json["data"]["message_id"]
    view = tenant.http.get(f"/sandbox/api/messages/{card}").json
    assert view["visible_to"] == tenant.people["Alice"]

    assert code(tenant.call("GET", f"/im/v1/messages/{card}")) == (400, 230001)
    assert code(tenant.call("DELETE", f"/im/v1/messages/{card}")) == (400, 230001)
    where = {"container_id_type": "chat", "container_id": tenant.group}
    listed = tenant.call("GET", "/im/v1/messages", **where)
    assert card not in {one["message_id"] for one in listed.json["data"]["items"]}


def test_a_card_for_one_person_is_never_seen_by_who_was_offline(tenant):
    tenant.control("POST", "switches", {"viewers_online": False})
    card = show_to(tenant, "Alice").json["data"]["message_id"]
    tenant.control("POST", "switches", {"viewers_online": True})
    later = show_to(tenant, "Alice").json["data"]["message_id"]

    seen = [not tenant.control("GET", f"messages/{one}")["unseen"] for one in (card, later)]
    assert seen == [False, True]


def test_a_card_for_one_person_is_taken_away_once(tenant):
    card = show_to(tenant, "Alice").json["data"]["message_id"]
    shared = tenant.say("hello")

    assert code(tenant.call("POST", "/ephemeral/v1/delete", {"message_id": shared}))[1] == 230001
    assert code(tenant.call("POST", "/ephemeral/v1/delete", {"message_id": card})) == (200, 0)
    assert code(tenant.call("POST", "/ephemeral/v1/delete", {"message_id": card}))[1] == 18051


@every_row(
    "changed, refusal",
    [
        ({"msg_type": "text"}, 230001),
        ({"card": "{}"}, 230001),
        ({"card": {"schema": "2.0", "nonsense": 1}}, 230099),
        ({"open_id": "ou_stranger"}, 230001),
        ({"open_id": ""}, 230001),
        ({"chat_id": "oc_nowhere"}, 230001),
    ],
)
def test_what_feishu_refuses_to_show_to_one_person(tenant, changed, refusal):
    assert code(show_to(tenant, "Alice", **changed)) == (400, refusal)


def test_a_card_for_one_person_is_for_ordinary_groups_only(tenant):
    people = list(tenant.people.values())
    made = {"name": "Topics", "members": people, "topics": True}
    topics = tenant.http.post("/sandbox/api/chats", json=made).json["chat_id"]
    without = {"name": "Without", "members": people, "with_bot": False}
    elsewhere = tenant.http.post("/sandbox/api/chats", json=without).json["chat_id"]
    alone = [
        chat["chat_id"]
        for chat in tenant.http.get("/sandbox/api/state").json["chats"]
        if chat["mode"] == "p2p" and tenant.people["Alice"] in chat["members"]
    ]

    assert code(show_to(tenant, "Alice", chat=topics))[1] == 18053
    assert code(show_to(tenant, "Alice", chat=alone[0]))[1] == 18053
    assert code(show_to(tenant, "Alice", chat=elsewhere))[1] == 230002
    assert code(show_to(tenant, "Alice"))[1] == 0


def test_only_that_person_presses_the_button_of_a_card_for_one_person(tenant):
    button = {"tag": "button", "text": {"tag": "plain_text", "content": "Show me"}}
    behaviour = {"type": "callback", "value": {"b": "x"}}
    body = {"elements": [{**button, "behaviors": [behaviour]}]}
    shown = show_to(tenant, "Alice", card={"schema": "2.0", "body": body})
    card = shown.json["data"]["message_id"]

    def press(who):
        pressed = {"as": tenant.people[who], "message_id": card, "index": 0}
        return tenant.http.post("/sandbox/api/click", json=pressed)

    assert press("Bob").status_code == 400
    assert tenant.pushed("card.action.trigger") == []
    assert press("Alice").status_code == 200
    (event,) = tenant.pushed("card.action.trigger")
    context = {"open_message_id": card, "open_chat_id": tenant.group}
    assert event["event"]["context"] == context


def test_where_only_the_owner_mentions_everybody_the_app_does_not(tenant):
    message_id = tenant.say("hello")
    everybody = '<at user_id="all">all</at> hi'
    assert code(tenant.reply(message_id, everybody)) == (200, 0)
    chat = f"/im/v1/chats/{tenant.group}"
    assert tenant.call("GET", chat).json["data"]["at_all_permission"] == "all_members"

    tenant.control("POST", "switches", {"all_by_owner": True})

    assert tenant.call("GET", chat).json["data"]["at_all_permission"] == "only_owner"
    assert code(tenant.reply(message_id, everybody)) == (400, 11235)
    assert code(tenant.reply(message_id, "hi")) == (200, 0)
    assert code(tenant.reply_card(message_id, "<at id=all></at>")) == (400, 11235)


@every_row(
    "method, path, refusal",
    [
        ("GET", "/vc/v1/meetings/1", 99991201),
        ("POST", "/no/such/thing", 99991201),
        ("GET", "/im/v1/chats/search", 99991201),
        ("GET", "/contact/v3/users/batch", 99991201),
        ("DELETE", "/bot/v3/info", 99991301),
    ],
)
def test_a_call_that_is_not_played_is_refused_in_json_and_recorded(tenant, method, path, refusal):
    assert code(tenant.call(method, path)) == (404, refusal)
    calls = tenant.platform.switchboard.calls
    assert calls[-1].path == f"/open-apis{path}"


@every_row(
    "path, name, value, refusal",
    [
        ("/im/v1/chats", "types", "p2p", 99991201),
        ("/im/v1/chats", "sort_type", "ByNameAsc", 232001),
        ("/im/v1/messages", "only_thread_root_messages", "true", 99991201),
        ("/bot/v3/info", "need_reaction", "false", 0),
    ],
)
def test_a_parameter_that_is_not_played_is_refused_by_name(tenant, path, name, value, refusal):
    answer = tenant.call("GET", path, **{name: value})
    assert answer.json["code"] == refusal
    assert refusal != 99991201 or name in answer.json["msg"]


@every_row(
    "kind, receiver, refusal",
    [
        ("share_chat", "chat_id", 99991201),
        ("post", "chat_id", 99991201),
        ("sticker", "chat_id", 99991201),
        ("hologram", "chat_id", 230001),
        ("text", "email", 99991201),
        ("text", "union_id", 99991201),
        ("text", "name", 99992402),
    ],
)
def test_what_feishu_sends_and_the_sandbox_does_not_is_told_apart(tenant, kind, receiver, refusal):
    body = {"receive_id": tenant.group, "msg_type": kind, "content": '{"text": "hi"}'}
    answer = tenant.call("POST", "/im/v1/messages", body, receive_id_type=receiver)
    assert code(answer) == (400, refusal)


def test_groups_are_listed_by_their_last_message_on_request(tenant):
    members = list(tenant.people.values())
    for name in ("Quiet", "Busy"):
        chat = tenant.control("POST", "chats", {"name": name, "members": members})
        tenant.clock.now += 60
        tenant.say("hi", chat=chat["chat_id"])
    listed = tenant.call("GET", "/im/v1/chats", sort_type="ByActiveTimeDesc").json["data"]["items"]
    assert [one["name"] for one in listed][:2] == ["Busy", "Quiet"]


def test_an_app_token_is_that_of_the_tenant(tenant):
    known = {"app_id": tenant.config.app_id, "app_secret": tenant.config.app_secret}
    answer = tenant.http.post("/open-apis/auth/v3/app_access_token/internal", json=known).json
    assert answer["app_access_token"] == answer["tenant_access_token"]
    assert answer["expire"] > 0


def test_addresses_of_pictures_and_the_apps_id_have_the_form_that_clients_check(tenant):
    assert tenant.call("GET", "/bot/v3/info").json["bot"]["avatar_url"].startswith("https://")
    assert SandboxConfig().app_id.removeprefix("cli_").isalnum()
    assert len(SandboxConfig().app_id) == len("cli_") + 16
