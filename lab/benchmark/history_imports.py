"""What an import of many chats takes, beside Feishu's limit, and what people notice of it.

Feishu is answered by the benchmark; the bot keeps to a fifth of 50 calls a second, as it does by
default. First twenty people talk to the bot alone, then beside the import, which ends without them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import psycopg

from bot.queue.table import JobTable
from lab.benchmark.bot_processes import bot
from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import Figure
from lab.benchmark.load import Askers, Seen
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import socket_folder
from lab.benchmark.setting import Setting, address
from lab.doubles.minimal_feishu import StandIn
from memory.backends.pool import Pool
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.tables.imports import ImportStore
from sandbox.model.model_http import ModelHttpRequest
from sandbox.past.script import episodes

CHATS = 50
_TENANT = "bench-tenant"
_PER_PAGE = 50
_CALLS_PER_SECOND = 50
_SHARE = 5  # an import gets every so many-th call
_PEOPLE, _PAUSE_S = 20, 1.5
_BEGAN_MS, _APART_MS = 1_700_000_000_000, 60_000
_LOOK_S = 1.0
_BARS = {"waited": 1.2, "memory": 20.0, "bytes": 600.0}


class PastStandIn(StandIn):
    """Lists chats with a past, besides. `listed` counts the calls."""

    def __init__(self, messages: int) -> None:
        super().__init__()
        self.listed = 0
        self._messages = messages

    def _answer(self, request: ModelHttpRequest) -> dict[str, Any]:
        if request.path.endswith("/im/v1/messages"):
            if request.method == "POST":
                return {"data": {"message_id": f"om_card_{time.monotonic_ns()}"}}
            if "oc_past_" in request.query.get("container_id", ""):
                self.listed += 1
                return {"data": self._page(request.query)}
        return super()._answer(request)

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        chat, first = query["container_id"], int(query.get("page_token") or 0)
        last = min(first + _PER_PAGE, self._messages)
        items = [past_message(chat, number) for number in range(first, last)]
        more = last < self._messages
        return {"items": items, "has_more": more, **({"page_token": str(last)} if more else {})}


@cache
def _lines() -> tuple[str, ...]:
    """What people say, in two languages, in turn."""
    both = [episodes("talk.en.txt"), episodes("talk.zh.txt")]
    english, chinese = ([line.text for one in kind for line in one.lines] for kind in both)
    pairs = zip(english, chinese, strict=False)
    return tuple(text for pair in pairs for text in pair)


def past_message(chat: str, number: int) -> dict[str, Any]:
    """A message as Feishu lists it."""
    lines, who = _lines(), number % 12
    return {
        "message_id": _id("om_", f"{chat} {number}"),
        "msg_type": "text",
        "create_time": str(_BEGAN_MS + number * _APART_MS),
        "chat_id": chat,
        "sender": {
            "id": _id("ou_", str(who)), "id_type": "open_id", "sender_type": "user",
            "sender_name": f"Person {who}",
        },
        "body": {"content": json.dumps({"text": lines[(number * 7) % len(lines)]})},
    }  # fmt: skip


def _id(prefix: str, of: str) -> str:
    """As long as Feishu's ids are."""
    return prefix + hashlib.blake2b(of.encode(), digest_size=16).hexdigest()


async def measure_imports(setting: Setting, checkout: Checkout, messages: int) -> list[Figure]:
    """So many messages, in `CHATS` chats."""
    platform = PastStandIn(messages // CHATS)
    await platform.start()
    setting = replace(setting, platform=platform)
    folder = setting.folder / "imports"
    calls = str(_CALLS_PER_SECOND)
    try:
        async with bot(setting, checkout, folder, FEISHU_CALLS_PER_SECOND=calls) as started:
            people = Askers(platform, started.port, pause_s=_PAUSE_S)
            await people.talk(_PEOPLE, 3.0)
            alone = await people.talk(_PEOPLE, 2 * setting.seconds)
            url = address(socket_folder(folder))
            async with connection_pool(url, size=1) as pool:
                return await _imported(
                    setting, platform, started.processes, people, alone, pool, url
                )
    finally:
        await platform.stop()


async def _imported(
    setting: Setting,
    platform: PastStandIn,
    processes: BotProcesses,
    people: Askers,
    alone: Seen,
    pool: Pool,
    url: str,
) -> list[Figure]:
    store, jobs = ImportStore(PostgresRpc(pool)), JobTable(pool)
    began = time.perf_counter()
    for number in range(CHATS):
        chat = (_TENANT, f"oc_past_{number}")
        started = await store.start(
            chat, "group", context=None, since_ms=None, until_ms=int(time.time() * 1000)
        )
        await jobs.queue_import(started.id, {})
    beside = await people.talk(_PEOPLE, 2 * setting.seconds)
    before, cpu, held = _state(url), processes.cpu_seconds(), list[float]()
    while await store.at_work():
        held.append(processes.pss_mb().get("worker", 0.0))
        await asyncio.sleep(_LOOK_S)
    took = time.perf_counter() - began
    spent = {part: used - cpu.get(part, 0.0) for part, used in processes.cpu_seconds().items()}
    return _figures(alone, beside, took, platform.listed, before, _state(url), spent, held)


def _figures(
    alone: Seen,
    beside: Seen,
    took: float,
    listed: int,
    before: tuple[int, int, int],
    after: tuple[int, int, int],
    spent: dict[str, float],
    held: list[float],
) -> list[Figure]:
    messages, size, text = (now - then for now, then in zip(after, before, strict=True))
    limit_s = listed / (_CALLS_PER_SECOND / _SHARE)
    needed = -(-after[0] // _PER_PAGE)
    per_message = max(messages, 1)
    steady = held[len(held) // 4 :] or held or [0.0]
    swing = max(steady) - min(steady)
    return [
        Figure("imported messages", after[0], note=f"{CHATS} chats"),
        Figure("calls of the list ÷ calls needed", listed / needed, "", note=f"{listed} calls"),
        Figure("time ÷ time that a fifth of Feishu's limit takes", took / limit_s,
               note=f"{took:.0f} s of {limit_s:.0f} s"),
        Figure("worker CPU a message", spent.get("worker", 0.0) * 1000 / per_message, "ms"),
        Figure("Postgres CPU a message", spent.get("Postgres", 0.0) * 1000 / per_message, "ms"),
        Figure("storage a message, less its text", (size - text) / per_message, "bytes",
               _BARS["bytes"], note=f"{text / per_message:.0f} bytes of text"),
        Figure("worker's memory: highest less lowest", swing, "MB", _BARS["memory"],
               note=f"highest {max(steady):.0f} MB"),
        Figure("people alone: question → reply p95", _p95_s(alone) * 1000, "ms"),
        Figure("people beside the import: p95", _p95_s(beside) * 1000, "ms",
               note=f"{beside.unanswered} missing"),
        Figure("their p95 ÷ p95 without an import", _p95_s(beside) / _p95_s(alone), "",
               _BARS["waited"]),
    ]  # fmt: skip


def _p95_s(seen: Seen) -> float:
    return seen.overhead_ms(0.95) / 1000 + seen.model_s


def _state(url: str) -> tuple[int, int, int]:
    """Imported messages, bytes of the database after vacuum, bytes of their text."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum")
        row = connection.execute(
            "select count(*), pg_database_size(current_database()),"
            " coalesce(sum(octet_length(content)), 0) from public.imported_messages"
        ).fetchall()
    messages, size, text = row[0]
    return int(messages), int(size), int(text)
