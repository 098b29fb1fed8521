"""Sets up the log: lines on stdout, one per event, decision and turn; ids and durations, no message
text.

Loads structlog without Rich, which structlog imports where it is installed, for its coloured log:
79 modules and 4 MB in each process. A program imports this module before all others.
"""

from __future__ import annotations

import logging
import sys

if "structlog" not in sys.modules and "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        import structlog
    finally:
        del sys.modules["rich"]
else:
    import structlog

from bot.process import log_lines
from bot.process.log_lines import JsonFormatter, redact_exception, watch_uncaught


def configure_logs(level: str, format: log_lines.LogFormat = "auto") -> None:
    """Sets up structlog and the standard library's loggers for this process."""
    log_lines.choose_log_format(format)
    threshold = logging.getLevelNamesMapping()[level]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            redact_exception,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=log_lines.log_stream()),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(log_lines.log_stream())
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    watch_uncaught()
