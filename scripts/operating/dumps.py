"""The rows of our tables as a file, and back: Postgres's own programs, from the embedded server.

A dump holds rows alone. Tables, functions, policies and roles are made by `scripts/migrate`, so a
dump can go into any database that this version has migrated: embedded, Supabase, another Postgres.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import psycopg
from psycopg import pq, sql

from memory import migrations
from memory.backends.embedded_host import installed_program

_LEDGER = f"{migrations.SCHEMA}.migrations"
_CREATED = re.compile(r"create table ((?:public|bot_private)\.\w+)")
_IN_NO_BACKUP = "bot_private.user_token_seals"  # people's tokens at Feishu
# A new database has a key of its own; the hashes in a backup are made with that of the backup.
_KEY = "bot_private.source_key"
_FORGET_KEY = "delete from bot_private.source_key;\n"
# The last step of trials before the first release: with it, their rows fit the tables of today.
_LAST_OF_TRIALS = "0752_told_since_at_once.sql"
# A column of trials that is gone comes back until their rows are in. Records of turns, which are
# kept for some days, are left out.
_BEFORE_TRIAL = "alter table public.agent_chats add column from_quote boolean;\n"
_AFTER_TRIAL = "alter table public.agent_chats drop column from_quote;\n"
_NOT_OF_TRIALS = "public.agent_turn_records"
# A parameter of Postgres 17 and newer that pg_restore sets to its default; older ones refuse it.
_UNKNOWN_TO_OLDER = b"SET transaction_timeout = 0;\n"
_HAS_TRIGGERS = """
select distinct name from pg_trigger t
join unnest(%s::text[]) name on name::regclass = t.tgrelid where not t.tgisinternal
"""


class DumpFailed(Exception):
    """Nothing was kept or changed; one sentence that says why, and the same in Chinese unless it
    is what a program of Postgres said."""

    def __init__(self, en: str, zh: str = "") -> None:
        super().__init__(en)
        self.zh = zh


def tables(url: str) -> dict[str, int]:
    """Our tables in the database, each with the number of its rows; not the ledger of `sql/`."""
    with psycopg.connect(url) as connection:
        return {name: _count(connection, name) for name in _ours(connection)}


def save(url: str, file: Path) -> None:
    """Writes all rows as of one moment. Nobody else can read the file, and it appears when it is
    complete. Raises `DumpFailed`."""
    if file.exists():
        raise DumpFailed(
            f"{file} is there already: choose another name.", f"{file} 已存在：请换一个文件名。"
        )
    chosen = [f"--table={name}" for name in (*_created(), f"{migrations.SCHEMA}.*")]
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        arguments = ("--format=custom", "--data-only", "--no-owner", f"--file={unfinished}")
        _run(["pg_dump", *arguments, *chosen], _connection(url))
        unfinished.rename(file)
    except OSError as exc:
        raise DumpFailed(
            f"{file} cannot be written: {exc.strerror}.", f"{file} 无法写入：{exc.strerror}。"
        ) from exc
    finally:
        unfinished.unlink(missing_ok=True)


def require_backup(file: Path) -> None:
    """Raises `DumpFailed` unless the file is one that `save` made."""
    if not file.is_file():
        raise DumpFailed(f"{file} is not a file.", f"{file} 不是文件。")
    try:
        _run(["pg_restore", "--list", str(file)])
    except DumpFailed as exc:
        raise DumpFailed(
            f"{file} is not a backup: give a file that scripts/backup made.",
            f"{file} 不是备份：请给出 scripts/backup 生成的文件。",
        ) from exc


def load(url: str, file: Path) -> None:
    """Brings the rows into a migrated database that holds none, all or nothing.

    Vectors are left out where the database has no pgvector: they can be made again. Raises
    `DumpFailed`.
    """
    require_backup(file)
    if full := [name for name, rows in tables(url).items() if rows and name != _KEY]:
        raise DumpFailed(
            f"the database is not empty ({full[0]} has rows): give an empty one.",
            f"数据库不是空的（{full[0]} 中有数据）：请给出一个空数据库。",
        )
    of_a_trial = _is_of_a_trial(url, file)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "rows.sql"
        script.write_bytes(_script(url, file, Path(folder) / "list", of_a_trial))
        psql = ("psql", "--no-psqlrc", "--quiet", "--single-transaction", "--output=/dev/null")
        _run([*psql, "--set=ON_ERROR_STOP=1", f"--file={script}"], _connection(url))


def _script(url: str, file: Path, chosen: Path, of_a_trial: bool) -> bytes:
    """The rows as SQL. Our triggers rest meanwhile: what they once did is among the rows."""
    with psycopg.connect(url) as connection:
        there = {*_ours(connection)} - ({_NOT_OF_TRIALS} if of_a_trial else set())
        found = connection.execute(_HAS_TRIGGERS, [list(there)]).fetchall()
    contents = _run(["pg_restore", "--list", str(file)]).decode().splitlines()
    wanted = [line for line in contents if (name := _table(line)) is None or name in there]
    chosen.write_text("\n".join(wanted), encoding="utf-8")
    rows = _run(["pg_restore", f"--use-list={chosen}", "--no-owner", "--file=-", str(file)])
    resting = "".join(f"alter table {name} disable trigger user;\n" for (name,) in found)
    awake = "".join(f"alter table {name} enable trigger user;\n" for (name,) in found)
    if _KEY in map(_table, wanted):
        resting += _FORGET_KEY
    if of_a_trial:
        resting, awake = resting + _BEFORE_TRIAL, _AFTER_TRIAL + awake
    return resting.encode() + rows.replace(_UNKNOWN_TO_OLDER, b"", 1) + awake.encode()


def _table(line: str) -> str | None:
    """Whose rows an entry of the table of contents holds; None for what holds none."""
    found = re.search(r" TABLE DATA (\S+) (\S+) ", line)
    return ".".join(found.groups()) if found else None


def _is_of_a_trial(url: str, file: Path) -> bool:
    """Whether the file is of a trial before the first release. Raises `DumpFailed` for a file of
    another version."""
    schema, table = _LEDGER.split(".")
    arguments = ("--data-only", f"--schema={schema}", f"--table={table}", "--file=-")
    lines = _run(["pg_restore", *arguments, str(file)]).decode().splitlines()
    kept = {line.split("\t")[0] for line in lines if "\t" in line}
    with psycopg.connect(url) as connection:
        names = sql.SQL("select name from {}").format(sql.Identifier(schema, table))
        rows = connection.execute(names).fetchall()
    there = {str(row[0]) for row in rows}
    if migrations.WHOLE_SCHEMA not in kept:
        _require_last_trial(kept)
        return True
    if differing := sorted(name for name in kept ^ there if not name.startswith("functions ")):
        raise DumpFailed(
            f"the backup was made by another version ({differing[0]}): restore it with that one "
            "into an empty database, then run scripts/migrate of this one.",
            f"备份来自另一个版本（{differing[0]}）：请用那个版本恢复到空数据库，"
            "再运行当前版本的 scripts/migrate。",
        )
    return False


def _require_last_trial(kept: Set[str]) -> None:
    if _LAST_OF_TRIALS not in kept:
        raise DumpFailed(
            f"the backup is of a trial that lacks {_LAST_OF_TRIALS}: run scripts/migrate of the "
            "last version before the first release on it, and back it up again.",
            f"备份来自缺少 {_LAST_OF_TRIALS} 的试用版：请对它运行首个正式版本之前最后一版的 "
            "scripts/migrate，再重新备份。",
        )


def _created() -> list[str]:
    files = sorted(migrations.FOLDER.rglob("*.sql"))
    found = (_CREATED.findall(one.read_text(encoding="utf-8")) for one in files)
    return [name for names in found for name in names if name != _IN_NO_BACKUP]


def _ours(connection: psycopg.Connection) -> list[str]:
    """With their schema, quoted where that is needed."""
    query = """
    select format('%%I.%%I', c.relnamespace::regnamespace, c.relname) from pg_class c
    where c.relkind = 'r' and c.oid is distinct from to_regclass(%s)
      and (c.relnamespace = to_regnamespace(%s) or c.oid = any (
        select to_regclass(name) from unnest(%s::text[]) name))
    order by 1
    """
    found = connection.execute(query, [_LEDGER, migrations.SCHEMA, _created()]).fetchall()
    return [str(row[0]) for row in found]


def _count(connection: psycopg.Connection, name: str) -> int:
    table = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
    row = connection.execute(sql.SQL("select count(*) from {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def _connection(url: str) -> Mapping[str, str]:
    """As variables of libpq: arguments of a process can be read by everybody on the machine."""
    given: Iterator[tuple[bytes, bytes]] = (
        (one.envvar, one.val) for one in pq.Conninfo.parse(url.encode()) if one.envvar and one.val
    )
    return {name.decode(): value.decode() for name, value in given}


def _run(command: list[str], connection: Mapping[str, str] | None = None) -> bytes:
    program = str(installed_program() / "bin" / command[0])
    done = subprocess.run(
        [program, *command[1:]],
        env={**os.environ, **(connection or {})},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DumpFailed(f"{command[0]}: {said[0] if said else f'status {done.returncode}'}")
    return done.stdout
