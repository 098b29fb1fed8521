"""Events over a long connection are queued once, and only then acknowledged."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from flask import Flask
from structlog.testing import capture_logs

from bot import webhook
from bot.feishu import long_connection
from bot.feishu.long_connection import Ack, LongConnection
from bot.feishu.transport import Timeouts, Transport
from bot.intake.acceptance import Intake
from bot.intake.long_connection import Listener
from bot.queue.inbox import Inbox
from bot.settings import Settings, load
from lab.doubles.processes import eventually, free_port, start, stop, wait_for_http
from tests.support import gateway as gateways
from tests.support.deliveries import ENCRYPT_KEY, TOKEN, Delivery, message_event
from tests.support.gateway import Gateway
from tests.support.patience import limit_s

FIXTURES = Path(__file__).parents[3] / "data" / "feishu"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with gateways.running_gateway() as gateway:
        yield gateway


@pytest.fixture
def settings(gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)  # away from any .env
    return load(
        feishu_app_id=gateways.APP_ID,
        feishu_app_secret=gateways.APP_SECRET,
        feishu_domain=gateway.domain,
        feishu_transport="websocket",
    )


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    inbox = Inbox(database_url)
    yield inbox
    inbox.close()


@pytest.fixture
def listener(settings: Settings, inbox: Inbox, gateway: Gateway) -> Iterator[Listener]:
    """Connected."""
    listener = Listener(settings, Intake(inbox))
    listener.start()
    gateway.connected()
    yield listener
    listener.stop()


@pytest.fixture
def queued(database_url: str) -> Callable[[], list[dict[str, Any]]]:
    """The arguments of the jobs in the queue."""

    def jobs() -> list[dict[str, Any]]:
        with psycopg.connect(database_url) as connection:
            rows = connection.execute(
                "select args, lock from feishu_bot.jobs order by id"
            ).fetchall()
        return [{**args, "lock": lock} for args, lock in rows]

    return jobs


def test_one_process_has_the_connection_and_another_takes_over_when_it_loses_the_database(
    settings: Settings, database_url: str, gateway: Gateway
) -> None:
    inboxes = [Inbox(database_url) for _ in range(2)]
    first, second = (Listener(settings, Intake(inbox)) for inbox in inboxes)
    first.start()
    gateway.connected()
    second.start()
    try:
        eventually(lambda: not second.failure, what="the second knows of the first")
        assert len(gateway.tickets) == 1

        cut_off = time.monotonic()
        inboxes[0].close()  # it still reaches Feishu
        gateway.closed.get(timeout=10)
        gateway.connected()

        assert time.monotonic() - cut_off < limit_s(5)
        assert first.failure
        assert gateway.push(message_event("who hears this?")) == {"code": 200}
    finally:
        second.stop()
        first.stop()
        inboxes[1].close()


@pytest.mark.usefixtures("listener")
def test_a_message_is_acknowledged_once_it_is_in_the_queue(gateway: Gateway, queued: Any) -> None:
    event = message_event("你好", chat_type="group", root_id="om_root", thread_id="omt_1")

    assert gateway.push(event) == {"code": 200}
    (job,) = queued()
    assert job["lock"] == "feishu:oc_1:om_root"
    assert job["payload"]["event"] == event["event"]
    assert gateway.asked == [{"AppID": gateways.APP_ID, "AppSecret": gateways.APP_SECRET}]


@pytest.mark.usefixtures("listener")
def test_a_message_in_parts_and_pushed_again_is_one_job(gateway: Gateway, queued: Any) -> None:
    event = message_event("long " * 2000, message_id="om_same")

    assert gateway.push(event, parts=7) == {"code": 200}
    assert gateway.push(event) == {"code": 200}
    assert len(queued()) == 1


@pytest.mark.usefixtures("listener")
def test_when_the_queue_is_away_feishu_is_asked_to_push_again(
    gateway: Gateway, inbox: Inbox, queued: Any
) -> None:
    inbox.close()

    assert gateway.push(message_event()) == {"code": 500}
    assert queued() == []


@pytest.mark.usefixtures("listener")
@pytest.mark.parametrize("message", [b"", b"hello", b"[" * 100_000, b'{"schema": "2.0"}', b"\xff"])
def test_what_is_no_event_is_taken_off_feishus_hands(
    gateway: Gateway, queued: Any, message: bytes
) -> None:
    assert gateway.push(message) == {"code": 200}
    assert queued() == []
    assert gateway.push(message_event()) == {"code": 200}
    assert len(queued()) == 1


@pytest.mark.usefixtures("listener")
@pytest.mark.parametrize("kind", ["event", "card"])
def test_a_click_is_answered_with_the_toast_that_the_webhook_gives(
    gateway: Gateway, inbox: Inbox, kind: str
) -> None:
    click = json.loads((FIXTURES / "callback_card_button.json").read_text(encoding="utf-8"))
    click["header"]["token"] = TOKEN
    edge = Flask("edge")
    webhook.register(edge, webhook.Edge(ENCRYPT_KEY, TOKEN, Intake(inbox)))
    delivery = Delivery(click)
    answer = edge.test_client().post("/webhook/card", data=delivery.body, headers=delivery.headers)
    ack = gateway.push(click, kind=kind)

    assert "toast" in answer.json
    assert json.loads(base64.b64decode(ack.pop("data"))) == answer.json
    assert ack == {"code": 200}


def test_a_lost_connection_is_made_anew_with_a_new_ticket(
    gateway: Gateway, listener: Listener, queued: Any
) -> None:
    gateway.drop()
    gateway.connected()

    assert gateway.push(message_event()) == {"code": 200}
    assert len(queued()) == 1
    assert len(set(gateway.tickets)) == len(gateway.asked) == 2
    assert listener.failure == ""


def test_stopping_acknowledges_what_was_begun_and_says_goodbye(
    gateway: Gateway, settings: Settings, inbox: Inbox, queued: Any
) -> None:
    looked, go_on = threading.Event(), threading.Event()

    def clock() -> float:
        looked.set()
        go_on.wait(60)
        return 0.0

    listener = Listener(settings, Intake(inbox, clock=clock))
    listener.start()
    gateway.connected()
    begun = gateway.send(message_event())
    assert looked.wait(60)
    stopping = threading.Thread(target=listener.stop)
    stopping.start()
    go_on.set()
    stopping.join()

    assert gateway.ack(begun) == {"code": 200}
    assert gateway.closed.get(timeout=60) == 1000
    assert len(queued()) == 1
    assert listener.failure


Wait = Callable[[float], Any]


@contextlib.asynccontextmanager
async def connecting(
    gateway: Gateway,
    handler: long_connection.MessageHandler = lambda _: Ack(),
    *,
    pause: Wait = asyncio.sleep,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[LongConnection]:
    transport = Transport(gateway.domain, timeouts=timeouts)
    connection = LongConnection(
        transport, gateways.APP_ID, gateways.APP_SECRET, handler, pause=pause, chance=lambda: 0.5
    )
    running = asyncio.create_task(connection.run())
    try:
        yield connection
    finally:
        running.cancel()
        await asyncio.wait({running})
        await transport.close()


class Pauses:
    """Pauses that take no time; `third` is set when the third begins, which does not end."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.third = asyncio.Event()

    async def __call__(self, delay: float) -> None:
        self.delays.append(delay)
        if len(self.delays) == 3:
            self.third.set()
            await asyncio.Event().wait()


