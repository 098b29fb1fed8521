"""What a job is, and what becomes of one that did not succeed. Pure.

A job is one event of Feishu, what comes after its turns (a conversation to tend, a private
look-up), the time of a timer, a step of an import, what is next for a person's own tokens, or what
the memory missed while it was away. Its `lock` names the conversation: jobs of one lock run in
order. No attempt is the last while an answer is owed: what may get better by itself is tried for a
day, with growing pauses. What does not is tried twice. Then the job is given up: that is noted
first, so that who asked is told once, and the job stays for operators, whatever happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EVENT_TASK = "feishu.event"
TENDING_TASK = "feishu.tending"
PRIVATE_TASK = "feishu.private"
TIMER_TASK = "feishu.timer"
IMPORT_TASK = "feishu.import"
CONNECT_TASK = "feishu.connect"
STORE_TASK = "feishu.store"

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 120.0
_PAUSE_BEHIND_S = 10.0
_PATIENCE_S = 24 * 3600.0
_FAILED_ONCE = "failed_once"
_GIVEN_UP = "given_up"


class Later(Exception):
    """A failure that may pass by itself: an outage, a rate limit.

    `wait_s` is the least pause, in seconds. With `behind` the job lets the others of its lock go
    first meanwhile. `note` is kept with its arguments.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait_s: float = 0.0,
        behind: bool = False,
        note: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s
        self.behind = behind
        self.note = note or {}


class Hopeless(Exception):
    """A failure that nothing but an operator can mend; `reason` is a kind, nobody's words."""

    reason = "hopeless"


@dataclass(frozen=True, slots=True)
class Job:
    """A job in a worker's hands. `attempt` counts from 1."""

    id: int
    task: str
    args: Mapping[str, Any]
    lock: str | None
    attempt: int

    @property
    def received_ms(self) -> int:
        """When the webhook got the event, ms since epoch; 0 for what is no event."""
        return int(self.args.get("received_ms", 0))

    @property
    def tried_since_ms(self) -> int:
        """From when its day of patience counts, ms since epoch; 0 for what is no event."""
        return int(self.args.get("retried_ms", self.received_ms))

    @property
    def given_up(self) -> str:
        """Why it gets no other attempt, as a kind; "": it may."""
        return str(self.args.get(_GIVEN_UP, ""))

    @property
    def anew(self) -> int:
        """How many times an operator wanted an answer beside the word that there is none."""
        return int(self.args.get("anew", 0))

    @property
    def maybe_sent_ms(self) -> int:
        """When an attempt first left it open whether a card was sent, ms since epoch; 0: none."""
        return int(self.args.get("maybe_sent_ms", 0))


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The job is tried again after `pause_s`. `note` is kept with its arguments, and `reason`, a
    kind and nobody's words, for operators: what the attempt failed for."""

    pause_s: float
    behind: bool = False
    note: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dead:
    """The job stays in the table as failed, for operators to see and to try again.

    `note` is kept with its arguments.
    """

    reason: str
    note: Mapping[str, Any] = field(default_factory=dict)


def after_failure(job: Job, failure: Exception, now_s: float) -> RunAgain | Dead:
    """What becomes of `job` after `failure`; `now_s` is seconds since epoch."""
    outcome = _judge_failure(job, failure, now_s)
    if isinstance(outcome, RunAgain):
        return outcome
    return Dead(job.given_up) if job.given_up else RunAgain(0.0, note={_GIVEN_UP: outcome.reason})


def _judge_failure(job: Job, failure: Exception, now_s: float) -> RunAgain | Dead:
    if isinstance(failure, Later):
        waited_s = now_s - job.tried_since_ms / 1000 if job.tried_since_ms else 0.0
        if waited_s > _PATIENCE_S:
            return Dead(failure.reason)
        longest = _PAUSE_BEHIND_S if failure.behind else _LONGEST_PAUSE_S
        # By its age, not its attempts: an answer comes at most a quarter later than it could.
        growing_s = waited_s / 4 if job.tried_since_ms else 2.0 ** min(job.attempt, 10)
        pause_s = min(max(_SHORTEST_PAUSE_S, growing_s), longest)
        pause_s = max(pause_s, failure.wait_s)
        return RunAgain(pause_s, failure.behind, failure.note, failure.reason)
    if isinstance(failure, Hopeless):
        return Dead(failure.reason)
    if job.args.get(_FAILED_ONCE):
        return Dead(type(failure).__name__)
    return RunAgain(2.0, note={_FAILED_ONCE: True}, reason=type(failure).__name__)
