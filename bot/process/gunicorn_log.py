"""Gunicorn's own log, without a line for each request and for each part of a start."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger

# The supervisor and the bot log the same: a process started, and the bot is ready at an address.
_OF_A_START = ("Starting gunicorn", "Listening at", "Using worker", "Booting worker")


class GunicornLog(Logger):  # type: ignore[misc]
    """The class for gunicorn's `logger_class`. With a `logconfig_dict` its own makes a line of each
    request in any case, a twelfth of what an acknowledgement costs, and throws it away."""

    def info(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Logs what is said of a start for LOG_LEVEL=DEBUG only."""
        if msg.startswith(_OF_A_START):
            self.debug(msg, *args, **kwargs)
        else:
            super().info(msg, *args, **kwargs)

    def access(self, *request: Any) -> None:
        if self.cfg.accesslog:
            super().access(*request)
