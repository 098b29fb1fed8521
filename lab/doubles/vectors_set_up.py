"""Vectors set up at a terminal: from a bot that finds by words to the first find by meaning.

A checkout of its own runs the real scripts beside the stand-in platform; the offline model answers.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import requests

from bot.settings import LOCAL_EMBEDDINGS
from bot.text.languages import Language
from lab.doubles.processes import (
    APP,
    ROOT,
    PlatformDouble,
    clean_environment,
    eventually,
    free_port,
    running_platform,
)
from memory.backends import embedded

_NOT_COPIED = (".git", ".venv", "node_modules", "data", ".env", "tests", "docs", "__pycache__")
# as scripts/_setup notes it
_INSTALLED = """touch .venv/.installed-requirements.txt-$(cat requirements*.txt | cksum |
cut -d' ' -f1)"""
_AT_LEISURE_S = 0.2  # an answer by meaning waits for the model for half a second


@dataclass(frozen=True)
class MeaningTalk:
    """`told` is said before; `asked` has no word in common with the first of it."""

    told: tuple[str, ...]
    asked: str


TALK: dict[Language, MeaningTalk] = {
    "en": MeaningTalk(
        (
            "remember that the van stands behind the warehouse",
            "remember that invoices go to finance",
            "remember that the printer has no paper",
            "remember that the client likes blue",
        ),
        "do you know where our vehicle is parked?",
    ),
    "zh": MeaningTalk(
        (
            "记住面包车停在仓库后面",
            "记住发票交给财务",
            "记住打印机没纸了",
            "记住客户喜欢蓝色",
        ),
        "我们那辆汽车在哪里？",
    ),
}


@dataclass
class Terminal:
    """What stands on it so far."""

    shown: str = ""
    _here: int = -1
    _theirs: int = -1
    _reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._here, self._theirs = pty.openpty()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def start(
        self, command: Sequence[str], cwd: Path, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        """A program whose terminal it is."""
        return subprocess.Popen(
            command, cwd=cwd, env={**clean_environment(), "TERM": "xterm", **environment},
            stdin=subprocess.DEVNULL, stdout=self._theirs, stderr=self._theirs,
            start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        os.close(self._theirs)
        self._reader.join(30)
        os.close(self._here)

    def _read(self) -> None:
        while True:
            try:
                read = os.read(self._here, 65536)
            except OSError:  # nobody writes to it any more
                return
            self.shown += read.decode("utf-8", "replace").replace("\r", "")


@dataclass
class VectorsSetUp:
    """The bot of a checkout in `folder`, which has an app of `platform` already."""

    folder: Path
    platform: PlatformDouble
    port: int
    language: Language

    def set_up(self) -> str:
        """What `scripts/setup` says. Raises AssertionError where it fails."""
        terminal = Terminal()
        options = ["--yes", "--embeddings", LOCAL_EMBEDDINGS, "--lang", self.language]
        try:
            done = terminal.start(["scripts/setup", *options], self.folder, {}).wait(900)
        finally:
            terminal.close()
        assert done == 0, terminal.shown
        return terminal.shown

    @contextmanager
    def started(self) -> Iterator[Terminal]:
        """`scripts/start`, once the bot is ready."""
        terminal = Terminal()
        bot = terminal.start(["scripts/start"], self.folder, {})
        try:
            eventually(lambda: self._is_ready(bot, terminal), within_s=240, what=terminal.shown)
            yield terminal
        finally:
            bot.send_signal(signal.SIGTERM)
            bot.wait(60)
            terminal.close()

    def tell(self) -> None:
        """What is told, each in a thread of its own, until all have vectors."""
        for text in TALK[self.language].told:
            self.ask(text)
        told = (
            "select from agent_embeddings e join agent_messages m using (id) where m.role = 'user'"
        )
        wanted = len(TALK[self.language].told)
        eventually(lambda: len(self._rows(told)) >= wanted, within_s=120, what="all have a vector")
        eventually(self._model_is_at_leisure, what="the embedding model is at leisure")

    def ask(self, text: str) -> str:
        """Mentions the bot in the group; the text of the card that answers."""
        question = self.platform.say(self.asker, self.group, f"@{self.bot} {text}")

        def answers() -> list[dict[str, Any]]:
            here = self.platform.messages(self.group)
            return [one for one in here if one["parent_id"] == question]

        eventually(answers, what="an answer")
        state = "select state from agent_turns where id = %s"
        eventually(lambda: self._rows(state, question) == [("sent",)], what="the whole answer")
        return str(answers()[0])

    @property
    def asker(self) -> str:
        people = self.platform.state()["people"]
        return str(next(one["open_id"] for one in people if one["name"] == "Alice"))

    @property
    def bot(self) -> str:
        return str(self.platform.state()["bot"]["name"])

    @property
    def group(self) -> str:
        chats = self.platform.state()["chats"]
        return str(next(one["chat_id"] for one in chats if one["name"] == "Launch team"))

    def _is_ready(self, bot: subprocess.Popen[bytes], terminal: Terminal) -> bool:
        assert bot.poll() is None, terminal.shown
        return "\nReady: " in terminal.shown and terminal.shown.endswith("\n")

    def _model_is_at_leisure(self) -> bool:
        url = f"http://127.0.0.1:{value_of(self.folder, 'EMBEDDING_PORT')}/v1/embeddings"
        body = {"model": f"{LOCAL_EMBEDDINGS}-query", "input": TALK[self.language].asked}
        return requests.post(url, json=body, timeout=60).elapsed.total_seconds() < _AT_LEISURE_S

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(
            embedded.find_embedded(self.folder / "data"), autocommit=True
        ) as connection:
            return connection.execute(query.encode(), values).fetchall()


@contextmanager
def vectors_set_up(folder: Path, language: Language, *more: str) -> Iterator[VectorsSetUp]:
    """`more` are packages of our environment that the checkout has not."""
    port, bot = free_port(), folder / "bot"
    _check_out(bot, more)
    with running_platform(folder, f"http://127.0.0.1:{port}/webhook/event") as platform:
        values = {
            **APP, "FEISHU_DOMAIN": platform.url, "PORT": str(port), "DATA_DIR": str(bot / "data"),
            "EMBEDDING_PORT": str(free_port()), "SUMMARY_AFTER_MESSAGES": "0",
        }  # fmt: skip
        (bot / ".env").write_text("".join(f"{name}={one}\n" for name, one in values.items()))
        yield VectorsSetUp(bot, platform, port, language)


def value_of(folder: Path, name: str) -> str:
    """What `.env` of the checkout says."""
    lines = (folder / ".env").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def _check_out(folder: Path, without: Sequence[str]) -> None:
    """The code, and an environment with our packages but those."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [packages] = (environment / "lib").glob("python*/site-packages")
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if not one.name.startswith(tuple(without)):
            (packages / one.name).symlink_to(one)
    subprocess.run(["bash", "-c", _INSTALLED], cwd=folder, check=True)
