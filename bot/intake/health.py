"""`/healthz` (the process is up), `/readyz` (what it needs answers; else what), `/metrics`.

Anybody may ask whether the bot is ready. What is wrong in detail, and the numbers, are for this
machine and for who knows METRICS_TOKEN.
"""

from __future__ import annotations

import hmac
import ipaddress

from flask import Flask, Request, Response, jsonify, request

from bot.intake.readiness import Checks, Readiness
from bot.intake.single_flight import SingleFlight
from bot.operations.doctor.result import fail
from bot.process import metrics

_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_BEING_LOOKED_AT = Readiness(
    (fail("readiness", "still being checked: ask again in a moment", "正在检查：请稍后再试"),)
)


def register(app: Flask, checks: Checks) -> None:
    """Adds the three routes; the application keeps the checks for its start and its console."""
    app.extensions["health"] = checks
    flight = SingleFlight(checks.run)
    app.extensions["readiness"] = lambda: (flight.outcome() or _BEING_LOOKED_AT).found
    token = checks.settings.metrics_token

    def healthz() -> Response:
        return jsonify({"status": "up"})

    def readyz() -> tuple[Response, int]:
        outcome = flight.outcome() or _BEING_LOOKED_AT
        answer: dict[str, object] = {"ready": outcome.ready}
        if may_look(request, token):
            answer |= {"degraded": outcome.degraded, "checks": outcome.checks}
        return jsonify(answer), 200 if outcome.ready else 503

    def exposition() -> Response:
        if not may_look(request, token):
            return Response(
                "for this machine, or with METRICS_TOKEN as bearer token\n",
                status=401,
                content_type="text/plain",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Response(metrics.render(), content_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_url_rule("/healthz", "healthz", healthz)
    app.add_url_rule("/readyz", "readyz", readyz)
    app.add_url_rule("/metrics", "metrics", exposition)


def may_look(asking: Request, token: str) -> bool:
    """Whether the request bears `token`, or comes from this machine and through no proxy.

    A proxy on this machine shows by what it adds, or by the host that was asked for.
    """
    kind, _, credentials = asking.headers.get("Authorization", "").partition(" ")
    if token and kind.lower() == "bearer":
        return hmac.compare_digest(credentials.strip().encode(), token.encode())
    if any(name in asking.headers for name in _FORWARDED):
        return False
    return _is_loopback(asking.remote_addr or "") and _is_loopback(_host(asking))


def _host(asking: Request) -> str:
    """The host that was asked for, without its port."""
    host = asking.headers.get("Host", "")
    return host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped_address = getattr(address, "ipv4_mapped", None)
    return bool((mapped_address or address).is_loopback)
