"""scripts/bench --soak MINUTES: what grows while people keep asking, what a burst leaves.

Two web processes and four workers on a Postgres of their own, a stand-in model that takes two
seconds; Feishu is answered by the load generator. Questions come at a steady rate, whether
answered or not, from sixty people in twenty chats, with two lines of talk to each that name nobody;
then a thousand mentions within five seconds.

Examples:
  scripts/bench --soak 30                   fifty mentions a second, Feishu's ceiling, and 100 lines
  scripts/bench --soak 3 --rate 10 --burst 200 --ratio 0

Growth compares the last third of the time with the second. Memory is PSS, so that shared pages
count once. What is not acknowledged within three seconds is pushed again after fifteen, as Feishu
does. The exit status is 1 when a mention stayed without an answer, had several, or another one
than is stored, or when something is left.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
from rich.console import Console

from lab.benchmark.checkouts import ROOT, Checkout, checkout_at
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import (
    WEB,
    WORKER,
    free_port,
    postmaster,
    running,
    stop_server,
    until_ready,
    until_said,
)
from lab.benchmark.pushing import EventPusher
from lab.benchmark.setting import Setting
from lab.doubles.feishu_events import TalkMention
from lab.doubles.minimal_feishu import StandIn
from lab.faults.counting import text_of
from lab.soak.report import Card, Look, Soaked, tables
from lab.talk.speech import groups

WEBS, WORKERS = 2, 4
_CHATS, _PEOPLE = 20, 60
_MODEL_S = 2.0
_GIVE_UP_S = 300.0
_PAGE_WIDTH = 120
_BURST_S = 5.0
_LOOKS = 30
_WAITING = """
    select (select count(*) from feishu_bot.jobs where status in ('waiting', 'running')),
           (select count(*) from feishu_bot.jobs where status = 'failed'),
           (select count(*) from feishu_bot.jobs where task = 'feishu.store')
"""
_SENT = """
    select turn_id, message_id, content from agent_messages
    where role = 'assistant' and status = 'sent'
"""


class SoakGroup(StandIn):
    """Feishu, which also keeps what people see. A uuid that came already is the same message."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, dict[str, Card]] = {}

    def replied(self, question: str, reply: Mapping[str, str]) -> dict[str, str]:
        cards = self.seen.setdefault(question, {})
        if reply["uuid"] in cards:
            return {"message_id": cards[reply["uuid"]][0], "create_time": "0"}
        answer = super().replied(question, reply)
        content = json.loads(reply["content"])
        text = text_of({"card": content if "body" in content else None, **content})
        cards[reply["uuid"]] = (answer["message_id"], text)
        return answer


class Crowd:
    """People who ask at a steady rate; replies arrive at `platform`."""

    def __init__(self, platform: StandIn, ports: list[int], seen: Soaked) -> None:
        self._platform, self._seen = platform, seen
        self._pusher = EventPusher(ports)
        self._numbers = itertools.count(1)
        self._begun = str(int(time.time()))
        self._groups = groups(f"soak {self._begun}")

    async def ask(self, count: int, per_s: float, into: list[float]) -> None:
        """Asks `count` times at that rate; returns when all have their answer."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                due = began + number / per_s
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                tasks.create_task(self._ask(into))

    async def talk(self, count: int, per_s: float) -> None:
        """Says `count` lines that name nobody, at that rate, in the chats where people ask."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                due = began + number / per_s
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                chat = number % _CHATS
                line = replace(self._groups[chat].line(), chat_id=f"oc_soak_{chat}")
                tasks.create_task(self._pusher.push(line))
                self._seen.lines += 1

    async def _ask(self, into: list[float]) -> None:
        number = next(self._numbers)
        mention = TalkMention(
            message_id=f"om_soak_{self._begun}_{number}",
            chat_id=f"oc_soak_{number % _CHATS}",
            person=f"ou_soak_person_{number % _PEOPLE:04}",
            question=f"what is the state of point {number % 97}?",
        )
        reply = self._platform.expect(mention.message_id)
        began = time.perf_counter()
        self._seen.asked += 1
        try:
            async with asyncio.timeout(_GIVE_UP_S):
                await self._pusher.push(mention)
                into.append(await reply - began)
        except TimeoutError:
            self._seen.unanswered += 1
        finally:
            self._seen.again = self._pusher.again
            self._platform.forget(mention.message_id)


