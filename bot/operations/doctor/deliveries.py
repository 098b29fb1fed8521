"""Checks that Feishu's events arrive: each kind has come, and the webhook is reached.

The webhook gets our own encrypted challenge, as Feishu sends it; the answer must come within
one second. Source: Feishu, “Configure the request URL”."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import datetime

from bot.feishu import crypto, manifest
from bot.operations.doctor.http_exchange import HttpAnswer, NoHttpAnswer, http_request
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.queue.inbox import NOTED_EVERY, REFUSAL_PREFIX
from bot.settings import Settings

# Reasons of `bot.webhook.Refused` that another key or token has; the others are strangers' noise.
_KEY_VARIABLES = {
    "wrong signature": "FEISHU_ENCRYPT_KEY",
    "cannot be decrypted": "FEISHU_ENCRYPT_KEY",
    "not encrypted": "FEISHU_ENCRYPT_KEY",
    "wrong token": "FEISHU_VERIFICATION_TOKEN",
}

WEBHOOK_PATH = "/webhook/event"
_LIMIT_S = 1.0


def subscription_checks(
    settings: Settings, arrivals: Mapping[str, datetime], now: datetime
) -> list[Check]:
    """`arrivals`: when something of each kind has last come."""
    page = manifest.console_url(settings.domain, settings.feishu_app_id, "event")
    lines = [_refusals(arrivals, page)] if not settings.long_connection else []
    lines += [
        _message(arrivals, now, page),
        _click(arrivals, now, page),
        _other_events(arrivals, page),
    ]
    return [line for line in lines if line]


def _message(arrivals: Mapping[str, datetime], now: datetime, page: str) -> Check:
    name = manifest.MESSAGE.name
    if last := arrivals.get(name):
        ago = _time_ago(last, now)
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
        ago = _time_ago(last, now)
        return ok("clicks", f"The last click arrived {ago[0]} ago.",
                  f"最近一次点击在{ago[1]}前到达。")  # fmt: skip
    return warn(
        "clicks",
        f"No click has ever arrived: add {name} on the tab Callback Configuration, publish a "
        "version, then press a button.",
        f"从未收到过点击：请在“回调配置”标签页添加 {name}，发布版本，然后点击一个按钮。",
        link=page,
    )


def _other_events(arrivals: Mapping[str, datetime], page: str) -> Check:
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
        kind.removeprefix(REFUSAL_PREFIX): at
        for kind, at in arrivals.items()
        if kind.startswith(REFUSAL_PREFIX)
    }
    key_refusals = {reason: at for reason, at in reasons.items() if reason in _KEY_VARIABLES}
    last_taken = max(
        (at for kind, at in arrivals.items() if kind not in _refused_kinds(arrivals)), default=None
    )
    if not key_refusals:
        return None
    reason = max(key_refusals, key=lambda one: key_refusals[one])
    if last_taken and key_refusals[reason] - last_taken <= NOTED_EVERY:
        return None
    variable = _KEY_VARIABLES[reason]
    return fail(
        "deliveries",
        f"The webhook refuses what Feishu sends ({reason}): copy {variable} once more from "
        "Encryption Strategy.",
        f"webhook 拒绝了飞书的推送（{reason}）：请从“加密策略”重新复制 {variable}。",
        link=page,
    )


def _refused_kinds(arrivals: Mapping[str, datetime]) -> set[str]:
    return {kind for kind in arrivals if kind.startswith(REFUSAL_PREFIX)}


def _time_ago(then: datetime, now: datetime) -> tuple[str, str]:
    """Roughly, for an arrival is noted once an hour."""
    minutes = max(0.0, (now - then).total_seconds() / 60)
    if minutes < 60:
        return "less than an hour", "不到一小时"
    if minutes < 48 * 60:
        return f"{minutes / 60:.0f} h", f" {minutes / 60:.0f} 小时"
    return f"{minutes / 60 / 24:.0f} days", f" {minutes / 60 / 24:.0f} 天"


def webhook_check(settings: Settings, public_url: str = "") -> Check:
    """`public_url`: the origin under which Feishu reaches the bot, instead of PUBLIC_URL."""
    origin = (public_url or settings.public_url).rstrip("/").removesuffix(WEBHOOK_PATH)
    if not origin:
        return unknown(
            "webhook",
            "The public address is unknown. Set PUBLIC_URL, or add --url https://YOUR-HOST.",
            "不知道公网地址：请设置 PUBLIC_URL，或使用 --url https://你的域名。",
        )
    url, challenge = f"{origin}{WEBHOOK_PATH}", secrets.token_hex(16)
    plain = {
        "type": "url_verification",
        "challenge": challenge,
        "token": settings.feishu_verification_token,
    }
    ciphertext = crypto.encrypt(settings.feishu_encrypt_key, json.dumps(plain).encode())
    try:
        answer = http_request("POST", url, body={"encrypt": ciphertext})
    except NoHttpAnswer as exc:
        sentence = exc.sentence
        return fail(
            "webhook",
            f"Feishu can't reach the webhook: {sentence.en}. Start the bot, and check the proxy "
            "or tunnel.",
            f"飞书无法访问 webhook：{sentence.zh}。请启动机器人，并检查反向代理或隧道。",
            link=url,
        )
    if answer.status == 200 and answer.body.get("challenge") == challenge:
        return _answered_check(url, answer)
    return _foreign_answer(url, answer)


def _answered_check(url: str, answer: HttpAnswer) -> Check:
    took = f"{answer.seconds:.2f} s"
    if answer.seconds > _LIMIT_S:
        return warn(
            "webhook",
            f"It takes {took} to answer the challenge, and Feishu only waits 1 s. Check the "
            "proxy or tunnel.",
            f"它用了 {took} 才应答校验，而飞书只等 1 秒。请检查反向代理或隧道。",
            link=url,
        )
    return ok("webhook", f"{url} answers our challenge in {took}.",
              f"{url} 在 {took} 内通过了校验。")  # fmt: skip


def _foreign_answer(url: str, answer: HttpAnswer) -> Check:
    status = answer.status
    if status == 400:
        return fail(
            "webhook",
            "It refuses our challenge: the running bot has another FEISHU_ENCRYPT_KEY or "
            "FEISHU_VERIFICATION_TOKEN; restart it with these settings.",
            "它拒绝了我们的校验：正在运行的机器人用的是另一个 FEISHU_ENCRYPT_KEY 或 "
            "FEISHU_VERIFICATION_TOKEN；请用当前设置重启它。",
            link=url,
        )
    if status == 404:
        return fail(
            "webhook",
            f"There is no {WEBHOOK_PATH} at that address (404): the proxy sends it elsewhere, or "
            "the bot runs with FEISHU_TRANSPORT=websocket.",
            f"该地址没有 {WEBHOOK_PATH}（404）：反向代理转发到了别处，或机器人以 "
            "FEISHU_TRANSPORT=websocket 运行。",
            link=url,
        )
    return fail(
        "webhook",
        f"Something other than this bot answers there (HTTP {status}). Check the proxy or tunnel.",
        f"那里应答的不是本机器人（HTTP {status}）。请检查反向代理或隧道。",
        link=url,
    )
