"""Writes `sql/schema.sql`: what a migrated database holds, in one file, for people to read.

It migrates an embedded database of its own and reads its catalogue.

Example:
  .venv/bin/python -m lab.schema
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import psycopg

from lab.schema.database import FILE, describe
from memory import migrations
from memory.backends import embedded
from scripts.operating.arguments import parser


def main() -> None:
    parser("python -m lab.schema", __doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="schema-", ignore_cleanup_errors=True) as folder:
        url = embedded.start(Path(folder))
        migrations.apply(url)
        with psycopg.connect(url) as connection:
            FILE.write_text(describe(connection), encoding="utf-8")


if __name__ == "__main__":
    main()
