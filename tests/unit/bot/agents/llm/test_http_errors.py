"""What HTTP errors of endpoints mean, and which are worth another attempt."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.llm.http_responses import wished_pause_s
from bot.agents.llm.model import Declined, HttpRefusal, ModelFailed
from tests.support.rows import every_row

LONGER_THAN_IT_READS = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    "Your request exceeded model token limit: 8192",
    "Total tokens of image and text exceed max message tokens. Request id: SECRET",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "the request exceeds the available context size, try increasing it",
]


def refusal(status: int, body: Any, **headers: str) -> HttpRefusal:
    return HttpRefusal(
        status, headers, body if isinstance(body, bytes) else json.dumps(body).encode()
    )


def saying(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@every_row(
    ("status", "body", "reason", "may_pass"),
    [
        (401, saying("SECRET"), "wrong_key", False),
        (402, saying("Insufficient Balance"), "quota_used_up", False),
        (403, saying("SECRET"), "not_allowed", False),
        (404, saying("SECRET"), "no_such_model", False),
        (400, saying("Model Not Exist"), "no_such_model", False),
        (400, saying("x", code="model_not_found"), "no_such_model", False),
        (400, saying("x", param="model"), "no_such_model", False),
        (400, {"message": "The model `m` does not exist."}, "no_such_model", False),
        (429, saying("SECRET"), "rate_limited", True),
        (429, saying("x", code="insufficient_quota"), "quota_used_up", False),
        (429, b"slow down", "rate_limited", True),
        (400, saying("x", code="context_length_exceeded"), "too_long", False),
        (413, saying("prompt is too long"), "too_long", False),
        (400, saying("Bad parameter: seed"), "status_400", False),
        (400, [saying("bad", code=400, status="INVALID_ARGUMENT")], "status_400", False),
        (502, b"<html>SECRET</html>", "status_502", True),
        (408, b"", "status_408", True),
        (500, b"null", "status_500", True),
        *((400, saying(said), "too_long", False) for said in LONGER_THAN_IT_READS),
    ],
)  # fmt: skip
def test_an_error_has_a_reason_and_no_text_of_the_endpoint(
    status: int, body: Any, reason: str, may_pass: bool
) -> None:
    failure = refusal(status, body).failure()
    assert isinstance(failure, ModelFailed)
    assert failure.reason == str(failure) == reason
    assert refusal(status, body).may_pass is may_pass


@every_row("status", [400, 403])
@every_row("code", ["content_filter", "content_policy_violation"])
def test_a_question_that_was_filtered_is_declined(status: int, code: str) -> None:
    assert isinstance(refusal(status, saying("SECRET", code=code)).failure(), Declined)


NOW_S = 1_800_000_000.0
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}


@every_row(
    ("headers", "seconds"),
    [
        ({}, 0),
        *(({"Retry-After": wish}, 0) for wish in ("", "soon", "-1", "nan", "1e400", "٣")),
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "30s"}, 30),
        ({"Retry-After": formatdate(NOW_S + 30, usegmt=True)}, 30),
        ({"Retry-After": formatdate(NOW_S + 30)}, 30),
        ({"Retry-After": formatdate(NOW_S - 30, usegmt=True)}, 0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 2),
        ({"x-ratelimit-reset-requests": "1m59.5s", "x-ratelimit-remaining-requests": "0"}, 119.5),
        ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0s"}, 0.12),
        (
            {
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "0",
            },
            360,
        ),
        ({"X-RateLimit-Reset": f"{NOW_S * 1000 + 2500:.0f}"}, 2.5),
        ({"X-RateLimit-Reset": f"{NOW_S + 20:.0f}", "X-RateLimit-Remaining": "0"}, 20),
        ({"RateLimit-Reset": "3"}, 3),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 8),
        ({"anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:06Z"}, 6),
        ({"Retry-After": "3", "X-RateLimit-Reset": "60"}, 3),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert wished_pause_s(headers, {}, NOW_S) == pytest.approx(seconds)


@every_row("details", [[RETRY_INFO], [None, {"retryDelay": 7}, RETRY_INFO]])
def test_how_long_to_wait_may_stand_in_the_body(details: list[Any]) -> None:
    assert refusal(429, [saying("SECRET", details=details)]).retry_after_s == 34.5
    assert refusal(429, [saying("SECRET", details="none")]).retry_after_s == 0


@given(st.integers(400, 599), st.binary(max_size=300))
def test_any_body_is_read(status: int, body: bytes) -> None:
    assert isinstance(refusal(status, body).failure(), ModelFailed)
