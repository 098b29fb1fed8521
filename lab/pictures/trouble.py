"""The console's first page in trouble: each trouble is a real one, of real processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bot.text.languages import LANGUAGES
from lab.chaos.counting import CountedQuestion
from lab.chaos.scene import FaultScene, scene_in
from lab.doubles.processes import ROOT, eventually, postmaster
from lab.pictures.browser import Browser

_QUESTIONS = (
    "when is our launch?", "who writes the press kit?", "what did we decide about the price?",
    "is the room booked?",
)  # fmt: skip
_STOPS_S, _RUNS_S = 4.0, 0.2
_STANDS_S = 75  # the queue is red from the first minute on
_NO_MESSAGE = {"path_prefix": "/open-apis/im/v1/messages", "method": "POST", "times": 0}


@contextmanager
def model_away(scene: FaultScene) -> Iterator[None]:
    """Nothing answers where the model was."""
    scene.model.process.kill()
    asked = _ask(scene)
    eventually(lambda: scene.is_settled(asked), within_s=120, what="apologies")
    yield


@contextmanager
def feishu_refuses(scene: FaultScene) -> Iterator[None]:
    """Feishu takes no message of the bot, wherever it goes."""
    scene.platform.post("/faults", **_NO_MESSAGE, code=230001, msg="invalid")
    asked = _ask(scene)
    ended = "select count(*) from agent_turns where outcome = 'undelivered' and origin = 'message'"
    eventually(lambda: scene.rows(ended) == [(len(asked),)], within_s=240, what="all are refused")
    yield


@contextmanager
def database_slow(scene: FaultScene) -> Iterator[None]:
    """Postgres stands still most of the time."""
    over = threading.Event()
    slowing = threading.Thread(target=_slow_down, args=(scene, over))
    slowing.start()
    try:
        asked = _ask(scene)
        eventually(lambda: scene.is_settled(asked), within_s=240, what="answers")
        yield
    finally:
        over.set()
        slowing.join()


@contextmanager
def queue_stands(scene: FaultScene) -> Iterator[None]:
    """The web process takes questions, and no worker is there."""
    scene.stop()
    scene.start(**{**scene.environment, "INLINE_WORKER": "0"})
    _ask(scene)
    time.sleep(_STANDS_S)
    yield


TROUBLES: dict[str, Callable[[FaultScene], contextlib.AbstractContextManager[None]]] = {
    "model-away": model_away,
    "feishu-refuses": feishu_refuses,
    "database-slow": database_slow,
    "queue-stands": queue_stands,
}


def trouble_pictures(browser: Browser, name: str) -> Iterator[tuple[str, str, bytes]]:
    """Language, name and content of the pictures of one trouble."""
    with (
        tempfile.TemporaryDirectory(prefix="pictures-", ignore_cleanup_errors=True) as folder,
        scene_in(Path(folder)) as scene,
    ):
        scene.model.control("mode", {"mode": "echo", "delay_s": 0.3})
        scene.start(CONSOLE_ADMINS="ada", TIMEZONE="Asia/Shanghai")
        asked = _ask(scene)
        eventually(lambda: scene.is_settled(asked), what="answers before the trouble")
        with browser.page(height=520) as page:
            page.goto(_link(scene))
            with TROUBLES[name](scene):
                for language in LANGUAGES:
                    cookie = {"name": "console_lang", "value": language, "domain": "127.0.0.1"}
                    page.context.add_cookies([{**cookie, "path": "/console"}])
                    page.goto(f"http://127.0.0.1:{scene.port}/console/", timeout=120_000)
                    page.wait_for_selector(".alarms")
                    yield language, name, browser.picture(page)


def _ask(scene: FaultScene) -> list[CountedQuestion]:
    return [scene.ask(text, scene.chats[0]) for text in _QUESTIONS]


def _link(scene: FaultScene) -> str:
    command = [sys.executable, "-m", "scripts.console"]
    return subprocess.run(
        command, cwd=ROOT, env=scene.variables(), capture_output=True, text=True, check=True
    ).stdout.strip()


def _slow_down(scene: FaultScene, over: threading.Event) -> None:
    server = psutil.Process(postmaster(scene.folder))
    while not over.is_set():
        processes = [server, *server.children(recursive=True)]
        _each(processes, psutil.Process.suspend)
        over.wait(_STOPS_S)
        _each(processes, psutil.Process.resume)
        over.wait(_RUNS_S)


def _each(processes: list[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            do(process)
