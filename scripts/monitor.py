"""Shows what the service is doing: from its JSON log, and with --db from the live tables.

On a terminal the picture is refreshed until Ctrl+C. With a limit exceeded the status is 1 and the
alarm is named, so that cron can watch.

Examples:
  scripts/start 2>&1 | tee bot.log | scripts/monitor -     beside the running bot
  scripts/monitor /var/log/bot/web.log /var/log/bot/worker.log
  scripts/monitor --db                              the queue and the tables, without a log
  scripts/monitor bot.log --once --json             one report for other programs
  scripts/monitor bot.log --once --max-p95 20 --max-errors 0
  scripts/monitor --db --once --max-queue 50 --max-pending-age 120
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from bot.operations.doctor import health
from bot.operations.doctor.result import Check
from bot.queue.looking import DatabaseTrouble
from bot.queue.operator_actions import QueueDepth
from bot.settings import load_existing, read
from bot.text.languages import Language, Sentence
from memory.errors import StoreError
from memory.tables.operations import RecentTurns
from scripts.operating.arguments import (
    FINDINGS,
    add_language,
    in_language,
    language,
    parser,
    run_script,
)
from scripts.operating.checklist import mark
from scripts.operating.console import Screen, print_json, rich_table, run
from scripts.operating.desk import OperatorDesk, open_desk
from scripts.operating.logs import (
    LogFile,
    LoggedBacklog,
    LogSource,
    MonitorLimits,
    StandardInput,
    Window,
    WindowReport,
    alarms,
)
from scripts.operating.words import counted, said_in

Rows = Sequence[tuple[str, ...]]
_ALARM = Sentence("ALARM", "告警")


@dataclass(frozen=True)
class Picture:
    """One moment: the log's report, the tables' (with --db), the alarms, and whether people get
    answers (with --db)."""

    report: WindowReport
    queue: QueueDepth | None
    recent: RecentTurns | None
    alarms: Sequence[str]
    health: Sequence[Check] = ()


class Monitor:
    """Reads its sources on request; `desk` is there with --db."""

    def __init__(
        self,
        sources: Sequence[LogSource],
        desk: OperatorDesk | None,
        window_s: int,
        limits: MonitorLimits,
        language: Language = "en",
    ) -> None:
        self._sources = sources
        self._desk = desk
        self._window_s = window_s
        self._window = Window(window_s)
        self._limits = limits
        self._language = language

    async def look(self) -> Picture:
        for source in self._sources:
            for line in source.lines():
                self._window.add(line)
        report = self._window.report(time.time())
        if self._desk is None:
            return Picture(report, None, None, self._exceeded(report, None))
        found = await asyncio.to_thread(
            health.health_checks, self._desk.url, self._desk.settings.zone
        )
        red = [
            f"{one.title.said(self._language)}{self._colon}{one.sentence.said(self._language)}"
            f" → {one.next_step or 'scripts/doctor'}"
            for one in found
            if one.state == "fail"
        ]
        if any(one.name == health.DATABASE_CHECK for one in found):
            return Picture(report, None, None, [*red, *self._exceeded(report, None)], found)
        away = []
        queue: QueueDepth | None = None
        recent: RecentTurns | None = None
        try:
            queue = await asyncio.to_thread(self._desk.queue.depth)
            recent = await self._desk.operations.recent(seconds=self._window_s)
        except (DatabaseTrouble, StoreError) as exc:
            said = exc.said(self._language) if isinstance(exc, DatabaseTrouble) else exc
            memory = Sentence("memory", "记忆").said(self._language)
            away.append(f"{memory}{self._colon}{said} → scripts/doctor")
        exceeded = self._exceeded(report, _backlog(queue, recent))
        return Picture(report, queue, recent, [*red, *exceeded, *away], found)

    def _exceeded(self, report: WindowReport, backlog: LoggedBacklog | None) -> list[str]:
        return [one.said(self._language) for one in alarms(report, backlog, self._limits)]

    @property
    def _colon(self) -> str:
        return "：" if self._language == "zh" else ": "


def _backlog(queue: QueueDepth | None, recent: RecentTurns | None) -> LoggedBacklog | None:
    """What waits, as far as the databases answer."""
    if queue is None:
        return None
    ages = (queue.oldest_waiting_s, recent.oldest_unfinished_s if recent else None)
    oldest_s = max((age for age in ages if age), default=None)
    return LoggedBacklog(queue.waiting, oldest_s, queue.oldest_unstored_s)


def main() -> int:
    return run(_monitor, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("monitor", __doc__)
    options.add_argument("log", nargs="*", metavar="FILE", help="log files; - is standard input")
    options.add_argument("--db", action="store_true", help="look into the configured database")
    options.add_argument("--once", action="store_true", help="one picture, then end")
    options.add_argument("--json", action="store_true", help="one JSON document per picture")
    options.add_argument("--interval", type=float, default=2.0, metavar="S", help="refresh (2)")
    options.add_argument("--window", type=int, default=900, metavar="S", help="look back (900)")
    limits = options.add_argument_group("alarms")
    limits.add_argument("--max-p95", type=float, metavar="S", help="of the time to the answer")
    limits.add_argument("--max-errors", type=int, metavar="N", help="error lines in the window")
    limits.add_argument("--max-queue", type=int, metavar="N", help="waiting jobs (needs --db)")
    limits.add_argument(
        "--max-pending-age", type=float, metavar="S", help="of unfinished work (needs --db)"
    )
    limits.add_argument(
        "--max-memory-away", type=float, metavar="S", help="while turns wait to be written"
    )
    add_language(options)
    given = options.parse_args()
    if not given.log and not given.db:
        options.error(
            in_language(
                "nothing to look at: give a log file, - for standard input, or --db",
                "没有可看的内容：请给出日志文件、-（标准输入）或 --db",
                given.lang,
            )
        )
    if _limits(given).need_tables and not given.db:
        options.error(
            in_language(
                "--max-queue and --max-pending-age need --db",
                "--max-queue 和 --max-pending-age 需要 --db",
                given.lang,
            )
        )
    missing = [name for name in given.log if name != "-" and not Path(name).exists()]
    if missing and given.once:
        names = ", ".join(missing)
        options.error(
            in_language(f"no such log file: {names}", f"没有这个日志文件：{names}", given.lang)
        )
    return given


def _limits(given: argparse.Namespace) -> MonitorLimits:
    return MonitorLimits(
        p95_s=given.max_p95,
        errors=given.max_errors,
        queue=given.max_queue,
        pending_age_s=given.max_pending_age,
        memory_away_s=given.max_memory_away,
    )


async def _monitor(given: argparse.Namespace) -> int:
    async with contextlib.AsyncExitStack() as stack:
        settings = load_existing() if given.db else read()
        desk = await stack.enter_async_context(open_desk(settings)) if given.db else None
        sources = [StandardInput() if name == "-" else LogFile(Path(name)) for name in given.log]
        for source in sources:
            stack.callback(source.close)
        spoken: Language = "en" if given.json else language(given.lang)
        monitor = Monitor(sources, desk, given.window, _limits(given), spoken)
        if given.once:
            picture = await _once(monitor, sources, given)
        else:
            picture = await _follow(monitor, sources, given, settings.zone)
    for alarm in picture.alarms:
        print(f"{_ALARM.said(spoken)} {alarm}", file=sys.stderr)
    return FINDINGS if picture.alarms else 0


async def _once(
    monitor: Monitor, sources: Iterable[LogSource], given: argparse.Namespace
) -> Picture:
    for source in sources:
        if isinstance(source, StandardInput):
            await asyncio.to_thread(source.wait)
    picture = await monitor.look()
    if given.json:
        print_json(asdict(picture))
    else:
        screen = Screen(language(given.lang))
        good = not picture.alarms and not picture.report.errors
        screen.verdict("monitor", _verdict(picture), good=good)
        for title, columns, rows in _tables(picture, language(given.lang)):
            screen.table(title, columns, rows)
    return picture


async def _follow(
    monitor: Monitor, sources: Sequence[LogSource], given: argparse.Namespace, zone: tzinfo
) -> Picture:
    """Until Ctrl+C, or until standard input, the only source, has ended."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    console = Console()
    drawn = console.is_terminal and not given.json
    with Live(console=console, auto_refresh=False) if drawn else contextlib.nullcontext() as live:
        while True:
            over = bool(sources) and not given.db and all(map(_has_ended, sources))
            picture = await monitor.look()
            if live:
                drawing = _drawing(picture, datetime.now(zone), language(given.lang))
                live.update(drawing, refresh=True)
            elif given.json:
                print_json(asdict(picture))
                sys.stdout.flush()
            else:
                print(_line(picture, datetime.now(zone)), flush=True)
            if stop.is_set() or over:
                return picture
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), given.interval)


