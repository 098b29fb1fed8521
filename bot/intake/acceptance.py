"""Queues, answers or ignores a verified delivery, and presses buttons at the edge.

The webhook and the long connection share this code and its log lines; the monitor counts those by
name. Nothing here waits for the model or for Feishu.

Feishu wants the answer to a card callback within 3 s and asks once. The webhook therefore

1. looks whether the press would be accepted, which also names the conversation,
2. puts the click into the queue, in order with that conversation's messages,
3. presses the button, and says what came of it.

The worker presses again before it does anything. A press is idempotent by the click's event_id and
the first in its group wins, so a process that dies between two steps loses no click and asks
nothing twice.

The memory's transports are asynchronous and the webhook is not: they run on an event loop in a
thread of its own, which begins with the first click."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog

from bot.feishu import events, other_events
from bot.feishu.manifest import subscription_names
from bot.outbox.buttons import Toast, click_of, toast, touch_of
from bot.process import metrics
from bot.queue.inbox import Arrivals, Arrived, Inbox, QueueUnavailable
from memory.errors import StoreError
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, FeishuPerson, conversation_id, thread_root
from memory.tables.cards import (
    ButtonStore,
    Click,
    HandleStore,
    HandleTouch,
    PressResult,
    TouchResult,
)

log = structlog.get_logger()
_ASKING = ("follow_up", "show")  # these buttons ask a question; the others end or decide something
HANDLED_EVENTS = frozenset(subscription_names("event"))

_LIMIT_S = 1.0
_CLOSE_S = 3.0
T = TypeVar("T")
Opener = Callable[[], Awaitable[Rpc]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer that Feishu gets at once, and the outcome for the metrics."""

    outcome: str
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes deliveries. Its methods may be called from any thread.

    `app_id` is the bot's own; "" accepts any. `clock` gives seconds since epoch. The tenant of a
    delivery makes no difference here, because all belong to one app.
    """

    inbox: Inbox
    presses: Presses | None = None
    reply_in_thread: bool = True
    app_id: str = ""
    clock: Callable[[], float] = time.time
    arrivals: Arrivals | None = None
    requests_per_minute: int = 0

    def note_arrival(self, kind: str) -> None:
        """Notes that a delivery of this kind has come, for the operators' checks."""
        if self.arrivals:
            self.arrivals.note(kind)

    def accept(self, payload: dict[str, Any]) -> Accepted:
        """Queues the event once, unchanged. Raises `MalformedEvent`, and `QueueUnavailable` when
        Feishu must push it again."""
        delivery = events.parse_delivery(payload)
        self._require_ours(delivery)
        self.note_arrival(delivery.event_type)
        if delivery.event_type == events.CARD_ACTION:
            return self._click(delivery, payload)
        if delivery.event_type not in HANDLED_EVENTS or not _is_wanted(delivery, payload):
            log.info("webhook.ignored", event_type=delivery.event_type, event_id=delivery.event_id)
            return Accepted("ignored")
        start_s = time.perf_counter()
        key = _key(delivery, payload)
        fresh = self._enqueue(key, payload, *self._locks(delivery))
        return _acceptance_of(key, delivery.event_type, fresh, time.perf_counter() - start_s)

    def message(self, payload: dict[str, Any]) -> Arrived | None:
        """What `accept` would queue, to be stored by the caller; None of all but messages. Raises
        `MalformedEvent`."""
        delivery = events.parse_delivery(payload)
        if delivery.event_type != events.MESSAGE_RECEIVED:
            return None
        self._require_ours(delivery)
        self.note_arrival(delivery.event_type)
        lock, lock_in_topic = self._locks(delivery)
        fields, received_ms = events.storable_push(payload), int(self.clock() * 1000)
        return self.inbox.arrival(delivery.key, fields, received_ms, lock, lock_in_topic)

    def took(self, message: Arrived, *, fresh: bool, seconds: float) -> Accepted:
        """The message is stored; it took so long."""
        return _acceptance_of(message.key, events.MESSAGE_RECEIVED, fresh, seconds)

    def _require_ours(self, delivery: events.Delivery) -> None:
        """Refuses another app's event: there the same people and chats have other ids."""
        if self.app_id and delivery.app_id and delivery.app_id != self.app_id:
            raise events.MalformedEvent(
                f"the event is for app {delivery.app_id!r} and FEISHU_APP_ID is {self.app_id!r}: "
                "give each app a bot of its own, with its own Request URL"
            )

    def _click(self, delivery: events.Delivery, payload: dict[str, Any]) -> Accepted:
        """Answers a click with a toast, always: Feishu asks once and shows its own error for any
        other answer. `bot.intake.acceptance` explains the steps and their order."""
        kind = self._press(delivery, payload)
        log.info("webhook.clicked", event_id=delivery.event_id, toast=kind)
        is_taken = kind in ("accepted", "later", "stopping")
        return Accepted("accepted" if is_taken else "refused", toast(kind))

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
            press = self.presses.look(click)
            if press.kind == "stop":
                return self._stop(click, press)
            if press.verdict != "accepted":
                return press.verdict
            if press.kind in _ASKING and self._is_over_rate(click.tenant_key, click.operator_id):
                return "too_many"
            self._enqueue(delivery.key, payload, press.conversation_id)
        except (PressUnavailable, QueueUnavailable) as exc:
            log.error("webhook.click_unavailable", error=str(exc))
            return "away"
        try:
            return self.presses.press(click).verdict
        except PressUnavailable:
            return "later"  # the click is queued: the worker presses when the memory answers

    def _touch(self, payload: dict[str, Any], touch: HandleTouch) -> Toast:
        """Stores feedback at once. Queues another answer once, however often it is pressed."""
        if self.presses is None:
            return "away"
        try:
            if touch.handle == "again" and self._is_over_rate(touch.tenant_key, touch.operator_id):
                return "too_many"
            outcome = self.presses.touch(touch)
            if outcome.verdict in ("thanks", "taken_back"):
                metrics.count_feedback(
                    "button", helpful=touch.handle == "helpful", is_kept=outcome.verdict == "thanks"
                )
            if outcome.verdict != "accepted":
                return outcome.verdict
            key = f"again:{outcome.turn_id}"  # one per turn, so a turn is answered again only once
            fresh = self._enqueue(key, payload, outcome.conversation_id)
        except (PressUnavailable, QueueUnavailable) as exc:
            log.error("webhook.click_unavailable", error=str(exc))
            return "away"
        return "accepted" if fresh else "used"

    def _stop(self, click: Click, press: PressResult) -> Toast:
        """Stops the turn without a job, because a job would wait behind the turn that it stops.

        The press is stored before the workers hear of it, because they may end the turn at once.
        Another press tells them again, because the process that stored the first may have died
        before it told them. Raises `QueueUnavailable`.
        """
        verdict = press.verdict
        if self.presses and verdict == "accepted":
            with suppress(PressUnavailable):  # the turn is stopped all the same
                verdict = self.presses.press(click).verdict
        if verdict not in ("accepted", "used"):
            return verdict
        self.inbox.stop_turn(press.payload["turn_id"])
        return "stopping" if verdict == "accepted" else "stopped"

    def _is_over_rate(self, tenant_key: str, open_id: str) -> bool:
        """Whether the person has asked too often in this minute. Raises `QueueUnavailable`."""
        if not self.requests_per_minute:
            return False
        at_ms, asker = int(self.clock() * 1000), FeishuPerson(tenant_key, open_id)
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
            events.storable_push(payload),
            lock=lock,
            lock_in_topic=lock_in_topic,
            received_ms=int(self.clock() * 1000),
        )

    def _locks(self, delivery: events.Delivery) -> tuple[str | None, str | None]:
        """The lock of the conversation, so that its turns run in order, and its lock in a topic
        group, because only the database knows whether the chat is one.

        Other events have no lock: they must not wait behind a turn, and some of them end it.
        """
        if delivery.event_type == events.COMMENT_ADDED:
            return conversation_id(delivery.chat_id, MAIN_ROOT), None
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


