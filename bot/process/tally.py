"""What is used beside the answers: calls of Feishu's API, requests to models in the background.

Counted in memory and written with the records of turns; what a worker that is killed had not
written yet is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from bot.process import metrics

Service = Literal["feishu", "model"]


class Used(NamedTuple):
    """Calls of `name` of a service; tokens as a model reports them."""

    service: Service
    name: str
    calls: int
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass
class Tally:
    """What is not written yet."""

    _used: dict[tuple[Service, str], Used] = field(default_factory=dict)

    def called(self, api: str) -> None:
        """A call that Feishu counts."""
        metrics.FEISHU_CALLS.labels(api=api).inc()
        self._add(Used("feishu", api, 1))

    def asked(self, kind: str, tokens_in: int, tokens_out: int = 0) -> None:
        """A request to a model that is no answer: `kind` is judge, summary or embedding."""
        metrics.count_tokens(kind, tokens_in, tokens_out)
        self._add(Used("model", kind, 1, tokens_in, tokens_out))

    def take(self) -> list[Used]:
        """All of it, to be written."""
        usage = list(self._used.values())
        self._used.clear()
        return usage

    def put_back(self, usage: Iterable[Used]) -> None:
        """It could not be written."""
        for one in usage:
            self._add(one)

    def _add(self, addition: Used) -> None:
        key = (addition.service, addition.name)
        had = self._used.get(key)
        if had:
            sums = (had.calls + addition.calls, had.tokens_in + addition.tokens_in)
            addition = Used(*key, *sums, had.tokens_out + addition.tokens_out)
        self._used[key] = addition
