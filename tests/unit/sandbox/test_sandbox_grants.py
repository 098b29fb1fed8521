"""The stand-in platform lets people approve that the app acts as them, by the device grant."""

from __future__ import annotations

import base64

import pytest

from sandbox.world.user_tokens import DEVICE_LIFE_S, GRANT_LIFE_S, INTERVAL_S, REFRESH_LIFE_S

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
READ = "docx:document:readonly"
ASKED = f"{READ} offline_access"


class Grants:
    """The app's side of the grant, and what people do with its link."""

    def __init__(self, tenant):
        self.tenant = tenant

    def begin(self, scope=ASKED, secret=None, **form):
        config = self.tenant.config
        named = f"{config.app_id}:{secret or config.app_secret}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(named).decode()}"}
        form = {"client_id": config.app_id, "scope": scope, **form}
        return self.tenant.http.post("/oauth/v1/device_authorization", data=form, headers=headers)

    def token(self, **fields):
        config = self.tenant.config
        app = {"client_id": config.app_id, "client_secret": config.app_secret}
        return self.tenant.http.post("/open-apis/authen/v2/oauth/token", json={**app, **fields})

    def poll(self, device_code):
        return self.token(grant_type=DEVICE_GRANT, device_code=device_code)

    def refresh(self, token, **more):
        return self.token(grant_type="refresh_token", refresh_token=token, **more)

    def decide(self, begun, who="Alice", **more):
        body = {"as": self.tenant.people[who], "link": begun["verification_uri_complete"], **more}
        return self.tenant.control("POST", "grants", body)

    def connect(self, who="Alice", scope=ASKED, **more):
        """The token's body, after somebody has approved."""
        begun = self.begin(scope).json
        self.decide(begun, who, **more)
        return self.poll(begun["device_code"]).json

    def who(self, token):
        headers = {"Authorization": f"Bearer {token}"}
        return self.tenant.http.get("/open-apis/authen/v1/user_info", headers=headers)


@pytest.fixture
def grants(tenant):
    return Grants(tenant)


def refusal(response):
    return response.status_code, response.json.get("code"), response.json["error"]


def test_a_person_approves_and_the_token_speaks_for_them(tenant, grants):
    begun = grants.begin().json
    assert begun["verification_uri_complete"].startswith(begun["verification_uri"] + "?user_code=")
    assert (begun["expires_in"], begun["interval"]) == (DEVICE_LIFE_S, INTERVAL_S)
    assert refusal(grants.poll(begun["device_code"])) == (400, None, "authorization_pending")

    grants.decide(begun, "Bob")
    issued = grants.poll(begun["device_code"]).json
    assert issued["code"] == 0
    assert (issued["expires_in"], issued["refresh_token_expires_in"]) == (7200, 604800)
    assert (issued["token_type"], set(issued["scope"].split())) == ("Bearer", set(ASKED.split()))
    assert 1024 < len(issued["access_token"]) < 2048
    who = grants.who(issued["access_token"]).json["data"]
    assert (who["name"], who["open_id"]) == ("Bob", tenant.people["Bob"])
    assert "user_id" not in who
    assert refusal(grants.poll(begun["device_code"])) == (400, None, "expired_token")


def test_the_token_endpoint_takes_a_form_as_well(tenant, grants):
    begun = grants.begin().json
    grants.decide(begun)
    form = {
        "grant_type": DEVICE_GRANT,
        "device_code": begun["device_code"],
        "client_id": tenant.config.app_id,
        "client_secret": tenant.config.app_secret,
    }
    assert tenant.http.post("/open-apis/authen/v2/oauth/token", data=form).json["code"] == 0
    recorded = tenant.control("GET", "requests", path_prefix="/open-apis/authen/v2")["items"]
    assert tenant.config.app_secret not in str(recorded)


