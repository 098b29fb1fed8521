"""The wheel in an environment of its own, without what tests and linters need."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

import pytest

from lab.doubles.processes import (
    ROOT,
    PlatformDouble,
    clean_environment,
    eventually,
    free_port,
    start,
    stop,
    wait_for_http,
)
from tests.acceptance.conftest import markdown
from tests.unit.test_pinned import pinned

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
    for name in pinned("requirements.txt"):
        _install(name, packages)
    return commands


def _install(distribution: str, packages: Path) -> None:
    """By links to what is installed beside the tests: those who run this may have no network."""
    try:
        files = metadata.files(distribution) or ()
    except metadata.PackageNotFoundError:  # of another system or version of Python
        return
    for part in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        if not (packages / part).exists():
            (packages / part).symlink_to(Path(sysconfig.get_path("purelib"), part))


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installed / "feishu-memory-bot"), *arguments],
        cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip


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
        platform = PlatformDouble(url, bot)
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

    assert f'"address": "{url}"' in bot.output()
    assert (home / "kept" / "feishu-memory-bot" / "sandbox.json").is_file()
    assert sorted(elsewhere.rglob("*")) == before


# What each command prints first for `--help`, and its status.
_EACH_SAYS = """
import contextlib, io, sys
from scripts.installed import main
for command in sys.argv[1:]:
    sys.argv = ["feishu-memory-bot", command, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            status = main()
        except SystemExit as ended:
            status = ended.code or 0
    print(command, f"{status} {said.getvalue()[:6]}", sep="\\0", end="\\0")
"""


def test_every_command_says_how_it_is_used(installed: Path, tmp_path: Path) -> None:
    listed = run(installed, tmp_path, "--help").stdout
    commands = re.findall(r"^  ([a-z-]+)  ", listed.split("Commands:")[1], re.MULTILINE)

    assert {"start", "sandbox", "doctor", "setup", "migrate", "decisions", "monitor"} <= {*commands}
    one_process = [str(installed / "python"), "-c", _EACH_SAYS, *commands]
    helped = subprocess.run(
        one_process,
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    said = helped.stdout.split("\0")
    assert dict(zip(said[::2], said[1::2], strict=False)) == dict.fromkeys(commands, "0 usage:")


def test_what_people_read_is_there(installed: Path) -> None:
    packages = next((installed.parent / "lib").glob("python3*/site-packages"))
    catalogues = {path.relative_to(ROOT) for path in (ROOT / "bot").rglob("*.po")}

    assert catalogues
    assert {path.relative_to(packages) for path in (packages / "bot").rglob("*.po")} == catalogues


def test_what_measures_and_tests_the_bot_is_not_there(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "bench", "--faults").returncode == 2
    for package in ("lab", "tests", "pytest", "hypothesis", "ruff"):
        look = [str(installed / "python"), "-c", f"import {package}"]
        looked = subprocess.run(look, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "ModuleNotFoundError" in looked.stderr, package
