"""The one command without an app: bot, database and simulated group, as real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg

from lab.doubles.processes import (
    ROOT,
    PlatformDouble,
    clean_environment,
    eventually,
    free_port,
    start,
    wait_for_http,
)
from memory.backends import embedded


class Sandbox:
    """The one command without an app, and people who have asked it something."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder / "data"
        self.environment = {"DATA_DIR": str(self.folder), "PORT": str(self.port)}
        command = [sys.executable, "-m", "bot.process.supervisor"]
        self.process = start("sandbox", command, folder, self.environment)
        self.url = f"http://127.0.0.1:{self.port}"
        wait_for_http(f"{self.url}/healthz", self.process)
        self.platform = PlatformDouble(self.url, self.process)
        state = self.platform.state()
        self.people = {one["name"]: one["open_id"] for one in state["people"]}
        self.bot = state["bot"]["name"]
        self.group = next(one["chat_id"] for one in state["chats"] if one["name"] == "Launch team")

    @property
    def database_url(self) -> str:
        return embedded.find_embedded(self.folder)

    def ask(self, who: str, text: str, chat: str = "", **more: str) -> str:
        """Mentions the bot and waits until the answer is stored; the turn."""
        return self.tell(who, f"@{self.bot} {text}", chat or self.group, **more)

    def tell(self, who: str, text: str, chat: str, **more: str) -> str:
        """Says what the bot answers, and waits until the answer is stored; the turn."""
        turn = self.platform.say(self.people[who], chat, text, **more)
        eventually(lambda: self._state(turn) == "sent", within_s=60, what="the answer")
        return turn

    def private_chat(self, who: str) -> str:
        """Where that person is alone with the bot."""
        chats = (one for one in self.platform.state()["chats"] if one["mode"] == "p2p")
        return str(next(c["chat_id"] for c in chats if self.people[who] in c["members"]))

    def give_feedback(self, turn: str) -> None:
        """Its asker says that the answer helped."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(
                "insert into agent_feedback (turn_id, conversation_id, user_id, actor_id,"
                " tenant_key, chat_id, source, helpful) select id, conversation_id, user_id,"
                " actor_id, tenant_key, chat_id, 'button', true from agent_turns where id = %s",
                [turn],
            )

    def link(self, *more: str) -> str:
        """What `scripts/console` prints."""
        return subprocess.run(
            [sys.executable, "-m", "scripts.console", *more],
            cwd=ROOT,
            env={**clean_environment(), **self.environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def _state(self, turn: str) -> str:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(
                "select state from agent_turns where id = %s", [turn]
            ).fetchone()
        return row[0] if row else ""
