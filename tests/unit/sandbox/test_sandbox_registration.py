"""Creating an app by a scan: the stand-in of the registration endpoint, step by step."""

from __future__ import annotations

import pytest

from sandbox.world.app_console import LIFE_S, BadLink, decoded
from tests.support.rows import every_row


@pytest.fixture
def step(tenant):
    def posted(action, **form):
        answer = tenant.http.post("/oauth/v1/app/registration", data={"action": action, **form})
        return answer.status_code, answer.json

    return posted


def test_a_link_waits_until_somebody_says_yes_or_no(tenant, step):
    assert "client_secret" in step("init")[1]["supported_auth_methods"]
    begun = step("begin", archetype="PersonalAgent")[1]
    code = begun["device_code"]
    assert step("poll", device_code=code)[1]["error"] == "authorization_pending"

    tenant.control("POST", "scan", {"link": begun["verification_uri_complete"], "brand": "lark"})
    status, made = step("poll", device_code=code)
    assert (status, made["client_id"]) == (200, tenant.config.app_id)
    assert made["user_info"]["tenant_brand"] == "lark"
    assert made["user_info"]["open_id"] in tenant.people.values()


def test_a_link_is_good_for_one_person_and_ten_minutes(tenant, step):
    first, second = step("begin")[1], step("begin")[1]
    link = {"link": first["verification_uri_complete"], "confirm": False}
    tenant.control("POST", "scan", link)
    assert step("poll", device_code=first["device_code"])[1]["error"] == "access_denied"
    again = tenant.http.post("/sandbox/api/scan", json=link)
    assert (again.status_code, "no app waits" in again.json["error"]) == (400, True)

    tenant.clock.now += LIFE_S + 1
    assert step("poll", device_code=second["device_code"])[1]["error"] == "expired_token"
    assert step("poll", device_code="none")[1]["error"] == "expired_token"
    assert step("something")[0] == 400


def test_scopes_and_connections_are_told_to_the_app(tenant):
    tenant.control("POST", "console", {"granted": ["im:message:readonly"], "connections": 3})
    scopes = tenant.call("GET", "/application/v6/scopes").json["data"]["scopes"]
    granted = [one["scope_name"] for one in scopes if one["grant_status"] == 1]
    online = tenant.call("GET", "/event/v1/connection").json["data"]

    assert granted == ["im:message:readonly"]
    assert online == {"online_instance_cnt": 3}


@every_row("addons", ["", "!", "aGVsbG8"])
def test_addons_that_cannot_be_read_are_refused(addons):
    with pytest.raises(BadLink):
        decoded(addons)
