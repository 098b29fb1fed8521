"""Live updates: numbered, kept for a while, sent as Server-Sent Events.

Changes are kept as entities and turned into JSON only when somebody watches.
"""

import json
from collections import deque
from collections.abc import Iterator
from typing import Any

from sandbox.world.entities import Card, Chat, Entity, SandboxMessage, SandboxPerson
from sandbox.world.push import EventPush, delivery_view
from sandbox.world.state import World
from sandbox.world.wire import chat_view, message_view, person_view

KEPT_CHANGES = 2000
HEARTBEAT_S = 5.0

Change = Entity | EventPush


class Feed:
    """The changes of the world in order, for any number of watchers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._changes: deque[tuple[int, Change]] = deque(maxlen=KEPT_CHANGES)
        self._number = 0
        self._closed = False

    @property
    def number(self) -> int:
        """The number of the latest change."""
        return self._number

    def entity(self, entity: Entity) -> None:
        """An entity changed; called under the world's lock."""
        self._add(entity)

    def delivery(self, delivery: EventPush) -> None:
        """An event was pushed, or pushed in vain."""
        with self._world.lock:
            self._add(delivery)
            self._world.changed.notify_all()

    def close(self) -> None:
        """End all streams."""
        with self._world.lock:
            self._closed = True
            self._world.changed.notify_all()

    def stream(self, after: int, life_s: float) -> Iterator[str]:
        """Server-Sent Events after change `after`, for about `life_s` seconds.

        The first, `hello`, tells the latest number: if it is lower than what a watcher has seen,
        the platform was started anew.
        """
        after = min(after, self._number)
        yield f'retry: 300\nid: {after}\nevent: hello\ndata: {{"feed": {self._number}}}\n\n'
        ends = self._world.config.clock() + life_s
        while not self._closed and self._world.config.clock() < ends:
            newest, shown = self._wait(after, min(HEARTBEAT_S, ends - self._world.config.clock()))
            if newest == after:
                yield ": still here\n\n"
            for kind, view in shown:
                data = json.dumps(view, ensure_ascii=False)
                yield f"id: {newest}\nevent: {kind}\ndata: {data}\n\n"
            after = newest

    def _wait(self, after: int, longest_s: float) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
        with self._world.lock:
            if self._number <= after and not self._closed:
                self._world.changed.wait(longest_s)
            newer = [change for number, change in self._changes if number > after]
            views = [view for change in _latest(newer) if (view := self._view(change))]
            return self._number, views

    def _add(self, change: Change) -> None:
        self._number += 1
        self._changes.append((self._number, change))

    def _view(self, change: Change) -> tuple[str, dict[str, Any]] | None:
        if isinstance(change, EventPush):
            return "delivery", delivery_view(change)
        if isinstance(change, Card):
            message = self._world.messages.get(change.message_id)
            return ("message", message_view(self._world, message)) if message else None
        if isinstance(change, SandboxMessage):
            latest = self._world.messages[change.message_id]
            return "message", message_view(self._world, latest)
        if isinstance(change, Chat):
            return "chat", chat_view(change)
        if isinstance(change, SandboxPerson):
            return "person", person_view(change)
        return None


def _latest(changes: list[Change]) -> list[Change]:
    """Without the changes of a message or card that a later one overtakes."""
    last = {_key(change): change for change in changes}
    return list(last.values())


def _key(change: Change) -> object:
    if isinstance(change, SandboxMessage):
        return change.message_id
    if isinstance(change, Card):
        return change.message_id or change.card_id
    return id(change)