@pytest.mark.anyio
async def test_a_slow_message_does_not_hold_up_the_others(gateway: Gateway) -> None:
    go_on = threading.Event()

    def handler(message: bytes) -> Ack:
        if b"slow" in message:
            go_on.wait(60)
        return Ack()

    async with connecting(gateway, handler):
        await asyncio.to_thread(gateway.connected)
        slow = [gateway.send({"is": "slow"}) for _ in range(3)]
        assert await asyncio.to_thread(gateway.push, {"is": "quick"}) == {"code": 200}
        assert not any(gateway.acknowledged(message_id) for message_id in slow)
        go_on.set()
        assert [await asyncio.to_thread(gateway.ack, message_id) for message_id in slow] == [
            {"code": 200}
        ] * 3


@pytest.mark.anyio
async def test_what_takes_too_long_or_breaks_is_pushed_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_connection, "ACK_LIMIT_S", 0.05)
    go_on = threading.Event()

    def handler(message: bytes) -> Ack:
        if b"slow" in message:
            go_on.wait(5)
        raise ValueError(message)

    async with connecting(gateway, handler):
        await asyncio.to_thread(gateway.connected)
        with capture_logs() as logs:
            for message in ("slow words", "broken words"):
                ack = await asyncio.to_thread(gateway.push, {"is": message})
                assert ack == {"code": 500}
        go_on.set()
    assert "words" not in str(logs)


@pytest.mark.anyio
async def test_a_connection_that_went_silent_counts_as_lost(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_connection, "_SILENCE_S", -0.9)
    gateway.config["PingInterval"] = 1
    gateway.answers_pings = False
    pauses = Pauses()

    async with connecting(gateway, pause=pauses) as connection:
        await asyncio.to_thread(gateway.connected)
        await asyncio.to_thread(gateway.connected)
        await asyncio.to_thread(gateway.connected)
        await asyncio.wait_for(pauses.third.wait(), 60)
        assert "silent" in connection.failure


