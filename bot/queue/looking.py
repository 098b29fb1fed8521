"""Looks into the queue's database for operators: a look ends within seconds, whatever the database
does, and its failure names the cause and the next step in both languages.

The server is asked to give up first: a connection that only this side gives up would go on waiting
there, and each look would add one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from bot.queue.inbox import QueueUnavailable
from bot.text.languages import Sentence
from memory.deadlines import DeadlineConnection
from memory.errors import NotMigrated, from_sqlstate

LOOK_S = 3.0
_CONNECT_S = 2  # libpq waits no shorter
_MARGIN_S = 1.0  # for the way there and back, beside what the server may take

_HELD_S = 2.0
# Who keeps others waiting and waits for nobody, or holds a whole table; the longest first. Reads no
# table, so it answers while they are held.
_HOLDER = """
select a.pid, coalesce(nullif(a.application_name, ''), a.usename, a.backend_type) as program,
       extract(epoch from now() - a.xact_start)::integer as seconds,
       (select string_agg(distinct l.relation::regclass::text, ', ') from pg_locks l
        join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
        where l.pid = a.pid and l.granted and l.mode in ({modes})
          and c.relnamespace in ('public'::regnamespace, 'feishu_bot'::regnamespace)) as tables,
       (select count(*) from pg_stat_activity w
        where w.wait_event_type = 'Lock' and a.pid = any (pg_blocking_pids(w.pid))) as waiting
from pg_stat_activity a
where a.pid <> pg_backend_pid() and a.datname = current_database()
  and a.xact_start < now() - make_interval(secs => %s)
  and a.wait_event_type is distinct from 'Lock'
order by a.xact_start
""".format(modes="'AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock'")  # noqa: S608

# libpq and the drivers give a failed connection no code; these are pieces of what they say, each
# with what it means in English and Chinese.
_CHECK = "check DATABASE_URL, its host and port, and that the server is up."
_CHECK_ZH = "请检查 DATABASE_URL 的主机和端口，并确认服务器在运行。"
_MEANINGS = {
    ("no space left", "disk full"): (
        "the disk of the database is full: make room there (df -h shows where).",
        "数据库所在的磁盘已满：请清理出空间（用 df -h 查看）。",
    ),
    ("refused",): (
        f"the database refuses the connection: {_CHECK}",
        f"数据库拒绝连接：{_CHECK_ZH}",
    ),
    ("starting up", "not yet accepting", "recovery"): (
        "the database is starting: look again in a moment.",
        "数据库正在启动：请稍后再看。",
    ),
    ("too many", "connection slots", "max clients"): (
        "the database has no free connections: end what uses them, or raise max_connections.",
        "数据库的连接已用完：请结束占用连接的程序，或调大 max_connections。",
    ),
    ("timeout", "timed out", "no answer in time"): (
        f"the database does not answer in time: {_CHECK}",
        f"数据库没有及时响应：{_CHECK_ZH}",
    ),
    ("resolve host", "translate host", "no such file"): (
        "the host of the database is not found: check DATABASE_URL; special characters of the "
        "password are percent-encoded.",
        "找不到数据库的主机：请检查 DATABASE_URL；密码中的特殊字符需要百分号编码。",
    ),
    ("password", "user not found", 'role "'): (
        "the database refuses the user or the password: check DATABASE_URL, copy both once more.",
        "数据库拒绝该用户或密码：请检查 DATABASE_URL，重新复制两者。",
    ),
    ('database "',): (
        "the server has no database of that name: check DATABASE_URL.",
        "服务器上没有这个名称的数据库：请检查 DATABASE_URL。",
    ),
}
_OUT_OF_DATE = Sentence(
    "the database lacks what this version needs: run scripts/migrate.",
    "数据库缺少当前版本需要的内容：请运行 scripts/migrate。",
)
_SLOW = Sentence(
    "the database takes too long to answer, though nothing locks its tables: look at the load and "
    "the disk of its machine.",
    "数据库响应过慢，但没有表被锁住：请查看数据库所在机器的负载和磁盘。",
)


class DatabaseTrouble(QueueUnavailable):
    """Why a look failed: `sentence`, and `command` to run next, "" where the sentence says it."""

    def __init__(self, sentence: Sentence, command: str = "") -> None:
        super().__init__(sentence.en + (f" → {command}" if command else ""))
        self.sentence = sentence
        self.command = command

    def said(self, language: str) -> str:
        """The sentence with its next step."""
        sentence = self.sentence.zh if language == "zh" else self.sentence.en
        return sentence + (f" → {self.command}" if self.command else "")


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A transaction that keeps others waiting: the server's process, its name, for how long (s),
    the whole tables that it holds, and how many wait."""

    pid: int
    program: str
    seconds: int
    tables: str
    waiting: int

    @property
    def sentence(self) -> Sentence:
        held = self.tables or "rows"
        held_zh = self.tables or "若干行"
        others = f", and {self.waiting} wait for it" if self.waiting else ""
        others_zh = f"，有 {self.waiting} 个连接在等待" if self.waiting else ""
        return Sentence(
            f"process {self.pid} of the database ({self.program}) has held {held} for "
            f"{self.seconds} s{others}: end it if it is not a migration.",
            f"数据库进程 {self.pid}（{self.program}）已占用 {held_zh} {self.seconds} 秒"
            f"{others_zh}：如果它不是迁移，请结束它。",
        )

    def ending(self, url: str) -> str:
        """What ends it: on the embedded server's machine its process can be signalled."""
        return (
            f"kill {self.pid}" if is_embedded(url) else f"select pg_terminate_backend({self.pid})"
        )


