"""What was given up is seen by name, tried again, deleted; what waits is cancelled."""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from bot.operations.console.application import create_console
from bot.operations.doctor.result import fail, ok, warn
from bot.settings import Settings
from tests.integration.bot.operations.console.conftest import Browser

SECRET = "the words of a message"


@pytest.fixture
def jobs(database_url: str) -> dict[str, int]:
    """One failed job, one that waits, one that a worker has in hand; all of Alice's."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set search_path = feishu_bot, public")
        connection.execute(
            "insert into people (tenant_key, open_id, name, name_seen_at)"
            " values ('t', 'ou_alice', 'Alice', now())"
        )
        connection.execute(
            "insert into chats (tenant_key, chat_id, chat_type, name) values ('t', 'oc_a', 'group',"
            " 'Launch team')"
        )
        found = {}
        for state in ("failed", "waiting", "running"):
            event = {
                "sender": {"sender_id": {"open_id": "ou_alice"}},
                "message": {"message_id": f"om_{state}", "content": SECRET},
            }
            args = {"received_ms": 1, "payload": {"event": event}, "failed_with": "ModelTrouble"}
            found[state] = connection.execute(
                "insert into jobs (task, lock, args, status, worker_id)"
                " values ('handle', 'feishu:oc_a:om_1', %s, %s, %s) returning id",
                [json.dumps(args), state, 1 if state == "running" else None],
            ).fetchone()[0]
    return found


def states(url: str) -> dict[int, str]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("select id, status from feishu_bot.jobs"))


def test_jobs_are_shown_by_name_and_without_words(ada: Browser, jobs: dict[str, int]) -> None:
    page = ada.get("/console/queue").text

    assert f"J{jobs['failed']}" in page
    assert "ModelTrouble" in page
    assert page.count("Alice") == 3
    assert page.count("Launch team") == 3
    assert SECRET not in page
    assert '<span title="ou_alice">Alice</span>' in page
    assert "ou_alice" not in re.sub(r"<[^>]*>", "", page)


def test_a_failed_job_is_tried_again_from_the_page(
    ada: Browser, jobs: dict[str, int], database_url: str
) -> None:
    name = f"J{jobs['failed']}"
    answer = ada.post(f"/console/queue/{name}/retry")

    assert states(database_url)[jobs["failed"]] == "waiting"
    assert f"Trying {name} again" in ada.get(answer.location).text
    assert "retried a job" in ada.get("/console/audit").text
    again = ada.post(f"/console/queue/{name}/retry")
    assert "is gone, or a worker" in ada.get(again.location).text


def test_a_failed_job_is_deleted(ada: Browser, jobs: dict[str, int], database_url: str) -> None:
    ada.post(f"/console/queue/J{jobs['failed']}/drop")

    assert jobs["failed"] not in states(database_url)


def test_what_waits_is_cancelled_and_what_is_at_work_is_not(
    ada: Browser, jobs: dict[str, int], database_url: str
) -> None:
    for state in ("waiting", "running", "failed"):
        ada.post(f"/console/queue/J{jobs[state]}/cancel")

    assert states(database_url) == {jobs["running"]: "running", jobs["failed"]: "failed"}


def test_all_are_tried_again_but_those_whose_card_may_be_in_the_chat(
    ada: Browser, jobs: dict[str, int], database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set search_path = feishu_bot")
        connection.execute(
            "update jobs set status = 'failed', worker_id = null,"
            ' args = args || \'{"failed_with": "OutcomeUnknown"}\' where id = %s',
            [jobs["running"]],
        )
    ada.post("/console/queue/retry")

    assert states(database_url)[jobs["failed"]] == "waiting"
    assert states(database_url)[jobs["running"]] == "failed"


@pytest.mark.parametrize("name", ["X1", "J", "J1;drop", "J99999999999999999999"])
def test_what_is_no_reference_is_not_found(ada: Browser, name: str) -> None:
    assert ada.post(f"/console/queue/{name}/retry").status_code == 404


def test_the_first_page_says_what_needs_a_look(ada: Browser, jobs: dict[str, int]) -> None:
    page = ada.get("/console/").text

    assert "1 job was given up" in page
    assert "ModelTrouble" in page
    rows = ada.get("/console/now.json").json
    assert len(rows) >= 29
    assert {"at", "answered", "unanswered", "p50", "p95"} == set(rows[0])


def test_the_first_page_says_what_readiness_finds(settings: Settings, database_url: str) -> None:
    found = [
        ok("database", "ok", "正常"),
        fail("model", "the key is refused", "密钥无效"),
        fail("answers", "said by the turns", "轮次会说明"),
    ]
    console = create_console(settings, database_url, lambda: found)
    browser = Browser(console).sign_in(database_url)
    page = browser.get("/console/").text
    chinese = browser.get("/console/?lang=zh").text

    assert 'class="card alarmed"' in page
    assert "model: the key is refused" in page
    assert "said by the turns" not in page
    assert "模型：密钥无效" in chinese
    assert "the key is refused" not in chinese


def test_what_the_bot_does_without_is_not_red(settings: Settings, database_url: str) -> None:
    found = [warn("memory", "away; people are answered without history", "不可用；回答时没有历史")]
    console = create_console(settings, database_url, lambda: found)
    page = Browser(console).sign_in(database_url).get("/console/").text

    assert 'class="card warned"' in page


def test_set_up_is_what_the_doctor_finds(
    ada: Browser, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    page = ada.get("/console/setup/checks").text

    assert "database" in page
    assert "migrations" in page


def test_a_forgotten_person_leaves_the_audit(ada: Browser, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into feishu_bot.console_audit (admin, action, about)"
            " values ('ada', 'read memory', 'ou_alice')"
        )
        connection.execute("select feishu_bot.forget_in_queue('ou_alice', null, null)")

    page = ada.get("/console/audit").text
    assert "viewed memory" in page
    assert "ou_alice" not in page
