"""Starting: one command without configuration, and one clear sentence when something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import requests

from tests.support.processes import (
    APP,
    ROOT,
    Platform,
    eventually,
    free_port,
    start,
    stop,
    wait_for_http,
)

GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]
WORKER = [sys.executable, "-m", "bot.worker"]


def test_without_any_configuration_a_sandbox_with_a_working_bot_starts(tmp_path: Path) -> None:
    port = free_port()
    command = ["scripts/start"] if (ROOT / ".venv").exists() else GUNICORN
    process = start("bot", command, tmp_path, {"PORT": str(port), "DATA_DIR": str(tmp_path)})
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/readyz", process)
        page = requests.get(url, timeout=5)
        assert "html" in page.headers["Content-Type"]
        platform = Platform(url, process)
        state = platform.state()
        alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
        chat = state["chats"][0]["chat_id"]
        first = platform.say(alice, chat, "@Memo remember that our launch is on 3 March")
        eventually(lambda: len(platform.messages(chat)) == 2, what="a card")
        platform.say(alice, chat, "@Memo when is our launch?", root_id=first)
        eventually(lambda: len(platform.messages(chat)) == 4, what="a second card")
        assert "3 March" in str(platform.messages(chat)[3]["card"])
        assert "launch" in str(platform.get("/inspect", chat_id=chat))
    finally:
        stop(process)
    assert process.popen.returncode == 0, process.output()


@pytest.mark.parametrize("command", [GUNICORN, WORKER], ids=["web", "worker"])
@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({**APP, "FEISHU_ENCRYPT_KEY": ""}, "FEISHU_ENCRYPT_KEY"),
        ({**APP, "FEISHU_VERIFICATION_TOKEN": ""}, "FEISHU_VERIFICATION_TOKEN"),
        ({**APP, "FEISHU_APP_SECRET": ""}, "FEISHU_APP_SECRET"),
        ({**APP, "SUPABASE_URL": "https://x.supabase.co"}, "SUPABASE_PUBLISHABLE_KEY"),
        ({"PORT": "eighty"}, "PORT"),
        ({"HISTORY_MESSAGES": "0"}, "HISTORY_MESSAGES"),
        ({**APP, "FEISHU_DOMAIN": "http://evil.example"}, "FEISHU_DOMAIN"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_or_malformed_is_named_in_one_sentence(
    tmp_path: Path, command: list[str], environment: dict[str, str], named: str
) -> None:
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DATA_DIR": str(tmp_path),
             **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith(named)
    assert len(ended.stderr.strip().splitlines()) == 1
    for secret in APP.values():
        assert secret not in ended.stderr


def test_a_database_newer_than_the_code_is_said_at_the_start(
    tmp_path: Path, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("insert into feishu_bot.migrations (name) values ('9990_new.sql')")
    environment = {**APP, "DATABASE_URL": database_url, "DATA_DIR": str(tmp_path),
                   "FEISHU_DOMAIN": "http://127.0.0.1:9"}  # fmt: skip
    worker = start("worker", WORKER, tmp_path, environment)
    try:
        eventually(lambda: "worker.started" in worker.output(), within_s=40, what=worker.output())
        (line,) = [line for line in worker.output().splitlines() if '"database.newer"' in line]
        assert "9990_new.sql" in line
    finally:
        stop(worker)
