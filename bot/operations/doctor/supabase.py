"""Supabase: keys of the right kind in the right variables, and whether the API takes them."""

from __future__ import annotations

import base64
import json

from bot.operations.doctor.http_exchange import NoHttpAnswer, http_request
from bot.operations.doctor.result import Check, fail, ok, warn
from bot.settings import Settings
from memory.backends.supabase_answers import refusal_error
from memory.errors import KeyRefused, NotMigrated, StoreError
from memory.fallback.breaker import PROBE_CALLS

_DASHBOARD = "https://supabase.com/dashboard/project/_/settings"
_KEYS, _JWT = f"{_DASHBOARD}/api-keys", f"{_DASHBOARD}/jwt"
_STATUS = "https://status.supabase.com"
_TIMEOUT_S = 5.0


def supabase_checks(settings: Settings) -> list[Check]:
    """What the keys look like, then what Supabase says of them; nothing without SUPABASE_URL, or
    without a key to sign with, which the settings miss already."""
    signs = settings.supabase_jwt_private_key or settings.supabase_jwt_secret
    if not settings.supabase_url or not signs:
        return []
    checks_made = key_checks(settings)
    return checks_made or [api_check(settings)]


def key_checks(settings: Settings) -> list[Check]:
    """Keys that stand in the wrong variable, without asking anybody."""
    key_checks = []
    if _kind(settings.supabase_publishable_key) == "secret":
        key_checks.append(
            _misplaced_check("SUPABASE_PUBLISHABLE_KEY", "a secret key", "secret 密钥")
        )
    if _kind(settings.supabase_secret_key) == "publishable":
        key_checks.append(
            _misplaced_check("SUPABASE_SECRET_KEY", "a publishable key", "publishable 密钥")
        )
    if _kind(settings.supabase_jwt_secret) != "other" and settings.supabase_jwt_secret:
        key_checks.append(
            fail(
                "supabase keys",
                "SUPABASE_JWT_SECRET contains an API key. Copy the legacy JWT secret (HS256).",
                "SUPABASE_JWT_SECRET 里是 API 密钥：请复制 legacy JWT secret（HS256）。",
                link=_JWT,
            )
        )
    return key_checks


def probe_supabase(settings: Settings, *, timeout_s: float = _TIMEOUT_S) -> None:
    """Calls as the service and as a person: each has a key of its own, and turns need both.

    Raises `Silent`, or the `StoreError` that Supabase's refusal means.
    """
    from memory.backends.supabase import (
        Credentials,  # signs; only for who uses Supabase
        signing_key,
    )

    credentials = Credentials(
        settings.supabase_publishable_key,
        settings.supabase_secret_key,
        signing_key(
            secret=settings.supabase_jwt_secret, private_key=settings.supabase_jwt_private_key
        ),
    )
    for function, params, context in PROBE_CALLS:
        headers = credentials.headers(context)
        url = f"{settings.supabase_url.rstrip('/')}/rest/v1/rpc/{function}"
        answer = http_request("POST", url, body=params, headers=headers, timeout_s=timeout_s)
        if not 200 <= answer.status < 300:
            raise refusal_error(
                function, answer.status, answer.raw, credentials.variables_of(headers)
            )


def api_check(settings: Settings) -> Check:
    """Whether Supabase takes the keys, and keeps people apart with them."""
    try:
        probe_supabase(settings)
    except NoHttpAnswer as exc:
        sentence = exc.sentence
        return warn(
            "supabase",
            f"{sentence.en}: people are answered without history; look at Supabase's status page.",
            f"{sentence.zh}：机器人会在没有历史的情况下回答；请查看 Supabase 状态页。",
            link=_STATUS,
        )
    except StoreError as exc:
        return refusal_check(exc)
    return ok("supabase", "Supabase accepts the keys, both the service's and a person's.",
              "Supabase 接受密钥（服务身份和个人身份）。")  # fmt: skip


def refusal_check(problem: StoreError) -> Check:
    """What a refusal of Supabase means."""
    if isinstance(problem, NotMigrated):
        return fail(
            "supabase",
            "Supabase is missing the bot's functions. Run the migrations.",
            "Supabase 里没有机器人的函数：请运行迁移。",
            command="scripts/migrate",
        )
    if not isinstance(problem, KeyRefused):
        return warn(
            "supabase",
            f"Supabase is in trouble: {problem}.",
            f"Supabase 出现问题（{problem.code or type(problem).__name__}）：请查看状态页。",
            link=_STATUS,
        )
    variable = next((name for name in _VARIABLES if name in str(problem)), "")
    sentence = str(problem).partition(": ")[2] or str(problem)
    link = _JWT if variable == "SUPABASE_JWT_SECRET" else _KEYS
    if not variable:  # a token that is out of date
        return fail(
            "supabase", f"{sentence}.", "Supabase 认为令牌已过期：请检查本机时钟。", link=link
        )
    return fail("supabase", f"{sentence}.", f"Supabase 不接受 {variable}：请重新复制。", link=link)


_VARIABLES = ("SUPABASE_PUBLISHABLE_KEY", "SUPABASE_SECRET_KEY", "SUPABASE_JWT_SECRET")


def _misplaced_check(variable: str, en: str, zh: str) -> Check:
    return fail(
        "supabase keys",
        f"{variable} contains {en}. Swap the two.",
        f"{variable} 里是 {zh}：请对调两个密钥。",
        link=_KEYS,
    )


def _kind(key: str) -> str:
    """secret, publishable or other. Legacy keys are JWTs with a role (Supabase, “API keys”)."""
    if key.startswith("sb_secret_"):
        return "secret"
    if key.startswith("sb_publishable_"):
        return "publishable"
    return {"service_role": "secret", "anon": "publishable"}.get(_role(key), "other")


def _role(key: str) -> str:
    """The role that a JWT claims, unverified; "" for anything else."""
    parts = key.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return ""
    return str(claims.get("role", "")) if isinstance(claims, dict) else ""