def test_who_polls_too_fast_is_slowed_down_by_five_seconds(tenant, grants):
    device_code = grants.begin().json["device_code"]
    pending, slow = (400, None, "authorization_pending"), (400, None, "slow_down")
    assert refusal(grants.poll(device_code)) == pending
    tenant.clock.now += INTERVAL_S - 1
    assert refusal(grants.poll(device_code)) == slow
    tenant.clock.now += INTERVAL_S + 4
    assert refusal(grants.poll(device_code)) == slow
    tenant.clock.now += INTERVAL_S + 10
    assert refusal(grants.poll(device_code)) == pending


def test_a_link_can_be_refused_and_does_not_last(tenant, grants):
    no, late = grants.begin().json, grants.begin().json
    grants.decide(no, approve=False)
    assert refusal(grants.poll(no["device_code"])) == (400, None, "access_denied")
    tenant.clock.now += DEVICE_LIFE_S + 1
    assert refusal(grants.poll(late["device_code"])) == (400, None, "expired_token")
    assert refusal(grants.poll("unknown")) == (400, None, "expired_token")
    body = {"as": tenant.people["Bob"], "user_code": late["user_code"]}
    answer = tenant.http.post("/sandbox/api/grants", json=body)
    assert (answer.status_code, "nothing waits" in answer.json["error"]) == (400, True)


def test_only_a_person_can_approve(tenant, grants):
    body = {"as": tenant.bot, "user_code": grants.begin().json["user_code"]}
    assert tenant.http.post("/sandbox/api/grants", json=body).status_code == 400


def test_an_app_names_itself_rightly_and_in_one_way(tenant, grants):
    assert refusal(grants.begin(secret="wrong")) == (400, 20002, "invalid_client")
    assert refusal(grants.begin(client_id="cli_other")) == (400, 20048, "invalid_client")
    assert refusal(grants.begin(client_secret="x")) == (400, 20070, "invalid_request")
    assert refusal(tenant.http.post("/oauth/v1/device_authorization", data={}))[1] == 20063
    assert (
        refusal(grants.token(grant_type=DEVICE_GRANT, device_code="d", client_id="o"))[1] == 20048
    )
    wrong = grants.token(grant_type=DEVICE_GRANT, device_code="d", client_secret="wrong")
    assert refusal(wrong) == (400, 20002, "invalid_client")
    assert refusal(grants.token(grant_type=DEVICE_GRANT))[1] == 20001
    assert refusal(grants.token(grant_type="password"))[1] == 20036


def test_scopes_that_do_not_exist_or_that_the_app_lacks_are_refused_where_feishu_does(
    tenant, grants
):
    assert refusal(grants.begin("no:such:scope")) == (400, 20043, "invalid_scope")
    assert refusal(grants.begin(f"{READ} {READ}")) == (400, 20067, "invalid_scope")
    tenant.control("POST", "user-scopes", {"granted": ["offline_access"]})
    begun = grants.begin().json
    body = {"as": tenant.people["Bob"], "user_code": begun["user_code"]}
    answer = tenant.http.post("/sandbox/api/grants", json=body)
    assert (answer.status_code, "20027" in answer.json["error"]) == (400, True)
    shown = tenant.control("GET", "grants/request", user_code=begun["user_code"])
    assert [one["open"] for one in shown["scopes"]] == [False, True]


def test_a_person_may_approve_less_and_without_offline_access_nothing_is_refreshed(grants):
    issued = grants.connect(scopes=[READ])
    assert issued["scope"] == READ
    assert "refresh_token" not in issued


def test_tokens_expire_and_are_refreshed_once(tenant, grants):
    first = grants.connect()
    tenant.clock.now += 7201
    expired = grants.who(first["access_token"])
    assert (expired.status_code, expired.json["code"]) == (401, 99991677)
    second = grants.refresh(first["refresh_token"]).json
    assert second["access_token"] != first["access_token"]
    assert grants.who(second["access_token"]).json["code"] == 0
    assert refusal(grants.refresh(first["refresh_token"])) == (400, 20073, "invalid_grant")
    assert refusal(grants.refresh("never issued")) == (400, 20026, "invalid_grant")

    tenant.clock.now += REFRESH_LIFE_S + 1
    assert refusal(grants.refresh(second["refresh_token"])) == (400, 20037, "invalid_grant")


