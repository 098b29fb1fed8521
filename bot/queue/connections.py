"""The configured connections: the database that holds the queue, and the way to the memory; and
what is logged while a worker cannot work with them.

Each failure is logged once when it changes, with growing pauses; only a database that is away
is looked for all the time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator

import psycopg
import structlog

from bot.process import plan
from bot.queue.looking import meaning
from bot.settings import Settings, SettingsError
from memory import migrations
from memory.backends import embedded
from memory.backends.connections import failure_kind, is_lost, reconnect_pause_s
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import NotMigrated, ServerRefused, StoreError, from_sqlstate, not_migrated
from memory.rpc import Rpc

log = structlog.get_logger()

_TRIAL_ZH = (
    "这个数据库来自首个正式版本之前的试用版，当前版本无法读取：请改用空数据库重新开始"
    "（换一个 DATA_DIR，或在 DATABASE_URL 中换一个数据库）；要保留数据，先在原库运行 "
    "scripts/backup，再在空库运行 scripts/restore。"
)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class NotConfigured(SettingsError):
    """The configured database cannot be used; the message says what to do."""


class OfATrial(NotConfigured):
    """The database was made before the first release, so only `scripts/backup` reads it."""

    def __init__(self) -> None:
        super().__init__(f"{migrations.TRIAL_MESSAGE}.", _TRIAL_ZH)


class NotMigratable(NotConfigured):
    """The embedded database refuses a step, and is as it was."""

    def __init__(self, failure: migrations.MigrationFailed) -> None:
        reason = str(failure).splitlines()[0]
        super().__init__(
            "the database in DATA_DIR cannot be brought up to date, and was not changed "
            f"({reason}): start the version that made it, or start afresh with another DATA_DIR.",
            f"DATA_DIR 中的数据库无法升级，未作任何更改（{reason}）：请启动创建它的版本，"
            "或换一个 DATA_DIR 重新开始。",
        )


def database_url(settings: Settings) -> str:
    """The connection URL of queue and migrations.

    The embedded database is started and brought up to date; a configured one is not even looked at:
    `scripts/migrate` (the release step) changes it. Raises `NotConfigured`.
    """
    url = running_database(settings)
    if not settings.embedded_database:
        return url
    try:
        migrations.pending_steps(
            url
        )  # unlike what follows, it does not wait for a server that hangs
        migrations.apply_migrations(url, report=_log_step)
    except migrations.TrialDatabase as exc:
        raise OfATrial from exc
    except psycopg.OperationalError as exc:
        raise _unusable(exc, is_embedded=True) from exc
    except migrations.MigrationFailed as exc:
        raise NotMigratable(exc) from exc
    if newer := steps_ahead(url):
        log.warning("database.newer", **about_newer(newer))
    return url


def running_database(settings: Settings) -> str:
    """The URL as it is configured, or that of the embedded server, which runs from now on.

    A supervisor keeps it for those it starts; others share one that they start. Raises
    `NotConfigured`.
    """
    if not settings.embedded_database:
        return settings.database_url
    try:
        if plan.has_database():
            return embedded.find_embedded(settings.data_dir)
        return embedded.start_embedded(settings.data_dir)
    except ServerRefused as exc:
        raise NotConfigured(f"{exc}.", f"内置 Postgres 无法启动：{exc.zh}。") from exc


def check_database(settings: Settings) -> list[str]:
    """Returns what a configured database lacks, as `steps_missing`. Raises `NotConfigured`."""
    if not settings.database_url:
        return []
    try:
        return steps_missing(settings.database_url)
    except psycopg.Error as exc:
        raise _unusable(exc) from exc


def _unusable(exc: psycopg.Error, *, is_embedded: bool = False) -> NotConfigured:
    sentence = meaning(exc, is_embedded=is_embedded)
    return NotConfigured(sentence.en, sentence.zh)


def steps_missing(url: str) -> list[str]:
    """Returns the names of the steps of `sql/` that the database lacks. Raises `OfATrial`, and what
    psycopg raises if the database does not answer."""
    try:
        return migrations.pending_steps(url)
    except migrations.TrialDatabase as exc:
        raise OfATrial from exc


def about_newer(names: list[str]) -> dict[str, object]:
    """What is said of a database that is newer than this version."""
    return {"newer": names, "next_step": "start the version that made it, or a newer one"}


def steps_ahead(url: str) -> list[str]:
    """Names of the files of `sql/` that the database has and this version lacks."""
    return migrations.newer_steps(url)


def require_migrated(url: str) -> None:
    """Raises `NotMigrated` when the database lacks files of `sql/`, and what psycopg raises when it
    does not answer. Functions of another version do for a while (docs/changing-sql.md)."""
    try:
        missing = [
            name for name in migrations.pending_steps(url) if not name.startswith("functions ")
        ]
    except migrations.TrialDatabase as exc:
        raise not_migrated("the database is of a trial from before the first release") from exc
    if missing:
        more = f" and {len(missing) - 1} more files of sql/" if len(missing) > 1 else ""
        raise not_migrated(f"the database lacks {missing[0]}{more}")


async def open_rpc(
    settings: Settings, url: str, *, size: int = 8, timeout_s: float = 5.0, wait_s: float = 5.0
) -> Rpc:
    """The configured transport of the memory: Supabase's API, or the database directly.

    `url`: the database, where it is used directly, with `size` connections at most, for which
    `wait_s` is waited. A call takes at most `timeout_s`.
    """
    if not settings.supabase_url:
        pool = connection_pool(url, size=size, timeout_s=wait_s)
        await pool.open()
        return PostgresRpc(pool, timeout_s=timeout_s, sharing=settings.sharing)
    from memory.backends.supabase import (
        SupabaseRpc,  # 20 MB that the database does not need
        signing_key,
    )

    return SupabaseRpc(
        settings.supabase_url,
        publishable_key=settings.supabase_publishable_key,
        secret_key=settings.supabase_secret_key,
        signing=signing_key(
            secret=settings.supabase_jwt_secret, private_key=settings.supabase_jwt_private_key
        ),
        sharing=settings.sharing,
        timeout_s=timeout_s,
    )


def _log_step(step: str) -> None:
    log.info("migrate", step=step)


class Interruptions:
    """What happened without a longer time of work in between. `clock` is monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_event = ""
        self._pause_s = _FIRST_PAUSE_S
        self._working_since: float | None = None

    def works(self) -> None:
        """From now on the worker works."""
        self._last_event = ""
        self._working_since = self._clock()

    def note_failure(self, exc: Exception) -> float:
        """Says what happened unless it was just said; how long (s) to wait before going on."""
        working_since, self._working_since = self._working_since, None
        if working_since is not None and self._clock() - working_since > _LONGEST_PAUSE_S:
            self._pause_s = _FIRST_PAUSE_S
        event, fields = _event_of_failure(exc)
        if event != self._last_event:
            log.error(event, **fields)
        self._last_event = event
        lost_connection = next(filter(is_lost, _exception_chain(exc)), None)
        if event == "database.away" and lost_connection:
            return reconnect_pause_s(lost_connection)
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, _LONGEST_PAUSE_S)
        return pause_s


def _event_of_failure(exc: Exception) -> tuple[str, dict[str, object]]:
    """The event and its fields; of what was not foreseen the frames, for its message may hold
    people's words."""
    for one in _exception_chain(exc):
        store = _store_error(one) if isinstance(one, psycopg.Error) else one
        if isinstance(store, NotMigrated):
            return "database.not_migrated", {"reason": str(store)}
        if isinstance(one, psycopg.OperationalError) or is_lost(one):
            return "database.away", {"error": failure_kind(one)}
    stack = [
        frame for one in _exception_chain(exc) for frame in traceback.format_tb(one.__traceback__)
    ]
    return "worker.interrupted", {"error": type(exc).__name__, "stack": "".join(stack)}


def _store_error(exc: psycopg.Error) -> StoreError:
    return from_sqlstate(exc.sqlstate or "", exc.diag.message_primary or type(exc).__name__)


def _exception_chain(exc: BaseException | None) -> Iterator[BaseException]:
    """`exc`, what it consists of, and what it came from."""
    if exc is None:
        return
    yield exc
    for part in exc.exceptions if isinstance(exc, BaseExceptionGroup) else ():
        yield from _exception_chain(part)
    yield from _exception_chain(exc.__cause__)
