"""Where the web process listens, and what it says of an address that is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WEBHOOK = {
    "FEISHU_APP_ID": "cli_1",
    "FEISHU_APP_SECRET": "s",
    "FEISHU_ENCRYPT_KEY": "k",
    "FEISHU_VERIFICATION_TOKEN": "t",
}
LONG_CONNECTION = WEBHOOK | {"FEISHU_TRANSPORT": "websocket"}
ROOT = Path(__file__).parents[3]


def preflight(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What is looked at before the web process starts, with nothing else in the environment."""
    return subprocess.run(
        [sys.executable, "-m", "bot.operations.startup_checks"],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "DATA_DIR": str(folder),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ({}, "127.0.0.1"),
        (WEBHOOK, "0.0.0.0"),
        (LONG_CONNECTION, "127.0.0.1"),
        (LONG_CONNECTION | {"HOST": "0.0.0.0"}, "0.0.0.0"),
        (WEBHOOK | {"HOST": "127.0.0.1"}, "127.0.0.1"),
        (WEBHOOK | {"HOST": "::1"}, "[::1]"),
    ],
    ids=["sandbox", "webhook", "long connection", "named", "webhook behind a proxy", "IPv6"],
)
def test_only_the_webhook_listens_to_the_outside_unless_a_host_is_named(
    tmp_path: Path, environment: dict[str, str], host: str
) -> None:
    done = preflight(tmp_path, {"PORT": "18997", **environment})

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bind"] == f"{host}:18997"


def test_an_address_that_is_not_this_machines_is_named_in_one_sentence(tmp_path: Path) -> None:
    done = preflight(tmp_path, {"PORT": "18997", **WEBHOOK, "HOST": "192.0.2.1"})

    assert done.returncode == 2
    assert done.stdout == ""
    [sentence] = done.stderr.strip().splitlines()
    assert "HOST" in sentence
    assert sentence.endswith(".")
