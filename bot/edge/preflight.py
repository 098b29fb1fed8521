"""Checks settings and operators' files, then prints what gunicorn has to know, as JSON.

Run as a process of its own: gunicorn's master stays for good and should not keep what this loads.
"""

from __future__ import annotations

import json
import sys

from bot.agents.files import check_files
from bot.settings import EXIT_STATUS, Settings, SettingsError, load


def server(settings: Settings) -> dict[str, object]:
    """Gunicorn's settings that depend on ours."""
    return {
        # A simulated group has no business on the network.
        "bind": f"{'127.0.0.1' if settings.sandbox else '0.0.0.0'}:{settings.port}",  # noqa: S104
        # Inline worker and long connection belong to one process; the webhook may use both cores.
        "workers": 1 if settings.runs_worker or settings.long_connection else 2,
        "log_level": settings.log_level,
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
