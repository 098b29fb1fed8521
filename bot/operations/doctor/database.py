"""The queue's database and the memory behind it: reached, migrated, and keeping people apart."""

from __future__ import annotations

import asyncio
from datetime import datetime

import psycopg

from bot.agents.embeddings.embedder import embeddings_name
from bot.operations.doctor.isolation import probe_isolation
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.queue.connections import (
    NotConfigured,
    check_database,
    open_rpc,
    running_database,
    steps_ahead,
    steps_missing,
)
from bot.queue.inbox import QueueUnavailable
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings
from memory.errors import StoreError
from memory.tables.embeddings import Backlog, EmbeddingStore

_PROBE_S = 20.0


def database(settings: Settings) -> tuple[list[Check], str]:
    """Whether it answers and is up to date; and its URL, "" when it cannot be used."""
    try:
        missing = check_database(settings)
        url = running_database(settings)
        if settings.embedded_database:
            missing = steps_missing(url)
        newer = steps_ahead(url)
    except NotConfigured as exc:
        return [fail("database", str(exc), exc.zh)], ""
    except psycopg.Error as exc:
        name = type(exc).__name__
        return [fail("database", f"The database does not answer ({name}).",
                     f"数据库没有响应（{name}）。")], ""  # fmt: skip
    where = "The embedded Postgres" if settings.embedded_database else "The database"
    where_zh = "内置 Postgres " if settings.embedded_database else "数据库"
    answers = ok("database", f"{where} answers.", f"{where_zh}有响应。")
    checks = [answers, _migrated(missing, newer, is_embedded=settings.embedded_database)]
    return checks, "" if missing else url


def _migrated(missing: list[str], newer: list[str], *, is_embedded: bool) -> Check:
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        more_zh = f" 等 {len(missing)} 项" if len(missing) > 1 else ""
        if is_embedded:
            return unknown("migrations", "They run when the bot starts.",
                           "机器人启动时会自动执行。")  # fmt: skip
        return fail(
            "migrations",
            f"The database is missing {missing[0]}{more} from sql/.",
            f"数据库缺少 sql/ 中的 {missing[0]}{more_zh}。",
            command="scripts/migrate",
        )
    if newer:
        return warn(
            "migrations",
            f"The database is newer than this version ({newer[0]}). Start the version that "
            "made it.",
            f"数据库比当前版本更新（{newer[0]}）：请启动与之对应的版本。",
        )
    return ok("migrations", "The database is up to date.", "数据库已是最新。")


def isolation(settings: Settings, url: str) -> Check:
    """The live probe with two made-up people, over the configured transport."""
    try:
        leaks = asyncio.run(_probed(settings, url))
    except (StoreError, TimeoutError, OSError) as exc:
        name = type(exc).__name__
        return unknown("isolation", f"It couldn't be tested ({name}).",
                       f"无法检测（{name}）。", command="scripts/check_memory")  # fmt: skip
    if not leaks:
        return ok("isolation", "Passed: no message reaches anyone outside its chat.",
                  "通过：没有人能看到自己不在的会话里说过的话。")  # fmt: skip
    return fail(
        "isolation",
        f"Broken: {leaks[0]} ({len(leaks)} in all): stop the bot and look at the policies.",
        f"失效：一个人的令牌能读到或改动别人的内容（{len(leaks)} 处）：请停止机器人并检查策略。",
        command="scripts/check_memory",
    )


def without_vectors(settings: Settings, url: str) -> Check | None:
    """How much of what was said has no vector of the configured model yet; None without one."""
    name = embeddings_name(settings)
    if not name:
        return None
    try:
        backlog, counts = asyncio.run(_embedded(settings, url, name))
    except (StoreError, TimeoutError, OSError) as exc:
        kind = type(exc).__name__
        return unknown("vectors", f"They couldn't be counted ({kind}).", f"无法统计（{kind}）。")
    if backlog is None:
        return warn(
            "vectors",
            "The database has no pgvector, so earlier messages are found by words only.",
            "数据库没有 pgvector，只按词语查找之前的消息。",
            command="scripts/migrate",
        )
    missing, has = sum(one.messages for one in backlog), counts.pop(name, 0)
    others = "".join(f" {other}: {one / (has + missing):.0%}." for other, one in counts.items())
    if missing:
        return warn(
            "vectors",
            f"{missing:,} messages have no vector of {settings.embedding_model} yet "
            f"({has / (has + missing):.0%} have one): they are found by words only.{others}",
            f"{missing:,} 条消息还没有 {settings.embedding_model} 的向量"
            f"（已完成 {has / (has + missing):.0%}）：只能按词语找到。{others}",
            command="scripts/memory embed",
        )
    return ok(
        "vectors",
        f"Every message has one of {settings.embedding_model}.{others}",
        f"每条消息都有 {settings.embedding_model} 的向量。{others}",
    )


async def _embedded(
    settings: Settings, url: str, name: str
) -> tuple[tuple[Backlog, ...] | None, dict[str, int]]:
    """What has no vector of the model `name`, and how many messages have one, by model."""
    rpc = await open_rpc(settings, url, size=1, timeout_s=_PROBE_S)
    try:
        async with asyncio.timeout(_PROBE_S):
            store = EmbeddingStore(rpc)
            return await store.backlog(name), await store.counts()
    finally:
        await rpc.close()


async def _probed(settings: Settings, url: str) -> list[str]:
    rpc = await open_rpc(settings, url, size=2, timeout_s=_PROBE_S)
    try:
        async with asyncio.timeout(_PROBE_S):
            return await probe_isolation(rpc)
    finally:
        await rpc.close()


def arrived(url: str) -> dict[str, datetime]:
    """What has arrived from Feishu, by kind; {} when the database does not say."""
    try:
        return QueueOperations(url).arrivals()
    except QueueUnavailable:
        return {}
