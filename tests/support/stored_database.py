"""The stored database of the last version before the baseline."""

from __future__ import annotations

import gzip
from pathlib import Path

import psycopg

_FILE = Path(__file__).parents[1] / "data" / "database_before_baseline.sql.gz"


def load(url: str) -> None:
    """Brings it into an empty database, as it was left."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(gzip.decompress(_FILE.read_bytes()))
