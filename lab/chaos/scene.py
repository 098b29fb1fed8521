"""The bot among real processes that can be killed and cut off.

One command runs the web process and two workers beside a Postgres of their own. The strict stand-in
for Feishu is behind a door that can be shut, the stand-in model beside it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg
import requests

from lab.chaos.counting import Count, CountedQuestion, is_answer_to
from lab.chaos.door import Door, door_to
from lab.doubles.processes import (
    APP,
    ROOT,
    ModelDouble,
    PlatformDouble,
    eventually,
    free_port,
    postmaster,
    running_model,
    running_platform,
)
from memory import migrations
from memory.backends import embedded
from memory.backends.embedded import Server

CHATS = 8
WORKERS = 2
_SETTLED_WITHIN_S = 240.0
_COMMAND = (sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()")


@dataclass
class FaultScene:
    """`environment` adds to the bot's usual one. `memory_url` is the database of the memory, if
    that is not the queue's."""

    folder: Path
    port: int
    platform: PlatformDouble
    model: ModelDouble
    feishu: Door
    database_url: str
    environment: dict[str, str] = field(default_factory=dict)
    command: subprocess.Popen[bytes] | None = None
    memory_url: str = ""

    def __post_init__(self) -> None:
        state = self.platform.state()
        self.bot_id, self.bot_name = state["bot"]["open_id"], state["bot"]["name"]
        self.people = [p["open_id"] for p in state["people"] if p["open_id"] != self.bot_id]
        self.person = self.people[0]
        self._members = [*self.people, self.bot_id]
        self.chats = [self.new_chat() for _ in range(CHATS)]

    # the bot

    def start(self, **environment: str) -> None:
        """Starts the one command and waits until it is ready."""
        self.environment = environment
        with (self.folder / "bot.log").open("ab") as log:
            self.command = subprocess.Popen(
                _COMMAND,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.variables(),
                start_new_session=True,
            )
        eventually(self._is_ready, within_s=120, what=f"the bot is ready; see {self.folder}")

    def start_again(self) -> None:
        self.start(**self.environment)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what is left."""
        if self.command and self.command.poll() is None:
            self.command.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.command.wait(20)
        self.kill()

    def kill(self) -> None:
        """kill -9 to everything of the bot."""
        if self.command:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.command.pid, signal.SIGKILL)
            self.command.wait(60)

    def processes(self, words: str) -> list[psutil.Process]:
        """Lists the bot's processes whose command line holds `words`."""
        if self.command is None:
            return []
        family = psutil.Process(self.command.pid).children(recursive=True)
        found = []
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                if words in " ".join(one.cmdline()):
                    found.append(one)
        return found

    def variables(self) -> dict[str, str]:
        """Builds the environment of the bot and of its commands."""
        return {
            **os.environ,
            **APP,
            "PORT": str(self.port),
            "DATA_DIR": str(self.folder),
            "DATABASE_URL": self.database_url,
            "INLINE_WORKER": "1",
            "WORKERS": str(WORKERS),
            "FEISHU_DOMAIN": f"http://127.0.0.1:{self.feishu.port}",
            "OPENAI_API_KEY": "fault-key",
            "OPENAI_VISION": "false",
            "OPENAI_BASE_URL": self.model.base_url,
            "STREAM_REPLIES": "false",
            "REQUESTS_PER_MINUTE": "0",  # a fault is measured, not the limit
            "MODEL_TIMEOUT_SECONDS": "6",
            **self.environment,
        }

    def _is_ready(self) -> bool:
        if self.command is None or self.command.poll() is not None:
            raise AssertionError(f"the bot ended: see {self.folder / 'bot.log'}")
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).ok
        return False

    # its database

    def restart_postgres(self, *, away_s: float) -> float:
        """As `pg_ctl stop -m immediate`, a while, and `pg_ctl start`. Returns when it took
        connections again, in seconds since epoch."""
        server = psutil.Process(postmaster(self.folder))
        server.send_signal(signal.SIGQUIT)
        server.wait(60)
        time.sleep(away_s)
        embedded.start_server(Server(self.folder))
        return time.time()

    @contextmanager
    def frozen_postgres(self) -> Iterator[None]:
        """Suspends the server: connections open, and nobody answers."""
        first = psutil.Process(postmaster(self.folder))
        first.suspend()  # it makes no more of them
        stopped = [first, *first.children(recursive=True)]
        for one in stopped[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.suspend()
        try:
            yield
        finally:
            for one in reversed(stopped):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.resume()

    def rows(self, query: str, *params: object) -> list[Any]:
        with psycopg.connect(self.database_url, autocommit=True) as database:
            return database.execute(query.encode(), params).fetchall()

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as database:
            database.execute(statement.encode())

    # its people

    def new_chat(self) -> str:
        """Makes a group of everybody, owned by the first of them."""
        made = self.platform.post("/chats", name="Faults", members=self._members)
        return str(made["chat_id"])

    def ask(self, text: str, chat: str) -> CountedQuestion:
        """Mentions the bot."""
        said = self.platform.say(self.person, chat, f"@{self.bot_name} {text}")
        return CountedQuestion(said, chat)

    @contextmanager
    def asking(
        self, asked: list[CountedQuestion], *, per_s: float, text: str = "and this?"
    ) -> Iterator[None]:
        """People keep asking meanwhile, one question after the other, chat by chat."""
        over = threading.Event()

        def ask() -> None:
            number = 0
            while not over.wait(1 / per_s):
                asked.append(self.ask(f"{text} {number}", self.chats[number % len(self.chats)]))
                number += 1

        asker = threading.Thread(target=ask)
        asker.start()
        try:
            yield
        finally:
            over.set()
            asker.join()

    def count(self, count: Count, asked: Sequence[CountedQuestion]) -> Count:
        """Waits until everybody has an answer and nothing is under way, then counts. What the bot
        never acknowledged is still with Feishu and only noted."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: self.is_settled(asked), within_s=_SETTLED_WITHIN_S)
        accepted = self._accepted()
        never = [one for one in asked if one.message_id not in accepted]
        if never:
            count.notes.append(f"{len(never)} never acknowledged")
            tried = [f"{one['status']} {one['error']}" for one in self.attempts(never)]
            count.details.append(f"never acknowledged, attempts: {', '.join(tried)}")
        asked = [one for one in asked if one.message_id in accepted]
        said = {chat: self.platform.messages(chat) for chat in {one.chat_id for one in asked}}
        stored = self._stored(asked)
        for one in asked:
            at_ms = accepted[one.message_id]
            count.add(one, said[one.chat_id], stored.get(one.message_id, []), at_ms)
        return count

    def _accepted(self) -> dict[str, int]:
        """Returns when the bot acknowledged each message, ms since epoch."""
        found: dict[str, int] = {}
        for delivery in self.platform.get("/deliveries")["items"]:
            for attempt in delivery["attempts"]:
                if attempt["status"] == 200:
                    found.setdefault(delivery["message_id"], attempt["at_ms"])
        return found

    def attempts(self, asked: Sequence[CountedQuestion]) -> list[dict[str, Any]]:
        """Lists every attempt of Feishu to push these questions."""
        ours = {one.message_id for one in asked}
        items = self.platform.get("/deliveries")["items"]
        return [at for one in items if one["message_id"] in ours for at in one["attempts"]]

    def answered(self, asked: Sequence[CountedQuestion]) -> list[tuple[float, float]]:
        """Returns when each question was asked and answered, in seconds since epoch."""
        times: list[tuple[float, float]] = []
        for chat in {one.chat_id for one in asked}:
            said = self.platform.messages(chat)
            asked_ms = {message["message_id"]: message["create_ms"] for message in said}
            for one in asked:
                cards = [m["create_ms"] for m in said if is_answer_to(m, one, self.bot_id)]
                if cards and one.message_id in asked_ms:
                    times.append((asked_ms[one.message_id] / 1000, min(cards) / 1000))
        return times

    def are_in_hand(self, asked: Sequence[CountedQuestion]) -> bool:
        """Returns whether workers are busy with all of these questions."""
        doing = "select args::text from feishu_bot.jobs where status = 'running'"
        rows = [row[0] for row in self.rows(doing)]
        return all(any(one.message_id in row for row in rows) for one in asked)

    def is_complete(self) -> bool:
        """Returns whether every process of the bot works."""
        with contextlib.suppress(requests.RequestException):
            found = requests.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).json()
            return bool(found["ready"]) and not found["degraded"]
        return False

    def is_settled(self, asked: Sequence[CountedQuestion]) -> bool:
        """Returns whether everybody has an answer and nothing is under way."""
        waiting = "select count(*) from feishu_bot.jobs where status in ('waiting','running')"
        if self.rows(f"{waiting} and task = 'feishu.event'")[0][0]:
            return False
        said = {chat: self.platform.messages(chat) for chat in {one.chat_id for one in asked}}
        return all(
            any(is_answer_to(m, one, self.bot_id) for m in said[one.chat_id]) for one in asked
        )

    def _stored(self, asked: Sequence[CountedQuestion]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        query = """select turn_id, status, content, message_id from agent_messages
                   where role = 'assistant' and turn_id = any (%s)"""
        with psycopg.connect(self.memory_url or self.database_url) as memory:
            rows = memory.execute(query.encode(), [[one.message_id for one in asked]]).fetchall()
        for turn, *row in rows:
            found.setdefault(turn, []).append(row)
        return found


@contextmanager
def scene_in(folder: Path) -> Iterator[FaultScene]:
    """Runs everything but the bot."""
    database_url = embedded.start_embedded(folder)
    migrations.apply_migrations(database_url)
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    options = ("--retry-scale", "0.005", "--no-rate-limits")
    with ExitStack() as stack:
        model = stack.enter_context(running_model(folder))
        platform = stack.enter_context(running_platform(folder, hook, *options))
        feishu = stack.enter_context(door_to(int(platform.url.rpartition(":")[2])))
        made = FaultScene(folder, port, platform, model, feishu, database_url)
        stack.callback(made.stop)
        yield made
