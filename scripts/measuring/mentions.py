"""Acknowledgement, overhead, throughput and CPU: people who mention the bot and wait for it."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import psycopg

from scripts.measuring.deliveries import Line, Mention, delivery
from scripts.measuring.figures import Figure, percentile
from scripts.measuring.platform import StandIn
from scripts.measuring.processes import (
    WEB,
    WORKER,
    NotMeasured,
    Process,
    busy_seconds,
    cpu_seconds,
    free_port,
    own_seconds,
    postmaster,
    running,
    until_ready,
    until_said,
)
from scripts.measuring.setting import Setting

MODEL_S = 0.3
_ACK_MS = 50
_QUESTIONS = (
    "what did we decide about the launch?",
    "and who takes care of the press release, as far as you know?",
    "please remember that the demo moves to Thursday",
    "sum it up in one sentence",
)
_GIVE_UP_S = 30.0
_DISTURBED = "taken from this run by the rest of the machine"
_numbers = itertools.count(1)


@dataclass
class Round:
    """What a number of people saw; times in seconds."""

    acks: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    unanswered: int = 0
    took: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    connections: int = 0
    others: float = 0.0

    def overhead_ms(self, share: float) -> float:
        """Event sent → reply at Feishu, beyond the model's own time."""
        return percentile([(s - MODEL_S) * 1000 for s in self.replies], share)

    def ack_ms(self, share: float) -> float:
        return percentile([s * 1000 for s in self.acks], share)

    def cpu_ms(self) -> dict[str, float]:
        """CPU per answered mention by process."""
        return {name: 1000 * s / max(len(self.replies), 1) for name, s in self.cpu.items()}


async def measure_ack(setting: Setting) -> list[Figure]:
    """The edge by itself: requests one after the other, then from twenty connections at once."""
    port = free_port()
    with setting.database("bench_ack") as url:
        environment = setting.environment(port, DATABASE_URL=url)
        async with running("web", WEB, setting.folder, environment) as web:
            await until_ready(web, port)
            await _deliver(port, 20, time.perf_counter() + 1.0)  # warm up every thread
            alone = await _deliver(port, 1, time.perf_counter() + setting.seconds / 2)
            together = await _deliver(port, 20, time.perf_counter() + setting.seconds / 2)
    rate = len(together.acks) / (setting.seconds / 2)
    return [
        Figure("ack, one at a time, p50", alone.ack_ms(0.5), "ms"),
        Figure("ack, one at a time, p99", alone.ack_ms(0.99), "ms"),
        Figure("ack, 20 at once, p50", together.ack_ms(0.5), "ms", note=f"{rate:.0f} events/s"),
        Figure("ack, 20 at once, p99", together.ack_ms(0.99), "ms", _ACK_MS, note="edge saturated"),
    ]


async def measure_mentions(setting: Setting) -> list[Figure]:
    """Web and worker as separate processes, a model that takes 300 ms, people in many groups."""
    port = free_port()
    with setting.database("bench_mentions") as url:
        async with _bot(setting, port, url) as processes:
            bench = _Bench(setting.platform, port, processes)
            await bench.round(100, 5.0)
            few = await bench.round(20, setting.seconds)
            many = await bench.round(100, setting.seconds)
        _expect_stored(url, len(few.replies) + len(many.replies))
    return [*_of_twenty(few), *_of_hundred(many)]


def _of_twenty(seen: Round) -> list[Figure]:
    return [
        Figure("overhead, 20 people, p50", seen.overhead_ms(0.5), "ms", 25, note="beyond 300 ms"),
        Figure("overhead, 20 people, p95", seen.overhead_ms(0.95), "ms", 80),
        Figure("ack, 20 people, p99", seen.ack_ms(0.99), "ms", _ACK_MS, note="worker beside it"),
        *_of_any("20 people", seen),
    ]


def _of_hundred(seen: Round) -> list[Figure]:
    rate = len(seen.replies) / seen.took
    return [
        Figure("throughput, 100 people", rate, "mentions/s", 100, at_least=True),
        Figure("overhead, 100 people, p50", seen.overhead_ms(0.5), "ms"),
        Figure("ack, 100 people, p99", seen.ack_ms(0.99), "ms"),
        *_of_any("100 people", seen),
    ]


def _of_any(who: str, seen: Round) -> list[Figure]:
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in seen.cpu_ms().items())
    per_mention = seen.connections / max(len(seen.replies), 1)
    return [
        Figure(f"CPU, {who}", sum(seen.cpu_ms().values()), "ms/mention", 12, note=parts),
        Figure(f"new connections to Feishu, {who}", per_mention, "per mention", 0),
        Figure(f"unanswered, {who}", seen.unanswered, "", 0, note=f"of {len(seen.acks)}"),
        Figure(f"other programs, {who}", seen.others / seen.took, "cores", note=_DISTURBED),
    ]


