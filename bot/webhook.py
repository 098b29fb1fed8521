"""The edge: verify, decrypt, check, enqueue, acknowledge. It waits for nothing else.

Feishu allows 3 s for an event and 1 s for url_verification, and pushes again on anything but 200
(source: Feishu, “Event subscription overview”). Whatever is refused gets one answer, whyever.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import structlog
from flask import Blueprint, Flask, Request, Response, request
from werkzeug.datastructures import Headers

from bot.feishu import crypto, events
from bot.intake.acceptance import Intake
from bot.intake.framing import REFUSALS
from bot.intake.messages_in_loop import LoopIntake
from bot.process import metrics
from bot.queue.inbox import REFUSAL_PREFIX, Arrived, QueueUnavailable

log = structlog.get_logger()

_SIGNATURE = "X-LARK-SIGNATURE"  # upper case: the loop has the names as its parser gives them
MAX_BODY_BYTES = 1024 * 1024
# Longer than Feishu's whole retry schedule (7.1 h), shorter than the inbox remembers keys (24 h):
# a replayed delivery is either a known duplicate or too old.
MAX_AGE_S = 12 * 3600
MAX_SKEW_S = 3600


class Refused(Exception):
    """The request is not a genuine delivery. The reason is for the log only."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What the webhook needs."""

    encrypt_key: str
    verification_token: str
    intake: Intake


def register(app: Flask, edge: Edge) -> None:
    """Adds `POST /webhook/event` and `POST /webhook/card`; either takes both kinds."""
    blueprint = Blueprint("webhook", __name__, url_prefix="/webhook")

    def receive() -> tuple[Response, int]:
        start_s = time.perf_counter()
        body, status, outcome = _answer(edge, request)
        metrics.ACK_SECONDS.observe(time.perf_counter() - start_s)
        metrics.EVENTS.labels(outcome=outcome).inc()
        return Response(orjson.dumps(body), mimetype="application/json"), status

    for name in ("event", "card"):
        blueprint.add_url_rule(f"/{name}", f"receive_{name}", receive, methods=["POST"])
    app.register_blueprint(blueprint)
    app.extensions["messages"] = LoopIntake(
        partial(_message, edge), edge.intake.inbox.storing, partial(_take_message, edge)
    )


def _message(edge: Edge, headers: Mapping[str, str], body: bytes) -> Arrived | None:
    """A message to be queued, and nothing else; None: `receive` says what it is."""
    try:
        return edge.intake.message(_verified_payload(edge, headers, body))
    except (Refused, events.MalformedEvent):
        return None


def _take_message(
    edge: Edge, message: Arrived, fresh: bool, stored_s: float, seconds: float
) -> bytes:
    """The answer to a message that was stored, with what `receive` does besides."""
    outcome = edge.intake.took(message, fresh=fresh, seconds=stored_s)
    metrics.ACK_SECONDS.observe(seconds)
    metrics.EVENTS.labels(outcome=outcome.outcome).inc()
    return orjson.dumps(outcome.answer)


def _answer(edge: Edge, incoming: Request) -> tuple[dict[str, Any], int, str]:
    try:
        payload = _verified_payload(edge, incoming.headers, _body(incoming))
        if events.is_url_verification(payload):
            return {"challenge": str(payload.get("challenge", ""))}, 200, "challenge"
        outcome = edge.intake.accept(payload)
    except (Refused, events.MalformedEvent) as exc:
        if isinstance(exc, Refused) and _SIGNATURE in incoming.headers:
            edge.intake.note_arrival(f"{REFUSAL_PREFIX}{exc}")
        REFUSALS.count("webhook.refused", str(exc))
        return {"code": 400, "msg": "bad request"}, 400, "refused"
    except QueueUnavailable as exc:
        log.error("webhook.queue_unavailable", error=str(exc))
        return {"code": 503, "msg": "try again"}, 503, "unavailable"
    return outcome.answer, 200, outcome.outcome


def _body(incoming: Request) -> bytes:
    if (incoming.content_length or 0) > MAX_BODY_BYTES:
        raise Refused("body too large")
    body = incoming.stream.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise Refused("body too large")
    return body


def _verified_payload(
    edge: Edge, headers: Mapping[str, str] | Headers, body: bytes
) -> dict[str, Any]:
    """The decrypted payload of a genuine delivery.

    A delivery is signed over its raw bytes. Only url_verification comes unsigned; it is believed
    for its token, and changes nothing.
    """
    is_signed = _SIGNATURE in headers
    if is_signed:
        _check_signature(edge, headers, body)
    payload = _decrypt_body(edge, body)
    if not is_signed and not events.is_url_verification(payload):
        raise Refused("not signed")
    if not crypto.verify_token(edge.verification_token, _token(payload)):
        raise Refused("wrong token")
    return payload


def _check_signature(edge: Edge, headers: Mapping[str, str] | Headers, body: bytes) -> None:
    timestamp = headers.get("X-LARK-REQUEST-TIMESTAMP")
    genuine = crypto.verify_signature(
        timestamp=timestamp,
        nonce=headers.get("X-LARK-REQUEST-NONCE"),
        signature=headers.get(_SIGNATURE),
        encrypt_key=edge.encrypt_key,
        body=body,
    )
    if not genuine:
        raise Refused("wrong signature")
    if not timestamp or not timestamp.isascii() or not timestamp.isdigit():
        raise Refused("timestamp is not a number")
    age = time.time() - int(timestamp[:12])
    if not -MAX_SKEW_S <= age <= MAX_AGE_S:
        raise Refused("too old or from the future")


def _decrypt_body(edge: Edge, body: bytes) -> dict[str, Any]:
    outer = _json_object(body)
    if "encrypt" not in outer:
        raise Refused("not encrypted")
    try:
        return _json_object(crypto.decrypt(edge.encrypt_key, outer["encrypt"]))
    except crypto.DecryptError as exc:
        raise Refused("cannot be decrypted") from exc


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise Refused("not JSON") from exc
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    return value


def _token(payload: dict[str, Any]) -> object:
    header = payload.get("header")
    return header.get("token") if isinstance(header, dict) else payload.get("token")