@contextmanager
def look_connection(url: str, within_s: float = LOOK_S) -> Iterator[psycopg.Connection]:
    """A connection for one transaction that takes `within_s` at most. Raises `psycopg.Error`."""
    with DeadlineConnection.connect(
        url, connect_timeout=_CONNECT_S, prepare_threshold=None
    ) as connection:
        connection.until = time.monotonic() + within_s + _MARGIN_S
        limit_ms = str(round(within_s * 1000))
        connection.execute("select set_config('statement_timeout', %s, true)", [limit_ms])
        yield connection


@contextmanager
def looking(url: str, within_s: float = LOOK_S) -> Iterator[psycopg.Connection]:
    """The same; failures are explained. Raises `DatabaseTrouble`."""
    try:
        with look_connection(url, within_s) as connection:
            yield connection
    except psycopg.Error as exc:
        raise explain(url, exc) from exc


def explain(url: str, exc: psycopg.Error) -> DatabaseTrouble:
    """What a failure of the database means. A server that took too long is asked who held it up."""
    if not isinstance(exc, errors.QueryCanceled | errors.LockNotAvailable):
        return DatabaseTrouble(meaning(exc, is_embedded=is_embedded(url)))
    try:
        with look_connection(url, _CONNECT_S) as connection:
            holder = find_lock_holder(connection)
    except psycopg.Error as again:
        return DatabaseTrouble(meaning(again, is_embedded=is_embedded(url)))
    return (
        DatabaseTrouble(holder.sentence, holder.ending(url)) if holder else DatabaseTrouble(_SLOW)
    )


def find_lock_holder(connection: psycopg.Connection) -> LockHolder | None:
    """The transaction that has kept others waiting for longest, or has held whole tables."""
    rows = (LockHolder(*row) for row in connection.execute(_HOLDER.encode(), [_HELD_S]))
    return next((one for one in rows if one.tables or one.waiting), None)


def is_embedded(url: str) -> bool:
    return embedded_folder(url) is not None


def embedded_folder(url: str) -> Path | None:
    """Where the server is, if the URL leads to a socket of this machine, as the embedded one's."""
    host = str(conninfo_to_dict(url).get("host") or "")
    return Path(host) if host.startswith("/") else None


def meaning(exc: psycopg.Error, *, is_embedded: bool = False) -> Sentence:
    """Nothing of libpq's own words, which quote the URL, at times a piece of the password."""
    message, name = str(exc).lower(), type(exc).__name__
    if isinstance(from_sqlstate(exc.sqlstate or "", message), NotMigrated):
        return _OUT_OF_DATE
    sentence = known_meaning(message) or Sentence(
        f"the database does not answer ({name}): {_CHECK}",
        f"数据库没有响应（{name}）：{_CHECK_ZH}",
    )
    if is_embedded and "DATABASE_URL" in sentence.en:
        return Sentence(
            f"the embedded Postgres does not answer ({name}): see postgres.log in DATA_DIR, and "
            "start the bot again if it stays away.",
            f"内置 Postgres 没有响应（{name}）：请查看 DATA_DIR 中的 postgres.log；"
            "如果没有自行恢复，请重新启动机器人。",
        )
    return sentence


def known_meaning(message: str) -> Sentence | None:
    """What a message of the database or its driver means, if it is one of those that are known."""
    lowered = message.lower()
    meanings = (
        Sentence(*said) for signs, said in _MEANINGS.items() if any(one in lowered for one in signs)
    )
    return next(meanings, None)
