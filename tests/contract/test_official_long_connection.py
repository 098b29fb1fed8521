"""Feishu's own client on the long connection of the stand-in platform: it connects, hears a
mention, answers in the thread with a card, is pressed, and comes back after its connection is cut.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from lab.doubles.processes import APP, PlatformDouble, eventually, running_platform

BOT = Path(__file__).parents[1] / "support" / "lark_bot.py"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformDouble]:
    with running_platform(tmp_path, "") as running:
        yield running


@pytest.fixture
def bot(platform: PlatformDouble, tmp_path: Path) -> Iterator[None]:
    app = (APP["FEISHU_APP_ID"], APP["FEISHU_APP_SECRET"])
    told = (tmp_path / "bot.log").open("wb")
    with (
        told,
        subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", str(BOT), platform.url, *app],
            env={"PATH": os.environ["PATH"]},
            stdout=told,
            stderr=told,
        ) as process,
    ):
        yield
        process.kill()


def online(platform: PlatformDouble) -> int:
    credentials = {"app_id": APP["FEISHU_APP_ID"], "app_secret": APP["FEISHU_APP_SECRET"]}
    url = f"{platform.url}/open-apis"
    path = f"{url}/auth/v3/tenant_access_token/internal"
    token = requests.post(path, json=credentials, timeout=30).json()["tenant_access_token"]
    found = requests.get(
        f"{url}/event/v1/connection", headers={"Authorization": f"Bearer {token}"}, timeout=30
    )
    return int(found.json()["data"]["online_instance_cnt"])


def answered(platform: PlatformDouble, chat: str, said: str) -> Callable[[], Any]:
    """The card in the thread of the message `said`, once it is there."""

    def card() -> Any:
        found = platform.messages(chat)
        return next((m for m in found if m["root_id"] == said and m["thread_id"]), None)

    return card


def test_it_hears_answers_is_pressed_and_comes_back(platform: PlatformDouble, bot: None) -> None:
    eventually(lambda: online(platform) == 1, what="the client is connected")
    state = platform.state()
    chat = next(one["chat_id"] for one in state["chats"] if one["name"] == "Launch team")
    alice = next(one["open_id"] for one in state["people"] if one["name"] == "Alice")
    mention = f"@{state['bot']['name']}"

    first = platform.say(alice, chat, f"{mention} hello")
    card = eventually(answered(platform, chat, first), what="the answer in the thread")
    pressed = platform.post("/click", **{"as": alice}, message_id=card["message_id"], index=0)
    assert pressed["toast"]["content"] == f"to {first}"

    cut = requests.delete(f"{platform.url}/sandbox/api/connections", timeout=30)
    assert cut.json() == {"cut": 1}
    eventually(lambda: online(platform) == 1, what="the client is connected again")
    second = platform.say(alice, chat, f"{mention} still there?")
    eventually(answered(platform, chat, second), what="the answer after the cut")


@pytest.mark.parametrize("wrong", ["AppID", "AppSecret"])
def test_nobody_connects_with_a_wrong_secret(platform: PlatformDouble, wrong: str) -> None:
    body = {"AppID": APP["FEISHU_APP_ID"], "AppSecret": APP["FEISHU_APP_SECRET"]} | {wrong: "x"}

    told = requests.post(f"{platform.url}/callback/ws/endpoint", json=body, timeout=30).json()

    assert told["code"] == 514
    assert "data" not in told
