"""`scripts/bot import`: preview, start, look, pause, remove, as an operator types them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bot.queue.table import JobTable
from lab.doubles.processes import ROOT
from memory.backends.postgres import connection_pool
from memory.tables.directory import ChatStore
from tests.support.forking import run_script
from tests.support.importing import ImportScene, import_scene
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")


@dataclass
class Operator:
    """Types commands beside a database and a platform."""

    scene: ImportScene
    folder: str

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "scripts.bot", "import", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        settings = self.scene.services.settings
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        return {
            **kept,
            "DATABASE_URL": self.scene.url,
            "DATA_DIR": self.folder,
            "FEISHU_APP_ID": settings.feishu_app_id,
            "FEISHU_APP_SECRET": settings.feishu_app_secret,
            "FEISHU_DOMAIN": settings.feishu_domain,
            "FEISHU_ENCRYPT_KEY": "key",
            "FEISHU_VERIFICATION_TOKEN": "token",
            "COLUMNS": "200",
            "LANG": "en",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_script("bot", "import", *arguments, env=self.environment)

    def follow(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on until its import has ended."""
        return subprocess.Popen(
            self.command(*arguments), cwd=ROOT, env=self.environment, stdout=subprocess.PIPE,
            text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def of_chat(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("--chat", self.scene.chat[1], *arguments)

    def json(self, *arguments: str) -> Any:
        done = self.of_chat(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
async def operator(database_url: str, tmp_path_factory: Any) -> AsyncIterator[Operator]:
    async with stage(database_url) as here, connection_pool(database_url, size=2) as pool:
        scene = import_scene(here, JobTable(pool), database_url)
        await ChatStore(here.services.rpc).enter(*scene.chat, name="Harbour", at_ms=1)
        yield Operator(scene, str(tmp_path_factory.mktemp("data")))


def test_help_has_examples() -> None:
    done = run_script("bot", "import", "--help", env=os.environ)
    assert done.returncode == 0
    assert "bot import --chat oc_a1b2 --since 30d" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


async def test_an_import_is_previewed_begun_paused_and_removed(operator: Operator) -> None:
    scene = operator.scene
    unasked = operator.of_chat("--since", "all")
    assert "messages since" in unasked.stdout
    assert "give --yes" in unasked.stderr
    assert unasked.returncode == 2
    assert scene.column("select count(*) from public.chat_imports") == [0]

    begun = operator.json("--since", "all", "--yes")
    assert (begun["state"], begun["chat_id"]) == ("running", scene.chat[1])
    assert begun["estimated"] > 300
    assert operator.json("--pause")["state"] == "paused"
    assert operator.json("--resume")["state"] == "running"
    await scene.work()
    status = operator.of_chat("--status")
    assert status.returncode == 0
    assert status.stdout.startswith("done; ")
    assert "left out: " in status.stdout
    assert scene.chat[1] in operator.run().stdout

    assert operator.json("--remove", "--quiet", "--yes")["state"] == "removing"
    said = len(scene.cards())
    await scene.work()
    assert scene.column("select count(*) from public.chat_imports") == [0]
    assert len(scene.cards()) == said
    gone = operator.of_chat("--status")
    assert (gone.returncode, gone.stderr) == (2, "that chat has no import\n")


async def test_what_cannot_be_read_is_one_sentence(operator: Operator) -> None:
    operator.scene.stage.town.platform.world.switches.secret_chats = True
    done = operator.of_chat("--since", "30d", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert "secret mode" in done.stderr
    unknown = operator.run("--chat", "oc_nowhere", "--since", "all", "--yes")
    assert "knows no chat oc_nowhere" in unknown.stderr


@pytest.mark.parametrize(
    "arguments", [("--since", "all"), ("--chat", "oc_1"), ("--chat", "oc_1", "--since", "soon")]
)
async def test_what_is_missing_is_said(operator: Operator, arguments: tuple[str, ...]) -> None:
    done = operator.run(*arguments)
    assert done.returncode == 2
    assert "give " in done.stderr


@contextlib.contextmanager
def ended_within(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    """Kills a process that goes on: who waits for it fails, and does not wait for ever."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


async def test_ctrl_c_ends_the_looking_and_not_the_import(operator: Operator) -> None:
    following = operator.follow("--chat", operator.scene.chat[1], "--since", "all", "--yes")
    with following as process, ended_within(process, 120):
        assert process.stdout
        assert "messages since" in await asyncio.to_thread(process.stdout.readline)
        assert "chat: 0 messages" in await asyncio.to_thread(process.stdout.readline)
        process.send_signal(signal.SIGINT)
        rest = await asyncio.to_thread(process.stdout.read)
    assert "It goes on without this" in rest
    assert process.returncode == 0
    await operator.scene.work()
    assert operator.scene.column("select state from public.chat_imports") == ["done"]


async def test_who_waits_sees_the_import_to_its_end(operator: Operator) -> None:
    arguments = ("--chat", operator.scene.chat[1], "--since", "all", "--yes")
    with operator.follow(*arguments) as process, ended_within(process, 120):
        assert process.stdout
        await asyncio.to_thread(process.stdout.readline)
        await asyncio.to_thread(process.stdout.readline)
        await operator.scene.work()
        rest = await asyncio.to_thread(process.stdout.read)
    assert rest.splitlines()[-1].startswith("done; ")
    assert process.returncode == 0
