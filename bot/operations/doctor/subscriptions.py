"""Events and callbacks: each is proved by having arrived. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bot.feishu import manifest
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.queue.arrivals import NOTED_EVERY, REFUSED
from bot.settings import Settings

# Reasons of `bot.webhook.Refused` that another key or token has; the others are strangers' noise.
_KEYS = {
    "wrong signature": "FEISHU_ENCRYPT_KEY",
    "cannot be decrypted": "FEISHU_ENCRYPT_KEY",
    "not encrypted": "FEISHU_ENCRYPT_KEY",
    "wrong token": "FEISHU_VERIFICATION_TOKEN",
}


def subscriptions(
    settings: Settings, arrivals: Mapping[str, datetime], now: datetime
) -> list[Check]:
    """`arrivals`: when something of each kind has last come."""
    page = manifest.console_url(settings.domain, settings.feishu_app_id, "event")
    lines = [_refusals(arrivals, page)] if not settings.long_connection else []
    lines += [_message(arrivals, now, page), _click(arrivals, now, page), _others(arrivals, page)]
    return [line for line in lines if line]


def _message(arrivals: Mapping[str, datetime], now: datetime, page: str) -> Check:
    name = manifest.MESSAGE.name
    if last := arrivals.get(name):
        ago = _ago(last, now)
        return ok("messages", f"The last message arrived {ago[0]} ago.",
                  f"最近一条消息在{ago[1]}前到达。")  # fmt: skip
    return warn(
        "messages",
        f"No message has ever arrived: add {name}, publish a version, then mention the bot.",
        f"从未收到过消息：请添加 {name}，发布版本，然后 @ 机器人。",
        link=page,
    )


def _click(arrivals: Mapping[str, datetime], now: datetime, page: str) -> Check:
    name = manifest.CLICK.name
    if last := arrivals.get(name):
        ago = _ago(last, now)
        return ok("clicks", f"The last click arrived {ago[0]} ago.",
                  f"最近一次点击在{ago[1]}前到达。")  # fmt: skip
    return warn(
        "clicks",
        f"No click has ever arrived: add {name} on the tab Callback Configuration, publish a "
        "version, then press a button.",
        f"从未收到过点击：请在“回调配置”标签页添加 {name}，发布版本，然后点击一个按钮。",
        link=page,
    )


def _others(arrivals: Mapping[str, datetime], page: str) -> Check:
    """They come when somebody does such a thing, so their absence proves nothing."""
    others = [one for one in manifest.SUBSCRIPTIONS if one.level != "required"]
    unseen = [one.name for one in others if one.name not in arrivals]
    if not unseen:
        return ok("events", "Every other event has arrived at least once.", "其他事件都收到过。")
    event_list = ", ".join(unseen)
    return unknown(
        "events",
        f"Not received yet, so not confirmed: {event_list}.",
        f"尚未收到过，无法确认已订阅：{event_list}。",
        link=page,
    )


def _refusals(arrivals: Mapping[str, datetime], page: str) -> Check | None:
    """Deliveries that our keys do not fit, when nothing was taken since the hour before."""
    reasons = {
        kind.removeprefix(REFUSED): at for kind, at in arrivals.items() if kind.startswith(REFUSED)
    }
    key_refusals = {reason: at for reason, at in reasons.items() if reason in _KEYS}
    last_taken = max(
        (at for kind, at in arrivals.items() if kind not in _refused(arrivals)), default=None
    )
    if not key_refusals:
        return None
    reason = max(key_refusals, key=lambda one: key_refusals[one])
    if last_taken and key_refusals[reason] - last_taken <= NOTED_EVERY:
        return None
    variable = _KEYS[reason]
    return fail(
        "deliveries",
        f"The webhook refuses what Feishu sends ({reason}): copy {variable} once more from "
        "Encryption Strategy.",
        f"webhook 拒绝了飞书的推送（{reason}）：请从“加密策略”重新复制 {variable}。",
        link=page,
    )


def _refused(arrivals: Mapping[str, datetime]) -> set[str]:
    return {kind for kind in arrivals if kind.startswith(REFUSED)}


def _ago(then: datetime, now: datetime) -> tuple[str, str]:
    """Roughly, for an arrival is noted once an hour."""
    minutes = max(0.0, (now - then).total_seconds() / 60)
    if minutes < 60:
        return "less than an hour", "不到一小时"
    if minutes < 48 * 60:
        return f"{minutes / 60:.0f} h", f" {minutes / 60:.0f} 小时"
    return f"{minutes / 60 / 24:.0f} days", f" {minutes / 60 / 24:.0f} 天"
