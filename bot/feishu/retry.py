"""Whether and when a failed call is made again: capped in attempts and in total time."""

from dataclasses import dataclass

from bot.feishu.errors import Action, FeishuError, FeishuFailure, Unreachable

_REPEATED = frozenset({Action.RETRY, Action.IN_FLIGHT})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from `base_s` up to `cap_s`, each with up to as much again of jitter."""

    max_attempts: int = 5
    max_total_s: float = 30.0
    base_s: float = 0.3
    cap_s: float = 5.0


ONCE = RetryPolicy(max_attempts=1)


def retry_delay(
    policy: RetryPolicy, failure: FeishuFailure, attempt: int, elapsed_s: float, jitter: float
) -> float | None:
    """Seconds until the next attempt, or None to give up. `jitter` is in [0, 1).

    What Feishu asks for (`x-ogw-ratelimit-reset`) is waited in full or not at all: a wait that
    does not fit into the policy's total is left to the caller's queue.
    """
    if attempt >= policy.max_attempts or not _repeatable(failure):
        return None
    retry_after_s = (
        failure.retry_after_s if isinstance(failure, FeishuError | Unreachable) else None
    )
    backoff = min(policy.cap_s, policy.base_s * 2 ** (attempt - 1)) * (1 + jitter)
    delay = backoff if retry_after_s is None else retry_after_s + policy.base_s * jitter
    return delay if elapsed_s + delay <= policy.max_total_s else None


def _repeatable(failure: FeishuFailure) -> bool:
    if isinstance(failure, FeishuError):
        return failure.action in _REPEATED
    return isinstance(failure, Unreachable)
