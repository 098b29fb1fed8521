"""Numbers for Prometheus. Of one process unless PROMETHEUS_MULTIPROC_DIR is set."""

from __future__ import annotations

import os
from typing import Any, Self

import prometheus_client
from prometheus_client import (
    CollectorRegistry,
    Gauge,
    generate_latest,
    multiprocess,
    start_http_server,
)


class _Remembering:
    """A metric that remembers its children by labels; asking for one costs five times as much."""

    _remembered: dict[tuple[Any, ...], Any]

    def labels(self, *values: Any, **labels: Any) -> Self:
        key = (*values, *labels.items())
        try:
            return self._remembered[key]  # type: ignore[no-any-return]
        except AttributeError:
            self._remembered = {}
        except KeyError:
            pass
        child = self._remembered[key] = super().labels(*values, **labels)  # type: ignore[misc]
        return child  # type: ignore[no-any-return]


class Counter(_Remembering, prometheus_client.Counter):
    """Of the client library."""


class Histogram(_Remembering, prometheus_client.Histogram):
    """Of the client library."""


_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)
_SLOW = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 45, 60)

EVENTS = Counter("bot_events_total", "Deliveries to the webhook.", ["outcome"])
REFUSED = Counter("bot_refused_requests_total", "Requests that were refused.", ["reason"])
LOOP_BLOCKED = Histogram(
    "bot_loop_blocked_seconds",
    "How long an event loop was blocked, each time it was for over half a second.",
    buckets=(0.5, 1, 2, 5, 10, 30),
)
ACK_SECONDS = Histogram("bot_ack_seconds", "Delivery to acknowledgement.", buckets=_FAST)
DECISIONS = Counter("bot_decisions_total", "Answer or stay silent, and why.", ["respond", "reason"])
CONVERSATION_MESSAGES = Histogram(
    "bot_conversation_messages",
    "Messages in the group's conversation when the bot answers in it.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200),
)
CONVERSATION_PEOPLE = Histogram(
    "bot_conversation_people",
    "People in the group's conversation when the bot answers in it.",
    buckets=(1, 2, 3, 5, 8, 13, 21),
)
TOPICS = Counter("bot_topics_total", "Questions in main chats: is their topic sure?", ["topic"])
SUBJECTS = Counter("bot_subjects_total", "Answers in groups: about the sender?", ["about"])
TURNS = Counter("bot_turns_total", "Turns by how they ended.", ["outcome"])
TURN_SECONDS = Histogram("bot_turn_seconds", "Acknowledgement to delivered reply.", buckets=_SLOW)
STAGE_SECONDS = Histogram(
    "bot_stage_seconds",
    "Time spent in one stage of a turn.",
    ["stage"],
    buckets=_FAST[:-1] + _SLOW[3:],
)
IN_FLIGHT = Gauge("bot_turns_in_flight", "Turns being worked on.", multiprocess_mode="livesum")
STOPPED = Counter("bot_turns_stopped_total", "Answers that somebody stopped.")
FEEDBACK = Counter(
    "bot_feedback_total",
    "What people said of answers: helpful or unhelpful, by button or reaction, kept or taken back.",
    ["said", "by", "kept"],
)
TOKENS = Counter(
    "bot_model_tokens_total",
    "Tokens as the model reports them: of answers, judge, summaries and embeddings.",
    ["direction", "kind"],
)
MODEL_FAILURES = Counter("bot_model_failures_total", "Model calls that gave no answer.", ["reason"])
MODEL_REQUESTS = Gauge(
    "bot_model_requests", "Requests that models are answering.", multiprocess_mode="livesum"
)
MODEL_WAITING = Gauge(
    "bot_model_requests_waiting",
    "Requests that wait because a model has as many as it takes.",
    multiprocess_mode="livesum",
)
FEISHU_CALLS = Counter("bot_feishu_calls_total", "Calls that Feishu counts, by API.", ["api"])
FEISHU_MONTH_CALLS = Gauge(
    "bot_feishu_month_calls",
    "Calls of this month that count against FEISHU_CALLS_PER_MONTH, as last heard.",
    multiprocess_mode="livemax",
)
FEISHU_ERRORS = Counter("bot_feishu_errors_total", "Errors of the Feishu API.", ["code"])
MEMORY_ERRORS = Counter("bot_memory_errors_total", "Errors of the memory.", ["error"])
MEMORY_FAILURES = Counter(
    "bot_memory_failures_total", "Calls that the memory did not answer.", ["kind"]
)
MEMORY_BREAKER = Gauge(
    "bot_memory_breaker", "0: memory there, 1: being probed, 2: away.", multiprocess_mode="livemax"
)
TURNS_UNSTORED = Counter("bot_turns_unstored_total", "Turns kept while the memory was away.")
TURNS_STORED_LATER = Counter(
    "bot_turns_stored_later_total", "Turns written when the memory was back."
)
UNSTORED = Gauge(
    "bot_unstored_turns", "Turns that wait for the memory.", multiprocess_mode="livemax"
)
UNSTORED_OLDEST_SECONDS = Gauge(
    "bot_unstored_oldest_seconds",
    "Age of what has waited longest for the memory.",
    multiprocess_mode="livemax",
)
SUMMARIES = Counter("bot_summaries_total", "Folds of long threads, by who wrote them.", ["by"])
TENDING = Counter("bot_tending_total", "Background jobs of conversations.", ["outcome"])
MEMBERS_REFRESHED = Counter(
    "bot_members_refresh_total",
    "Chats that Feishu was asked about, by what came of it.",
    ["outcome"],
)
IMPORTED_MESSAGES = Counter(
    "bot_imported_messages_total", "Messages of a chat's past that were read and kept."
)
TIMERS = Counter("bot_timers_total", "Times of timers, by what came of them.", ["kind", "outcome"])
TIMER_LATE_SECONDS = Histogram(
    "bot_timer_late_seconds",
    "From the time of a timer to its card.",
    buckets=(1, 2, 5, 10, 30, 60, 300, 3600, 86400),
)
PRIVATE = Counter("bot_private_look_ups_total", "Look-ups for who asked in a group.", ["outcome"])
EMBEDDING_SECONDS = Histogram(
    "bot_embedding_seconds",
    "Calls of the embedding model, for a question or for messages.",
    ["of"],
    buckets=(*_FAST[3:], 10, 30),
)
EMBEDDING_FAILURES = Counter(
    "bot_embedding_failures_total", "Calls of the embedding model without vectors.", ["reason"]
)
EMBEDDING_AWAY = Gauge(
    "bot_embedding_away",
    "1: the embedding model is slow or away, and questions do not wait for it.",
    multiprocess_mode="livemax",
)
STALLED = Counter("bot_stalled_jobs_total", "Jobs taken over from a worker that died.")
GIVEN_UP = Counter("bot_given_up_jobs_total", "Jobs that get no other attempt.", ["reason"])
UNKNOWN_OUTCOMES = Counter(
    "bot_unknown_outcomes_total", "Cards not sent again because nobody can see whether they were."
)


def count_tokens(kind: str, tokens_in: int, tokens_out: int) -> None:
    """Tokens of one answer, or of a request of another kind."""
    TOKENS.labels(direction="in", kind=kind).inc(tokens_in)
    TOKENS.labels(direction="out", kind=kind).inc(tokens_out)


def count_from_zero() -> None:
    """An alert on `increase` does not see the first of a series that was not there before."""
    for outcome in ("apologised", "undelivered"):
        TURNS.labels(outcome=outcome)


def count_feedback(by: str, *, helpful: bool, is_kept: bool) -> None:
    """One press or reaction that said whether an answer helped."""
    rating = "helpful" if helpful else "unhelpful"
    FEEDBACK.labels(said=rating, by=by, kept="yes" if is_kept else "no").inc()


def render() -> bytes:
    """The text exposition of this process, or of all of them."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest()
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def serve(port: int) -> None:
    """Serves the metrics of a process without a web server on loopback; 0 does nothing."""
    if port:
        start_http_server(port, addr="127.0.0.1")
