"""What becomes of a genuine delivery, whichever way it came: queued, answered or left.

The webhook and the long connection share it, and the names of its log lines, which the monitor
counts. Nothing here waits for the model or for Feishu.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from bot.feishu import chat_events, events, reactions
from bot.intake.presses import Presses, PressUnavailable
from bot.outbox.buttons import Toast, click_of, toast, touch_of
from bot.process import metrics
from bot.queue.arrivals import Arrivals
from bot.queue.inbox import Inbox, QueueUnavailable
from bot.queue.person_rates import Asker
from memory.scope import conversation_id, thread_root
from memory.tables.buttons import Click, Press
from memory.tables.handles import Touch

log = structlog.get_logger()

_ASKING = ("follow_up", "show")  # buttons that ask a question; the others end or decide something
_QUEUED = {
    events.MESSAGE_RECEIVED,
    events.MESSAGE_RECALLED,
    *chat_events.HAPPENINGS,
    *reactions.KINDS,
}


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is answered to Feishu at once, and the outcome for the metrics."""

    outcome: str
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes deliveries, from any thread. `app_id` is our own, "" for any; `clock` is seconds since
    epoch. Of which tenant a delivery is makes no difference here: all are of one app."""

    inbox: Inbox
    presses: Presses | None = None
    reply_in_thread: bool = True
    app_id: str = ""
    clock: Callable[[], float] = time.time
    arrivals: Arrivals | None = None
    requests_per_minute: int = 0

    def arrived(self, kind: str) -> None:
        """Notes for the operators' checks that something of this kind has come."""
        if self.arrivals:
            self.arrivals.note(kind)

    def accept(self, payload: dict[str, Any]) -> Accepted:
        """Queues the event once, unchanged. Raises `MalformedEvent`, and `QueueUnavailable` when
        Feishu must push it again."""
        delivery = events.parse_delivery(payload)
        self._require_ours(delivery)
        self.arrived(delivery.event_type)
        if delivery.event_type == events.CARD_ACTION:
            return self._clicked(delivery, payload)
        if delivery.event_type not in _QUEUED or not _is_wanted(delivery, payload):
            log.info("webhook.ignored", event_type=delivery.event_type, event_id=delivery.event_id)
            return Accepted("ignored")
        started = time.perf_counter()
        fresh = self._enqueue(delivery.key, payload, *self._locks(delivery))
        log.info(
            "webhook.accepted",
            key=delivery.key,
            event_type=delivery.event_type,
            duplicate=not fresh,
            ack_ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return Accepted("accepted" if fresh else "duplicate")

    def _require_ours(self, delivery: events.Delivery) -> None:
        """Another app's people and chats have other ids: its events belong to another bot."""
        if self.app_id and delivery.app_id and delivery.app_id != self.app_id:
            raise events.MalformedEvent(
                f"the event is for app {delivery.app_id!r} and FEISHU_APP_ID is {self.app_id!r}: "
                "give each app a bot of its own, with its own Request URL"
            )

    def _clicked(self, delivery: events.Delivery, payload: dict[str, Any]) -> Accepted:
        """A click is answered with a toast, always: Feishu asks once and shows its own error for
        anything else. The steps and their order are explained in `bot.intake.presses`."""
        kind = self._press(delivery, payload)
        log.info("webhook.clicked", event_id=delivery.event_id, toast=kind)
        taken = kind in ("accepted", "later", "stopping")
        return Accepted("accepted" if taken else "refused", toast(kind))

    def _press(self, delivery: events.Delivery, payload: dict[str, Any]) -> Toast:
        action = events.parse_card_action(events.parse_envelope(payload))
        if self.presses is None:
            return "away"
        if touch := touch_of(action):
            return self._touch(payload, touch)
        click = click_of(action)
        if click is None:
            return "unknown"
        try:
            found = self.presses.look(click)
            if found.kind == "stop":
                return self._stop(click, found)
            if found.verdict != "accepted":
                return found.verdict
            if found.kind in _ASKING and self._is_over_rate(click.tenant_key, click.operator_id):
                return "too_many"
            self._enqueue(delivery.key, payload, found.conversation_id)
        except (PressUnavailable, QueueUnavailable) as exc:
            log.error("webhook.click_unavailable", error=str(exc))
            return "away"
        try:
            return self.presses.press(click).verdict
        except PressUnavailable:
            return "later"  # it is in the queue: the worker presses when the memory answers

    def _touch(self, payload: dict[str, Any], touch: Touch) -> Toast:
        """Feedback is kept at once; another answer is a job, one however often it is pressed."""
        if self.presses is None:
            return "away"
        try:
            if touch.handle == "again" and self._is_over_rate(touch.tenant_key, touch.operator_id):
                return "too_many"
            found = self.presses.touch(touch)
            if found.verdict in ("thanks", "taken_back"):
                metrics.count_feedback(
                    "button", helpful=touch.handle == "helpful", kept=found.verdict == "thanks"
                )
            if found.verdict != "accepted":
                return found.verdict
            key = f"again:{found.turn_id}"  # the turn of the card: it is answered again once
            fresh = self._enqueue(key, payload, found.conversation_id)
        except (PressUnavailable, QueueUnavailable) as exc:
            log.error("webhook.click_unavailable", error=str(exc))
            return "away"
        return "accepted" if fresh else "used"

    def _stop(self, click: Click, found: Press) -> Toast:
        """No job: it would wait behind the very turn that it stops. The press is kept before the
        workers are told, for they may end the turn at once; the next press tells them again, for
        whoever kept the first may have ended in between. Raises `QueueUnavailable`."""
        verdict = found.verdict
        if self.presses and verdict == "accepted":
            with suppress(PressUnavailable):  # stopped it is all the same
                verdict = self.presses.press(click).verdict
        if verdict not in ("accepted", "used"):
            return verdict
        self.inbox.stop_turn(found.payload["turn_id"])
        return "stopping" if verdict == "accepted" else "stopped"

    def _is_over_rate(self, tenant_key: str, open_id: str) -> bool:
        """Raises `QueueUnavailable`."""
        if not self.requests_per_minute:
            return False
        at_ms, asker = int(self.clock() * 1000), Asker(tenant_key, open_id)
        return self.inbox.is_over_rate(asker, at_ms, self.requests_per_minute)

    def _enqueue(
        self,
        key: str,
        payload: dict[str, Any],
        lock: str | None,
        lock_in_topic: str | None = None,
    ) -> bool:
        return self.inbox.enqueue(
            key,
            events.to_keep(payload),
            lock=lock,
            lock_in_topic=lock_in_topic,
            received_ms=int(self.clock() * 1000),
        )

    def _locks(self, delivery: events.Delivery) -> tuple[str | None, str | None]:
        """The conversation, so that its turns run in order, and which one it is in a topic group:
        only the database knows whether the chat is one. Other events must not wait behind a turn,
        least of all what ends it."""
        if delivery.event_type != events.MESSAGE_RECEIVED or delivery.stops:
            return None, None
        lock = self._conversation(delivery)
        if delivery.thread_id or not delivery.root_id or delivery.chat_type == "p2p":
            return lock, None
        return lock, self._conversation(delivery, topic_group=True)

    def _conversation(self, delivery: events.Delivery, *, topic_group: bool = False) -> str:
        root = thread_root(
            message_id=delivery.message_id,
            root_id=delivery.root_id,
            chat_type=delivery.chat_type,
            reply_in_thread=self.reply_in_thread,
            thread_id=delivery.thread_id,
            topic_group=topic_group,
        )
        return conversation_id(delivery.chat_id, root)


def _is_wanted(delivery: events.Delivery, payload: dict[str, Any]) -> bool:
    """Of emojis that are taken away, those that said something."""
    if delivery.event_type != reactions.REACTION_REMOVED:
        return True
    return reactions.parse_reaction(events.parse_envelope(payload)).helpful is not None
