"""What is slow around the webhook (strangers, Feishu, the database) delays no delivery."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import requests

from lab.doubles.processes import APP, BotUnderTest, eventually, free_port, running_bot
from tests.support import postgres
from tests.support.deliveries import Delivery, message_event
from tests.support.patience import limit_s
from tests.support.slow_senders import MANNERS, slow_senders

pytestmark = pytest.mark.slow

FEISHU_WAITS_S = 3.0


@pytest.fixture(scope="module")
def bot(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: postgres.Server,
    migrated_template: str,
) -> Iterator[BotUnderTest]:
    """The web process alone."""
    folder = tmp_path_factory.mktemp("slow")
    with (
        postgres_server.fresh_database(template=migrated_template) as url,
        socket.create_server(("127.0.0.1", 0), backlog=1000) as feishu,  # it never answers
    ):
        domain = f"http://127.0.0.1:{feishu.getsockname()[1]}"
        environment = {"DATABASE_URL": url, "FEISHU_DOMAIN": domain}
        with running_bot(folder, free_port(), environment, workers=0, webs=2) as bot:
            yield bot


def delivered(bot: BotUnderTest) -> tuple[int, float]:
    """Status and seconds of a genuine delivery over a connection of its own."""
    event = message_event(token=APP["FEISHU_VERIFICATION_TOKEN"], app_id=APP["FEISHU_APP_ID"])
    delivery = Delivery(event, key=APP["FEISHU_ENCRYPT_KEY"])
    started = time.monotonic()
    try:
        answer = requests.post(
            f"{bot.url}/webhook/event", delivery.body, headers=delivery.headers, timeout=10
        )
    except requests.RequestException:
        return 0, time.monotonic() - started
    return answer.status_code, time.monotonic() - started


@pytest.mark.parametrize("manner", [*MANNERS, "all of them"])
def test_hundreds_of_connections_that_wait_delay_no_delivery(
    bot: BotUnderTest, manner: str
) -> None:
    manners = MANNERS.values() if manner == "all of them" else [MANNERS[manner]]
    with slow_senders(bot.port, manners, 300):
        acks = [delivered(bot) for _ in range(30)]

    assert [status for status, _ in acks] == [200] * 30
    assert max(seconds for _, seconds in acks) < limit_s(FEISHU_WAITS_S)


def test_many_who_ask_for_readiness_while_feishu_is_slow_delay_no_delivery(
    bot: BotUnderTest,
) -> None:
    stop, statuses = threading.Event(), set()

    def read() -> None:
        """Over one connection, by the plainest client: what it costs here delays deliveries too."""
        with closing(http.client.HTTPConnection("127.0.0.1", bot.port, timeout=60)) as connection:
            while not stop.is_set():
                connection.request("GET", "/readyz")
                answer = connection.getresponse()
                statuses.add((answer.status, answer.read()))
                stop.wait(0.5)

    readers = [threading.Thread(target=read) for _ in range(150)]
    for reader in readers:
        reader.start()
    try:
        acks = [delivered(bot) for _ in range(60)]
    finally:
        stop.set()
        for reader in readers:
            reader.join()

    assert [status for status, _ in acks] == [200] * 60
    assert max(seconds for _, seconds in acks) < limit_s(FEISHU_WAITS_S)
    assert {status for status, _ in statuses} == {503}
    assert any(b"does not answer" in checks for _, checks in statuses)


def test_a_database_that_hangs_holds_no_thread_and_feishu_is_asked_to_push_again(
    bot: BotUnderTest, postgres_server: postgres.Server
) -> None:
    slowest: list[float] = []  # of each round; what else the machine does may hold up one of them
    with postgres_server.frozen(), ThreadPoolExecutor(120) as feishu:
        while len(slowest) < 3 and min(slowest, default=FEISHU_WAITS_S) >= FEISHU_WAITS_S:
            # more at once than there are threads
            refused = list(
                feishu.map(lambda _: delivered(bot), range(120))
            )  # more than are threads
            assert {status for status, _ in refused} == {503}
            slowest.append(max(seconds for _, seconds in refused))
        started = time.monotonic()
        assert requests.get(f"{bot.url}/healthz", timeout=5).ok
        assert time.monotonic() - started < limit_s(1)

    assert min(slowest) < limit_s(FEISHU_WAITS_S)
    eventually(lambda: delivered(bot)[0] == 200, what="it goes on")
