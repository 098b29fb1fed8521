"""Gunicorn's settings, from the same environment as everything else.

A mistake in the environment ends the master with status 2 and one sentence, before any fork.
"""

import json
import subprocess
import sys

import structlog

from bot.telemetry import logs

_preflight = subprocess.run([sys.executable, "-m", "bot.edge.preflight"], stdout=subprocess.PIPE)
if _preflight.returncode:
    raise SystemExit(_preflight.returncode)
_server = json.loads(_preflight.stdout)
logs.configure(_server["log_level"])
for _remark in _server["remarks"]:
    structlog.get_logger().warning(_remark["event"], **_remark["fields"])

bind = _server["bind"]
workers = _server["workers"]
loglevel = _server["log_level"].lower()
worker_class = "gthread"
threads = 24
timeout = 60
graceful_timeout = 10
keepalive = 75
limit_request_line = 4094
accesslog = None
