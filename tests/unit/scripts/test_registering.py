"""An app made by scanning a code: each answer of Feishu's accounts ends in an app or a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import responses

from scripts.connecting.apps import AppCredentials, NotRegistered, register
from scripts.connecting.talk import Talk

FEISHU = "https://accounts.feishu.cn/oauth/v1/app/registration"
LARK = "https://accounts.larksuite.com/oauth/v1/app/registration"
CAN = {"supported_auth_methods": ["client_secret"]}
BEGUN = {
    "device_code": "dc_1",
    "interval": 0,
    "expires_in": 600,
    "verification_uri_complete": "https://accounts.feishu.cn/scan?code=1",
}
MADE = {"client_id": "cli_1", "client_secret": "s3cret", "user_info": {"open_id": "ou_1"}}


@pytest.fixture
def accounts() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as mock:
        yield mock


def answers(accounts: responses.RequestsMock, *bodies: dict[str, Any], url: str = FEISHU) -> None:
    for body in bodies:
        accounts.post(url, json=body)


def registered(folder: Path) -> AppCredentials:
    talk = Talk("en", asks=False)
    return register(talk, accounts="", optional=False, folder=folder)


def test_the_app_of_who_said_yes(
    accounts: responses.RequestsMock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(accounts, CAN, BEGUN, {"error": "authorization_pending"}, MADE)

    app = registered(tmp_path)

    assert (app.app_id, app.app_secret, app.domain, app.open_id) == ("cli_1", "s3cret", "", "ou_1")
    assert "s3cret" not in repr(app)
    shown = capsys.readouterr().out
    assert "https://accounts.feishu.cn/scan?code=1" in shown
    assert "10 minutes" in shown
    assert "s3cret" not in shown


def test_a_tenant_of_lark_is_asked_there(accounts: responses.RequestsMock, tmp_path: Path) -> None:
    answers(accounts, CAN, BEGUN, {"user_info": {"tenant_brand": "lark"}})
    lark = {**MADE, "user_info": {"open_id": "ou_2", "tenant_brand": "lark"}}
    answers(accounts, lark, url=LARK)

    app = registered(tmp_path)

    assert app.domain == "https://open.larksuite.com"


@pytest.mark.parametrize(
    ("bodies", "says"),
    [
        ([{"supported_auth_methods": []}], "doesn't offer this here. Use --by-hand"),
        ([CAN, BEGUN, {"error": "access_denied"}], "declined on the phone"),
        ([CAN, BEGUN, {"error": "expired_token"}], "Nobody confirmed in time"),
        ([CAN, BEGUN, {"error": "quota_exceeded"}], "didn't create the app (quota_exceeded)"),
        ([CAN, {"error": "server_busy"}], "do not answer (KeyError)"),
    ],
    ids=["not here", "declined", "too late", "refused", "nothing begun"],
)
def test_what_comes_of_no_app_is_said_with_the_next_step(
    accounts: responses.RequestsMock, tmp_path: Path, bodies: list[dict[str, Any]], says: str
) -> None:
    answers(accounts, *bodies)
    with pytest.raises(NotRegistered, match=says.replace("(", r"\(").replace(")", r"\)")):
        registered(tmp_path)


def test_accounts_that_cannot_be_reached_or_answer_with_a_page_are_named(
    accounts: responses.RequestsMock, tmp_path: Path
) -> None:
    accounts.post(FEISHU, body=requests.ConnectionError())
    accounts.post(FEISHU, body="<html>502</html>")
    for kind in ("ConnectionError", "JSONDecodeError"):
        with pytest.raises(NotRegistered, match="check the network") as refused:
            registered(tmp_path)
        assert kind in refused.value.sentence.zh
