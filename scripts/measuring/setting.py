"""What every measure works with: where, against which database, how long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
from psycopg import sql

from memory import migrations
from scripts.measuring.platform import StandIn


@dataclass(frozen=True, slots=True)
class Setting:
    """`server_url` is the superuser's URL of an embedded Postgres below `folder`."""

    folder: Path
    server_url: str
    platform: StandIn
    seconds: float
    quick: bool = False
    messages: int = 1_000_000
    workers: int = 1
    one_command: bool = False

    def environment(self, port: int, **more: str) -> dict[str, str]:
        """What all processes of the bot are given."""
        return {
            "PORT": str(port),
            "DATA_DIR": str(self.folder),
            "FEISHU_DOMAIN": self.platform.url,
            "FEISHU_CALLS_PER_SECOND": "10000",  # the bot's speed is measured, not Feishu's limit
            "STREAM_REPLIES": "false",
            **more,
        }

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """A migrated database with the server's normal durability, dropped afterwards."""
        host = parse_qs(urlsplit(self.server_url).query)["host"][0]
        url = f"postgresql://postgres@/{name}?host={host}"
        with psycopg.connect(self.server_url, autocommit=True) as server:
            server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
            try:
                migrations.apply(url)
                yield url
            finally:
                drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
                server.execute(drop)
