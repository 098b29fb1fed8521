"""Who is told what: details and numbers are for this machine and for who has the token."""

from __future__ import annotations

import pytest
from flask import Flask

from bot.intake import health
from bot.intake.health import Readiness
from bot.operations.doctor.result import fail
from bot.settings import Settings
from tests.support.rows import every_row

TOKEN = "a-token-of-these-tests"


class Checks:
    settings = Settings(metrics_token=TOKEN)

    def run(self) -> Readiness:
        return Readiness((fail("database", "the database does not answer", "数据库没有响应"),))


def asked(path: str, address: str = "127.0.0.1", host: str = "127.0.0.1:8080", **headers: str):
    app = Flask("health")
    health.register(app, Checks())  # type: ignore[arg-type]
    return app.test_client().get(
        path, headers={"Host": host, **headers}, environ_base={"REMOTE_ADDR": address}
    )


NEAR = {
    "this machine": {},
    "by name": {"host": "localhost:8080"},
    "over IPv6": {"address": "::1", "host": "[::1]:8080"},
    "IPv4 in IPv6": {"address": "::ffff:127.0.0.1"},
    "with the token": {"address": "203.0.113.5", "Authorization": f"Bearer {TOKEN}"},
    "with the token through a proxy": {
        "X-Forwarded-For": "203.0.113.5",
        "Authorization": f"bearer {TOKEN}",
    },
}
FAR = {
    "another machine": {"address": "203.0.113.5"},
    "the local network": {"address": "192.168.1.7"},
    "a proxy on this machine": {"X-Forwarded-For": "127.0.0.1"},
    "a proxy with the standard's header": {"Forwarded": "for=127.0.0.1"},
    "a proxy that keeps the host": {"host": "bot.example.com"},
    "a wrong token": {"address": "203.0.113.5", "Authorization": "Bearer guess"},
    "a wrong token from here": {"Authorization": "Bearer guess"},
    "another way to authenticate": {"address": "203.0.113.5", "Authorization": f"Basic {TOKEN}"},
}


@every_row("who", NEAR)
def test_who_may_look_sees_what_is_wrong_and_the_numbers(who: str) -> None:
    answer = asked("/readyz", **NEAR[who])
    assert (answer.status_code, answer.json["checks"]) == (503, Checks().run().checks)
    assert b"bot_events_total" in asked("/metrics", **NEAR[who]).data


@every_row("who", FAR)
def test_a_stranger_learns_whether_it_is_ready_and_no_more(who: str) -> None:
    answer = asked("/readyz", **FAR[who])
    assert (answer.status_code, answer.json) == (503, {"ready": False})
    numbers = asked("/metrics", **FAR[who])
    assert numbers.status_code == 401
    assert b"bot_" not in numbers.data


def test_without_a_token_no_token_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checks, "settings", Settings())
    answer = asked("/readyz", address="203.0.113.5", Authorization="Bearer ")
    assert answer.json == {"ready": False}
