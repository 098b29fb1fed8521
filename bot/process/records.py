"""The standard library's log records as lines of the one log; for processes without structlog."""

from __future__ import annotations

import logging
from typing import Any

from bot.process.discreet import kinds, of_library, places
from bot.process.lines import dumped, now, stdout


class JsonFormatter(logging.Formatter):
    """A record of the standard library's loggers as such a line; whole from logger `trusted`."""

    def __init__(self, trusted_name: str = "") -> None:
        super().__init__()
        self._trusted = trusted_name

    def format(self, record: logging.LogRecord) -> str:
        is_trusted = record.name == self._trusted
        fields: dict[str, Any] = {
            "event": record.getMessage() if is_trusted else of_library(record)
        }
        if record.exc_info and (failure := record.exc_info[1]):
            fields |= {"error": kinds(failure), "stack": places(failure.__traceback__)}
        about = {"level": record.levelname.lower(), "logger": record.name, "timestamp": now()}
        return dumped({**fields, **about}).rstrip("\n")


def logging_of(name: str) -> dict[str, Any]:
    """For `logging.config.dictConfig`: logger `name` and everything unnamed into this log."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter, "trusted": name}},
        "handlers": {
            "log": {"class": "logging.StreamHandler", "stream": stdout(), "formatter": "json"}
        },
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {name: {"handlers": ["log"], "propagate": False}},
    }