@asynccontextmanager
async def _bot(
    setting: Setting, this: Checkout, url: str
) -> AsyncIterator[tuple[BotProcesses, list[int]]]:
    """Web processes and workers one by one; their Postgres is in `folder/measures`."""
    async with AsyncExitStack() as stack:
        started, ports = [], []
        for number in range(WEBS + WORKERS):
            port = free_port()
            environment = setting.environment(
                port, DATABASE_URL=url, INLINE_WORKER="0", WORKER_CONCURRENCY="64"
            )
            name, module = ("web", WEB) if number < WEBS else ("worker", WORKER)
            process = await stack.enter_async_context(
                running(f"{name}{number}", module, setting.folder, environment, this)
            )
            started.append(process.popen.pid)
            if name == "web":
                ports.append(port)
                await until_ready(process, port)
            else:
                await until_said(process, "worker.started")
        yield BotProcesses(tuple(started), setting.folder / "measures"), ports


async def _watch(bot: BotProcesses, folder: Path, seen: Soaked, every_s: float) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(every_s)
        size = await asyncio.to_thread(_log_bytes, folder)
        pss = await asyncio.to_thread(bot.pss_mb)
        at = time.monotonic() - began
        seen.looks.append(Look(at, len(seen.replies_s), pss, bot.connections(), size))


def _log_bytes(folder: Path) -> int:
    return sum(log.stat().st_size for log in folder.glob("w*.log"))


async def _soak(options: argparse.Namespace, folder: Path) -> Soaked:
    this, seen, platform, port = checkout_at(ROOT), Soaked(), SoakGroup(), free_port()
    await platform.start()
    slow = ("sandbox.model.model", "--port", str(port), "--delay", str(_MODEL_S))
    async with running("model", slow, folder, {}, this) as model:
        await until_said(model, "Chat Completions at")
        setting = Setting(folder, platform, f"http://127.0.0.1:{port}/v1", model.popen.pid, 0.0)
        with setting.database("soak") as url:
            async with _bot(setting, this, url) as (bot, ports):
                before = _spent(bot, setting)
                await _ask(options, Crowd(platform, ports, seen), bot, folder, seen)
                await _until_empty(url, seen)
                after = _spent(bot, setting)
                seen.cpu_s = {part: after[part] - before.get(part, 0.0) for part in after}
            shown = {question: list(cards.values()) for question, cards in platform.seen.items()}
            seen.compare(shown, _stored(url))
    await platform.stop()
    return seen


async def _ask(
    options: argparse.Namespace, crowd: Crowd, bot: BotProcesses, folder: Path, seen: Soaked
) -> None:
    seconds = options.soak * 60
    watching = asyncio.create_task(_watch(bot, folder, seen, seconds / _LOOKS))
    said_s = options.ratio * options.rate
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(crowd.talk(int(seconds * said_s), said_s))
        await crowd.ask(int(seconds * options.rate), options.rate, seen.replies_s)
    watching.cancel()
    await crowd.ask(options.burst, options.burst / _BURST_S, seen.burst_s)


def _spent(bot: BotProcesses, setting: Setting) -> dict[str, float]:
    """Processor time (s) so far, by part: of the bot, of the model, of those who ask."""
    model = sum(psutil.Process(setting.model_pid).cpu_times()[:2])
    return {**bot.cpu_seconds(), "(the model)": model, "(people and Feishu)": time.process_time()}


async def _until_empty(url: str, seen: Soaked) -> None:
    """Looks what is left until nothing waits, or for as long as a question may take."""
    began = time.monotonic()
    while True:
        seen.left = await asyncio.to_thread(_left, url)
        seen.empty_s = time.monotonic() - began
        if not (seen.left[0] or seen.left[2]) or seen.empty_s > _GIVE_UP_S:
            return
        await asyncio.sleep(1)


def _left(url: str) -> tuple[int, int, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute(_WAITING.encode()).fetchone()
    return tuple(row) if row else (0, 0, 0)


def _stored(url: str) -> dict[str, list[Card]]:
    """Message_id and text of what is stored as sent, by question."""
    found: dict[str, list[Card]] = {}
    with psycopg.connect(url) as connection:
        for question, message_id, text in connection.execute(_SENT.encode()):
            found.setdefault(question, []).append((message_id, text))
    return found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench --soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--soak", type=float, metavar="MINUTES", required=True)
    made.add_argument("--rate", type=float, default=50.0, help="mentions a second (50)")
    made.add_argument("--ratio", type=float, default=2.0, help="lines of talk to a mention (2)")
    made.add_argument("--burst", type=int, default=1000, help="mentions in five seconds (1000)")
    made.add_argument("--json", action="store_true", help="print JSON instead")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Soaks and prints; 1 when something stayed behind."""
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            seen = asyncio.run(_soak(options, folder))
        finally:
            stop_server(postmaster(folder / "measures"))
    if options.json:
        kept = {k: v for k, v in asdict(seen).items() if k not in ("replies_s", "burst_s")}
        print(json.dumps(kept | {"growth": seen.growth()}, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else _PAGE_WIDTH)
        for table in tables(seen):
            console.print(table)
    return 0 if seen.is_clean else 1
