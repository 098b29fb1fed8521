"""What becomes of a genuine delivery, whichever way it came: queued, answered or left.

The webhook and the long connection share it, and the names of its log lines, which the monitor
counts. Nothing here waits for the model or for Feishu.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

from bot.edge.presses import Presses, PressUnavailable
from bot.feishu import events
from bot.queue.inbox import Inbox, QueueUnavailable
from bot.reply.buttons import Toast, click_of, toast
from memory.scope import conversation_id, thread_root

log = structlog.get_logger()

_QUEUED = {events.MESSAGE_RECEIVED, events.MESSAGE_RECALLED}


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is answered to Feishu at once, and the outcome for the metrics."""

    outcome: str
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes deliveries, from any thread. `clock` is seconds since epoch."""

    inbox: Inbox
    presses: Presses | None = None
    reply_in_thread: bool = True
    clock: Callable[[], float] = time.time

    def accept(self, envelope: events.Envelope) -> Accepted:
        """Queues the event once. Raises `MalformedEvent`, and `QueueUnavailable` when Feishu must
        push it again."""
        if envelope.event_type == events.CARD_ACTION:
            return self._clicked(envelope)
        if envelope.event_type not in _QUEUED:
            log.info("webhook.ignored", event_type=envelope.event_type, event_id=envelope.event_id)
            return Accepted("ignored")
        started = time.perf_counter()
        fresh = self._enqueue(envelope, self._lock(envelope))
        log.info(
            "webhook.accepted",
            key=events.dedupe_key(envelope),
            event_type=envelope.event_type,
            duplicate=not fresh,
            ack_ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return Accepted("accepted" if fresh else "duplicate")

    def _clicked(self, envelope: events.Envelope) -> Accepted:
        """A click is answered with a toast, always: Feishu asks once and shows its own error for
        anything else. The steps and their order are explained in `bot.edge.presses`."""
        kind = self._press(envelope)
        log.info("webhook.clicked", event_id=envelope.event_id, toast=kind)
        taken = kind in ("accepted", "later")
        return Accepted("accepted" if taken else "refused", toast(kind))

    def _press(self, envelope: events.Envelope) -> Toast:
        click = click_of(events.parse_card_action(envelope))
        if click is None:
            return "unknown"
        if self.presses is None:
            return "away"
        try:
            found = self.presses.look(click)
            if found.verdict != "accepted":
                return found.verdict
            self._enqueue(envelope, found.conversation_id)
        except (PressUnavailable, QueueUnavailable) as exc:
            log.error("webhook.click_unavailable", error=str(exc))
            return "away"
        try:
            return self.presses.press(click).verdict
        except PressUnavailable:
            return "later"  # it is in the queue: the worker presses when the memory answers

    def _enqueue(self, envelope: events.Envelope, lock: str | None) -> bool:
        return self.inbox.enqueue(
            events.dedupe_key(envelope),
            _queued(envelope),
            lock=lock,
            received_ms=int(self.clock() * 1000),
        )

    def _lock(self, envelope: events.Envelope) -> str | None:
        """The conversation, so that its turns run in order; a recall must not wait behind one."""
        if envelope.event_type != events.MESSAGE_RECEIVED:
            return None
        event = events.parse_message(envelope)
        root = thread_root(
            message_id=event.message_id,
            root_id=event.root_id or None,
            chat_type=event.chat_type,
            reply_in_thread=self.reply_in_thread,
        )
        return conversation_id(event.chat_id, root)


def _queued(envelope: events.Envelope) -> dict[str, Any]:
    """The event as the queue keeps it: without the token, and without what JSON columns refuse."""
    header = {
        "event_id": envelope.event_id,
        "event_type": envelope.event_type,
        "create_time": str(envelope.create_time_ms),
        "tenant_key": envelope.tenant_key,
        "app_id": envelope.app_id,
    }
    return {"schema": "2.0", "header": header, "event": envelope.event}
