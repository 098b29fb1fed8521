"""The long connection instead of the webhook (`FEISHU_TRANSPORT=websocket`): settings → connection
→ intake, in a thread of the web process.

There is exactly one per web process, and in this mode one web process: acknowledging takes
milliseconds, Feishu gives each message to one connection only, and what comes while none is open
is pushed again. Who wants no gap while it reconnects runs a second instance of the service.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from typing import Any

import structlog

from bot.feishu import events
from bot.feishu.connection.long_connection import LongConnection
from bot.feishu.connection.open_connection import PUSH_AGAIN, Ack
from bot.feishu.transport import Transport
from bot.intake.acceptance import Intake
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.settings import Settings

log = structlog.get_logger()

_STOP_S = 6.0


def receive(intake: Intake, message: bytes) -> Ack:
    """What a message is acknowledged with, once it is in the queue.

    What is no event at all is acknowledged too: pushed again it would be the same, and hold up
    those behind it for hours.
    """
    started = time.perf_counter()
    ack, outcome = _taken(intake, message)
    metrics.ACK_SECONDS.observe(time.perf_counter() - started)
    metrics.EVENTS.labels(outcome=outcome).inc()
    return ack


def _taken(intake: Intake, message: bytes) -> tuple[Ack, str]:
    try:
        accepted = intake.accept(_payload(message))
    except events.MalformedEvent as exc:
        log.warning("webhook.refused", reason=str(exc), bytes=len(message))
        return Ack(), "refused"
    except QueueUnavailable as exc:
        log.error("webhook.queue_unavailable", error=str(exc))
        return PUSH_AGAIN, "unavailable"
    return Ack(answer=accepted.answer), accepted.outcome


def _payload(message: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(message)
    except (ValueError, RecursionError) as exc:
        raise events.MalformedEvent("not JSON") from exc
    if not isinstance(payload, dict):
        raise events.MalformedEvent("not a JSON object")
    return payload


class Listener:
    """Runs the long connection in a thread, with an event loop of its own."""

    def __init__(self, settings: Settings, intake: Intake) -> None:
        self._transport = Transport(settings.domain)
        self._connection = LongConnection(
            self._transport,
            settings.feishu_app_id,
            settings.feishu_app_secret,
            lambda message: receive(intake, message),
        )
        self._loop = asyncio.new_event_loop()
        self._running: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="long-connection", daemon=True)

    @property
    def failure(self) -> str:
        """Why nothing can come in at the moment; "" while the connection is open."""
        return self._connection.failure

    def start(self) -> None:
        self._running = self._loop.create_task(self._connection.run())
        self._thread.start()

    def stop(self) -> None:
        """Acknowledges what was begun and closes the connection; within six seconds."""
        if self._running and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._running.cancel)
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        if self._running:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._running)
        self._loop.run_until_complete(self._transport.close())
        self._loop.close()
