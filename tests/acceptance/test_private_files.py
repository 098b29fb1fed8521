"""What lies in DATA_DIR is nobody else's, whoever makes it; folders above stay as they are."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from lab.doubles.processes import ROOT, clean_environment, free_port, start, stop, wait_for_http

pytestmark = pytest.mark.slow

OPEN_TO_ALL = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
OWN_SETTINGS = "worker_class = 'gthread'\nthreads = 8\n"


def opened(folder: Path) -> dict[str, str]:
    """Files and folders that others may read or write, with their modes."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # Postgres has thrown it away since
            continue
        if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & 0o077:
            found[str(path.relative_to(folder))] = oct(stat.S_IMODE(mode))
    return found


@pytest.mark.parametrize(("how", "mode"), [("one command", 0o700), ("another one", 0o711)])
def test_the_running_bot_makes_private_files_only(tmp_path: Path, how: str, mode: int) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)
    port = free_port()
    data_dir = above / "new" / "data"
    own = tmp_path / "own.conf.py"
    own.write_text(f"bind = '127.0.0.1:{port}'\n" + OWN_SETTINGS)
    config = "gunicorn.conf.py" if how == "one command" else str(own)
    command = [sys.executable, "-m", "gunicorn", "-c", config, "app:create_app()"]
    environment = {"PORT": str(port), "DATA_DIR": str(data_dir)}
    process = start("bot", [*OPEN_TO_ALL, *command], tmp_path, environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/readyz", process)
        state = requests.get(f"{url}/sandbox/api/state", timeout=10).json()
        alice = next(one["open_id"] for one in state["people"] if one["name"] == "Alice")
        group = next(one["chat_id"] for one in state["chats"] if one["name"] == "Launch team")
        said = {"as": alice, "chat_id": group, "text": "@Memo hello"}
        assert requests.post(f"{url}/sandbox/api/messages", json=said, timeout=10).ok
        assert (data_dir / "sandbox.jsonl").exists()
        assert opened(data_dir) == {}
        assert stat.S_IMODE(above.stat().st_mode) == mode
    finally:
        stop(process)


def test_so_do_the_commands(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    for module in ("scripts.migrate", "scripts.check_memory"):
        subprocess.run(
            [*OPEN_TO_ALL, sys.executable, "-m", module],
            cwd=ROOT,
            env={**clean_environment(), "DATA_DIR": str(data_dir)},
            capture_output=True,
            timeout=120,
            check=True,
        )
        assert (data_dir / "postgres").is_dir()
        assert opened(data_dir) == {}
