"""What every measure works with: where, how long, against whose Feishu and model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import psycopg
from psycopg import sql

from lab.doubles.minimal_feishu import StandIn
from memory import migrations
from memory.backends import embedded


@dataclass(frozen=True, slots=True)
class Setting:
    """`folder` is thrown away afterwards. `model_url` and `model_pid` are those of the stand-in
    model."""

    folder: Path
    platform: StandIn
    model_url: str
    model_pid: int
    seconds: float
    quick: bool = False
    messages: int = 1_000_000
    workers: int = 1
    places: int | None = 128  # of a worker; None: as many as it has by itself

    def environment(self, port: int, **more: str) -> dict[str, str]:
        """What all processes of the bot are given."""
        return {
            "PORT": str(port),
            "DATA_DIR": str(self.folder),
            "FEISHU_DOMAIN": self.platform.url,
            "FEISHU_CALLS_PER_SECOND": "10000",  # the bot's speed is measured, not Feishu's limit
            "REQUESTS_PER_MINUTE": "0",  # the few people of a measure ask without a pause
            "STREAM_REPLIES": "false",
            "WORKERS": str(self.workers),
            "OPENAI_API_KEY": "bench",
            "OPENAI_VISION": "false",
            "OPENAI_BASE_URL": self.model_url,
            **({"WORKER_CONCURRENCY": str(self.places)} if self.places else {}),
            **more,
        }

    def server(self, name: str) -> Path:
        """The folder with the socket of a Postgres for the measures, started when first needed."""
        url = embedded.start(self.folder / name)
        return Path(unquote(parse_qs(urlsplit(url).query)["host"][0]))

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """A migrated database with the server's normal durability, dropped afterwards."""
        socket = self.server("measures")
        with psycopg.connect(address(socket), autocommit=True) as server:
            server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
            try:
                migrations.apply(address(socket, name))
                yield address(socket, name)
            finally:
                drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
                server.execute(drop)


def address(socket: Path, database: str = "postgres") -> str:
    """The superuser's URL of a database whose server has its socket in that folder."""
    return f"postgresql://postgres@/{database}?host={quote(str(socket), safe='/')}"
