"""A worker of the queue that dies by SIGKILL at one exact call, in a process of its own.

`python -m tests.support.mortal_worker` loads the bot once and forks a life for each line it reads,
so that a life costs a tenth of a second and keeps nothing but what is in the database.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest
import structlog

from bot import wiring
from bot.agents.llm.model import OnText, Request, Response
from bot.agents.manager import Manager, Stores
from bot.answering.unfinished_turns import give_up
from bot.features.registry import TOOLS
from bot.feishu import transport
from bot.feishu.caller import NO_RETRY
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Unreachable
from bot.feishu.transport import SharedPace
from bot.queue.consumer import Consumer, Handlers, Lease
from bot.queue.table import JobTable
from bot.services import Services
from bot.settings import Settings
from bot.wiring import open_services
from bot.worker import handle_job
from memory.backends.pool import Pool
from memory.backends.postgres import PostgresRpc, connection_pool
from tests.support.queue import idle_presence
from tests.support.store_jobs import Memory
from tests.support.whole_turns import NoWaiting

MESSAGE = r"POST /open-apis/im/v1/messages(/\w+/reply)?|POST /open-apis/ephemeral/v1/send"
LAST_WORD = (
    r"(?:PUT /open-apis/cardkit/v1/cards/\w+|POST /open-apis/cardkit/v1/cards/\w+/batch_update)"
)

Point = Literal[
    "before", "arriving", "after", "marked", "broken", "refused",
    "unkept", "kept", "unwritten", "written",
]  # fmt: skip

_MARKS = frozenset({"mark_sent", "keep_offer", "change_turn"})
_STEPS = {  # the calls around which a worker can die: before, and once they are done
    **dict.fromkeys(_MARKS, ("after", "marked")),
    "keep_turn": ("unkept", "kept"),
    "restore_turn": ("unwritten", "written"),
}


@dataclass(frozen=True)
class Life:
    """Where a worker lives, what its model says and where it dies.

    `point`: "before" the card leaves, while it is "arriving", "after" it was answered and before
    that is stored, or once it is "marked"; "" lives on. Of a turn without the memory it dies before
    the job that keeps it is committed ("unkept") or after ("kept"), and before the memory has it
    ("unwritten") or after ("written"). At "broken" and "refused" the worker stays
    and the connection goes: after Feishu took the card, or instead. `sends` matches the call that
    sends the card. `memory`: it is beside the queue (""), or elsewhere, where it can be away. With
    `streams` the model goes on when people see a card, or could not.
    """

    database_url: str
    settings: dict[str, Any]
    says: str = ""
    fails: bool = False
    streams: bool = False
    point: Point | Literal[""] = ""
    sends: str = MESSAGE
    memory: Literal["", "away", "there"] = ""


class Telling:
    """A model that says one thing, or fails."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.seen = asyncio.Event()

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        if self.life.fails:
            raise RuntimeError("a defect")
        if on_text and self.life.streams:
            self.seen.clear()
            await on_text(self.life.says.split(".")[0])
            await self.seen.wait()
        return Response(self.life.says)


@dataclass
class Worker:
    """Services, and the jobs that it takes while `work` runs."""

    services: Services
    table: JobTable
    worker: int
    model: Telling

    async def work(self) -> None:
        """Does jobs until none is due."""
        while await self.do_one():
            pass

    async def do_one(self) -> bool:
        """Does a job, if one is due, with those of its lock that its end hands over."""
        handlers = Handlers(partial(handle_job, self.services), partial(give_up, self.services))
        consumer = Consumer(self.table, "", handlers, concurrency=1)
        jobs = await self.table.take(self.worker, 1)
        for job in jobs:
            await consumer._do(Lease(job, self.worker, jobs.append))
        return bool(jobs)


