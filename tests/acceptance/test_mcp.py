"""Tools of real MCP servers, over stdio and HTTP, through the real processes.

`desk` is started by the worker and asks for a confirmation before it publishes; `web` is a server
of its own; `clock` is somebody else's (PyPI, mcp-server-time). `publish` appends to a file, which
says what was really done and how often.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.doubles.processes import Process, eventually, free_port, start, stop
from tests.acceptance.conftest import World, markdown

DATA = Path(__file__).parents[1] / "data"
SERVER = str(DATA / "mcp" / "desk_server.py")
CONFIRM, CANCEL = 0, 1


@dataclass
class Outside:
    """The world outside: the file that is published to, and the HTTP server."""

    folder: Path
    port: int
    server: Process | None = None

    @property
    def board(self) -> Path:
        return self.folder / "board"

    @property
    def config(self) -> Path:
        return self.folder / "mcp.json"

    def published(self) -> list[str]:
        return self.board.read_text(encoding="utf-8").split() if self.board.exists() else []

    def start_web(self) -> None:
        command = [sys.executable, SERVER, "http", str(self.board), str(self.port)]
        self.stop_web()
        before = self.server.output().count("running on") if self.server else 0
        self.server = started = start("mcp-web", command, self.folder)
        eventually(lambda: started.output().count("running on") > before, what="the HTTP server")

    def stop_web(self) -> None:
        if self.server:
            stop(self.server)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    made = Outside(tmp_path_factory.mktemp("outside"), free_port())
    servers = {
        "desk": {
            "command": sys.executable,
            "args": [SERVER, "stdio", str(made.board)],
            "confirm": ["publish"],
        },
        "web": {"url": f"http://127.0.0.1:{made.port}/mcp", "confirm": False},
        "clock": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
        "gone": {"command": "/no/such/program"},
    }
    made.config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    made.start_web()
    try:
        yield made
    finally:
        made.stop_web()


@pytest.fixture(scope="module")
def bot_options(outside: Outside) -> dict[str, str]:
    return {"MCP_CONFIG": str(outside.config)}


@pytest.fixture
def ready(world: World) -> World:
    """The bot with both servers connected, and a model that uses their tools."""
    playbook = (DATA / "playbooks" / "mcp.json").read_text(encoding="utf-8")
    world.model.control("script", json.loads(playbook))
    for server in ("desk", "web"):
        wait_for_connection(world, server)
    return world


def logged(world: World, event: str, server: str) -> int:
    """How often the running worker logged `event` of `server`."""
    lines = world.bot.workers[-1].output().splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return sum(one["event"] == event and one.get("server") == server for one in found)


def wait_for_connection(world: World, server: str, *, times: int = 1) -> None:
    eventually(
        lambda: logged(world, "mcp.connected", server) >= times,
        what=f"{server} is connected",
    )


def asked(world: World, text: str) -> tuple[str, dict[str, Any]]:
    """Alice's question and the stored answer, whose text is that of its card."""
    question, shown = world.ask("Alice", text)
    [row] = world.settled(question)
    assert row["content"] == shown
    return question, row


def test_tools_of_a_stdio_and_of_an_http_server_are_used_and_recorded(ready: World) -> None:
    for text, tool, result in (
        ("add at the desk", "desk__add", 23),
        ("add on the web", "web__add", 9),
    ):
        _, row = asked(ready, text)
        assert str(result) in row["content"]
        [call] = row["tool_calls"]
        assert (call["name"], call["ok"], call["result"]) == (tool, True, result)


def test_a_server_of_other_people_from_pypi_is_used(ready: World) -> None:
    wait_for_connection(ready, "clock")
    _, row = asked(ready, "what is noon in Shanghai in UTC?")
    [call] = row["tool_calls"]
    assert (call["name"], call["ok"]) == ("clock__convert_time", True)
    assert "T04:00:00+00:00" in row["content"]


def test_a_server_that_is_down_is_reported_and_skipped(ready: World) -> None:
    asked(ready, "hello")
    offered = [tool["function"]["name"] for tool in ready.model.requests()[-1]["body"]["tools"]]
    assert logged(ready, "mcp.server_down", "gone") >= 1
    assert not [name for name in offered if name.startswith("gone__")]
    assert {"desk__add", "desk__publish", "web__add", "update_working_memory"} <= set(offered)


