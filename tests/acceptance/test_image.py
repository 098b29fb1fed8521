"""The Dockerfile copies enough: its command, started in a folder that holds nothing else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import requests

from lab.doubles.processes import ROOT, free_port, start, stop, wait_for_http
from tests.unit.test_deploying import commands, copied

pytestmark = pytest.mark.slow


def test_the_command_of_the_image_starts_from_its_files(tmp_path: Path) -> None:
    image = tmp_path / "app"
    image.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for source in copied():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, image / source, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / source, image / source)
    command = [sys.executable, *next(commands())[1:]]
    port = free_port()
    environment = {"PORT": str(port), "DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": ""}
    bot = start("bot", command, tmp_path, environment, cwd=image)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/readyz", bot)
        page = requests.get(f"http://127.0.0.1:{port}/", timeout=10)
        assert "<title>" in page.text
    finally:
        stop(bot)
    assert not (image / "data").exists()
