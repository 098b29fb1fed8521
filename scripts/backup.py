"""Writes everything the bot keeps in its database into one file, as of one moment.

The bot may run meanwhile. The file holds what people said: keep it where only you can read it, and
delete it when its time is over. Settings (.env, mcp.json, specialists) are not in it.

Examples:
  scripts/backup                      into feishu-memory-bot-2026-01-31-0900.dump
  scripts/backup /backups/today.dump  into that file, which may not exist yet
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psycopg

from bot.operations.startup_checks import exit_with_sentence
from bot.queue.connections import OfATrial, check_database, running_database
from bot.settings import EXIT_STATUS, Settings, SettingsError, load_existing, read
from memory import migrations
from scripts.operating import dumps
from scripts.operating.arguments import in_language, parser, run_script
from scripts.operating.words import counted


def main() -> int:
    """Status 2 and one sentence when nothing was kept."""
    arguments = _arguments()
    with exit_with_sentence():
        require_one_database(read())
        settings = load_existing()
        url = database_with_memory(settings)
    file = arguments.file or Path(f"feishu-memory-bot-{datetime.now(settings.zone):%F-%H%M}.dump")
    try:
        dumps.save(url, file)
        rows = dumps.tables(url)
    except (dumps.DumpFailed, psycopg.Error) as exc:
        print(f"backup: {said(exc)}", file=sys.stderr)
        return EXIT_STATUS
    total, filled = sum(rows.values()), len(rows)
    en = f"{file}: about {counted(total, 'row')} of {counted(filled, 'table')}"
    print(in_language(en, f"{file}：{filled} 张表，约 {total} 行"))
    return 0


def require_one_database(settings: Settings) -> None:
    """Raises `SettingsError` unless one database holds memory and queue."""
    if settings.supabase_url and not settings.database_url:
        raise SettingsError(
            "SUPABASE_URL is set and DATABASE_URL is not: set DATABASE_URL to the connection "
            "string of that project, whose database holds the memory.",
            "设置了 SUPABASE_URL 而没有设置 DATABASE_URL：请把 DATABASE_URL 设为该项目的连接串，"
            "记忆就存放在它的数据库中。",
        )


def database_with_memory(settings: Settings) -> str:
    """The URL of the database that holds memory and queue. Raises `SettingsError`."""
    require_one_database(settings)
    with suppress(OfATrial):
        check_database(settings)
    return running_database(settings)


def said(failure: dumps.DumpFailed | psycopg.Error | migrations.MigrationFailed) -> str:
    """Why nothing was kept or restored, in the language of the terminal."""
    zh = failure.zh if isinstance(failure, dumps.DumpFailed) else ""
    return in_language(str(failure), zh or str(failure))


def _arguments() -> argparse.Namespace:
    options = parser("backup", __doc__)
    options.add_argument("file", nargs="?", type=Path, help="the file to be made")
    return options.parse_args()


if __name__ == "__main__":
    run_script(main)