def test_a_stdio_server_that_dies_in_a_call_is_said_so_and_comes_back(ready: World) -> None:
    before = logged(ready, "mcp.connected", "desk")

    _, row = asked(ready, "let the desk die")

    assert "broke off" in row["content"]
    assert row["tool_calls"][0]["ok"] is False
    assert "9" in asked(ready, "add on the web")[1]["content"]
    wait_for_connection(ready, "desk", times=before + 1)
    assert "23" in asked(ready, "add at the desk")[1]["content"]


def test_an_http_server_that_dies_in_a_call_is_skipped_until_it_is_back(
    ready: World, outside: Outside
) -> None:
    before = logged(ready, "mcp.connected", "web")

    _, row = asked(ready, "let the web die")

    assert row["tool_calls"][0]["ok"] is False
    assert "23" in asked(ready, "add at the desk")[1]["content"]
    offered = [tool["function"]["name"] for tool in ready.model.requests()[-1]["body"]["tools"]]
    assert not [name for name in offered if name.startswith("web__")]

    outside.start_web()
    wait_for_connection(ready, "web", times=before + 1)
    assert "9" in asked(ready, "add on the web")[1]["content"]


def test_a_tool_to_confirm_is_described_and_not_run(ready: World, outside: Outside) -> None:
    question, row = asked(ready, "publish apricot")
    [card] = ready.answers(question)
    assert "`desk__publish`" in row["content"]
    assert "- text: apricot" in row["content"]
    assert [button["text"]["content"] for button in buttons(card)] == ["Confirm", "Cancel"]
    assert row["tool_calls"][0]["result"].startswith("Not done yet")
    assert "apricot" not in outside.published()


def test_only_who_asked_confirms_and_it_is_done_once(ready: World, outside: Outside) -> None:
    question, _ = asked(ready, "publish walnut")
    assert "Only the person who asked" in press(ready, "Bob", question, CONFIRM)
    assert "walnut" not in outside.published()

    with ThreadPoolExecutor(3) as presses:
        toasts = list(presses.map(lambda _: press(ready, "Alice", question, CONFIRM), range(3)))
    assert sum("On it" in shown for shown in toasts) == 1, toasts
    assert sum("already used" in shown for shown in toasts) == 2, toasts
    row = answer_to_press(ready, question, CONFIRM)
    assert "already used" in press(ready, "Alice", question, CANCEL)

    assert "post_6" in row["content"]
    [call] = row["tool_calls"]
    assert (call["name"], call["arguments"]) == ("desk__publish", {"text": "walnut"})
    assert call["ok"] is True
    later, _ = asked(ready, "hello")
    assert ready.settled(later)
    assert outside.published().count("walnut") == 1


def test_what_is_cancelled_is_not_done(ready: World, outside: Outside) -> None:
    question, _ = asked(ready, "publish cherry")
    assert "On it" in press(ready, "Alice", question, CANCEL)
    row = answer_to_press(ready, question, CANCEL)
    assert row["tool_calls"] == []
    assert "already used" in press(ready, "Alice", question, CONFIRM)
    assert "cherry" not in outside.published()


def test_what_was_asked_before_a_restart_can_be_confirmed_after_it(
    ready: World, outside: Outside
) -> None:
    question, _ = asked(ready, "publish quince")
    ready.bot.workers[-1].kill()
    ready.bot.start_worker()
    wait_for_connection(ready, "desk")

    assert "On it" in press(ready, "Alice", question, CONFIRM)
    row = answer_to_press(ready, question, CONFIRM)

    assert "post_6" in row["content"]
    assert outside.published().count("quince") == 1


def press(world: World, who: str, question: str, place: int) -> str:
    """What the person is told at once."""
    card = world.answers(question)[0]
    body = {"as": world.people[who], "message_id": card["message_id"], "index": place}
    return str(world.platform.post("/click", **body)["toast"]["content"])


def answer_to_press(world: World, question: str, place: int) -> dict[str, Any]:
    """The stored answer to a press, whose text is that of its card."""
    card = world.answers(question)[0]
    turn = world.turn_of(buttons(card)[place]["behaviors"][0]["value"]["b"])
    [row] = world.settled(turn)
    [shown] = world.answers(turn)
    assert row["content"] == markdown(shown)
    return row


def buttons(card: dict[str, Any]) -> list[dict[str, Any]]:
    body = card["card"] or json.loads(card["content"])
    return [element for element in body["body"]["elements"] if element["tag"] == "button"]
