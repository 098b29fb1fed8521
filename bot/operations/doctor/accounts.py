"""Whether people can connect their account, and whether their tokens can be opened."""

from __future__ import annotations

import asyncio

from bot.operations.doctor.result import Check, ok, unknown, warn
from bot.queue.connections import open_rpc
from bot.queue.inbox import QueueUnavailable
from bot.settings import Settings
from memory.errors import StoreError
from memory.sealing import Sealer
from memory.tables.user_tokens import UserTokenStore

_WITHIN_S = 20.0


def accounts(settings: Settings, url: str) -> Check:
    """How many are connected; without a key nobody can be."""
    if not settings.user_token_key:
        return ok(
            "accounts",
            "USER_TOKEN_KEY is not set, so nobody can connect their account (/connect).",
            "没有设置 USER_TOKEN_KEY，成员不能连接账号（/连接）。",
        )
    try:
        total, other = asyncio.run(_counted(settings, url))
    except (StoreError, QueueUnavailable, TimeoutError) as exc:
        kind = type(exc).__name__
        return unknown("accounts", f"They couldn't be counted ({kind}).", f"无法统计（{kind}）。")
    return _found(settings, total, other)


def _found(settings: Settings, total: int, other: int) -> Check:
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


async def _counted(settings: Settings, url: str) -> tuple[int, int]:
    sealer = Sealer.of(settings.user_token_key)
    rpc = await open_rpc(settings, url)
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await UserTokenStore(rpc, sealer).count()
    finally:
        await rpc.close()
