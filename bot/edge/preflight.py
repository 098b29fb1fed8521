"""Checks whatever can be wrong at the start, then prints what gunicorn has to know, as JSON.

Run as a process of its own: gunicorn's master stays for good and should not keep what this loads.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from bot.agents.files import check_files
from bot.settings import Settings, load
from bot.starting import look_at_database, look_at_names, one_sentence, require_port

# Gunicorn sets the one before it reads its settings again; systemd the other, with the socket.
_LISTENING = ("SERVER_SOFTWARE", "LISTEN_FDS")


def server(settings: Settings) -> dict[str, object]:
    """Gunicorn's settings that depend on ours."""
    return {
        "bind": f"{_host(settings)}:{settings.port}",
        # Inline worker and long connection belong to one process; the webhook may use both cores.
        "workers": 1 if settings.runs_worker or settings.long_connection else 2,
        "log_level": settings.log_level,
    }


def main() -> int:
    """Status 2 and one sentence on stderr when something is wrong."""
    remarks = look_at_names()
    with one_sentence():
        settings = load()
        if settings.runs_worker:
            check_files(settings)
        if not any(name in os.environ for name in _LISTENING):
            require_port("PORT", settings.port, host=_host(settings))
            remarks += look_at_database(settings)
    answer = {**server(settings), "remarks": [asdict(remark) for remark in remarks]}
    sys.stdout.write(json.dumps(answer))
    return 0


def _host(settings: Settings) -> str:
    # A simulated group has no business on the network.
    return "127.0.0.1" if settings.sandbox else "0.0.0.0"  # noqa: S104


if __name__ == "__main__":
    raise SystemExit(main())
