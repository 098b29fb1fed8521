"""Gunicorn's settings, from the same environment as everything else.

A mistake in the environment ends the master with status 2 and one sentence, before any fork. With
INLINE_WORKER=1 gunicorn started by hand becomes the supervisor, which starts it again below itself.
"""

import gc
import os
import sys
import threading

from gunicorn.glogging import Logger

from bot.process import log_lines, plan, programs

# The supervisor and the bot log the same: a process started, and the bot is ready at an address.
_START_LINES = ("Starting gunicorn", "Listening at", "Using worker", "Booting worker")

_plan = plan.read_plan()
if _plan.workers and not plan.is_supervised():
    os.environ[plan.PLAN_VARIABLE] = _plan.as_json()
    os.execv(sys.executable, [sys.executable, "-m", "bot.process.supervisor", *sys.argv[1:]])  # noqa: S606
plan.tie_to_supervisor()
if not plan.is_supervised():
    _plan.say_remarks()


class GunicornLog(Logger):
    """Gunicorn's own log, without a line for each request and for each part of a start.

    With a `logconfig_dict`, gunicorn formats a line for each request even without an access log, a
    twelfth of what an acknowledgement costs, and throws it away."""

    def info(self, msg, *args, **kwargs):
        """Logs the lines of a start for LOG_LEVEL=DEBUG only."""
        if msg.startswith(_START_LINES):
            self.debug(msg, *args, **kwargs)
        else:
            super().info(msg, *args, **kwargs)

    def access(self, *request):
        if self.cfg.accesslog:
            super().access(*request)


bind = _plan.bind
workers = _plan.web
loglevel = _plan.log_level.lower()
logconfig_dict = log_lines.logging_config("gunicorn.error")
control_socket_disable = True  # it loads asyncio, and nobody asks for it
umask = 0o077
worker_class = "bot.intake.receiving.ReceivingWorker"
worker_connections = 512  # far below the usual limit of open files; more push the slowest out
threads = 24
timeout = 60
graceful_timeout = 10
keepalive = 75
limit_request_line = 4094
accesslog = None
logger_class = GunicornLog


def pre_fork(server, worker):
    """What the master has loaded stays shared: no collection of a web process touches it."""
    gc.collect()
    gc.freeze()


def post_fork(server, worker):
    """A web process ends with its master, even when that one is killed."""
    programs.die_with_parent(server.pid)


def post_worker_init(worker):
    """The application is loaded. The first web process says what it finds wrong; each watches."""
    if checks := getattr(worker.wsgi, "extensions", {}).get(
        "health"
    ):  # what else is served has none
        if worker.age == 1:
            threading.Thread(target=checks.say_at_start, name="start", daemon=True).start()
        threading.Thread(target=checks.watch, name="watch", daemon=True).start()
    gc.collect()
    gc.freeze()  # what is loaded stays; looking through it again would hold up requests
    if plan.is_supervised():
        _plan.board.open_web()
    elif worker.age == 1:
        _plan.say_ready()