def _has_ended(source: LogSource) -> bool:
    return isinstance(source, StandardInput) and source.ended


def _verdict(picture: Picture) -> Sentence:
    if alarms := len(picture.alarms):
        return Sentence(counted(alarms, "alarm"), f"{alarms} 个告警")
    if errors := sum(picture.report.errors.values()):
        return Sentence(f"{counted(errors, 'error')} in the log; no limit is exceeded",
                        f"日志中有 {errors} 个错误；没有超出限值")  # fmt: skip
    warned = sum(one.state == "warn" for one in picture.health)
    if warned:
        return Sentence(f"{counted(warned, 'warning')}; no limit is exceeded",
                        f"{warned} 个警告；没有超出限值")  # fmt: skip
    return Sentence("all within limits", "都在限值内")


def _drawing(picture: Picture, now: datetime, language: Language) -> Group:
    """Alarms first: what does not fit on the screen is cut off at its end."""
    warnings = [
        Text(f"{_ALARM.said(language)} {alarm}", style="bold red") for alarm in picture.alarms
    ]
    tables = [rich_table(*table) for table in _tables(picture, language)]
    return Group(Text(f"{now:%H:%M:%S}"), *warnings, Columns(tables, padding=(0, 2)))


def _line(picture: Picture, now: datetime) -> str:
    """The picture in one line, for a log of its own."""
    report = picture.report
    total = report.latency.get("total")
    parts = {
        "turns": sum(report.turns.values()),
        "in_flight": report.in_flight,
        "p95_s": round(total.p95, 2) if total else None,
        "errors": sum(report.errors.values()),
        "retries": report.retries,
        "waiting": picture.queue.waiting if picture.queue else None,
        "memory_away_s": None if report.memory_away_s is None else round(report.memory_away_s),
        "unstored": picture.queue.unstored if picture.queue else None,
    }
    shown = " ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
    alarm = "".join(f" ALARM {alarm}" for alarm in picture.alarms)
    return f"{now:%H:%M:%S} {shown}{alarm}"


