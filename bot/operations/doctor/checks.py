"""All the checks, beside each other, in the order in which they are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.agents.operator_files import check_files
from bot.operations.doctor import (
    accounts,
    database,
    feishu,
    health,
    machine,
    model,
    subscriptions,
    supabase,
    webhook,
)
from bot.operations.doctor.http_exchange import Silent
from bot.operations.doctor.outside_tools import outside_tools
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.settings import Settings, SettingsError, load, misspelt_names, read

_AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Wishes:
    """`public_url` instead of PUBLIC_URL; without `probe` nothing is written, not even briefly;
    `running` is false where the bot need not run yet."""

    public_url: str = ""
    probe: bool = True
    running: bool = True
    now: Callable[[], float] = time.time

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)


Group = Callable[[Settings, Wishes], Sequence[Check]]


def examine(wishes: Wishes | None = None) -> list[Check]:
    """Everything there is to check with the settings as they are."""
    wishes = wishes or Wishes()
    checks, settings = _settings()
    if settings is None:
        return checks
    groups: list[tuple[str, Group]] = [("machine", _machine), ("database", _database)]
    groups += [("supabase", _supabase), ("model", _models), ("tools", _tools)]
    if settings.feishu_app_id and not settings.sandbox:
        groups.insert(0, ("feishu", _feishu))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = [pool.submit(_guarded, name, group, settings, wishes) for name, group in groups]
        return [*checks, *(check for one in running for check in one.result())]


def _settings() -> tuple[list[Check], Settings | None]:
    """What is wrong with them in one line; and what can be used of them nevertheless."""
    checks = [_misspelt(name, meant) for name, meant in misspelt_names().items()]
    try:
        settings = load()
        check_files(settings)
    except SettingsError as exc:
        checks.insert(0, fail("settings", str(exc), exc.zh))
        try:
            return checks, read()
        except SettingsError:
            return checks, None
    if settings.sandbox:
        checks.insert(0, _no_app())
        return checks, settings
    return [
        ok("settings", "All required settings are set.", "必需的设置都已填写。"),
        *checks,
    ], settings


def _no_app() -> Check:
    return warn(
        "settings",
        "No FEISHU_APP_ID is set, so the sandbox runs: a simulated group in the browser.",
        "没有设置 FEISHU_APP_ID，运行的是沙盒（浏览器里的模拟群）。",
        command="scripts/setup",
    )


def _misspelt(name: str, meant_name: str) -> Check:
    return warn(
        "settings",
        f"{name} is not a setting. Did you mean {meant_name}?",
        f"{name} 不是设置项：是否应为 {meant_name}？",
    )


def _guarded(name: str, group: Group, settings: Settings, wishes: Wishes) -> Sequence[Check]:
    """A check that fails itself must not hide the others."""
    try:
        return group(settings, wishes)
    except Silent as exc:
        return [unknown(name, f"Not checked: {exc}.", f"无法检查：{exc.sentence.zh}。")]
    except Exception as exc:  # noqa: BLE001 - its text may quote a secret
        kind = type(exc).__name__
        return [
            unknown(name, f"This check failed to run ({kind}).", f"这项检查没能运行（{kind}）。")
        ]


def _feishu(settings: Settings, wishes: Wishes) -> Sequence[Check]:
    if not settings.feishu_app_secret:
        return []  # the settings say so
    credentials, app = feishu.credentials(settings)
    checks = [credentials]
    if app:
        checks += [feishu.bot(app), *feishu.scopes(app)]
        checks += [feishu.connections(app)] if wishes.running else []
        checks.append(machine.clock(app.clock, wishes.moment()))
    if wishes.running and not settings.long_connection and settings.feishu_encrypt_key:
        checks.append(webhook.webhook(settings, wishes.public_url))
    return checks


def _tools(settings: Settings, _wishes: Wishes) -> Sequence[Check]:
    return outside_tools(settings)


def _database(settings: Settings, wishes: Wishes) -> Sequence[Check]:
    checks, url = database.database(settings)
    if not url:
        return checks
    if wishes.probe:
        checks.append(database.isolation(settings, url))
    if vector_check := database.without_vectors(settings, url):
        checks.append(vector_check)
    checks.append(accounts.accounts(settings, url))
    if wishes.running:
        checks += map(_elsewhere, health.look(url, settings.zone))
    if settings.feishu_app_id and not settings.sandbox:
        arrivals = database.arrived(url)
        checks += subscriptions.subscriptions(settings, arrivals, wishes.moment())
    return checks


def _elsewhere(check: Check) -> Check:
    """What others find by running the doctor, who runs it finds in its other lines."""
    return replace(check, command="") if check.command == "scripts/doctor" else check


def _supabase(settings: Settings, _: Wishes) -> Sequence[Check]:
    return supabase.supabase(settings)


def _models(settings: Settings, _: Wishes) -> Sequence[Check]:
    model_checks = model.models(settings)
    works = bool(settings.openai_api_key) and model_checks[0].state == "ok"
    can = [*model.abilities(settings), model.pictures(settings)] if works else []
    return [*model_checks, *can, model.embeddings(settings)]


def _machine(settings: Settings, wishes: Wishes) -> Sequence[Check]:
    now = wishes.moment()
    local = (machine.time_zone(settings, now), machine.event_loop(settings, now))
    return [machine.disk(settings), *local, *machine.proxies()]