def _acceptance_of(key: str, event_type: str, fresh: bool, seconds: float) -> Accepted:
    ack_ms = round(seconds * 1000, 1)
    log.info("webhook.accepted", key=key, event_type=event_type, duplicate=not fresh, ack_ms=ack_ms)
    return Accepted("accepted" if fresh else "duplicate")


def _key(delivery: events.Delivery, payload: dict[str, Any]) -> str:
    """What makes a delivery the same one. Of a press in the menu it is who pressed what and when:
    Feishu may tell of one thing under two event ids. Raises `MalformedEvent`."""
    if delivery.event_type != other_events.MENU_PRESSED:
        return delivery.key
    press = other_events.parse_menu_press(events.parse_envelope(payload))
    return f"{press.item}:{press.cause}"


def _is_wanted(delivery: events.Delivery, payload: dict[str, Any]) -> bool:
    """Whether to queue it. Of removed emoji reactions, only those that were feedback count; of
    comments, those that mention somebody whom Feishu notifies."""
    if delivery.event_type == events.COMMENT_ADDED:
        return events.parse_envelope(payload).event.get("is_mentioned") is True
    if delivery.event_type != other_events.REACTION_REMOVED:
        return True
    return other_events.parse_reaction(events.parse_envelope(payload)).helpful is not None


class PressUnavailable(Exception):
    """The memory did not answer in time; whether the button was pressed is not known."""


class Presses:
    """Buttons for threads that wait for an answer. `open_rpc` connects, with the first click."""

    def __init__(self, open_rpc: Opener, *, limit_s: float = _LIMIT_S) -> None:
        self._open_rpc = open_rpc
        self._limit_s = limit_s
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._rpc: asyncio.Task[Rpc] | None = None

    def look(self, click: Click) -> PressResult:
        """What `press` would give; changes nothing. Raises `PressUnavailable` after a second."""
        return self._ask(self._with_buttons(ButtonStore.look, click))

    def press(self, click: Click) -> PressResult:
        """Presses the button. Raises `PressUnavailable` after a second."""
        return self._ask(self._with_buttons(ButtonStore.press, click))

    def touch(self, touch: HandleTouch) -> TouchResult:
        """Keeps what was pressed below an answer, or says what `again` leads to. Raises
        `PressUnavailable` after a second."""
        return self._ask(self._touch(touch))

    def close(self) -> None:
        """Ends the connections and the thread."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop and thread:
            asyncio.run_coroutine_threadsafe(self._end(), loop)
            thread.join(_CLOSE_S)

    async def _with_buttons(
        self, step: Callable[[ButtonStore, Click], Awaitable[PressResult]], click: Click
    ) -> PressResult:
        return await step(ButtonStore(await self._shared_rpc()), click)

    async def _touch(self, touch: HandleTouch) -> TouchResult:
        return await HandleStore(await self._shared_rpc()).press(touch)

    async def _shared_rpc(self) -> Rpc:
        if self._rpc is None:
            self._rpc = asyncio.ensure_future(self._open_rpc())
        return await asyncio.shield(self._rpc)

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(question, self._running_loop())
        try:
            return future.result(self._limit_s)
        except (TimeoutError, StoreError) as exc:
            future.cancel()
            raise PressUnavailable(type(exc).__name__) from exc

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), daemon=True)
                self._thread.start()
            return self._loop

    async def _end(self) -> None:
        if self._rpc is not None:
            await (await self._rpc).close()
        asyncio.get_running_loop().stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
