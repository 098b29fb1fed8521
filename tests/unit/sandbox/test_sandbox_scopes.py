"""The stand-in platform opens a call only to an app that has a scope for it, as Feishu does."""

from sandbox.api import ENDPOINTS
from sandbox.world.scopes import EVENTS, SCOPES
from tests.support.rows import every_row

GROUP_MSG = "im:message.group_msg"
_IDS = {
    "<message_id>": "om_x",
    "<chat_id>": "oc_x",
    "<card_id>": "c",
    "<element_id>": "e",
    "<reaction_id>": "r",
    "<file_key>": "f",
    "<document_id>": "d",
    "<file_token>": "d",
    "<token>": "d",
    "<spreadsheet_token>": "d",
    "<cells>": "s!A1:B2",
    "<app_token>": "d",
    "<table_id>": "t",
}


def code(response):
    return response.json["code"]


def path_of(endpoint):
    path = endpoint.rule
    for name, value in _IDS.items():
        path = path.replace(name, value)
    return path


def switch(tenant, **names):
    tenant.control("POST", "switches", names)


def with_only(tenant, *scopes):
    switch(tenant, **{name: name in scopes for name in SCOPES})
    tenant.platform.world.console.granted |= set(scopes)


@every_row("endpoint", [one for one in ENDPOINTS if one.scopes])
def test_a_call_needs_any_one_of_its_scopes(tenant, endpoint):
    with_only(tenant)
    refused = tenant.call(endpoint.method, path_of(endpoint), {})
    assert code(refused) == 99991672
    named = {one["subject"] for one in refused.json["error"]["permission_violations"]}
    assert named == set(endpoint.scopes)
    for scope in endpoint.scopes:
        with_only(tenant, scope)
        assert code(tenant.call(endpoint.method, path_of(endpoint), {})) != 99991672
        tenant.platform.world.console.granted.discard(scope)


def test_the_refusal_carries_the_link_that_requests_the_scopes(tenant):
    with_only(tenant)
    text = tenant.call("POST", "/cardkit/v1/cards", {}).json["msg"]
    assert text.startswith("Access denied. One of the following scopes is required: [cardkit:")
    assert f"/app/{tenant.config.app_id}/auth?q=cardkit:card:write&" in text


def test_messages_of_groups_need_a_further_scope_that_only_the_text_names(tenant):
    asked = tenant.say("@Memo hello")
    private = tenant.say("hello", chat=tenant.chats["Alice"])
    switch(tenant, **{GROUP_MSG: False})
    group = {"container_id_type": "chat", "container_id": tenant.group}
    for refused in (
        tenant.call("GET", f"/im/v1/messages/{asked}"),
        tenant.call("GET", "/im/v1/messages", **group),
    ):
        assert code(refused) == 230027
        assert GROUP_MSG in refused.json["msg"]
        assert "error" not in refused.json
    assert code(tenant.call("GET", f"/im/v1/messages/{private}")) == 0
    p2p = {"container_id_type": "chat", "container_id": tenant.chats["Alice"]}
    assert code(tenant.call("GET", "/im/v1/messages", **p2p)) == 0

    switch(tenant, lenient_get=True)
    assert code(tenant.call("GET", f"/im/v1/messages/{asked}")) == 0
    assert code(tenant.call("GET", "/im/v1/messages", **group)) == 230027


def test_a_thread_of_a_group_needs_it_too(tenant):
    asked = tenant.say("@Memo hello")
    thread = tenant.reply(asked, reply_in_thread=True).json["data"]["thread_id"]
    switch(tenant, **{GROUP_MSG: False})
    query = {"container_id_type": "thread", "container_id": thread}
    assert code(tenant.call("GET", "/im/v1/messages", **query)) == 230027


def test_a_confidential_group_shows_no_history_and_gives_no_files(tenant):
    picture = tenant.say("", message_type="image")
    switch(tenant, secret_chats=True)
    query = {"container_id_type": "chat", "container_id": tenant.group}
    assert code(tenant.call("GET", "/im/v1/messages", **query)) == 231203
    resource = f"/im/v1/messages/{picture}/resources/x"
    assert code(tenant.call("GET", resource, type="image")) == 234038


def test_events_come_only_with_a_scope_for_them(tenant):
    with_only(tenant)
    message = tenant.say("@Memo hello")
    tenant.say("hello", chat=tenant.chats["Alice"])
    tenant.control("POST", "recall", {"message_id": message, "as": tenant.people["Alice"]})
    tenant.control("POST", "rename", {"chat_id": tenant.group, "name": "Other"})
    tenant.control("POST", "leave", {"chat_id": tenant.group, "open_id": tenant.people["Bob"]})
    assert tenant.pushed() == []

    with_only(tenant, "im:message.p2p_msg:readonly", "im:chat:read", "im:chat.members:read")
    tenant.say("hello", chat=tenant.chats["Alice"])
    tenant.control("POST", "rename", {"chat_id": tenant.group, "name": "Another"})
    tenant.control("POST", "join", {"chat_id": tenant.group, "open_id": tenant.people["Bob"]})
    kinds = {one["header"]["event_type"] for one in tenant.pushed()}
    assert kinds == {"im.message.receive_v1", "im.chat.updated_v1", "im.chat.member.user.added_v1"}
    assert all(EVENTS.get(kind, ("x",)) for kind in kinds)


def test_more_than_a_thousand_calls_a_minute_are_refused_until_the_minute_is_over(tenant):
    for _ in range(1000):
        assert code(tenant.call("GET", "/bot/v3/info")) == 0
        tenant.clock.now += 1 / 32
    refused = tenant.call("GET", "/bot/v3/info")
    assert code(refused) == 99991400
    assert int(refused.headers["x-ogw-ratelimit-reset"]) == 29
    tenant.clock.now += 29
    assert code(tenant.call("GET", "/bot/v3/info")) == 0


def test_every_switch_has_a_sentence_in_both_languages_and_can_be_turned(tenant):
    listed = tenant.control("GET", "switches")
    for one in [*listed["scopes"], *listed["platform"]]:
        assert one["en"].strip()
        assert one["zh"].strip()
        after = tenant.control("POST", "switches", {one["name"]: not one["on"]})
        turned = [
            now for now in [*after["scopes"], *after["platform"]] if now["name"] == one["name"]
        ]
        assert turned[0]["on"] is not one["on"]
    answer = tenant.http.post("/sandbox/api/switches", json={"nope": True})
    assert (answer.status_code, "unknown switches" in answer.json["error"]) == (400, True)
