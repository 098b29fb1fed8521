"""The wheel, installed on its own and started in a folder that holds something else."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.acceptance.conftest import markdown
from tests.support.processes import (
    ROOT,
    Platform,
    eventually,
    free_port,
    start,
    stop,
    wait_for_http,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that holds the wheel, and what it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    venv.create(folder / "venv", with_pip=False)
    commands = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(commands / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], cwd=folder, check=True)
    packages = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    # What it needs is installed beside the tests; those who run this may have no network.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return commands


def test_without_arguments_the_sandbox_starts_and_answers(installed: Path, tmp_path: Path) -> None:
    elsewhere, home = tmp_path / "another project", tmp_path / "home"
    (elsewhere / "bot").mkdir(parents=True)
    for file in ("app.py", "memory.py", "gunicorn.conf.py", "bot/__init__.py"):
        (elsewhere / file).write_text("raise SystemExit('not ours')", encoding="utf-8")
    before = sorted(elsewhere.rglob("*"))
    port = free_port()
    environment = {"PORT": str(port), "HOME": str(home), "XDG_DATA_HOME": str(home / "kept")}
    bot = start("bot", [str(installed / "feishu-memory-bot")], tmp_path, environment, cwd=elsewhere)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_http(f"{url}/readyz", bot)
        platform = Platform(url, bot)
        state = platform.state()
        alice = next(one["open_id"] for one in state["people"] if one["name"] == "Alice")
        chat = next(one["chat_id"] for one in state["chats"] if one["name"] == "Launch team")
        question = platform.say(alice, chat, f"@{state['bot']['name']} create a note: buy film")

        def answer() -> list[dict[str, object]]:
            return [one for one in platform.messages(chat) if one["parent_id"] == question]

        eventually(answer, what=f"an answer\n{bot.output()}")
        assert "Buy film" in markdown(answer()[0])
    finally:
        stop(bot)

    assert f"starting the sandbox: open {url}" in bot.output()
    assert (home / "kept" / "feishu-memory-bot" / "sandbox.json").is_file()
    assert sorted(elsewhere.rglob("*")) == before


def test_it_tells_what_it_is(installed: Path, tmp_path: Path) -> None:
    command = [str(installed / "feishu-memory-bot"), "--help"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "feishu-memory-bot" in told.stdout