@pytest.mark.anyio
async def test_pings_go_at_the_pace_that_the_last_pong_wished(gateway: Gateway) -> None:
    gateway.config["PingInterval"] = 1

    async with connecting(gateway):
        await asyncio.to_thread(gateway.connected)
        for _ in range(2):
            ping = await asyncio.to_thread(gateway.pings.get, timeout=60)
            assert (ping.service, ping.header("type")) == (gateways.SERVICE, "ping")


@pytest.mark.anyio
async def test_refusals_of_the_endpoint_are_told_and_tried_again_more_and_more_slowly(
    gateway: Gateway,
) -> None:
    gateway.answers = [
        (200, {"code": 1000040345, "msg": "app is not enabled"}),
        (502, b"<html>"),
        (200, {"code": 0, "data": {"URL": "ws://gateway.example/?service_id=1"}}),
    ]
    pauses = Pauses()
    with capture_logs() as logs:
        async with connecting(gateway, pause=pauses):
            await asyncio.wait_for(pauses.third.wait(), 60)

    assert pauses.delays == [1.5, 3, 6]
    reasons = [entry["reason"] for entry in logs if entry["event"] == "long_connection.failed"]
    assert ["1000040345" in reasons[0], "502" in reasons[1], "address" in reasons[2]] == [True] * 3


@pytest.mark.anyio
async def test_an_endpoint_that_never_answers_is_given_up(gateway: Gateway) -> None:
    gateway.answers = [(200, None)] * 3
    pauses = Pauses()

    async with connecting(gateway, pause=pauses, timeouts=Timeouts(1, 0.05)) as connection:
        await asyncio.wait_for(pauses.third.wait(), 60)
        assert "Timeout" in connection.failure


@pytest.mark.anyio
async def test_a_refused_handshake_tells_why(gateway: Gateway) -> None:
    gateway.refusals = [
        {"handshake-status": "514", "handshake-autherrcode": "1000040350",
         "handshake-msg": "too many connections"},
        {"handshake-status": "403", "handshake-msg": "no"},
        {},
    ]  # fmt: skip
    pauses = Pauses()
    with capture_logs() as logs:
        async with connecting(gateway, pause=pauses):
            await asyncio.wait_for(pauses.third.wait(), 60)

    first, second, third = [
        entry["reason"] for entry in logs if entry["event"] == "long_connection.failed"
    ]
    assert "1000040350" in first
    assert "too many connections" in first
    assert "403" in second
    assert "HTTP 403" in third


@pytest.mark.anyio
async def test_secrets_are_never_written(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        async with connecting(gateway) as connection:
            await asyncio.to_thread(gateway.connected)
            await asyncio.to_thread(gateway.push, {"is": "said"})
            gateway.refusals = [{}]
            gateway.drop()
            await asyncio.to_thread(gateway.connected)
            await asyncio.to_thread(gateway.push, {"is": "said"})
            assert connection.failure == ""

    written = f"{logs} {caplog.text}"
    secrets = [gateways.APP_SECRET, gateways.ACCESS_KEY, *gateway.tickets]
    assert len(gateway.tickets) == 3
    assert [secret for secret in secrets if secret in written] == []


def test_the_web_process_listens_without_keys_and_leaves_in_time(
    gateway: Gateway, database_url: str, queued: Any, tmp_path: Path
) -> None:
    port = free_port()
    environment = {
        "FEISHU_APP_ID": gateways.APP_ID,
        "FEISHU_APP_SECRET": gateways.APP_SECRET,
        "FEISHU_DOMAIN": gateway.domain,
        "FEISHU_TRANSPORT": "websocket",
        "DATABASE_URL": database_url,
        "DATA_DIR": str(tmp_path),
        "PORT": str(port),
        "LOG_LEVEL": "DEBUG",
    }
    command = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"]
    web = start("web", command, tmp_path, environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/healthz", web)
        gateway.connected()
        assert gateway.push(message_event(app_id=gateways.APP_ID)) == {"code": 200}
        assert len(queued()) == 1
        assert requests.get(f"{url}/readyz", timeout=10).json()["checks"]["connection"] == "ok"
        assert requests.post(f"{url}/webhook/event", json={}, timeout=10).status_code == 404
        assert web.terminate() < 10
        assert gateway.closed.get(timeout=60) == 1000
        assert len(gateway.asked) == 1
    finally:
        stop(web)
    assert "long_connection.open" in web.output()
    secrets = [gateways.APP_SECRET, gateways.ACCESS_KEY, *gateway.tickets]
    assert [secret for secret in secrets if secret in web.output()] == []
