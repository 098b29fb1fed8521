"""Brings the database up to date with `sql/`; safe to run twice and from several places at once.

Examples:
  scripts/migrate                 the database of DATABASE_URL, or the embedded one in DATA_DIR
  scripts/migrate --check         only says what is missing; status 1 when something is
"""

from __future__ import annotations

import argparse
import sys

import psycopg

from bot.settings import EXIT_STATUS, SettingsError, load
from memory import migrations
from memory.backends import embedded
from memory.errors import ServerRefused


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="migrate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say what is missing")
    arguments = parser.parse_args()
    try:
        settings = load()
    except SettingsError as exc:
        print(exc, file=sys.stderr)
        return EXIT_STATUS
    try:
        url = settings.database_url or embedded.start(settings.data_dir)
    except ServerRefused as exc:
        print(exc, file=sys.stderr)
        return EXIT_STATUS
    try:
        if arguments.check:
            return _check(url)
        applied = migrations.apply(url, report=print)
        _enable_vectors(url)
    except (psycopg.OperationalError, migrations.MigrationFailed) as exc:
        print(f"migrate: {exc}\nCheck DATABASE_URL and that the server is up.", file=sys.stderr)
        return 1
    print(f"up to date ({len(applied)} applied now)")
    return 0


def _enable_vectors(url: str) -> None:
    """pgvector may have come since the file that wanted it was applied."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("select public.enable_vectors()").fetchone()
    if row and row[0]:
        print(f"recall goes by words alone: {row[0]}")


def _check(url: str) -> int:
    missing = migrations.pending(url)
    print("\n".join(f"missing: {name}" for name in missing) or "up to date")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
