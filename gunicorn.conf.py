"""Gunicorn's settings, from the same environment as everything else.

A mistake in the environment ends the master with status 2 and one sentence, before any fork.
"""

import sys

from bot import logs
from bot.configuration import check_files
from bot.settings import EXIT_STATUS, SettingsError, load

try:
    _settings = load()
    if _settings.runs_worker:
        check_files(_settings)
except SettingsError as exc:
    sys.stderr.write(f"{exc}\n")
    raise SystemExit(EXIT_STATUS) from exc
logs.configure(_settings.log_level)

# A simulated group has no business on the network.
bind = f"{'127.0.0.1' if _settings.sandbox else '0.0.0.0'}:{_settings.port}"  # noqa: S104
# The inline worker and the long connection belong to one process; the webhook may use both cores.
workers = 1 if _settings.runs_worker or _settings.long_connection else 2
worker_class = "gthread"
threads = 24
timeout = 60
graceful_timeout = 10
keepalive = 75
limit_request_line = 4094
accesslog = None
loglevel = _settings.log_level.lower()
