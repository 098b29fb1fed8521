"""This machine: room on the disk, the clock beside Feishu's, the time zone."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.process.board import Board
from bot.process.loop_watch import BLOCKED_S, blocks_of_today
from bot.settings import Settings
from memory.proxies import ignored_proxies

_MB = 1024 * 1024
_FULL = 200 * _MB
_NEARLY_FULL = 1024 * _MB
# Feishu's signatures carry times, and a token for Supabase lives for five minutes.
_FAST_S, _WRONG_S = 30, 120

_PROXY_REASONS = {
    "SOCKS proxies are not supported": "不支持 SOCKS 代理",
    "it is no address of a proxy": "它不是代理地址",
}


def disk(settings: Settings, *, free: int | None = None) -> Check:
    """Where DATA_DIR is; `free` in bytes, as it is found unless given."""
    folder = settings.data_dir.absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    left = shutil.disk_usage(there).free if free is None else free
    size, path = f"{left / _MB / 1024:,.1f} GB", _short(folder)
    if left < _FULL:
        return fail("disk", f"Only {left / _MB:,.0f} MB are left for {path}: make room.",
                    f"{path} 只剩 {left / _MB:,.0f} MB：请清理磁盘。")  # fmt: skip
    if left < _NEARLY_FULL:
        return warn("disk", f"{left / _MB:,.0f} MB are left for {path}.",
                    f"{path} 剩余 {left / _MB:,.0f} MB。")  # fmt: skip
    return ok("disk", f"{size} are free for {path}.", f"{path} 可用 {size}。")


def proxies() -> list[Check]:
    """The proxies in the environment that the bot ignores; no line if there are none."""
    return [
        warn(
            "proxy",
            f"{one.variable} is ignored: {one.reason}. Set HTTPS_PROXY to an HTTP proxy, or unset "
            "the variable.",
            f"{one.variable} 被忽略：{_PROXY_REASONS.get(one.reason, one.reason)}。"
            "请把 HTTPS_PROXY 设为 HTTP 代理，或取消这个变量。",
        )
        for one in ignored_proxies()
    ]


def clock(header: str, now: datetime) -> Check:
    """`header`: the Date of an answer of Feishu's that came just now; "" when there was none."""
    try:
        theirs = parsedate_to_datetime(header)
    except ValueError:
        return unknown("clock", "Feishu didn't say what time it is.", "飞书没有返回时间。")
    theirs = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    off = (now - theirs).total_seconds()
    seconds = f"{abs(off):,.0f} s"
    if abs(off) < _FAST_S:
        return ok("clock", "This machine's clock agrees with Feishu's.", "本机时间与飞书一致。")
    en = f"This machine is {seconds} {'ahead of' if off > 0 else 'behind'} Feishu: switch NTP on."
    zh = f"本机时间比飞书{'快' if off > 0 else '慢'} {seconds}：请启用 NTP。"
    say = fail if abs(off) > _WRONG_S else warn
    return say("clock", en, zh, command="timedatectl set-ntp true")


def event_loop(settings: Settings, now: datetime) -> Check:
    """Whether something made everybody on this machine wait within a day."""
    blocks = blocks_of_today(Board(settings.data_dir).folder, now.timestamp())
    if not blocks:
        return ok(
            "event loop",
            f"Nothing blocked it for over {BLOCKED_S:g} s in the last 24 hours.",
            f"过去 24 小时没有超过 {BLOCKED_S:g} 秒的阻塞。",
        )
    ours = [one for one in blocks if one.is_ours]
    longest = max(ours or blocks, key=lambda one: one.seconds)
    took, where = f"{longest.seconds:.1f} s", longest.where or "?"
    if ours:
        return warn(
            "event loop",
            f"Code blocked it in the last 24 hours ({len(ours)}×, up to {took}, in {where}): "
            "report this.",
            f"过去 24 小时被代码阻塞 {len(ours)} 次，最长 {took}，位置：{where}。请反馈此问题。",
        )
    return warn(
        "event loop",
        f"It waited for the processor in the last 24 hours ({len(blocks)}×, up to {took}): "
        "this machine is too busy.",
        f"过去 24 小时等待处理器 {len(blocks)} 次，最长 {took}：本机负载过高。",
    )


def time_zone(settings: Settings, now: datetime) -> Check:
    """What “today” means. Only a machine that says another place than UTC is asked about."""
    zone, here = settings.zone, now.astimezone()
    there = now.astimezone(zone)
    local_time, name = there.strftime("%Y-%m-%d %H:%M"), zone.key
    offset = here.utcoffset()
    if not settings.timezone and offset and offset != there.utcoffset():
        return warn(
            "time zone",
            f"“Today” is counted in {name} ({local_time}), which is not this machine's time zone: "
            "set TIMEZONE.",
            f"“今天”按 {name} 计算（{local_time}），与本机时区不同：请设置 TIMEZONE。",
        )
    return ok(
        "time zone", f"{name}, where it is now {local_time}.", f"{name}，当地时间 {local_time}。"
    )


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
