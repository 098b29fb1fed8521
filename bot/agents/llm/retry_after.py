"""Reads from a refusal how long an endpoint wants to be left alone. Pure.

Sources: RFC 9110 (Retry-After: seconds or a date); OpenAI and Azure (retry-after-ms,
x-ratelimit-reset-requests: `1m2.5s`); Anthropic (anthropic-ratelimit-tokens-reset: an RFC 3339
date); OpenRouter (X-RateLimit-Reset: milliseconds since the epoch); Gemini (google.rpc.RetryInfo in
the body)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(?:\d{1,15}(?:\.\d{1,9})?(?:ms|[smhd]))+", re.ASCII)
_PARTS = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ms|[smhd])", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_RESET = re.compile(r"ratelimit[\w-]{0,60}reset")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
_LONGEST_DOUBTFUL_S = 8.0


def wished_pause_s(headers: Mapping[str, str], error: Mapping[str, Any], now_s: float) -> float:
    """Returns the seconds to wait; 0 if nothing says it. `error`: the error object of the body;
    `now_s`: seconds since the epoch."""
    values = {name.lower(): value.strip() for name, value in headers.items()}
    if span_ms := values.get("retry-after-ms"):
        values.setdefault("retry-after", f"{span_ms}ms")
    told = [values.get("retry-after", ""), *_retry_infos(error)]
    waits_s = (_seconds(one, now_s) for one in told)
    return next((one for one in waits_s if one), None) or _until_reset_s(values, now_s)


def _until_reset_s(headers: Mapping[str, str], now_s: float) -> float:
    """Until what is used up is there again. If nothing is said to be, a full quota is not worth
    waiting for: until the first of all, and not for long."""
    waits_s = {name: _seconds(headers[name], now_s) for name in headers if _RESET.search(name)}
    used_up = [
        wait_s for name, wait_s in waits_s.items()
        if headers.get(name.replace("reset", "remaining")) == "0"
    ]  # fmt: skip
    return max(used_up) if used_up else min(min(waits_s.values(), default=0.0), _LONGEST_DOUBTFUL_S)


def _retry_infos(error: Mapping[str, Any]) -> Iterator[str]:
    details = error.get("details")
    for one in details if isinstance(details, list) else ():
        if isinstance(one, dict) and isinstance(delay := one.get("retryDelay"), str):
            yield delay


def _seconds(value: str, now_s: float) -> float:
    """A span or a point in time, in any of its forms; 0 for what is none."""
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number < _EPOCH_S:
            return number
        return max(0.0, (number / 1000 if number >= _EPOCH_MS else number) - now_s)
    if _SPAN.fullmatch(value):
        return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(value))
    moment = _moment(value)
    return max(0.0, moment.timestamp() - now_s) if moment else 0.0


def _moment(value: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value)
        except (ValueError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
