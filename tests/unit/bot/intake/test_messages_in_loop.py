"""Messages stored by the loop: together, in time, or the long way."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from bot.intake import messages_in_loop
from bot.intake.messages_in_loop import MAX_BODY_BYTES, LoopIntake
from bot.queue.inbox import Arrived, QueueUnavailable

Told = list[tuple[str, bytes | None]]


class Stored:
    """A `Storing` whose database answers when the test says so."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.ours, self.theirs = socket.socketpair()
        self.socket = self.ours.fileno()
        self.fresh: Sequence[bool] = ()
        self.fails = self.is_over = False

    def step(self) -> int:
        if self.fails:
            raise QueueUnavailable("away")
        if not self.is_over:
            return selectors.EVENT_READ
        self.fresh = [True] * len(self.keys)
        return 0

    def answers(self, *, fails: bool = False) -> None:
        self.fails, self.is_over = fails, True
        self.theirs.send(b"x")

    def end(self) -> None:
        self.ours.close()
        self.theirs.close()


class Loop:
    """An intake, what was begun, and what was told."""

    def __init__(self) -> None:
        self.poller = selectors.DefaultSelector()
        self.begun: list[Stored] = []
        self.told: Told = []
        self.free = True
        self.intake = LoopIntake(self._read, self._store, lambda *_: b"{}")

    def offer(self, name: str) -> bool:
        return self.intake.offer(lambda answer: self.told.append((name, answer)), {}, name.encode())

    def turn(self) -> None:
        for key, _ in self.poller.select(0):
            key.data(key.fileobj)
        self.intake.go(self.poller)

    def _read(self, _headers: Mapping[str, str], body: bytes) -> Arrived | None:
        if not body.startswith(b"om_"):
            return None
        return Arrived(body.decode(), None, None, {}, 0, 0.0)

    def _store(self, messages: Sequence[Arrived]) -> Any:
        if not self.free:
            return None
        if any(message.key == "om_odd" for message in messages):
            raise RuntimeError("cannot be written")
        self.begun.append(Stored([message.key for message in messages]))
        return self.begun[-1]


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    for one in loop.begun:
        one.end()
    loop.poller.close()


def test_those_that_come_meanwhile_are_stored_next_together(loop: Loop) -> None:
    assert loop.offer("om_1")
    loop.turn()
    assert [loop.offer("om_2"), loop.offer("om_3")] == [True, True]
    loop.turn()
    assert [one.keys for one in loop.begun] == [["om_1"]]
    assert (loop.told, loop.intake.is_busy) == ([], True)

    loop.begun[0].answers()
    loop.turn()
    assert [one.keys for one in loop.begun] == [["om_1"], ["om_2", "om_3"]]
    loop.begun[1].answers()
    loop.turn()
    assert loop.told == [("om_1", b"{}"), ("om_2", b"{}"), ("om_3", b"{}")]
    assert not loop.intake.is_busy


def test_the_loop_comes_back_at_once_for_a_message_that_nothing_holds_up(loop: Loop) -> None:
    assert loop.intake.wait_s(1.0) == 1.0
    loop.offer("om_1")
    assert loop.intake.wait_s(1.0) == 0.0
    loop.turn()
    loop.offer("om_2")
    assert 0 < loop.intake.wait_s(1.0) < 1.0


def test_what_is_no_message_or_too_large_is_left_to_others(loop: Loop) -> None:
    assert not loop.offer("click")
    assert not loop.offer("om_" + "x" * MAX_BODY_BYTES)


def test_without_a_free_connection_all_go_the_long_way(loop: Loop) -> None:
    loop.free = False
    loop.offer("om_1")
    loop.turn()
    assert loop.told == [("om_1", None)]
    assert not loop.intake.is_busy


def test_what_nobody_foresaw_goes_the_long_way(loop: Loop) -> None:
    loop.offer("om_odd")
    loop.turn()
    assert loop.told == [("om_odd", None)]
    loop.offer("om_1")
    loop.turn()
    assert [one.keys for one in loop.begun] == [["om_1"]]


def test_what_cannot_be_stored_goes_the_long_way_and_the_next_are_stored(loop: Loop) -> None:
    loop.offer("om_1")
    loop.turn()
    loop.offer("om_2")
    loop.begun[0].answers(fails=True)
    loop.turn()
    assert loop.told == [("om_1", None)]
    loop.begun[1].answers()
    loop.turn()
    assert loop.told == [("om_1", None), ("om_2", b"{}")]


def test_nobody_waits_for_a_database_that_is_slow(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(messages_in_loop.time, "perf_counter", lambda: now)
    loop.offer("om_1")
    loop.turn()
    loop.offer("om_2")
    now += 0.1
    assert not loop.offer("om_3")
    loop.turn()
    assert loop.told == [("om_2", None)]
    now += 0.9
    loop.turn()
    assert loop.told == [("om_2", None), ("om_1", None)]
    assert loop.offer("om_4")