@asynccontextmanager
async def living(life: Life) -> AsyncIterator[Worker]:
    """A worker as `bot.worker` puts it together, but for its model and its endless tending."""
    settings, url, model = Settings(**life.settings), life.database_url, Telling(life)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(connection_pool(url, size=2))
        with memory_of(life, pool):
            services = await stack.enter_async_context(
                open_services(settings, url, pool, SharedPace(NoWaiting()))
            )
        feishu: FeishuClient = services.feishu
        feishu._caller._policy = NO_RETRY  # the next attempt is the queue's
        table, presence = JobTable(pool), idle_presence(url)
        stores: Stores = services.manager._stores  # type: ignore[assignment]
        services = replace(services, manager=Manager(model, stores=stores, tools=TOOLS))
        connection: Any = feishu._transport
        connection.send = partial(_tell_seen, model.seen, connection.send)
        await presence.begin()
        stack.push_async_callback(presence.end)
        yield Worker(services, table, presence.worker, model)


@contextmanager
def memory_of(life: Life, pool: Pool) -> Iterator[None]:
    """The worker is put together as with Supabase, if the memory is to be elsewhere."""

    async def open_rpc(settings: Settings, url: str) -> Memory:
        return Memory(PostgresRpc(pool), away=life.memory == "away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "open_rpc", open_rpc)
        yield


async def _tell_seen(
    seen: asyncio.Event,
    send: Callable[..., Awaitable[Any]],
    request: transport.ApiRequest,
    token: str = "",
) -> Any:
    try:
        return await send(request, token)
    finally:
        if re.fullmatch(MESSAGE, f"{request.method} {request.path}"):
            seen.set()


# Where it dies


class Died(BaseException):
    """The worker is no more; in a process of its own it is killed instead."""


@dataclass
class Fate:
    """What becomes of a worker at the point of its life; `die` does not return."""

    life: Life
    die: Callable[[], NoReturn]
    is_dead: bool = False

    def befall(self, worker: Worker) -> None:
        """From now on."""
        connection: Any = worker.services.feishu._transport
        connection.send = partial(
            _tell_seen, worker.model.seen, partial(self._send, connection.send)
        )
        memory: Any = worker.services.rpc
        if not self.life.memory:
            memory._run = partial(self._run, memory._run)
            return
        jobs, transport = memory._jobs, memory._rpc._rpc
        jobs._call = partial(self._run, jobs._call)
        transport.call = partial(self._run, transport.call)

    async def _send(
        self, send: Callable[..., Awaitable[Any]], request: transport.ApiRequest, token: str = ""
    ) -> Any:
        sends = re.fullmatch(self.life.sends, f"{request.method} {request.path}")
        self._reach("before" if sends else None)
        if not sends:
            return await send(request, token)
        if self.life.point == "refused":
            raise Unreachable("the connection broke")
        answer = await send(request, token)
        self._reach("arriving")
        if self.life.point == "broken":
            raise Unreachable("the connection broke")
        return answer

    async def _run(self, run: Callable[..., Awaitable[Any]], function: str, *args: Any) -> Any:
        before, after = _STEPS.get(function, (None, None))
        self._reach(before)
        result = await run(function, *args)
        self._reach(after)
        return result

    def _reach(self, point: str | None) -> None:
        """Dies here, or has died before: nothing is done by the dead."""
        if self.is_dead or point == self.life.point:
            self.is_dead = True
            self.die()


def kill_self() -> NoReturn:
    """As a machine that loses its power: nothing is said and nothing is put away."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("alive")


def collapse() -> NoReturn:
    raise Died


# The process that forks


class Cradle:
    """The process that lives are forked from."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def live(self, life: Life) -> int:
        """Lives it to its end; returns the signal that ended it, 0 where its work was done."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer, "the process that forks is gone"
        return int(answer)


@contextmanager
def cradle() -> Iterator[Cradle]:
    """One for a whole module of tests."""
    command = [sys.executable, "-m", "tests.support.mortal_worker"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Cradle(process)
        finally:
            process.stdin.close()  # type: ignore[union-attr]


async def _lived(life: Life) -> None:
    async with living(life) as worker:
        Fate(life, kill_self).befall(worker)
        await worker.work()


def _fork(life: Life) -> int:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(_lived(life))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    for line in sys.stdin:
        print(_fork(Life(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
