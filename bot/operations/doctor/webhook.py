"""The webhook through its public address: our own encrypted challenge, as Feishu sends it.

Source: Feishu, “Configure the request URL”: the answer must come within one second.
"""

from __future__ import annotations

import json
import secrets

from bot.feishu import crypto
from bot.operations.doctor.http_exchange import HttpAnswer, Silent, ask
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.settings import Settings

PATH = "/webhook/event"
_LIMIT_S = 1.0


def webhook(settings: Settings, public_url: str = "") -> Check:
    """`public_url`: the origin under which Feishu reaches the bot, instead of PUBLIC_URL."""
    origin = (public_url or settings.public_url).rstrip("/").removesuffix(PATH)
    if not origin:
        return unknown(
            "webhook",
            "The public address is unknown. Set PUBLIC_URL, or add --url https://YOUR-HOST.",
            "不知道公网地址：请设置 PUBLIC_URL，或使用 --url https://你的域名。",
        )
    url, challenge = f"{origin}{PATH}", secrets.token_hex(16)
    plain = {
        "type": "url_verification",
        "challenge": challenge,
        "token": settings.feishu_verification_token,
    }
    ciphertext = crypto.encrypt(settings.feishu_encrypt_key, json.dumps(plain).encode())
    try:
        answer = ask("POST", url, body={"encrypt": ciphertext})
    except Silent as exc:
        sentence = exc.sentence
        return fail(
            "webhook",
            f"Feishu can't reach the webhook: {sentence.en}. Start the bot, and check the proxy "
            "or tunnel.",
            f"飞书无法访问 webhook：{sentence.zh}。请启动机器人，并检查反向代理或隧道。",
            link=url,
        )
    if answer.status == 200 and answer.body.get("challenge") == challenge:
        return _answered(url, answer)
    return _not_ours(url, answer)


def _answered(url: str, answer: HttpAnswer) -> Check:
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


def _not_ours(url: str, answer: HttpAnswer) -> Check:
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
            f"There is no {PATH} at that address (404): the proxy sends it elsewhere, or the bot "
            "runs with FEISHU_TRANSPORT=websocket.",
            f"该地址没有 {PATH}（404）：反向代理转发到了别处，或机器人以 "
            "FEISHU_TRANSPORT=websocket 运行。",
            link=url,
        )
    return fail(
        "webhook",
        f"Something other than this bot answers there (HTTP {status}). Check the proxy or tunnel.",
        f"那里应答的不是本机器人（HTTP {status}）。请检查反向代理或隧道。",
        link=url,
    )
