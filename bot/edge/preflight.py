"""Checks settings and operators' files, then prints what those who start processes have to know.

Run as a process of its own: a supervisor and gunicorn's master stay for good and should not keep
what this loads.
"""

from __future__ import annotations

import json
import sys

from bot.agents.files import check_files
from bot.settings import EXIT_STATUS, Settings, SettingsError, load


def server(settings: Settings) -> dict[str, object]:
    """What is run and how, as `bot.supervision.plan.Plan` reads it."""
    return {
        # A simulated group has no business on the network.
        "bind": f"{'127.0.0.1' if settings.sandbox else '0.0.0.0'}:{settings.port}",  # noqa: S104
        # A long connection belongs to one process, and so does the simulated group; workers beside
        # it leave the webhook no second core. Else it may use two.
        "web": 1 if settings.runs_worker or settings.long_connection or settings.sandbox else 2,
        "workers": settings.workers if settings.runs_worker else 0,
        "log_level": settings.log_level,
        "data_dir": str(settings.data_dir.resolve()),
        "embedded": settings.embedded_database,
    }


def main() -> int:
    """Status 2 and one sentence on stderr when something is wrong."""
    try:
        settings = load()
        if settings.runs_worker:
            check_files(settings)
    except SettingsError as exc:
        sys.stderr.write(f"{exc}\n")
        return EXIT_STATUS
    sys.stdout.write(json.dumps(server(settings)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
