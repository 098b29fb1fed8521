"""Gunicorn's own log, which describes no request where nobody asked for that."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger


class GunicornLog(Logger):  # type: ignore[misc]
    """The class for gunicorn's `logger_class`. With a `logconfig_dict` its own makes a line of each
    request in any case, a twelfth of what an acknowledgement costs, and throws it away."""

    def access(self, *request: Any) -> None:
        if self.cfg.accesslog:
            super().access(*request)
