"""`/healthz` (the process is up), `/readyz` (what it needs answers; else what), `/metrics`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import requests
from flask import Flask, Response, jsonify

from bot import metrics
from bot.queue import Inbox, QueueUnavailable
from bot.settings import Settings

_TIMEOUT_S = 3.0
_REMEMBERED_S = 10.0


class Worker(Protocol):
    """What readiness asks of an inline worker."""

    @property
    def alive(self) -> bool: ...


class Connection(Protocol):
    """What readiness asks of the long connection."""

    @property
    def failure(self) -> str: ...


class NotReady(Exception):
    """A dependency does not answer; the message says which and what to look at."""


@dataclass
class Checks:
    """The dependencies of this process. Results of outside calls are kept for ten seconds."""

    settings: Settings
    inbox: Inbox
    worker: Worker | None
    connection: Connection | None = None
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[float, str]] = field(default_factory=dict)

    def run(self) -> dict[str, str]:
        """Name of each check and "ok" or what is wrong."""
        checks: dict[str, Callable[[], None]] = {"database": self._database}
        if self.settings.supabase_url:
            checks["memory"] = self._supabase
        checks["feishu"] = self._feishu
        if self.connection:
            checks["connection"] = self._connection
        if self.worker:
            checks["worker"] = self._worker
        return {name: self._outcome(name, check) for name, check in checks.items()}

    def _outcome(self, name: str, check: Callable[[], None]) -> str:
        at, kept = self._kept.get(name, (float("-inf"), ""))
        if kept == "ok" and self.clock() - at < _REMEMBERED_S:
            return kept
        try:
            check()
            outcome = "ok"
        except NotReady as exc:
            outcome = str(exc)
        self._kept[name] = (self.clock(), outcome)
        return outcome

    def _database(self) -> None:
        try:
            self.inbox.ping()
        except QueueUnavailable as exc:
            raise NotReady(f"the queue's database does not answer ({exc})") from exc

    def _worker(self) -> None:
        if self.worker and not self.worker.alive:
            raise NotReady("the inline worker has stopped: restart the process")

    def _connection(self) -> None:
        if self.connection and (failure := self.connection.failure):
            raise NotReady(
                f"the long connection to Feishu is not open ({failure}): look at the log, and at "
                "the subscription mode in the console (Events & Callbacks)"
            )

    def _feishu(self) -> None:
        answer = _post(
            f"{self.settings.domain}/open-apis/auth/v3/tenant_access_token/internal",
            {"app_id": self.settings.feishu_app_id, "app_secret": self.settings.feishu_app_secret},
            {},
        )
        code = answer.get("code")
        if code != 0:
            raise NotReady(f"Feishu refuses the app's credentials (code {code})")

    def _supabase(self) -> None:
        filters = dict.fromkeys(("p_chat_id", "p_conversation_id", "p_user_id", "p_since"))
        _post(
            f"{self.settings.supabase_url.rstrip('/')}/rest/v1/rpc/list_conversations",
            {**filters, "p_limit": 0},
            {"apikey": self.settings.supabase_secret_key},
        )


def _post(url: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    try:
        answer = requests.post(url, json=body, headers=headers, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        found = answer.json()
    except (requests.RequestException, ValueError) as exc:
        raise NotReady(f"{url.split('/')[2]} does not answer ({type(exc).__name__})") from exc
    return found if isinstance(found, dict) else {}


def register(app: Flask, checks: Checks) -> None:
    """Adds the three routes."""

    def healthz() -> Response:
        return jsonify({"status": "up"})

    def readyz() -> tuple[Response, int]:
        found = checks.run()
        ready = all(outcome == "ok" for outcome in found.values())
        return jsonify({"ready": ready, "checks": found}), 200 if ready else 503

    def exposition() -> Response:
        return Response(metrics.render(), content_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_url_rule("/healthz", "healthz", healthz)
    app.add_url_rule("/readyz", "readyz", readyz)
    app.add_url_rule("/metrics", "metrics", exposition)
