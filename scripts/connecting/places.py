"""What set-up asks about the service: its time zone, its database, and its administrators."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg

from bot.operations.doctor import supabase
from bot.operations.doctor.checks import time_zone_check
from bot.operations.doctor.database import database_checks
from bot.operations.doctor.result import Check, fail
from bot.process import settings_values as rules
from bot.settings import Settings, SettingsError
from bot.text.languages import Sentence
from memory import migrations
from scripts.connecting.talk import Talk

SUPABASE = (
    "SUPABASE_URL",
    "SUPABASE_PUBLISHABLE_KEY",
    "SUPABASE_SECRET_KEY",
    "SUPABASE_JWT_PRIVATE_KEY",
    "SUPABASE_JWT_SECRET",
)
_ZONE = Sentence("Time zone, by which “today” is counted", "时区（“今天”按它计算）")
_MEMORY = Sentence("Where to keep the memory", "记忆保存在哪里")
_MEMORIES = (
    Sentence("here, in an embedded Postgres", "本机的内嵌 Postgres"),
    Sentence("in a Postgres of your own", "自己的 Postgres"),
    Sentence("in your Supabase project", "自己的 Supabase 项目"),
)
_URL = Sentence("DATABASE_URL (postgresql://…)", "DATABASE_URL（postgresql://…）")
_ADMINS = Sentence(
    "Names of those who may open /console, with commas between (Enter: nobody)",
    "谁可以打开 /console（用逗号分隔；回车：无）",
)
_ADMINS_AGAIN = Sentence(
    "Names of those who may open /console, with commas between (Enter: as now; none: nobody)",
    "谁可以打开 /console（用逗号分隔；回车：不变；输入“无”：无人）",
)
_NOBODY = ("none", "nobody", "无", "无人")
_SIGNING_IN = Sentence(
    "Once the bot runs, scripts/console prints a link that signs them in.",
    "机器人启动后，用 scripts/console 获取登录链接。",
)
TRY_AGAIN = Sentence("Try again?", "再试一次？")


def usual_zone(domain: str) -> str:
    """This machine's time zone, or the tenant's usual one where this is UTC, as on most servers."""
    here = rules.machine_zone()
    return here if here not in ("", "UTC") else Settings(feishu_domain=domain).zone.key


def choose_zone(talk: Talk, given: str, *, default: str) -> dict[str, str]:
    """Returns the variable to write. Raises `Unanswered`, and `SettingsError` for a bad `given`."""
    rules.require_time_zone("TIMEZONE", given)
    name = given or talk.ask_until(
        lambda value: rules.require_time_zone("TIMEZONE", value),
        lambda: talk.ask(_ZONE, option="--time-zone", default=default),
    )
    talk.check(time_zone_check(Settings(timezone=name), datetime.now(UTC)))
    return {"TIMEZONE": name}


def choose_admins(talk: Talk, given: str, *, default: str) -> dict[str, str]:
    """Returns the variable to write, if any. Raises as `choose_zone`."""
    rules.require_names("CONSOLE_ADMINS", given)
    question = _ADMINS_AGAIN if default else _ADMINS
    names = given or talk.ask_until(
        lambda value: rules.require_names("CONSOLE_ADMINS", value),
        lambda: talk.ask(question, option="--admins", default=default),
    )
    if names.lower() in _NOBODY:
        names = ""
    if names:
        talk.say(_SIGNING_IN, indent="    ")
    return {"CONSOLE_ADMINS": names} if names or default else {}


def choose_memory(talk: Talk, kept: Mapping[str, str]) -> dict[str, str] | None:
    """Returns the variables to write once the database is migrated and every key was accepted; None
    when that failed, and all is to stay as it is. Raises `Unanswered`."""
    while True:
        number = talk.chosen(_MEMORY, _MEMORIES, option="DATABASE_URL to .env")
        wanted = dict.fromkeys(("DATABASE_URL", *SUPABASE), "")
        if number:
            wanted["DATABASE_URL"] = talk.secret(_URL, option="DATABASE_URL to .env")
        if number == 2:
            wanted |= _asked_supabase(talk)
        checks = memory_checks(wanted) if number else []
        for check in checks:
            talk.check(check)
        if all(check.state in ("ok", "warn") for check in checks):
            return {name: value for name, value in wanted.items() if value or kept.get(name)}
        if not talk.confirmed(TRY_AGAIN):
            return None


def _asked_supabase(talk: Talk) -> dict[str, str]:
    """The project's address and keys. A signing key is a JSON object, a legacy secret is not."""
    address, publishable, secret, *_ = SUPABASE
    found = {address: talk.ask(Sentence(address, address), option=f"{address} to .env")}
    for name in (publishable, secret):
        found[name] = talk.secret(Sentence(name, name), option=f"{name} to .env")
    either = Sentence(
        "SUPABASE_JWT_PRIVATE_KEY or SUPABASE_JWT_SECRET",
        "SUPABASE_JWT_PRIVATE_KEY 或 SUPABASE_JWT_SECRET",
    )
    key = talk.secret(either, option="SUPABASE_JWT_SECRET to .env")
    return found | {SUPABASE[3] if key.startswith("{") else SUPABASE[4]: key}


def memory_checks(wanted: Mapping[str, str]) -> list[Check]:
    """Migrates the database, then looks at it and at Supabase's keys as the doctor does."""
    if not wanted["DATABASE_URL"]:
        return [fail("database", "DATABASE_URL is not set.", "没有设置 DATABASE_URL。")]
    try:
        rules.require_database_url("DATABASE_URL", wanted["DATABASE_URL"])
        rules.require_url("SUPABASE_URL", wanted["SUPABASE_URL"], "https://PROJECT.supabase.co")
    except SettingsError as exc:
        return [fail("database", str(exc), exc.zh)]
    values: dict[str, Any] = {name.lower(): value for name, value in wanted.items() if value}
    settings = Settings(**values)
    checks, url = database_checks(settings)
    if any(check.command == "scripts/migrate" for check in checks):
        try:
            migrations.apply_migrations(settings.database_url)
        except (psycopg.Error, migrations.MigrationFailed) as exc:
            return [*checks[:1], fail("migrations", f"{exc}", f"{exc}", command="scripts/migrate")]
        checks, url = database_checks(settings)
    return [*checks, *(supabase.supabase_checks(settings) if url else [])]
