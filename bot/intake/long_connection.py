"""The long connection instead of the webhook (`FEISHU_TRANSPORT=websocket`): settings → connection
→ intake, in a thread of the web process.

One process of all machines has it open: the one that holds a lease in the queue's database. When
that one is killed, another opens its own within five seconds. One that cannot renew its lease
closes its connection, even if it still reaches Feishu. What comes while none is open is pushed
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import time
from typing import Any

import structlog

from bot.feishu import events
from bot.feishu.long_connection import PUSH_AGAIN_ACK, Ack, LongConnection
from bot.feishu.transport import Transport
from bot.intake.acceptance import Intake
from bot.intake.framing import REFUSALS
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.settings import Settings

log = structlog.get_logger()

_STOP_S = 6.0
_LEASE = "long connection"
_LEASE_S, _RENEWED_EVERY_S = 3.0, 1.0
_GIVEN_UP_S = 2.5  # before it is another's: closing takes a moment


def receive(intake: Intake, message: bytes) -> Ack:
    """What a message is acknowledged with, once it is in the queue.

    What is no event at all is acknowledged too: pushed again it would be the same, and hold up
    those behind it for hours.
    """
    start_s = time.perf_counter()
    ack, outcome = _take_message(intake, message)
    metrics.ACK_SECONDS.observe(time.perf_counter() - start_s)
    metrics.EVENTS.labels(outcome=outcome).inc()
    return ack


def _take_message(intake: Intake, message: bytes) -> tuple[Ack, str]:
    try:
        outcome = intake.accept(_payload(message))
    except events.MalformedEvent as exc:
        REFUSALS.count("webhook.refused", str(exc))
        return Ack(), "refused"
    except QueueUnavailable as exc:
        log.error("webhook.queue_unavailable", error=str(exc))
        return PUSH_AGAIN_ACK, "unavailable"
    return Ack(answer=outcome.answer), outcome.outcome


def _payload(message: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(message)
    except (ValueError, RecursionError) as exc:
        raise events.MalformedEvent("not JSON") from exc
    if not isinstance(payload, dict):
        raise events.MalformedEvent("not a JSON object")
    return payload


async def _close_connection(connection_task: asyncio.Task[None]) -> None:
    connection_task.cancel()  # once: it acknowledges what was begun
    await asyncio.wait({connection_task})


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
        self._inbox = intake.inbox
        self._holder = secrets.token_hex(8)
        self._is_elsewhere = False
        self._held_since_s = float(
            "-inf"
        )  # monotonic seconds: when the lease was last asked for and got
        self._loop = asyncio.new_event_loop()
        self._running: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="long-connection", daemon=True)

    @property
    def failure(self) -> str:
        """Why nothing can come in at the moment; "" while the connection is open, here or in
        another process."""
        return "" if self._is_elsewhere else self._connection.failure

    def start(self) -> None:
        self._running = self._loop.create_task(self._keep_one())
        self._thread.start()

    def stop(self) -> None:
        """Acknowledges what was begun and closes the connection; within six seconds."""
        if self._running and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._running.cancel)
            self._thread.join(_STOP_S)

    async def _keep_one(self) -> None:
        """Opens the connection when this process gets the lease and closes it without."""
        connection_task: asyncio.Task[None] | None = None
        try:
            while True:
                holds = await self._holds()
                if holds and connection_task is None:
                    connection_task = asyncio.create_task(self._connection.run())
                elif not holds and connection_task is not None:
                    log.warning("long_connection.given_up", elsewhere=self._is_elsewhere)
                    await _close_connection(connection_task)
                    connection_task = None
                await asyncio.sleep(_RENEWED_EVERY_S)
        finally:
            if connection_task is not None:
                await _close_connection(connection_task)
            with contextlib.suppress(QueueUnavailable):
                self._inbox.release_lease(_LEASE, self._holder)

    async def _holds(self) -> bool:
        """Whether the lease is this process's. Without an answer it is for as long as no other can
        have it."""
        now_s = time.monotonic()
        try:
            holds = await asyncio.to_thread(self._inbox.hold_lease, _LEASE, self._holder, _LEASE_S)
        except QueueUnavailable as exc:
            log.warning("long_connection.lease_unknown", error=str(exc))
            self._is_elsewhere = False
            return time.monotonic() - self._held_since_s < _GIVEN_UP_S
        self._is_elsewhere = not holds
        self._held_since_s = now_s if holds else float("-inf")
        return holds

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        if self._running:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._running)
        self._loop.run_until_complete(self._transport.close())
        self._loop.close()
