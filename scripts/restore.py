"""Brings what `scripts/backup` wrote into an empty database, all of it or nothing.

Stop the bot first. The database is brought up to date, then filled; it must hold no rows of the
bot. Restore with the version that made the backup, then upgrade. Where it has no pgvector, vectors
are left out; `scripts/memory embed` makes them again.

Examples:
  scripts/restore today.dump                          into the configured database
  DATA_DIR=/tmp/trial scripts/restore today.dump      into a new embedded one, without DATABASE_URL
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import psycopg

from bot.operations.startup_checks import exit_with_sentence
from bot.settings import EXIT_STATUS, load
from memory import migrations
from scripts.backup import database_with_memory, said
from scripts.operating import dumps
from scripts.operating.arguments import in_language, parser, run_script
from scripts.operating.words import counted


def main() -> int:
    """Status 2 and one sentence when nothing was restored."""
    arguments = _arguments()
    try:
        dumps.require_backup(arguments.file)
        with exit_with_sentence():
            url = database_with_memory(load())
        migrations.apply_migrations(url)
        dumps.load(url, arguments.file)
        rows = dumps.tables(url)
    except (dumps.DumpFailed, migrations.MigrationFailed, psycopg.Error) as exc:
        print(f"restore: {said(exc)}", file=sys.stderr)
        return EXIT_STATUS
    total, filled = sum(rows.values()), len(rows)
    en = f"{counted(total, 'row')} of {counted(filled, 'table')}; next: scripts/check_memory"
    print(in_language(en, f"已恢复 {filled} 张表，共 {total} 行；下一步：scripts/check_memory"))
    return 0


def _arguments() -> argparse.Namespace:
    options = parser("restore", __doc__)
    options.add_argument("file", type=Path, help="a file that scripts/backup made")
    return options.parse_args()


if __name__ == "__main__":
    run_script(main)
