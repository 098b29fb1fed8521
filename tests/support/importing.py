"""Imports over the real queue and the stand-in platform: a worker that may die between any two
calls, and calls that go wrong on the way."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg

from bot.feishu.caller import NO_RETRY
from bot.feishu.transport import ApiRequest, ApiResponse
from bot.queue.consumer import Consumer, Handlers, Lease
from bot.queue.jobs import Job
from bot.queue.table import JobTable
from bot.services import Services
from bot.worker import give_up_job, handle_job
from memory.tables.imports import HistoryImport, ImportStore
from sandbox.past.making import Past, PastRequest, make_past
from tests.support.queue import idle_presence
from tests.support.whole_turns import Stage

LIST = "/open-apis/im/v1/messages"
_LAST = 160

# What an import leaves, whatever its number and the hour.
TABLES = {
    "messages": """
        select id, sent_at, message_id, root_id, author_id, author_name, content
        from public.imported_messages order by id""",
    "words": """
        select first_id, place, thread, asked_at, length, words
        from bot_private.turn_words where first_id < 0 order by first_id""",
    "members": "select open_id, since::text from bot_private.import_members order by open_id",
    "threads": "select thread_id, position, is_read from bot_private.import_threads order by 1",
    "joins": "select name, at, joined from bot_private.import_joins order by 1, 2, 3",
    "imports": """
        select tenant_key, chat_id, chat_type, since, state, phase, position, pages, messages,
               report, error from public.chat_imports""",
}

Send = Callable[..., Awaitable[ApiResponse]]
Twist = Callable[[ApiRequest, Send], Awaitable[ApiResponse]]


class Died(BaseException):
    """The worker is no more."""


@dataclass
class Mortality:
    """Counts calls, and dies before or after one of them; 0: never."""

    dies_at: int = 0
    dies_after: bool = False
    calls: int = 0

    async def call(self, inner: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        fatal = self.calls == self.dies_at
        if fatal and not self.dies_after:
            raise Died
        result = await inner(*args, **kwargs)
        if fatal:
            raise Died
        return result


@dataclass
class ImportScene:
    """A group with a past, and what a worker imports of it. `twist` changes calls of Feishu's
    list."""

    stage: Stage
    table: JobTable
    url: str
    past: Past
    mortality: Mortality = field(default_factory=Mortality)
    twist: Twist | None = None
    told: list[ApiRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        services = replace(
            self.stage.services,
            queue_import=lambda number, note: self.table.queue_import(number, note),
        )
        self.stage.services = services
        feishu: Any = services.feishu
        feishu._caller._policy = NO_RETRY  # the next attempt is the import's
        feishu._transport.send = partial(self._send, feishu._transport.send)
        rpc: Any = services.rpc
        rpc._run = partial(self._call, rpc._run)
        table: Any = self.table
        table._value = partial(self._call, table._value)

    @property
    def services(self) -> Services:
        return self.stage.services

    @property
    def store(self) -> ImportStore:
        return ImportStore(self.services.rpc)

    @property
    def chat(self) -> tuple[str, str]:
        return self.stage.town.config.tenant_key, self.past.chat.chat_id

    @property
    def until_ms(self) -> int:
        return self.past.messages[-1].create_ms + 1000

    async def begin(self, *, whole: bool = False, started_by: str = "") -> HistoryImport:
        """Asks for the last messages, or for all."""
        since_ms = None if whole else self.past.messages[-_LAST].create_ms
        found = await self.store.start(
            self.chat, "group", context=None, since_ms=since_ms, until_ms=self.until_ms
        )
        if started_by:
            self.stage.database.execute(
                "update public.chat_imports set started_by = %s", [started_by]
            )
        await self.table.queue_import(found.id, {})
        return found

    async def work(self, *, jobs: int = 100_000) -> int:
        """Does jobs until none waits, or so many; how many. What waits for a time is due now."""
        presence = idle_presence(self.url, places=0)
        await presence.begin()
        done = 0
        try:
            handlers = Handlers(
                partial(handle_job, self.services), partial(give_up_job, self.services)
            )
            consumer = Consumer(self.table, "", handlers, concurrency=1)
            taken: list[Job] = []
            while done < jobs:
                self.due()
                taken = taken or await self.table.take(presence.worker, 1)
                if not taken:
                    break
                await consumer._do(Lease(taken.pop(0), presence.worker, taken.append))
                done += 1
            if taken:
                self.hand_back(presence.worker)
            return done
        finally:
            await presence.end()

    async def work_until_death(self, dies_at: int, *, after: bool) -> bool:
        """Does jobs until the call of that number; whether the worker died there. Its jobs are
        another's then."""
        self.mortality = Mortality(dies_at, after)
        try:
            await self.work()
        except Died:
            return True
        finally:
            self.mortality = Mortality()
            for worker in self.column("select id from feishu_bot.workers"):
                self.hand_back(worker)
        return False

    def due(self) -> None:
        self.stage.database.execute(
            "update feishu_bot.jobs set scheduled_at = null where status = 'waiting'"
        )

    def hand_back(self, worker: int) -> None:
        self.stage.database.execute("select feishu_bot.hand_back(%s, null)", [worker])

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.stage.database.execute(query.encode()).fetchall()]

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that imports left in the database."""
        return {name: dumped(self.stage.database, query) for name, query in TABLES.items()}

    def clear(self) -> None:
        self.stage.database.execute("delete from public.chat_imports")
        self.stage.database.execute("delete from feishu_bot.jobs")

    def cards(self) -> list[str]:
        """What the bot has said in the group."""
        world = self.stage.town.platform.world
        own = [
            one
            for one in world.messages.values()
            if one.sender == world.bot.open_id and one.chat_id == self.past.chat.chat_id
        ]
        return [json.dumps(json.loads(one.content), ensure_ascii=False) for one in own]

    async def _send(self, send: Send, request: ApiRequest, token: str = "") -> ApiResponse:
        self.told.append(request)

        async def straight(asked: ApiRequest = request) -> ApiResponse:
            response: ApiResponse = await self.mortality.call(send, asked, token)
            return response

        if self.twist and request.method == "GET" and request.path == LIST:
            return await self.twist(request, straight)
        return await straight()

    async def _call(self, inner: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self.mortality.call(inner, *args, **kwargs)


def dumped(database: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return database.execute(query.encode()).fetchall()


def import_scene(
    stage: Stage, table: JobTable, url: str, *, messages: int = 500, seed: int = 1
) -> ImportScene:
    """A group with so many messages, into which the bot comes as the last."""
    platform = stage.town.platform
    past = make_past(PastRequest(seed, messages, ends_ms=platform.world.now_ms()))
    platform.groups.take_in(past.chat, (*past.people, *past.resources, *past.messages))
    bot = platform.world.bot.open_id
    platform.groups.set_membership(past.chat.chat_id, bot, member=True)
    return ImportScene(stage, table, url, past)


# Twists


def sometimes(rng: random.Random, share: float, twist: Twist) -> Twist:
    """The twist for that share of calls."""

    async def twisted(request: ApiRequest, send: Send) -> ApiResponse:
        return await (twist(request, send) if rng.random() < share else send(request))

    return twisted


def answering(status: int, body: Mapping[str, Any] | bytes) -> Twist:
    """Feishu answers so instead."""

    async def twisted(request: ApiRequest, send: Send) -> ApiResponse:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return ApiResponse(status, {}, raw)

    return twisted


async def twice(request: ApiRequest, send: Send) -> ApiResponse:
    await send(request)
    return await send(request)


async def expired(request: ApiRequest, send: Send) -> ApiResponse:
    """The page token is none that Feishu knows any more."""
    if "page_token" not in request.query:
        return await send(request)
    return await send(replace(request, query={**request.query, "page_token": "long ago"}))


def shuffled(rng: random.Random) -> Twist:
    """A page whose messages come in another order."""

    async def twisted(request: ApiRequest, send: Send) -> ApiResponse:
        response = await send(request)
        answer = json.loads(response.body)
        rng.shuffle(answer.get("data", {}).get("items", []))
        return replace(response, body=json.dumps(answer).encode())

    return twisted
