"""Limits the requests, tool calls and tokens of one turn, its specialists included."""

from __future__ import annotations

from dataclasses import dataclass

# Seconds: a question waits for its vector, so after three slower ones in a row none does.
SLOW_EMBEDDING_S = 0.5


class LimitReached(Exception):
    """The turn may not go on. `reason` names the limit, for logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests, tool calls, and tokens in and out, as reported."""

    requests: int = 12
    tool_calls: int = 20
    tokens: int = 120_000


@dataclass(slots=True)
class Spent:
    """Counts what a turn uses. Each method raises `LimitReached` before a limit is exceeded."""

    limits: Limits = Limits()
    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def ask(self) -> None:
        """One more request."""
        if self.requests >= self.limits.requests:
            raise LimitReached("limit_requests")
        if self.input_tokens + self.output_tokens >= self.limits.tokens:
            raise LimitReached("limit_tokens")
        self.requests += 1

    def call(self, count: int) -> None:
        """So many more tool calls."""
        if self.tool_calls + count > self.limits.tool_calls:
            raise LimitReached("limit_tool_calls")
        self.tool_calls += count

    def count(self, input_tokens: int, output_tokens: int) -> None:
        """The tokens of a response."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
