"""Other people's clients on the long connection of the stand-in platform: each connects, hears a
mention, answers in the thread with a card, is pressed, and comes back after its connection is cut.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from lab.doubles.processes import APP, PlatformDouble, eventually, running_platform

CLIENTS = Path(__file__).parents[1] / "support" / "clients"
NODE_SDK = "@larksuiteoapi/node-sdk@1.74.0"
KOISHI = ("koishi@4.18.11", "@koishijs/plugin-http@0.6.3", "@satorijs/adapter-lark@3.12.4")
NONEBOT = ("nonebot2[fastapi,httpx,websockets]==2.5.0", "nonebot-adapter-feishu==2.7.2")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformDouble]:
    with running_platform(tmp_path, "") as running:
        yield running


@pytest.fixture
def run_bot(platform: PlatformDouble, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts a bot with the arguments that every client takes."""
    app = (APP["FEISHU_APP_ID"], APP["FEISHU_APP_SECRET"])
    with ExitStack() as stack:

        def run(*command: str, **env: str) -> None:
            told = stack.enter_context((tmp_path / "bot.log").open("wb"))
            process = stack.enter_context(
                subprocess.Popen(
                    [*command, platform.url, *app],
                    env={"PATH": os.environ["PATH"], **env},
                    stdout=told,
                    stderr=told,
                )
            )
            stack.callback(process.kill)

        yield run


def install(*command: str) -> None:
    """Skips the test where the package cannot be installed."""
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as failed:
        pytest.skip(f"{command[-1]} cannot be installed: {type(failed).__name__}")


def install_from_npm(folder: Path, *packages: str) -> str:
    """Returns the folder that Node finds them in. No code of theirs runs."""
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts")
    install("npm", "install", "--prefix", str(folder), *quiet, *packages)
    return str(folder / "node_modules")


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


def test_feishus_python_client_talks_and_comes_back(
    platform: PlatformDouble, run_bot: Callable[..., None]
) -> None:
    run_bot(sys.executable, "-P", "-W", "ignore", str(CLIENTS / "lark_bot.py"))
    talk(platform, toasts=True)


def test_feishus_node_client_talks_and_comes_back(
    platform: PlatformDouble, run_bot: Callable[..., None], tmp_path: Path
) -> None:
    node_path = install_from_npm(tmp_path, NODE_SDK)
    run_bot("node", str(CLIENTS / "node_bot.cjs"), NODE_PATH=node_path)
    talk(platform, toasts=True)


def test_koishi_talks_and_comes_back(
    platform: PlatformDouble, run_bot: Callable[..., None], tmp_path: Path
) -> None:
    node_path = install_from_npm(tmp_path, *KOISHI)
    run_bot("node", str(CLIENTS / "koishi_bot.cjs"), NODE_PATH=node_path)
    talk(platform, toasts=False)


def test_nonebot_talks_and_comes_back(
    platform: PlatformDouble, run_bot: Callable[..., None], tmp_path: Path
) -> None:
    python = str(tmp_path / "venv" / "bin" / "python")
    venv.create(tmp_path / "venv", with_pip=True)
    install(python, "-m", "pip", "install", "--quiet", *NONEBOT)
    run_bot(python, str(CLIENTS / "nonebot_bot.py"))
    talk(platform, toasts=False)


def talk(platform: PlatformDouble, *, toasts: bool) -> None:
    """Alice mentions the bot, presses its card, and asks again after its connection was cut."""
    eventually(lambda: online(platform) == 1, what="the client is connected")
    state = platform.state()
    chat = next(one["chat_id"] for one in state["chats"] if one["name"] == "Launch team")
    alice = next(one["open_id"] for one in state["people"] if one["name"] == "Alice")
    mention = f"@{state['bot']['name']}"

    first = platform.say(alice, chat, f"{mention} hello")
    card = eventually(answered(platform, chat, first), what="the answer in the thread")
    pressed = platform.post("/click", **{"as": alice}, message_id=card["message_id"], index=0)
    assert (pressed["toast"] or {}).get("content") == (f"to {first}" if toasts else None)

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
