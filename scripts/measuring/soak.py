"""scripts/bench --soak MINUTES: what grows while people keep asking, what a burst leaves.

Two web processes and four workers on a Postgres of their own, a stand-in model that takes two
seconds; Feishu is answered by the load generator. Questions come at a steady rate, whether
answered or not, from sixty people in twenty chats; then a thousand mentions within five seconds.

Examples:
  scripts/bench --soak 30                   fifty mentions a second: Feishu's ceiling
  scripts/bench --soak 3 --rate 10 --burst 200

Growth compares the last third of the time with the second. Memory is PSS, so that shared pages
count once. The exit status is 1 when a mention stayed without an answer or something is left.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg
from rich.console import Console

from scripts.measuring.accounting import Bot
from scripts.measuring.checkouts import ROOT, Checkout, checkout_at
from scripts.measuring.deliveries import Line, Mention, delivery
from scripts.measuring.figures import percentile
from scripts.measuring.platform import StandIn
from scripts.measuring.processes import (
    WEB,
    WORKER,
    free_port,
    postmaster,
    running,
    stop_server,
    until_ready,
    until_said,
)
from scripts.measuring.setting import Setting

WEBS, WORKERS = 2, 4
_CHATS, _PEOPLE = 20, 60
_MODEL_S = 2.0
_GIVE_UP_S = 120.0
_BURST_S = 5.0
_LOOKS = 30
_WAITING = """
    select (select count(*) from feishu_bot.procrastinate_jobs where status in ('todo', 'doing')),
           (select count(*) from feishu_bot.procrastinate_jobs where status = 'failed'),
           (select count(*) from feishu_bot.spool) + (select count(*) from feishu_bot.late_writes)
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the processes: `at` s since the beginning; MB, and bytes of log so far."""

    at: float
    answered: int
    pss_mb: dict[str, float]
    connections: int
    log_bytes: int


@dataclass
class Soaked:
    """What was seen. `left`: jobs that wait, that failed, and what waits for the memory."""

    asked: int = 0
    unanswered: int = 0
    replies_s: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    burst_s: list[float] = field(default_factory=list)
    left: tuple[int, int, int] = (0, 0, 0)

    @property
    def is_clean(self) -> bool:
        return not self.unanswered and not any(self.left)

    def growth(self) -> dict[str, float]:
        """From the second third to the last: MB by part, connections, bytes of log a mention."""
        third = max(1, len(self.looks) // 3)
        before, after = self.looks[third : 2 * third] or self.looks, self.looks[-third:]
        parts = sorted({part for look in self.looks for part in look.pss_mb})
        grown = {
            f"{part} MB": _mean([look.pss_mb.get(part, 0.0) for look in after])
            - _mean([look.pss_mb.get(part, 0.0) for look in before])
            for part in parts
        }
        grown["connections"] = float(after[-1].connections - before[0].connections)
        return grown | {"log bytes a mention": _log(after) - _log(before)}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _log(looks: list[Look]) -> float:
    answered = looks[-1].answered - looks[0].answered
    return (looks[-1].log_bytes - looks[0].log_bytes) / answered if answered else 0.0


class Crowd:
    """People who ask at a steady rate; replies arrive at `platform`."""

    def __init__(self, platform: StandIn, ports: list[int], seen: Soaked) -> None:
        self._platform, self._seen = platform, seen
        self._ports = itertools.cycle(ports)
        self._lines: dict[int, list[Line]] = {port: [] for port in ports}
        self._numbers = itertools.count(1)
        self._begun = str(int(time.time()))

    async def ask(self, count: int, per_s: float, into: list[float]) -> None:
        """Asks `count` times at that rate; returns when all have their answer."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                due = began + number / per_s
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                tasks.create_task(self._ask(into))

    async def _ask(self, into: list[float]) -> None:
        number = next(self._numbers)
        mention = Mention(
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
                await self._send(mention)
                into.append(await reply - began)
        except (TimeoutError, OSError):
            self._seen.unanswered += 1
        finally:
            self._platform.forget(mention.message_id)

    async def _send(self, mention: Mention) -> None:
        port = next(self._ports)
        line = self._lines[port].pop() if self._lines[port] else Line(port)
        await line.send(delivery(mention))
        self._lines[port].append(line)


@asynccontextmanager
async def _bot(setting: Setting, this: Checkout, url: str) -> AsyncIterator[tuple[Bot, list[int]]]:
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
        yield Bot(tuple(started), setting.folder / "measures"), ports


async def _watch(bot: Bot, folder: Path, seen: Soaked, every_s: float) -> None:
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
    this, seen, platform, port = checkout_at(ROOT), Soaked(), StandIn(), free_port()
    await platform.start()
    slow = ("sandbox.model.model", "--port", str(port), "--delay", str(_MODEL_S))
    async with running("model", slow, folder, {}, this) as model:
        await until_said(model, "Chat Completions at")
        setting = Setting(folder, platform, f"http://127.0.0.1:{port}/v1", model.popen.pid, 0.0)
        with setting.database("soak") as url:
            async with _bot(setting, this, url) as (bot, ports):
                seconds = options.soak * 60
                crowd = Crowd(platform, ports, seen)
                watching = asyncio.create_task(_watch(bot, folder, seen, seconds / _LOOKS))
                await crowd.ask(int(seconds * options.rate), options.rate, seen.replies_s)
                watching.cancel()
                await crowd.ask(options.burst, options.burst / _BURST_S, seen.burst_s)
                await asyncio.sleep(3)
                seen.left = _left(url)
    await platform.stop()
    return seen


def _left(url: str) -> tuple[int, int, int]:
    with psycopg.connect(url) as connection:
        row = connection.execute(_WAITING.encode()).fetchone()
    return tuple(row) if row else (0, 0, 0)


def _print(seen: Soaked, console: Console) -> None:
    last = seen.looks[-1]
    console.print(f"asked {seen.asked}, unanswered {seen.unanswered}")
    for name, times in (("steady", seen.replies_s), ("burst", seen.burst_s)):
        if times:
            half, most = percentile(times, 0.5), percentile(times, 0.95)
            console.print(f"{name}: p50 {half:.2f} s, p95 {most:.2f} s, longest {max(times):.1f} s")
    parts = ", ".join(f"{part} {mb:.0f} MB" for part, mb in sorted(last.pss_mb.items()))
    console.print(f"at the end: {parts}, {last.connections} connections")
    grown = ", ".join(f"{name} {value:+.1f}" for name, value in seen.growth().items())
    console.print(f"growth: {grown}")
    console.print(f"log: {_log(seen.looks):.0f} bytes a mention")
    console.print("left: {} jobs waiting, {} failed, {} for the memory".format(*seen.left))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench --soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--soak", type=float, metavar="MINUTES", required=True)
    made.add_argument("--rate", type=float, default=50.0, help="mentions a second (50)")
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
        kept = {k: v for k, v in asdict(seen).items() if not k.endswith("_s")}
        print(json.dumps(kept | {"growth": seen.growth()}, indent=2))
    else:
        _print(seen, Console())
    return 0 if seen.is_clean else 1
