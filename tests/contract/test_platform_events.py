"""What the stand-in platform pushes has the fields and types that Feishu's SDK reads.

Its answers are compared by way of our client: test_lark_oapi.py,
tests/acceptance/test_calls_to_feishu.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from bot.feishu.crypto import decrypt
from bot.feishu.manifest import CLICK, SUBSCRIPTIONS
from lab.doubles.processes import APP, PlatformDouble, eventually, running_platform
from tests.support.feishu_api import Answer, FeishuApi, feishu_api
from tests.support.lark_sdk import Findings, event_types, lark_oapi


@pytest.fixture(scope="module")
def lark() -> Iterator[Any]:
    with lark_oapi() as lark:
        yield lark


def spoken(platform: PlatformDouble, **more: Any) -> tuple[str, str]:
    """A group of the platform, and a message that Alice wrote there."""
    state = platform.state()
    chat = next(c["chat_id"] for c in state["chats"] if c["name"] == "Launch team")
    alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
    return chat, platform.say(alice, chat, "hello", **more)


@pytest.fixture
def pushes() -> Iterator[FeishuApi]:
    """Where the platform pushes to."""
    receiver = FeishuApi()
    receiver.otherwise = Answer(b"{}")
    with feishu_api(receiver) as running:
        yield running


def events_of(receiver: FeishuApi) -> list[dict[str, Any]]:
    sent = [asked.json["encrypt"] for asked in receiver.asked]
    return [json.loads(decrypt(APP["FEISHU_ENCRYPT_KEY"], one)) for one in sent]


_STAND_IN_SOURCE = "".join(
    file.read_text(encoding="utf-8")
    for file in (Path(__file__).parents[2] / "sandbox").rglob("*.py")
)
WITHOUT_MODEL = {"auth.user_access_token.revoked_v4"}  # in the SDK


def everything_happens(platform: PlatformDouble) -> None:
    chat, said = spoken(platform)
    alice, bob = ("Alice", "Bob")
    people = {one["name"]: one["open_id"] for one in platform.state()["people"]}
    memo = platform.state()["bot"]
    platform.say(people[bob], chat, f"@{memo['name']} and @{alice}", reply_to=said)
    for _ in range(2):  # the second takes it away
        body = {"as": people[bob], "message_id": said, "emoji_type": "OK"}
        platform.post("/reactions", **body)
    platform.post("/recall", **{"as": people[alice], "message_id": said})
    platform.post("/leave", chat_id=chat, open_id=people[bob])
    platform.post("/join", chat_id=chat, open_id=people[bob])
    platform.post("/withdraw", chat_id=chat, open_id=people[bob])
    platform.post("/rename", chat_id=chat, name="Launch")
    fresh = platform.post("/chats", name="New", members=list(people.values()), silently=False)
    platform.post("/leave", chat_id=fresh["chat_id"], open_id=memo["open_id"])
    platform.post("/dissolve", chat_id=chat)
    alone = next(c for c in platform.state()["chats"] if c["mode"] == "p2p")
    platform.post("/enter", **{"as": next(one for one in alone["members"] if one[:3] == "ou_")})
    blocks = [{"kind": "text", "text": "Launch in May"}]
    written = {"as": people[alice], "title": "Plan", "blocks": blocks}
    plan = platform.post("/documents", link="tenant_readable", **written)
    said = {"as": people[alice], "token": plan["token"], "text": f"@{memo['name']} why May?"}
    platform.post("/documents/comment", **said)
    platform.post("/menu", **{"as": people[alice], "event_key": "help"})
    connect(platform, people[alice])
    platform.post("/grants/revoke", **{"as": people[alice]})


def connect(platform: PlatformDouble, person: str) -> None:
    """The person lets the app act as them."""
    app = (APP["FEISHU_APP_ID"], APP["FEISHU_APP_SECRET"])
    asked = {"client_id": app[0], "scope": "docx:document:readonly offline_access"}
    path = f"{platform.url}/oauth/v1/device_authorization"
    begun = requests.post(path, data=asked, auth=app, timeout=30).json()
    platform.post("/grants", **{"as": person}, link=begun["verification_uri_complete"])
    grant = {
        "client_id": app[0],
        "client_secret": app[1],
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
    }
    url = f"{platform.url}/open-apis/authen/v2/oauth/token"
    assert requests.post(url, json=grant, timeout=30).ok


def test_what_the_platform_pushes_is_what_the_sdk_takes(
    lark: Any, tmp_path: Path, pushes: FeishuApi
) -> None:
    with running_platform(tmp_path, f"{pushes.url}/webhook/event") as platform:
        everything_happens(platform)
        kinds = {one.name for one in SUBSCRIPTIONS if one.name in _STAND_IN_SOURCE}
        kinds -= {CLICK.name}
        seen: dict[str, Any] = {}

        def all_came() -> bool:
            seen.update({one["header"]["event_type"]: one for one in events_of(pushes)})
            return kinds <= set(seen)

        eventually(all_came, within_s=20, what=f"{kinds - set(seen)}")
    findings = Findings(digits=True)
    for kind in kinds - WITHOUT_MODEL:
        event = event_types(lark, kind)["event"]
        findings.look(kind, event, seen[kind]["event"])
    print(f"{len(kinds)} kinds of events, {len(findings.fields)} fields")
    assert (findings.unknown, findings.wrong) == (set(), set())
    assert len(findings.fields) > 80
