"""Gunicorn's worker with threads, to which a sender that takes its time costs no thread.

Gunicorn's own (`gthread`) gives a connection to a thread at its first byte and has no limit of time
for the rest. Here the loop of the process collects each request until it is whole, under a
deadline, and only then a thread sees it, unless it is a message, which the loop stores itself
(`bot.intake.messages_in_loop`); an answer has a deadline too, and no connection is waited
for while it closes. Where there are too many connections, who has kept us waiting longest goes
first, wherever it comes from: behind a proxy all have one address.
"""

from __future__ import annotations

import contextlib
import errno
import io
import select
import socket
import sys
import time
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ
from typing import TYPE_CHECKING, Any

from gunicorn import http, util
from gunicorn.errors import ConfigError
from gunicorn.http.body import Body, ChunkedReader
from gunicorn.http.errors import (
    ExpectationFailed,
    LimitRequestHeaders,
    LimitRequestLine,
    NoMoreData,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.workers.gthread import ThreadWorker

from bot.intake.framing import REFUSALS, Arrival, plain_parts
from bot.process.concurrency import set_waiting_since
from bot.process.log_lines import write_event
from bot.process.metrics import LoopWatch
from bot.process.plan import RunDirectory

if TYPE_CHECKING:  # the driver of the database, which the master does not need
    from bot.intake.messages_in_loop import LoopIntake

RECEIVE_S = 10.0  # from the first byte of a request to its last, and from a connection to its first
SEND_S = 10.0
MAX_REQUEST_BYTES = 16 * 1024 * 1024  # a picture on the simulated group's page; the webhook: 1 MB
MAX_WAITING_BYTES = 32 * 1024 * 1024
_CLOSING_S = 2.0
_STOPPING_S = 2.0  # for a request that may be on its way while the process stops
_PIECE = 64 * 1024
_AT_ONCE = 64  # connections accepted before others are looked at
_LOOK_S = 0.25
_REPORT_S = 10.0
_REFUSAL = b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_BAD, _TOO_LATE = b"400 Bad Request", b"408 Request Timeout"
_STATUS: dict[type[Exception], bytes] = {
    ExpectationFailed: b"417 Expectation Failed",
    LimitRequestLine: b"414 URI Too Long",
    LimitRequestHeaders: b"431 Request Header Fields Too Large",
    UnsupportedTransferCoding: b"501 Not Implemented",
}
_GO_AHEAD = b"HTTP/1.1 100 Continue\r\n\r\n"
_ACKNOWLEDGEMENT = (
    b"HTTP/1.1 200 OK\r\nServer: gunicorn\r\nDate: %b\r\nConnection: %b\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)
_MESSAGES = b"POST /webhook/event HTTP/1.1\r\n"


def has_room(sock: socket.socket) -> bool:
    """Whether an answer of some kilobytes can leave at once, because earlier ones were taken: the
    kernel says so while a third of its buffer is free. Else a thread would wait for the reader."""
    looking = select.poll()
    looking.register(sock, select.POLLOUT)
    return bool(looking.poll(0))


def _takes_body(request: Any) -> bool:
    """Whether the parser accepts a body in chunks; the application then reads it from memory."""
    if not isinstance(request.body.reader, ChunkedReader):
        return True
    try:
        request.body = Body(io.BytesIO(request.body.read()))
    except (ParseException, OSError):
        return False
    return True


class Sender:
    """One connection. While it waits in the loop, `until` (monotonic seconds) is when it goes."""

    def __init__(self, sock: socket.socket, client: Any, server: Any) -> None:
        self.sock = sock
        self.client = client
        self.server = server
        self.arrival = Arrival(MAX_REQUEST_BYTES)
        self.request = b""
        self.parser: Any = None
        self.until = 0.0
        self.whole_at = 0.0  # monotonic seconds
        self.odd = False
        self.closing = False


class ReceivingWorker(ThreadWorker):  # type: ignore[misc]
    """The class for gunicorn's `worker_class`. Without TLS, which a proxy ends before the bot."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Nobody, not even a proxy, may say where in the path the application begins: a proxy that
        # lets only /webhook through would be led around.
        self.cfg.set("forwarder_headers", "")
        self._waiting: dict[Sender, None] = {}  # the longest waiting first
        self._bytes = 0  # of requests that are not whole
        self._dropped_connections = {"too_slow": 0, "too_many": 0}
        self._looked_at_s = self._reported_at_s = 0.0
        self._messages: LoopIntake | None = None
        self._watch = LoopWatch()

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:
        if cfg.is_ssl:
            raise ConfigError("TLS is ended by a proxy before the bot: leave out certfile")

    def load_wsgi(self) -> None:
        """Ends gunicorn with one sentence, without a stack, if the bot cannot run as it is set."""
        from gunicorn.arbiter import Arbiter

        from bot.process.settings_values import SettingsError  # the master does not load settings

        try:
            super().load_wsgi()
        except SettingsError as exc:
            sys.stderr.write(f"{exc}\n")
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from None

    def run(self) -> None:
        """The loop of the process, until it is told to stop or its master is gone."""
        queue = self.method_queue
        checks = getattr(self.wsgi, "extensions", {}).get("health")
        if checks:
            self._watch = LoopWatch(RunDirectory(checks.settings.data_dir).folder)
        self._watch.begin()
        self._messages = getattr(self.wsgi, "extensions", {}).get("messages")
        self.poller.register(queue.fileno(), EVENT_READ, queue.run_callbacks)
        while self.alive and self.is_parent_alive():
            self.set_accept_enabled(self.nr_conns < self.worker_connections or bool(self._waiting))
            self._turn(1.0)
        self.set_accept_enabled(False)
        self._stop()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Gunicorn's, with a look at how long the loop works on what has come."""
        try:
            events = self.poller.select(timeout)
        except InterruptedError:
            return
        self._watch.busy()
        for key, _ in events:
            key.data(key.fileobj)

    def accept(self, listener: socket.socket) -> None:
        """Takes the connections that are there."""
        for _ in range(_AT_ONCE):
            try:
                sock, client = listener.accept()
            except OSError as exc:
                if exc.errno in (errno.EMFILE, errno.ENFILE):
                    self._drop_longest_waiting()
                elif exc.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                    raise
                return
            self.nr_conns += 1
            sock.setblocking(False)
            self._await(Sender(sock, client, listener.getsockname()), RECEIVE_S)
            if self.nr_conns > self.worker_connections:
                self._drop_longest_waiting()

    def handle(self, sender: Sender) -> bool:
        """In a thread, with a whole request: answers it; whether the connection stays open."""
        request = None
        set_waiting_since(sender.whole_at)
        try:
            sender.sock.settimeout(SEND_S)
            request = next(sender.parser)
            if sender.odd or not _takes_body(request):  # the application would meet what is wrong
                return self._refuse(sender, "framing")
            vars(request).update(_expected_100_continue=False)  # the loop has said it
            return bool(self._keepalive_after(sender, self.handle_request(request, sender)))
        except ParseException as exc:
            return self._refuse(sender, type(exc).__name__, _STATUS.get(type(exc), _BAD))
        except (NoMoreData, StopIteration):
            return self._refuse(sender, "malformed")
        except OSError as exc:
            self.log.debug("Closing connection. %s", exc)
        except Exception as exc:  # noqa: BLE001 - gunicorn answers it with 400 or 500
            self.handle_error(request, sender.sock, sender.client, exc)
        return False

    def _refuse(self, sender: Sender, reason: str, status: bytes = _BAD) -> bool:
        """Answers what is no request; the connection does not stay open."""
        REFUSALS.count("web.refused", reason)
        with contextlib.suppress(OSError):
            sender.sock.sendall(_REFUSAL % status)
        return False

    def finish_request(self, sender: Sender, answer: Future[bool]) -> None:
        """Back in the loop after `handle`."""
        if answer.cancelled() or answer.exception() or not answer.result() or sender.odd:
            self._close_in_order(sender)
            return
        sender.sock.setblocking(False)
        self._keep(sender)

    def _keep(self, sender: Sender) -> None:
        """The connection waits for its next request, which may be there."""
        if sender.arrival.state != "coming":
            self._answer(sender)
        else:
            self._bytes += len(sender.arrival)
            self._await(sender, RECEIVE_S if sender.arrival.has_begun else self.cfg.keepalive)

    def _turn(self, longest_s: float) -> None:
        messages = self._messages
        self.wait_for_and_dispatch_events(messages.wait_s(longest_s) if messages else longest_s)
        if messages:
            messages.go(self.poller)
        now = time.monotonic()
        if now - self._looked_at_s >= _LOOK_S:
            self._looked_at_s = now
            self.notify()  # the master, which waits for a minute; it writes to a file
            self._drop_overdue(now)
            self._report(now)
        self._watch.back()

    def _stop(self) -> None:
        """Answers what has come or is on its way, within gunicorn's grace."""
        now = time.monotonic()
        for sender in self._waiting:
            sender.until = min(sender.until, now + _STOPPING_S)
        while self.nr_conns and time.monotonic() < now + self.cfg.graceful_timeout:
            self._turn(_LOOK_S)
        for sender in list(self._waiting):
            self._drop(sender)
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    # Waiting

    def _await(self, sender: Sender, seconds: float) -> None:
        """From now on it is the last of those that wait; it goes when nothing comes of it."""
        sender.until = time.monotonic() + (seconds if self.alive else min(seconds, _STOPPING_S))
        self._waiting[sender] = None
        self.poller.register(sender.sock, EVENT_READ, partial(self._readable, sender))

    def _leave_loop(self, sender: Sender) -> None:
        del self._waiting[sender]
        self._bytes -= len(sender.arrival)
        self.poller.unregister(sender.sock)

    def _readable(self, sender: Sender, sock: socket.socket) -> None:
        if sender not in self._waiting:
            return  # dropped a moment ago, for another one
        try:
            data = sock.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(sender)
        elif not sender.closing:
            self._receive(sender, data)

    def _receive(self, sender: Sender, data: bytes) -> None:
        arrival = sender.arrival
        if not arrival.has_begun:
            self._waiting.pop(sender)
            self._waiting[sender] = None
            sender.until = time.monotonic() + (RECEIVE_S if self.alive else _STOPPING_S)
        arrival.add(data)
        self._bytes += len(data)
        if arrival.state != "coming":
            self._leave_loop(sender)
            self._answer(sender)
            return
        if arrival.expects_go_ahead:
            arrival.expects_go_ahead = False
            with contextlib.suppress(OSError):
                sender.sock.send(_GO_AHEAD)
        if self._bytes > MAX_WAITING_BYTES:
            self._drop_longest_waiting(holding=True)

    def _answer(self, sender: Sender) -> None:
        """Gives the whole request to a thread; its parser sees these bytes and no socket."""
        if not has_room(sender.sock):
            self._dropped_connections["too_slow"] += 1
            self.nr_conns -= 1
            sender.sock.close()
            return
        sender.whole_at = time.monotonic()
        sender.odd = sender.arrival.state == "odd"
        sender.request = sender.arrival.take()
        if not self._is_stored_here(sender):
            self._hand_over(sender)

    def _hand_over(self, sender: Sender) -> None:
        sender.parser = http.get_parser(self.cfg, [sender.request], sender.client)
        self.enqueue_req(sender)

    # Messages

    def _is_stored_here(self, sender: Sender) -> bool:
        """Whether it is a message, of which the loop is told when it is stored."""
        plain = sender.request.startswith(_MESSAGES) and not sender.odd
        if not (plain and self._messages and self.alive):
            return False
        parts = plain_parts(sender.request)
        if parts is None:
            return False
        try:
            return self._messages.offer(partial(self._send_answer, sender), *parts)
        except Exception as exc:  # noqa: BLE001 - a thread meets it again, and answers it
            self.log.debug("A message goes the long way. %s", exc)
            return False

    def _send_answer(self, sender: Sender, answer: bytes | None) -> None:
        """The message is stored and this is the answer, for which there is room (`has_room`)."""
        if answer is None:
            self._hand_over(sender)
            return
        stays = b"keep-alive" if self.alive else b"close"
        date = util.http_date().encode()
        try:
            sender.sock.send(_ACKNOWLEDGEMENT % (date, stays, len(answer), answer))
        except OSError:
            self.nr_conns -= 1
            sender.sock.close()
            return
        if self.alive:
            self._keep(sender)
        else:
            self._close_in_order(sender)

    # Leaving

    def _close_in_order(self, sender: Sender) -> None:
        """So that the answer arrives (RFC 9112, section 9.6), and without waiting for the other."""
        sender.closing = True
        sender.arrival = Arrival(0)
        try:
            sender.sock.setblocking(False)
            sender.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.nr_conns -= 1
            sender.sock.close()
        else:
            self._await(sender, _CLOSING_S)

    def _drop(self, sender: Sender) -> None:
        self._leave_loop(sender)
        self.nr_conns -= 1
        sender.sock.close()

    def _drop_longest_waiting(self, *, holding: bool = False) -> None:
        """Makes room for another; with `holding`, by one whose request has begun."""
        candidates = (one for one in self._waiting if one.arrival.has_begun or not holding)
        if (sender := next(candidates, None)) is not None:
            self._dropped_connections["too_many"] += 1
            self._drop(sender)

    def _drop_overdue(self, now: float) -> None:
        for sender in [one for one in self._waiting if one.until <= now]:
            if sender.arrival.has_begun:
                self._dropped_connections["too_slow"] += 1
                with contextlib.suppress(OSError):
                    sender.sock.send(_REFUSAL % _TOO_LATE)
            self._drop(sender)

    def _report(self, now: float) -> None:
        """One line for many: a stranger must not fill the log."""
        REFUSALS.report()
        if any(self._dropped_connections.values()) and now - self._reported_at_s >= _REPORT_S:
            write_event(
                "web.senders_dropped",
                level="warning",
                open=self.nr_conns,
                **self._dropped_connections,
            )
            self._reported_at_s = now
            self._dropped_connections = dict.fromkeys(self._dropped_connections, 0)
