"""The web process stores messages without a thread: real gunicorn, connections and database."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
import requests

from bot.queue.inbox import EVENT_TASK
from lab.doubles.processes import Process, eventually, free_port, start, stop, wait_for_http
from tests.support.deliveries import ENCRYPT_KEY, TOKEN, Delivery, message_event

APP = """
import os

from flask import Flask

from bot import webhook
from bot.intake.acceptance import Intake
from bot.queue.inbox import Inbox

app = Flask("edge")
seen = 0
inbox = Inbox(os.environ["TEST_DATABASE"])
inbox.ping()  # until it has a connection, messages go the long way
edge = webhook.Edge(
    encrypt_key=os.environ["TEST_KEY"],
    verification_token=os.environ["TEST_TOKEN"],
    intake=Intake(inbox),
)
webhook.register(app, edge)


@app.before_request
def count():
    global seen
    seen += 1


@app.get("/seen")
def look():
    return str(seen)
"""


class Web:
    """A web process with nothing but the webhook."""

    def __init__(self, url: str, process: Process) -> None:
        self.url = url
        self.process = process
        self.session = requests.Session()

    def push(self, delivery: Delivery, **headers: str) -> requests.Response:
        headers = {**delivery.headers, **headers}
        return self.session.post(
            f"{self.url}/webhook/event", delivery.body, headers=headers, timeout=10
        )

    def seen(self) -> int:
        """How many requests the application was given before this one."""
        return int(self.session.get(f"{self.url}/seen", timeout=10).text) - 1

    def keeps_connections(self) -> bool:
        answer = self.session.get(f"{self.url}/seen", timeout=10)
        return answer.headers["Connection"] == "keep-alive"


@pytest.fixture
def web(database_url: str, tmp_path: Path) -> Iterator[Web]:
    (tmp_path / "edge_app.py").write_text(APP)
    port = free_port()
    command = [
        sys.executable, "-m", "gunicorn", "-k", "bot.intake.receiving.ReceivingWorker",
        "-b", f"127.0.0.1:{port}", "--threads", "4", "--keep-alive", "30",
        "--pythonpath", str(tmp_path), "--no-control-socket", "edge_app:app",
    ]  # fmt: skip
    env = {"TEST_DATABASE": database_url, "TEST_KEY": ENCRYPT_KEY, "TEST_TOKEN": TOKEN}
    process = start("gunicorn", command, tmp_path, env)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/healthz", process)
        yield Web(f"http://127.0.0.1:{port}", process)
    finally:
        stop(process)


def raw(web: Web, delivery: Delivery) -> bytes:
    """The request as it is sent."""
    request = requests.Request(
        "POST", f"{web.url}/webhook/event", headers=delivery.headers, data=delivery.body
    ).prepare()
    fields = {"Host": "localhost", **request.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return b"POST /webhook/event HTTP/1.1\r\n" + head.encode() + b"\r\n" + delivery.body


def jobs(database_url: str) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "select task, lock, args->'payload' from feishu_bot.jobs order by id"
        ).fetchall()


def test_messages_are_stored_once_and_acknowledged_without_the_application(
    web: Web, database_url: str
) -> None:
    before = web.seen()
    event = message_event("你好", chat_type="group", root_id="om_root", thread_id="omt_1")
    answers = [web.push(Delivery(event)) for _ in range(3)]

    assert [(one.status_code, one.json()) for one in answers] == [(200, {})] * 3
    assert all(one.headers["Content-Type"] == "application/json" for one in answers)
    assert web.seen() == before + 1  # which was to look
    ((task, lock, payload),) = jobs(database_url)
    assert (task, lock) == (EVENT_TASK, "feishu:oc_1:om_root")
    assert payload["event"] == event["event"]
    assert "token" not in payload["header"]


def test_what_comes_in_one_go_is_answered_in_order(web: Web, database_url: str) -> None:
    port = int(web.url.rpartition(":")[2])
    pushed = b"".join(
        raw(web, Delivery(message_event(message_id=f"om_{number}"))) for number in range(20)
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(pushed)
        found = b""
        while found.count(b"200 OK") < 20:
            piece = connection.recv(65536)
            assert piece
            found += piece
    assert len(jobs(database_url)) == 20


def test_what_is_acknowledged_while_the_process_stops_is_told_that_it_closes(
    web: Web, database_url: str
) -> None:
    port = int(web.url.rpartition(":")[2])
    processes = psutil.Process(web.process.popen.pid).children()
    web.seen()  # over a connection that stays, and so tells when the process begins to stop
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    with (
        psycopg.connect(database_url) as lock,
        psycopg.connect(database_url, autocommit=True) as look,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        lock.execute("lock table feishu_bot.inbox in exclusive mode")
        connection.sendall(raw(web, Delivery(message_event())))
        eventually(lambda: look.execute(waiting).fetchone(), what="the message is being stored")
        for process in processes:
            process.terminate()
        eventually(lambda: not web.keeps_connections(), what="the process has heard of it")
        lock.rollback()
        found = b"".join(iter(lambda: connection.recv(65536), b""))
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in found
    assert len(jobs(database_url)) == 1


def test_what_is_not_genuine_or_no_message_is_left_to_the_application(
    web: Web, database_url: str
) -> None:
    event = message_event()
    closing = web.push(Delivery(event), Connection="close")
    forged = web.push(Delivery(event), **{"X-Lark-Signature": "0" * 64})
    foreign = message_event()
    foreign["header"]["event_type"] = "some.other_v1"
    before = web.seen()
    ignored = web.push(Delivery(foreign))

    assert [closing.status_code, forged.status_code, ignored.status_code] == [200, 400, 200]
    assert web.seen() == before + 2
    assert len(jobs(database_url)) == 1