def _tables(picture: Picture, language: Language) -> list[tuple[str, Sequence[str], Rows]]:
    """Title, columns and rows of everything there is to show."""
    report = picture.report
    tables: list[tuple[str, Sequence[str], Rows]] = [
        ("Health", ("check", "state", "what", "next"), _checks(picture.health, language)),
        (
            _last_minutes(report.window_s / 60, language),
            ("what", "now"),
            _figures(report, language),
        ),
        ("Latency", ("stage", "n", "p50 s", "p95 s"), _latencies(report)),
        ("Events", ("outcome", "count"), _counts(report.events)),
        ("Turns", ("outcome", "count"), _counts(report.turns)),
        ("Decisions", ("decision", "count"), _counts(report.decisions)),
        ("Errors", ("error", "count"), _counts(report.errors)),
        ("Warnings", ("warning", "count"), _counts(report.warnings)),
    ]
    if picture.queue or picture.recent:
        tables.append(("Queue and tables", ("what", "now"), _stored(picture.queue, picture.recent)))
    said = partial(said_in, language)
    return [
        (said(title), [*map(said, columns)], [(said(row[0]), *row[1:]) for row in rows])
        for title, columns, rows in tables
        if rows
    ]


def _last_minutes(minutes: float, language: Language) -> str:
    english = f"Last {minutes:g} minute{'' if minutes == 1 else 's'}"
    return Sentence(english, f"最近 {minutes:g} 分钟").said(language)


def _checks(health: Sequence[Check], language: Language) -> Rows:
    return [
        (
            one.title.said(language),
            mark(one.state, language),
            one.sentence.said(language),
            one.next_step,
        )
        for one in health
    ]


def _figures(report: WindowReport, language: Language) -> Rows:
    figures: dict[str, int] = {
        "turns in flight": report.in_flight,
        "tokens in": report.tokens_in,
        "tokens out": report.tokens_out,
        "retries": report.retries,
        "answers without memory": report.degraded,
        "lines that are no log entries": report.skipped_lines,
    }
    away_s = report.memory_away_s
    memory = (
        Sentence("there", "可用") if away_s is None
        else Sentence(f"away for {away_s:.0f} s", f"已中断 {away_s:.0f} 秒")
    ).said(language)  # fmt: skip
    return [*((name, f"{value:,}") for name, value in figures.items()), ("memory", memory)]


def _latencies(report: WindowReport) -> Rows:
    return [
        (stage, str(latency.count), f"{latency.p50:.3f}", f"{latency.p95:.3f}")
        for stage, latency in report.latency.items()
    ]


def _counts(counts: Mapping[str, int]) -> Rows:
    return [(name, f"{n:,}") for name, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]


def _stored(queue: QueueDepth | None, recent: RecentTurns | None) -> Rows:
    return [*(_queued(queue) if queue else ()), *(_remembered(recent) if recent else ())]


def _queued(queue: QueueDepth) -> Rows:
    seconds = {
        "oldest waiting job": queue.oldest_waiting_s,
        "waits longest for the memory": queue.oldest_unstored_s,
    }
    return [
        ("jobs waiting", str(queue.waiting)),
        ("jobs running", str(queue.running)),
        ("jobs failed", str(queue.failed)),
        ("turns waiting for the memory", str(queue.unstored)),
        *_seconds(seconds),
    ]


def _remembered(recent: RecentTurns) -> Rows:
    seconds = {
        "oldest unfinished turn": recent.oldest_unfinished_s,
        "p50 of the answers": recent.p50,
        "p95 of the answers": recent.p95,
    }
    return [
        ("turns unfinished", str(recent.unfinished)),
        ("repeated attempts", str(recent.retries)),
        *_seconds(seconds),
        *((f"questions {outcome}", count) for outcome, count in _counts(recent.turns)),
        *((f"decisions {reason}", count) for reason, count in _counts(recent.decisions)),
    ]


def _seconds(values: Mapping[str, float | None]) -> Rows:
    return [(name, f"{value:.1f} s") for name, value in values.items() if value is not None]


if __name__ == "__main__":
    run_script(main)
