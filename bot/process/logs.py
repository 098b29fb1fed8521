"""Lines on stdout, one per event, decision and turn; ids and durations, no message text."""

from __future__ import annotations

import logging

import structlog

from bot.process import lines
from bot.process.discreet import by_kind, watch_uncaught
from bot.process.records import JsonFormatter


def configure(level: str, format: lines.LogFormat = "auto") -> None:
    """Sets up structlog and the standard library's loggers for this process."""
    lines.choose(format)
    threshold = logging.getLevelNamesMapping()[level]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            by_kind,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=lines.stdout()),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(lines.stdout())
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    watch_uncaught()
