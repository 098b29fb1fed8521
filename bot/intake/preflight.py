"""Checks whatever can be wrong at the start, then prints what is to be run and how, as JSON.

Run as a process of its own: supervisor and gunicorn's master stay for good and should not keep what
this loads. With `--running` the port is not looked at, for it is ours.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from bot.operations.startup_checks import (
    exit_with_sentence,
    look_at_database,
    look_at_embeddings,
    look_at_names,
    look_at_proxies,
    require_files,
    require_port,
    runs_local_embeddings,
)
from bot.settings import Settings, load

# Gunicorn sets the one before it reads its settings again; systemd the other, with the socket.
_LISTENING = ("SERVER_SOFTWARE", "LISTEN_FDS")


def server(settings: Settings) -> dict[str, object]:
    """What is run and how, as `bot.process.plan.Plan` reads it."""
    host = settings.address
    return {
        "bind": f"{f'[{host}]' if ':' in host else host}:{settings.port}",
        # A long connection belongs to one process, and so does the simulated group; workers beside
        # it leave the webhook no second core. Else it may use two.
        "web": 1 if settings.runs_worker or settings.long_connection or settings.sandbox else 2,
        "workers": settings.workers if settings.runs_worker else 0,
        "log_level": settings.log_level,
        "log_format": settings.log_format,
        "data_dir": str(settings.data_dir.resolve()),
        "embedded": settings.embedded_database,
        "embedding_port": settings.embedding_port if runs_local_embeddings(settings) else 0,
    }


def main() -> int:
    """Status 2 and one sentence on stderr when something is wrong."""
    os.umask(0o077)
    remarks = [*look_at_names(), *look_at_proxies()]
    with exit_with_sentence():
        settings = load()
        if settings.runs_worker:
            require_files(settings)
            remarks += look_at_embeddings(settings)
        if "--running" not in sys.argv and not any(name in os.environ for name in _LISTENING):
            require_port("PORT", settings.port, host=settings.address)
            if runs_local_embeddings(settings):
                require_port("EMBEDDING_PORT", settings.embedding_port, host="127.0.0.1")
            remarks += look_at_database(settings)
    answer = {**server(settings), "remarks": [asdict(remark) for remark in remarks]}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