@asynccontextmanager
async def _bot(setting: Setting, port: int, url: str) -> AsyncIterator[_Pids]:
    """The bot's processes and the model beside them, while they run."""
    model = free_port()
    environment = setting.environment(
        port,
        DATABASE_URL=url,
        OPENAI_API_KEY="bench",
        OPENAI_BASE_URL=f"http://127.0.0.1:{model}/v1",
        WORKER_CONCURRENCY="128",
        INLINE_WORKER="1" if setting.one_command else "0",
        WORKERS=str(setting.workers),
    )
    slow = ("sandbox.model.model", "--port", str(model), "--delay", str(MODEL_S))
    async with AsyncExitStack() as stack:

        async def start(name: str, module: tuple[str, ...]) -> Process:
            return await stack.enter_async_context(
                running(name, module, setting.folder, environment)
            )

        stand_in = await start("model", slow)
        web = await start("web", WEB)
        ours: dict[str, tuple[int, ...]] = {
            "web": (web.popen.pid,),
            "postgres": (postmaster(setting.folder),),
        }
        if not setting.one_command:
            workers = [await start(f"worker{n}", WORKER) for n in range(setting.workers)]
            for worker in workers:
                await until_said(worker, "worker.started")
            ours["worker"] = tuple(worker.popen.pid for worker in workers)
        await until_ready(web, port)
        yield _Pids(ours, (stand_in.popen.pid, os.getpid()))


@dataclass(frozen=True, slots=True)
class _Pids:
    """The roots of the bot's processes by name, and of what stands around it."""

    ours: dict[str, tuple[int, ...]]
    around: tuple[int, ...]

    def spent(self) -> dict[str, float]:
        return {name: sum(map(cpu_seconds, pids)) for name, pids in self.ours.items()}

    def spent_by_others(self) -> float:
        """CPU seconds of whatever else runs on this machine."""
        return busy_seconds() - sum(self.spent().values()) - sum(map(own_seconds, self.around))


@dataclass(frozen=True)
class _Bench:
    platform: StandIn
    port: int
    processes: _Pids

    async def round(self, people: int, seconds: float) -> Round:
        """`people` ask, wait for the reply and ask again, for `seconds`."""
        seen = Round()
        before, others = self.processes.spent(), self.processes.spent_by_others()
        connections, started = self.platform.connections, time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(people):
                tasks.create_task(self._person(number, seen, started + seconds))
        seen.took = time.perf_counter() - started
        seen.cpu = {name: s - before[name] for name, s in self.processes.spent().items()}
        seen.others = self.processes.spent_by_others() - others
        seen.connections = self.platform.connections - connections
        return seen

    async def _person(self, number: int, seen: Round, until: float) -> None:
        line = Line(self.port)
        asked = _conversation(f"ou_bench_person_{number:04}")
        try:
            while time.perf_counter() < until:
                await self._ask(line, next(asked), seen)
        finally:
            line.close()

    async def _ask(self, line: Line, mention: Mention, seen: Round) -> None:
        reply = self.platform.expect(mention.message_id)
        started = time.perf_counter()
        seen.acks.append(await line.send(delivery(mention)))
        try:
            async with asyncio.timeout(_GIVE_UP_S):
                seen.replies.append(await reply - started)
        except TimeoutError:
            seen.unanswered += 1
        finally:
            self.platform.forget(mention.message_id)


def _conversation(person: str) -> Iterator[Mention]:
    """Four questions in a thread, then a new thread in another group, and so on."""
    while True:
        number = next(_numbers)
        root = f"om_bench_{number}_0"
        for turn, question in enumerate(_QUESTIONS):
            yield Mention(
                message_id=f"om_bench_{number}_{turn}",
                chat_id=f"oc_bench_{number}",
                person=person,
                question=question,
                root_id=root if turn else "",
            )


async def _deliver(port: int, connections: int, until: float) -> Round:
    """Events from `connections` connections, each sent as soon as the last is acknowledged."""
    seen = Round()

    async def push(number: int) -> None:
        line = Line(port)
        for mention in _conversation(f"ou_bench_person_{number:04}"):
            if time.perf_counter() >= until:
                break
            seen.acks.append(await line.send(delivery(mention)))
        line.close()

    async with asyncio.TaskGroup() as tasks:
        for number in range(connections):
            tasks.create_task(push(number))
    return seen


def _expect_stored(url: str, least: int) -> None:
    """What was answered is stored, else the figures are of something that does not work."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select count(*) from agent_messages where role = 'assistant' and status = 'sent'"
        ).fetchone()
    if row is None or row[0] < least:
        raise NotMeasured(f"{least} replies arrived and {row and row[0]} are stored as sent")
