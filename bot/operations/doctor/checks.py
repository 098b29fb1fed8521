"""Runs all the checks beside each other, among them those of this machine and of MCP servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.agents.mcp.config import McpConfigInvalid, McpServer
from bot.agents.mcp.servers import McpServers, TimeLimits
from bot.agents.specialists import check_files, load_own_servers
from bot.operations.doctor import database, deliveries, feishu, health, model, supabase
from bot.operations.doctor.http_exchange import NoHttpAnswer
from bot.operations.doctor.result import Check, fail, ok, unknown, warn
from bot.process.metrics import LOOP_BLOCKED_S, blocks_of_today
from bot.process.plan import RunDirectory
from bot.settings import (
    Settings,
    SettingsError,
    has_database,
    load,
    misspelt_names,
    read,
    validate,
)
from bot.text import times
from bot.text.languages import LANGUAGES
from memory.proxies import ignored_proxies

_AT_ONCE = 6

_PROXY_REASONS = {
    "SOCKS proxies are not supported": "不支持 SOCKS 代理",
    "it is no address of a proxy": "它不是代理地址",
}

_LIMITS = TimeLimits(connect_s=10.0, list_s=3.0)
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ExaminationWishes:
    """`public_url` instead of PUBLIC_URL; without `probe` nothing is written, not even briefly;
    `running` is false where the bot need not run yet."""

    public_url: str = ""
    probe: bool = True
    running: bool = True
    now: Callable[[], float] = time.time

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)


CheckGroup = Callable[[Settings, ExaminationWishes], Sequence[Check]]


def run_checks(wishes: ExaminationWishes | None = None) -> list[Check]:
    """Everything there is to check with the settings as they are."""
    wishes = wishes or ExaminationWishes()
    checks, settings = _settings()
    if settings is None:
        return checks
    groups: list[tuple[str, CheckGroup]] = [("machine", _machine), ("database", _database)]
    groups += [("supabase", _supabase), ("model", _models), ("tools", _tools)]
    if settings.feishu_app_id and not settings.sandbox:
        groups.insert(0, ("feishu", _feishu))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = [
            pool.submit(_run_guarded, name, group, settings, wishes) for name, group in groups
        ]
        return [*checks, *(check for one in running for check in one.result())]


def _settings() -> tuple[list[Check], Settings | None]:
    """What is wrong with them in one line; and what can be used of them nevertheless."""
    checks = [_misspelt(name, setting) for name, setting in misspelt_names().items()]
    try:
        settings = read()
        validate(settings)
        check_files(settings)
        if has_database(settings):
            settings = load()
    except SettingsError as exc:
        checks.insert(0, fail("settings", str(exc), exc.zh))
        try:
            return checks, read()
        except SettingsError:
            return checks, None
    if settings.sandbox or not settings.feishu_app_id:
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


def _run_guarded(
    name: str, group: CheckGroup, settings: Settings, wishes: ExaminationWishes
) -> Sequence[Check]:
    """A check that fails itself must not hide the others."""
    try:
        return group(settings, wishes)
    except NoHttpAnswer as exc:
        return [unknown(name, f"Not checked: {exc}.", f"无法检查：{exc.sentence.zh}。")]
    except Exception as exc:  # noqa: BLE001 - its text may quote a secret
        kind = type(exc).__name__
        return [
            unknown(name, f"This check failed to run ({kind}).", f"这项检查没能运行（{kind}）。")
        ]


def _feishu(settings: Settings, wishes: ExaminationWishes) -> Sequence[Check]:
    if not settings.feishu_app_secret:
        return []  # the settings say so
    credentials, app = feishu.credentials_check(settings)
    checks = [credentials]
    if app:
        checks += [feishu.bot_check(app), *feishu.scope_checks(app)]
        checks += [feishu.connections_check(app)] if wishes.running else []
        checks.append(feishu.clock_check(app.clock, wishes.moment()))
    if wishes.running and not settings.long_connection and settings.feishu_encrypt_key:
        checks.append(deliveries.webhook_check(settings, wishes.public_url))
    return checks


def _tools(settings: Settings, _wishes: ExaminationWishes) -> Sequence[Check]:
    return mcp_checks(settings)


def _database(settings: Settings, wishes: ExaminationWishes) -> Sequence[Check]:
    checks, url = database.database_checks(settings)
    if not url:
        return checks
    health_found = health.health_checks(url, settings.zone) if wishes.running else []
    if [one.name for one in health_found] == [health.DATABASE_CHECK]:
        return health_found  # what follows would wait for the same
    if wishes.probe:
        checks.append(database.isolation_check(settings, url))
    if vector_check := database.vectors_check(settings, url):
        checks.append(vector_check)
    checks.append(database.accounts_check(settings, url))
    checks += [_elsewhere(one) for one in health_found if one.name != health.DISK_CHECK]
    if settings.feishu_app_id and not settings.sandbox:
        arrivals = database.arrivals_by_kind(url)
        checks += deliveries.subscription_checks(settings, arrivals, wishes.moment())
    return checks


def _elsewhere(check: Check) -> Check:
    """What others find by running the doctor, who runs it finds in its other lines."""
    return replace(check, command="") if check.command == "scripts/doctor" else check


def _supabase(settings: Settings, _: ExaminationWishes) -> Sequence[Check]:
    return supabase.supabase_checks(settings)


def _models(settings: Settings, wishes: ExaminationWishes) -> Sequence[Check]:
    model_checks = model.model_checks(settings)
    works = bool(settings.openai_api_key) and model_checks[0].state == "ok"
    can = [*model.ability_checks(settings), model.pictures_check(settings)] if works else []
    return [*model_checks, *can, model.embeddings_check(settings, running=wishes.running)]


def _machine(settings: Settings, wishes: ExaminationWishes) -> Sequence[Check]:
    now = wishes.moment()
    local = (time_zone_check(settings, now), event_loop_check(settings, now))
    return [health.disk_check(settings.data_dir), *local, *proxy_checks()]


def proxy_checks() -> list[Check]:
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


def event_loop_check(settings: Settings, now: datetime) -> Check:
    """Whether something made everybody on this machine wait within a day."""
    blocks = blocks_of_today(RunDirectory(settings.data_dir).folder, now.timestamp())
    if not blocks:
        return ok(
            "event loop",
            f"Nothing blocked it for over {LOOP_BLOCKED_S:g} s in the last 24 hours.",
            f"过去 24 小时没有超过 {LOOP_BLOCKED_S:g} 秒的阻塞。",
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


def time_zone_check(settings: Settings, now: datetime) -> Check:
    """What “today” means. Only a machine that says another place than UTC is asked about."""
    zone, here = settings.zone, now.astimezone()
    there = now.astimezone(zone)
    name = zone.key
    en, zh = (times.moment_text(there, language, now=there) for language in LANGUAGES)
    offset = here.utcoffset()
    if not settings.timezone and offset and offset != there.utcoffset():
        return warn(
            "time zone",
            f"“Today” is counted in {name} ({en}), which is not this machine's time zone: "
            "set TIMEZONE.",
            f"“今天”按 {name} 计算（{zh}），与本机时区不同：请设置 TIMEZONE。",
        )
    return ok("time zone", f"{name}, where it is now {en}.", f"{name}，当地时间 {zh}。")


def mcp_checks(settings: Settings) -> Sequence[Check]:
    """One line for each server; none if there are no servers, or the settings name the mistake."""
    try:
        servers = load_own_servers(settings)
    except McpConfigInvalid:
        return []
    return asyncio.run(_server_checks(servers)) if servers else []


async def _server_checks(servers: Sequence[McpServer]) -> list[Check]:
    running = McpServers(servers, limits=_LIMITS)
    await running.start()
    try:
        connected_servers, left_out = await running.settled(), running.left_out()
        return [
            _server_check(name, there, left_out.get(name, {}))
            for name, there in connected_servers.items()
        ]
    finally:
        await running.close()


def _server_check(server: str, there: bool, left_out: Mapping[str, str]) -> Check:
    if not there:
        return fail(
            "tools",
            f"The MCP server {server} cannot be reached. Check its entry in mcp.json.",
            f"连不上 MCP 服务器 {server}。请检查 mcp.json 中的配置。",
        )
    if left_out:
        reasons = "; ".join(f"{name}: {why}" for name, why in [*left_out.items()][:_MOST_NAMED])
        return warn(
            "tools",
            f"The MCP server {server} has tools that models cannot be given, {len(left_out)} in "
            f"all ({reasons}). Its other tools work.",
            f"MCP 服务器 {server} 有 {len(left_out)} 个工具无法提供给模型（{reasons}），"
            "其余工具可用。",
        )
    return ok("tools", f"The MCP server {server} is connected.", f"已连上 MCP 服务器 {server}。")
