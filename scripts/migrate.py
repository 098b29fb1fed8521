"""Brings the database up to date with `sql/`; safe to run twice and from several places at once.

Examples:
  scripts/migrate                 the database of DATABASE_URL, or the embedded one in DATA_DIR
  scripts/migrate --check         only says what is missing; status 1 when something is
"""

from __future__ import annotations

import os
import sys

import psycopg

from bot.operations.startup_checks import exit_with_sentence
from bot.queue.connections import check_database, running_database
from bot.settings import load, load_existing
from memory import migrations
from scripts.operating.arguments import in_language, parser, run_script


def main() -> int:
    options = parser("migrate", __doc__)
    options.add_argument("--check", action="store_true", help="only say what is missing")
    arguments = options.parse_args()
    os.umask(0o077)
    with exit_with_sentence():
        settings = load_existing() if arguments.check else load()
        check_database(settings)
        url = running_database(settings)
    try:
        if arguments.check:
            return _check(url)
        applied = migrations.apply_migrations(url, report=print)
    except (psycopg.OperationalError, migrations.MigrationFailed) as exc:
        print(f"migrate: {exc}", file=sys.stderr)
        return 1
    done = len(applied)
    print(in_language(f"up to date ({done} applied now)", f"已是最新（本次应用 {done} 项）"))
    return 0


def _check(url: str) -> int:
    missing = migrations.pending_steps(url)
    lacks = in_language("missing: ", "缺少：")
    print("\n".join(f"{lacks}{name}" for name in missing) or in_language("up to date", "已是最新"))
    return 1 if missing else 0


if __name__ == "__main__":
    run_script(main)
