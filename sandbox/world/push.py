"""Pushing events to the app: encrypted, signed, on a deadline, again when not acknowledged.

Rules (open.feishu.cn, event subscription guide): HTTP 200 within 3 s or it counts as failed; at
most four retries, 15 s, 5 min, 1 h and 6 h later. Encryption: AES-256-CBC under
SHA-256(encrypt key), PKCS#7, IV in front, base64. Signature: SHA-256 over timestamp, nonce,
encrypt key and the raw body. Each attempt is signed anew.
"""

import base64
import hashlib
import heapq
import itertools
import json
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import urllib3
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from sandbox.config import SandboxConfig
from sandbox.world.connections import LongConnections
from sandbox.world.events import Envelope

RETRY_AFTER_S = (15.0, 300.0, 3600.0, 21600.0)
CONNECT_S = 2.0
KEPT_DELIVERIES = 5000
_VERIFY_S = 1.0
_CONTENT_TYPE = {"Content-Type": "application/json;charset=utf-8"}

NO_URL = "no webhook URL"
NO_CONNECTION = "no connection"


class Post(Protocol):
    """One HTTP POST: status and body. Raises OSError when there is no answer in time."""

    def __call__(
        self, url: str, body: bytes, headers: dict[str, str], deadline_s: float
    ) -> tuple[int, bytes]: ...


@dataclass(frozen=True)
class Attempt:
    """One try: when, what came back (status 0: nothing), after how many ms."""

    at_ms: int
    status: int
    latency_ms: float
    error: str = ""


@dataclass
class EventPush:
    """An event on its way to the app, as JSON and as it is sealed for a webhook."""

    number: int
    event_id: str
    event_type: str
    message_id: str
    plain: bytes
    sealed: bytes
    attempts: list[Attempt] = field(default_factory=list)
    done: bool = False


def encrypt(key: str, plaintext: bytes, *, iv: bytes | None = None) -> str:
    """base64(iv + AES-256-CBC(SHA-256(key), PKCS#7(plaintext)))."""
    vector = iv or os.urandom(16)
    padder = PKCS7(128).padder()
    padded = padder.update(plaintext) + padder.finalize()
    cipher = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(vector))
    encryptor = cipher.encryptor()
    return base64.b64encode(vector + encryptor.update(padded) + encryptor.finalize()).decode()


def signature(timestamp: str, nonce: str, key: str, body: bytes) -> str:
    """The hex digest that goes into X-Lark-Signature."""
    return hashlib.sha256((timestamp + nonce + key).encode() + body).hexdigest()


def plain_body(envelope: Envelope) -> bytes:
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()


def seal(config: SandboxConfig, plain: bytes) -> bytes:
    """The raw body of a push to an address: encrypted if the app has an Encrypt Key."""
    if not config.encrypt_key:
        return plain
    # compact, as Feishu's own SDK for Node writes it again to check the signature
    return json.dumps(
        {"encrypt": encrypt(config.encrypt_key, plain)}, separators=(",", ":")
    ).encode()


def signed_headers(config: SandboxConfig, body: bytes) -> dict[str, str]:
    """The headers of a push; signature headers only if the app has an Encrypt Key."""
    headers = {**_CONTENT_TYPE, "User-Agent": "sandbox-platform"}
    if config.encrypt_key:
        timestamp, nonce = str(int(config.clock())), str(secrets.randbelow(10**10))
        headers["X-Lark-Request-Timestamp"] = timestamp
        headers["X-Lark-Request-Nonce"] = nonce
        headers["X-Lark-Signature"] = signature(timestamp, nonce, config.encrypt_key, body)
    return headers


def retry_delay_s(attempts: int, scale: float) -> float | None:
    """Seconds until the next attempt after `attempts` failed ones; None when it is given up."""
    if attempts > len(RETRY_AFTER_S):
        return None
    return RETRY_AFTER_S[attempts - 1] * scale


def http_post() -> Post:
    """A `Post` over pooled keep-alive connections that follows no redirect."""
    pool = urllib3.PoolManager(maxsize=32, retries=False)

    def post(
        url: str, body: bytes, headers: dict[str, str], deadline_s: float
    ) -> tuple[int, bytes]:
        timeout = urllib3.Timeout(connect=min(CONNECT_S, deadline_s), total=deadline_s)
        try:
            answer = pool.request("POST", url, body=body, headers=headers, timeout=timeout)
        except (
            urllib3.exceptions.NewConnectionError,
            urllib3.exceptions.ConnectTimeoutError,
        ) as exc:
            raise ConnectionError(NO_CONNECTION) from exc
        except urllib3.exceptions.HTTPError as exc:
            raise ConnectionError("no answer in time") from exc
        return answer.status, answer.data

    return post


