"""Checks the queue's database and the memory behind it: reached, migrated, keeping people apart.

The isolation probe is live: a made-up person says something alone with the bot and in a group,
then tokens of other places and people ask for it. Whatever comes to light where it must not is
a leak. The rows are deleted again, whatever happens."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg

from bot.agents.embeddings import embeddings_name
from bot.operations.doctor.health import trouble_check
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
from bot.queue.looking import explain
from bot.queue.operator_actions import QueueOperations
from bot.settings import Settings, SettingsError, require_database
from memory.errors import AccessDenied, NoteNotFound, ProbeFailed, StoreError
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, memory_context
from memory.sealing import Sealer
from memory.store import MemoryStore
from memory.tables.derived import EmbeddingBacklog, EmbeddingStore
from memory.tables.notes import NoteStore
from memory.tables.operations import Operations
from memory.tables.user_tokens import UserTokenStore

_PROBE_S = 20.0

_WITHIN_S = 20.0

_PEOPLE = ("owner", "stranger")


def database_checks(settings: Settings) -> tuple[list[Check], str]:
    """Whether it answers and is up to date; and its URL, "" when it cannot be used. Does not create
    an embedded database: DATA_DIR may be mistyped."""
    try:
        require_database(settings)
    except SettingsError as exc:
        return [warn("database", str(exc), exc.zh)], ""
    try:
        missing = check_database(settings)
        url = running_database(settings)
        if settings.embedded_database:
            missing = steps_missing(url)
        newer = steps_ahead(url)
    except NotConfigured as exc:
        return [fail("database", str(exc), exc.zh)], ""
    except psycopg.Error as exc:
        return [trouble_check(explain(url, exc))], ""
    where = "The embedded Postgres" if settings.embedded_database else "The database"
    where_zh = "内置 Postgres " if settings.embedded_database else "数据库"
    answers = ok("database", f"{where} answers.", f"{where_zh}有响应。")
    checks = [answers, _migrations_check(missing, newer, is_embedded=settings.embedded_database)]
    return checks, "" if missing else url


def _migrations_check(missing: list[str], newer: list[str], *, is_embedded: bool) -> Check:
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


def isolation_check(settings: Settings, url: str) -> Check:
    """The live probe with two made-up people, over the configured transport."""
    try:
        leaks = asyncio.run(_isolation_leaks(settings, url))
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


def vectors_check(settings: Settings, url: str) -> Check | None:
    """How much of what was said has no vector of the configured model yet; None without one."""
    name = embeddings_name(settings)
    if not name:
        return None
    try:
        backlog, counts = asyncio.run(_embedding_counts(settings, url, name))
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


async def _embedding_counts(
    settings: Settings, url: str, name: str
) -> tuple[tuple[EmbeddingBacklog, ...] | None, dict[str, int]]:
    """What has no vector of the model `name`, and how many messages have one, by model."""
    rpc = await open_rpc(settings, url, size=1, timeout_s=_PROBE_S)
    try:
        async with asyncio.timeout(_PROBE_S):
            store = EmbeddingStore(rpc)
            return await store.backlog(name), await store.counts()
    finally:
        await rpc.close()


async def _isolation_leaks(settings: Settings, url: str) -> list[str]:
    rpc = await open_rpc(settings, url, size=2, timeout_s=_PROBE_S)
    try:
        async with asyncio.timeout(_PROBE_S):
            return await probe_isolation(rpc)
    finally:
        await rpc.close()


def arrivals_by_kind(url: str) -> dict[str, datetime]:
    """What has arrived from Feishu, by kind; {} when the database does not say."""
    try:
        return QueueOperations(url).arrivals()
    except QueueUnavailable:
        return {}


def accounts_check(settings: Settings, url: str) -> Check:
    """How many are connected; without a key nobody can be."""
    if not settings.user_token_key:
        return ok(
            "accounts",
            "USER_TOKEN_KEY is not set, so nobody can connect their account (/connect).",
            "没有设置 USER_TOKEN_KEY，成员不能连接账号（/连接）。",
        )
    try:
        total, other = asyncio.run(_count_accounts(settings, url))
    except (StoreError, QueueUnavailable, TimeoutError) as exc:
        kind = type(exc).__name__
        return unknown("accounts", f"They couldn't be counted ({kind}).", f"无法统计（{kind}）。")
    return _accounts_found(settings, total, other)


def _accounts_found(settings: Settings, total: int, other: int) -> Check:
    if other and settings.user_token_key_before:
        return unknown(
            "accounts",
            f"The tokens of {other:,} of {total:,} people are still sealed with another key.",
            f"{total:,} 人中有 {other:,} 人的令牌仍用另一把密钥加密。",
        )
    if other:
        return warn(
            "accounts",
            f"The tokens of {other:,} people are sealed with another key: set it as "
            "USER_TOKEN_KEY_BEFORE, or they have to connect again.",
            f"{other:,} 人的令牌用另一把密钥加密：请把它设为 USER_TOKEN_KEY_BEFORE，"
            "否则他们需要重新连接。",
        )
    more = more_zh = ""
    if settings.user_token_key_before:
        more = "; USER_TOKEN_KEY_BEFORE is not needed any more"
        more_zh = "；不再需要 USER_TOKEN_KEY_BEFORE"
    people = "1 person has" if total == 1 else f"{total:,} people have"
    return ok("accounts", f"{people} connected their account{more}.",
              f"{total:,} 人已连接账号{more_zh}。")  # fmt: skip


async def _count_accounts(settings: Settings, url: str) -> tuple[int, int]:
    sealer = Sealer.of(settings.user_token_key)
    rpc = await open_rpc(settings, url)
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await UserTokenStore(rpc, sealer).count()
    finally:
        await rpc.close()


@dataclass(frozen=True, slots=True)
class _SaidWord:
    """What was said by the owner in one place; `word` stands in all of it."""

    word: str
    context: AgentMemoryContext
    turn_id: str
    note_id: str = ""


async def probe_isolation(rpc: Rpc) -> list[str]:
    """What somebody could read or write who must not; empty: nothing.

    Raises `ProbeFailed`, or `StoreUnavailable`.
    """
    mark = uuid.uuid4().hex[:12]
    p2p_speaker = _speaker("owner", mark, chat="alone", chat_type="p2p")
    group = _speaker("owner", mark, chat="group")
    try:
        private = await _say(rpc, p2p_speaker, f"private{mark}")
        public = await _say(rpc, group, f"public{mark}")
        stranger = _speaker("stranger", mark, chat="group")
        for reader, probe_text in ((p2p_speaker, private), (group, public), (stranger, public)):
            if not await _functions_that_show(rpc, reader, probe_text):
                raise ProbeFailed(f"{_reader_label(reader)} does not read what was said there")
        leaks = []
        for reader in (
            group,
            stranger,
            _speaker("owner", mark, chat="another group"),
            _speaker("stranger", mark, chat="strangers own", chat_type="p2p"),
            replace(p2p_speaker, tenant_key="other"),
        ):
            leaks += await _leaks(rpc, reader, private)
        for reader in (
            _speaker("owner", mark, chat="another group"),
            _speaker("stranger", mark, chat="strangers own", chat_type="p2p"),
            replace(stranger, tenant_key="other"),
        ):
            leaks += await _leaks(rpc, reader, public)
        return leaks + await _writes(rpc, stranger, group)
    finally:
        for name in _PEOPLE:
            await Operations(rpc).forget_person(f"ou_probe_{name}_{mark}")


def _speaker(
    name: str, mark: str, *, chat: str, chat_type: ChatType = "group"
) -> AgentMemoryContext:
    person = f"ou_probe_{name}_{mark}"
    return memory_context(
        chat_id=f"oc_probe_{chat.replace(' ', '_')}_{mark}",
        root=MAIN_ROOT,
        subject=person,
        actor=person,
        tenant_key="probe",
        chat_type=chat_type,
    )


async def _say(rpc: Rpc, context: AgentMemoryContext, word: str) -> _SaidWord:
    """A question and its answer, facts, and a note."""
    store, turn_id = MemoryStore(rpc), f"om_probe_{word}"
    await store.begin_turn(context, turn_id=turn_id, content=word)
    await store.record_reply(context, turn_id=turn_id, cards=[word])
    # each under a key of its own: what is told in one place must not hide what was told in another
    await store.merge_working_memory(context, scope="chat", patch={word: word})
    await store.merge_working_memory(context, scope="user", patch={word: word})
    note = await NoteStore(rpc).create(context, title=word)
    return _SaidWord(word, context, turn_id, note.id)


async def _leaks(rpc: Rpc, reader: AgentMemoryContext, probe_text: _SaidWord) -> list[str]:
    is_p2p = probe_text.context.chat_type == "p2p"
    what = "what was said alone with the bot" if is_p2p else "what was said in a group"
    visible_tables = await _functions_that_show(rpc, reader, probe_text)
    return [f"{function} gives {_reader_label(reader)} {what}" for function in visible_tables]


def _reader_label(reader: AgentMemoryContext) -> str:
    person, chat = reader.actor_id.split("_")[2], " ".join(reader.chat_id.split("_")[2:-1])
    where = "alone with the bot" if reader.chat_type == "p2p" else f"in the {chat}"
    return f"the {person} {where}" + (" (another tenant)" if reader.tenant_key != "probe" else "")


async def _functions_that_show(
    rpc: Rpc, reader: AgentMemoryContext, probe_text: _SaidWord
) -> list[str]:
    """The functions that give `probe_text` to the reader's token."""
    tenant = {"p_tenant_key": reader.tenant_key}
    place = {**tenant, "p_chat_id": reader.chat_id}
    calls: Mapping[str, Mapping[str, object]] = {
        "get_working_memory": tenant,
        "recall": {**place, "p_query": probe_text.word, "p_scope": "everywhere", "p_k": 5},
        "said_message": {**place, "p_message_id": probe_text.turn_id},
        "get_note": {**place, "p_note_id": probe_text.note_id},
        "search_notes": {**place, "p_terms": f'["{probe_text.word}"]', "p_limit": 5},
    }
    about_the_owner = replace(reader, user_id=probe_text.context.user_id)
    tables = []
    for function, params in calls.items():
        for query_context in {reader, about_the_owner} if reader.chat_type != "p2p" else {reader}:
            answer = await _allowed_answer(
                rpc, function, {**query_context.identity(), **params}, query_context
            )
            if probe_text.word in str(answer):
                tables.append(function)
                break
    return tables


async def _writes(rpc: Rpc, writer: AgentMemoryContext, owner: AgentMemoryContext) -> list[str]:
    params = {
        **owner.identity(),
        "p_chat_id": owner.chat_id,
        "p_tenant_key": owner.tenant_key,
        "p_scope": "chat",
        "p_patch": '{"probe": "overwritten"}',
    }
    write_outcome = await _allowed_answer(rpc, "merge_working_memory", params, writer)
    return ["merge_working_memory changes another person's rows"] if write_outcome else []


async def _allowed_answer(
    rpc: Rpc, function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> Any:
    """The answer; None where the database says no, or that there is no such note."""
    try:
        return await rpc.call(function, params, context)
    except (AccessDenied, NoteNotFound):
        return None
