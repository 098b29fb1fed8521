"""The page where somebody approves that the app acts as them, in a real browser."""

import threading

import pytest

from sandbox.server import SandboxServer
from tests.unit.sandbox.test_sandbox_grants import Grants


@pytest.fixture
def grants(tenant):
    return Grants(tenant)


@pytest.fixture
def opened(tab, tenant):
    """Opens the page of a request; its scripts must not fail."""
    server = SandboxServer(tenant.app, 0, None)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    faults = []
    listen = lambda error: faults.append(str(error))  # noqa: E731
    tab.on("pageerror", listen)

    def open_it(begun):
        path = begun["verification_uri_complete"].partition("//")[2].partition("/")[2]
        tab.goto(f"http://127.0.0.1:{server.port}/{path}")
        return tab

    yield open_it
    tab.goto("about:blank")
    tab.remove_listener("pageerror", listen)
    server.shutdown()
    server.server_close()
    assert not faults


def test_who_approves_is_chosen_and_the_app_gets_their_token(opened, grants, tenant):
    begun = grants.begin().json
    page = opened(begun)
    page.wait_for_selector("#grant-form:not([hidden])")
    assert page.inner_text("#grant-title") == "Memo wants to act as you"
    assert page.locator("#grant-scopes li").count() == 2
    page.select_option("#grant-person", label="Bob")
    page.click("#approve")
    page.wait_for_selector("#grant-state:text('Approved')")
    assert page.is_hidden("#grant-form")
    token = grants.poll(begun["device_code"]).json["access_token"]
    assert grants.who(token).json["data"]["open_id"] == tenant.people["Bob"]


def test_refusing_works_in_chinese(opened, grants):
    begun = grants.begin().json
    page = opened(begun)
    page.wait_for_selector("#grant-form:not([hidden])")
    page.click("#language")
    page.wait_for_selector("#refuse:text('拒绝')")
    page.click("#refuse")
    page.wait_for_selector("#grant-state:text('已拒绝')")
    assert grants.poll(begun["device_code"]).json["error"] == "access_denied"
    page.click("#language")


def test_scopes_that_the_app_lacks_are_named_and_nothing_can_be_approved(opened, grants, tenant):
    tenant.control("POST", "user-scopes", {"granted": ["offline_access"]})
    page = opened(grants.begin().json)
    page.wait_for_selector("#grant-missing:not([hidden])")
    assert "docx:document:readonly (20027)" in page.inner_text("#grant-missing")
    assert page.is_disabled("#approve")