class Pusher:
    """Delivers events from a few daemon threads, started with the first event.

    `threads=0` starts none; then `run_due()` delivers what is due, for tests with a set clock.
    """

    def __init__(
        self,
        config: SandboxConfig,
        post: Post,
        *,
        connections: LongConnections | None = None,
        on_attempt: Callable[[EventPush], None] = lambda delivery: None,
        is_wanted: Callable[[str], bool] = lambda event_type: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._post = post
        self._connections = connections or LongConnections(config)
        self._on_attempt = on_attempt
        self._is_wanted = is_wanted
        self._clock = clock
        self._due: list[tuple[float, int, EventPush]] = []
        self._wake = threading.Condition()
        self._count = itertools.count(1)
        self._started = False
        self._closed = False
        self.deliveries: deque[EventPush] = deque(maxlen=KEPT_DELIVERIES)

    def push(self, envelope: Envelope, *, message_id: str = "") -> EventPush | None:
        """Queue one event; None when the app has neither a webhook URL nor a long connection, or no
        scope for it."""
        header = envelope["header"]
        is_reachable = self._config.webhook_url or self._connections.in_use
        if not is_reachable or not self._is_wanted(header["event_type"]):
            return None
        delivery = EventPush(
            next(self._count),
            header["event_id"],
            header["event_type"],
            message_id,
            plain := plain_body(envelope),
            seal(self._config, plain),
        )
        self.deliveries.append(delivery)
        self._schedule(self._clock(), delivery)
        self._start()
        return delivery

    def ask(self, envelope: Envelope) -> tuple[Attempt, bytes]:
        """Deliver a callback once and wait for its answer; callbacks are not pushed again."""
        url = self._config.card_webhook_url or self._config.webhook_url
        if not url and not self._connections.in_use:
            return Attempt(self._now_ms(), 0, 0.0, NO_URL), b""
        plain = plain_body(envelope)
        return self._send(url, plain, seal(self._config, plain))

    def verify(self) -> Attempt:
        """Asks the address, as the developer console does when it is saved: it has 1 s to send the
        challenge back. This request is not signed."""
        challenge = secrets.token_hex(16)
        token, url = self._config.verification_token, self._config.webhook_url
        asked = {"challenge": challenge, "token": token, "type": "url_verification"}
        body, started = seal(self._config, plain_body(asked)), self._clock()
        try:
            status, answer = self._post(url, body, _CONTENT_TYPE, _VERIFY_S)
        except OSError as exc:
            return Attempt(self._now_ms(), 0, 0.0, str(exc))
        took = (self._clock() - started) * 1000
        error = "" if _challenge(answer) == challenge else "the challenge did not come back"
        return Attempt(self._now_ms(), status, took, error)

    def run_due(self) -> int:
        """Deliver everything that is due now, in this thread; how many attempts were made."""
        made = 0
        while (delivery := self._take(block=False)) is not None:
            self._attempt(delivery)
            made += 1
        return made

    def close(self) -> None:
        """Stop the threads after the attempts under way; drop what is queued."""
        with self._wake:
            self._closed = True
            self._due.clear()
            self._wake.notify_all()

    def _start(self) -> None:
        with self._wake:
            if self._started or self._closed:
                return
            self._started = True
        for number in range(self._config.push_threads):
            threading.Thread(target=self._work, name=f"push-{number}", daemon=True).start()

    def _work(self) -> None:
        while (delivery := self._take(block=True)) is not None:
            self._attempt(delivery)

    def _take(self, *, block: bool) -> EventPush | None:
        with self._wake:
            while not self._closed:
                wait = self._due[0][0] - self._clock() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[2]
                if not block:
                    return None
                self._wake.wait(wait)
        return None

    def _attempt(self, delivery: EventPush) -> None:
        attempt, _ = self._send(self._config.webhook_url, delivery.plain, delivery.sealed)
        delivery.attempts.append(attempt)
        delay = retry_delay_s(len(delivery.attempts), self._config.retry_scale)
        delivery.done = attempt.status == 200 or delay is None
        if not delivery.done and delay is not None:
            self._schedule(self._clock() + delay, delivery)
        self._on_attempt(delivery)

    def _send(self, url: str, plain: bytes, sealed: bytes) -> tuple[Attempt, bytes]:
        at_ms, started = self._now_ms(), self._clock()
        deadline = self._config.push_deadline_s
        try:
            status, answer = self._carry(url, plain, sealed, deadline)
        except OSError as exc:
            took = (self._clock() - started) * 1000
            return Attempt(at_ms, 0, took, str(exc) or type(exc).__name__), b""
        took = (self._clock() - started) * 1000
        if took > deadline * 1000:
            return Attempt(at_ms, 0, took, "answered after the deadline"), b""
        return Attempt(at_ms, status, took), answer

    def _carry(self, url: str, plain: bytes, sealed: bytes, deadline_s: float) -> tuple[int, bytes]:
        if self._connections.in_use:
            return self._connections.post(plain, deadline_s)
        return self._post(url, sealed, signed_headers(self._config, sealed), deadline_s)

    def _schedule(self, due: float, delivery: EventPush) -> None:
        with self._wake:
            if not self._closed:
                heapq.heappush(self._due, (due, next(self._count), delivery))
                self._wake.notify()

    def _now_ms(self) -> int:
        return int(self._config.clock() * 1000)


def _challenge(answer: bytes) -> object:
    try:
        told = json.loads(answer)
    except ValueError:
        return None
    return told.get("challenge") if isinstance(told, dict) else None


def delivery_view(delivery: EventPush) -> dict[str, Any]:
    """A delivery for the page and for tests."""
    return {
        "number": delivery.number,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "message_id": delivery.message_id,
        "done": delivery.done,
        "attempts": [
            {
                "at_ms": one.at_ms,
                "status": one.status,
                "latency_ms": round(one.latency_ms, 2),
                "error": one.error,
            }
            for one in delivery.attempts
        ],
    }