def test_a_token_that_was_replaced_works_until_it_expires(grants):
    first = grants.connect()
    grants.refresh(first["refresh_token"])
    assert grants.who(first["access_token"]).json["code"] == 0


def test_after_a_year_people_have_to_approve_anew(tenant, grants):
    token = grants.connect()["refresh_token"]
    started = tenant.clock.now
    while tenant.clock.now < started + GRANT_LIFE_S:
        token = grants.refresh(token).json["refresh_token"]
        tenant.clock.now += REFRESH_LIFE_S - 1
    assert refusal(grants.refresh(token)) == (400, 20037, "invalid_grant")


def test_a_refresh_can_narrow_the_scopes_and_never_widen_them(tenant, grants):
    first = grants.connect()
    wider = grants.refresh(first["refresh_token"], scope="wiki:node:read")
    assert refusal(wider) == (400, 20068, "invalid_scope")
    narrow = grants.refresh(first["refresh_token"], scope="offline_access").json
    assert narrow["scope"] == "offline_access"
    again = grants.refresh(narrow["refresh_token"]).json
    assert set(again["scope"].split()) == set(ASKED.split())
    tenant.control("POST", "user-scopes", {"refreshable": False})
    assert refusal(grants.refresh(again["refresh_token"])) == (400, 20074, "invalid_grant")


def test_whoever_revokes_ends_their_tokens_and_the_app_hears_of_it(tenant, grants):
    alice, bob = grants.connect("Alice"), grants.connect("Bob")
    assert [one["name"] for one in tenant.control("GET", "grants")["items"]] == ["Alice", "Bob"]
    tenant.control("POST", "grants/revoke", {"as": tenant.people["Alice"]})
    (told,) = tenant.pushed("auth.user_access_token.revoked_v4")
    assert told["event"] == {
        "revoke_token_type": "user_access_token refresh_token",
        "revoke_reason": "Revoked by user action.",
        "open_id": tenant.people["Alice"],
        "union_id": told["event"]["union_id"],
        "user_id": "",
    }
    assert grants.who(alice["access_token"]).json["code"] == 99991668
    assert refusal(grants.refresh(alice["refresh_token"])) == (400, 20064, "invalid_grant")
    assert grants.who(bob["access_token"]).json["code"] == 0
    assert [one["name"] for one in tenant.control("GET", "grants")["items"]] == ["Bob"]


def test_the_event_needs_its_scope_and_can_be_lost(tenant, grants):
    grants.connect("Bob")
    tenant.control("POST", "grants/revoke", {"as": tenant.people["Bob"], "silently": True})
    grants.connect("Bob")
    tenant.control("POST", "switches", {"auth:user_access_token:read": False})
    tenant.control("POST", "grants/revoke", {"as": tenant.people["Bob"]})
    assert tenant.pushed("auth.user_access_token.revoked_v4") == []


def test_neither_kind_of_token_is_taken_for_the_other(tenant, grants):
    assert tenant.call("GET", "/authen/v1/user_info").json["code"] == 99991663
    tenant.token = grants.connect()["access_token"]
    assert tenant.call("GET", "/bot/v3/info").json["code"] == 99991668
    tenant.token = "eyJnever.issued"
    assert tenant.call("GET", "/authen/v1/user_info").json["code"] == 99991668
    tenant.token = ""
    assert tenant.call("GET", "/authen/v1/user_info").json["code"] == 99991661


def test_faults_and_the_record_of_calls_cover_the_grant(tenant, grants):
    tenant.control("POST", "faults", {"path_prefix": "/oauth/v1/device", "status": 503})
    assert grants.begin().status_code == 503
    assert grants.begin().status_code == 200
    recorded = tenant.control("GET", "requests", path_prefix="/oauth/v1")["items"]
    assert [one["status"] for one in recorded] == [503, 200]


def test_the_page_opens_from_a_link_and_is_not_framed(tenant, grants):
    path = grants.begin().json["verification_uri_complete"].partition("localhost")[2]
    answer = tenant.http.get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    answer.close()
