"""Whether people get answers, as the turns of a real database tell it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from psycopg.types.json import Jsonb

from bot.operations.doctor import health
from bot.operations.doctor.result import Check
from bot.queue.operator_actions import QueueOperations
from bot.text.times import moment_text

WRONG_KEY = ("apologised", "wrong_key")
TIMEOUT = ("apologised", "timeout")
ANSWERED = ("answered", "")
COMMAND = ("answered", "command")


@pytest.fixture
def database(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "insert into agent_chats (id, user_id, chat_id, chat_type, root_id)"
            " values ('feishu:oc_h:main', 'ou_h', 'oc_h', 'group', 'main')"
        )
        yield connection


def ends(database: psycopg.Connection, *outcomes: tuple[str, str], ago_s: int = 60) -> None:
    """Questions that ended so, one second after the other, the first `ago_s` ago."""
    (before,) = database.execute("select count(*) from agent_turns").fetchone() or (0,)
    for number, (kind, reason) in enumerate(outcomes, before):
        at = datetime.now(UTC) - timedelta(seconds=ago_s - number)
        database.execute(
            "insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state,"
            " intended, created_at, updated_at)"
            " values (%s, 'feishu:oc_h:main', 'ou_h', 'ou_h', 'oc_h', 'sent', %s, %s, %s)",
            [f"om_{number}", Jsonb({"outcome": kind, "reason": reason}), at, at],
        )


def answers(url: str) -> Check:
    return next(check for check in health.health_checks(url) if check.name == health.ANSWERS_CHECK)


def test_without_questions_everything_is_well(
    database: psycopg.Connection, database_url: str
) -> None:
    assert {check.state for check in health.health_checks(database_url)} == {"ok"}


def test_questions_without_an_answer_are_red_with_since_when_how_many_and_why(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED, TIMEOUT, TIMEOUT, WRONG_KEY)
    found = answers(database_url)

    assert found.state == "fail"
    assert "The last 3 questions got no answer, since " in found.sentence.en
    causes = "the model's server rejects the API key × 1; the model took too long × 2"
    assert causes in found.sentence.en
    assert "最近 3 个提问没有得到回答" in found.sentence.zh
    assert found.next_step == "scripts/doctor"


def test_the_reasons_are_those_of_the_questions_that_are_counted(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, TIMEOUT, TIMEOUT, ANSWERED, ("apologised", "connection"), WRONG_KEY)
    said = answers(database_url).sentence
    assert "The last 2 questions got no answer" in said.en
    assert said.en.endswith(
        ": the model's server rejects the API key × 1; the model's endpoint cannot be reached × 1."
    )
    ends(database, WRONG_KEY)
    assert "model took too long" not in answers(database_url).sentence.en


def test_one_reason_is_not_counted_again(database: psycopg.Connection, database_url: str) -> None:
    ends(database, TIMEOUT, TIMEOUT)
    assert answers(database_url).sentence.en.endswith(": the model took too long.")


def test_turns_that_wait_for_the_memory_are_counted_and_are_no_jobs_that_stand_still(
    database: psycopg.Connection, database_url: str
) -> None:
    database.execute(
        "insert into feishu_bot.jobs (task, lock, args, queued_at)"
        " select 'feishu.store', 'store oc_1', jsonb_build_object(what, '{}'::jsonb),"
        " now() - interval '10 minutes' from unnest('{turn,turn,writes}'::text[]) what"
    )
    found = {check.name: check for check in health.health_checks(database_url)}

    assert found[health.MEMORY_CHECK].state == "warn"
    assert "2 turns have been waiting to be stored, for up to 600 s" in (
        found[health.MEMORY_CHECK].sentence.en
    )
    assert found[health.QUEUE_CHECK].state == "ok"


def test_a_command_that_is_answered_does_not_hide_it(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, TIMEOUT, TIMEOUT, COMMAND, COMMAND)

    assert answers(database_url).state == "fail"


def test_an_answer_of_the_model_ends_it(database: psycopg.Connection, database_url: str) -> None:
    ends(database, WRONG_KEY, WRONG_KEY, ANSWERED)
    found = answers(database_url)

    assert found.state == "warn"
    assert "2 of the last 3 questions got no answer" in found.sentence.en


def test_one_that_may_pass_is_no_alarm_yet(database: psycopg.Connection, database_url: str) -> None:
    ends(database, ANSWERED, TIMEOUT)
    assert answers(database_url).state == "warn"
    assert "The last question (" in answers(database_url).sentence.en


def test_it_stays_red_while_nobody_asks(database: psycopg.Connection, database_url: str) -> None:
    ends(database, WRONG_KEY, ago_s=7200)

    assert answers(database_url).state == "fail"


def is_refused(database: psycopg.Connection, turn: str) -> None:
    """Feishu did not take the answer of that turn."""
    database.execute(
        "update agent_turns set state = 'failed', error = 'feishu 230001' where id = %s", [turn]
    )
    database.execute(
        "insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role,"
        " content, status) values ('feishu:oc_h:main', 'ou_h', 'ou_h', %s, 'oc_h',"
        " 'assistant', 'the answer', 'failed')",
        [turn],
    )


def test_a_card_that_was_to_show_an_undelivered_answer_is_no_second_one(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED, ANSWERED)
    database.execute(
        "update agent_turns set origin = 'private_answer', parent_id = 'om_0',"
        " cause = 'undelivered' where id = 'om_1'"
    )
    for turn in ("om_0", "om_1"):
        is_refused(database, turn)
    found = {check.name: check for check in health.health_checks(database_url)}[
        health.DELIVERIES_CHECK
    ]

    assert "1 answer could not be delivered" in found.sentence.en
    assert [one.id for one in QueueOperations(database_url).failed()] == ["om_0"]


def test_answers_that_feishu_refuses_are_red_and_the_queue_names_the_code(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED, ANSWERED)
    for turn in ("om_0", "om_1"):
        is_refused(database, turn)
    found = answers(database_url)

    assert found.state == "fail"
    assert "Feishu refused it (230001)." in found.sentence.en
    assert found.next_step == "scripts/queue list"


@pytest.mark.parametrize(
    ("workers", "attempts", "args", "age_s", "why"),
    [
        (0, 0, {}, 540, "and no worker is running"),
        (0, 0, {}, 12, "and no worker is running"),
        (1, 3, {}, 540, "something the bot needs isn't answering"),
        (1, 1, {"waits_for": "Unreachable"}, 20, "Feishu doesn't answer, or answers with server"),
        (1, 1, {"waits_for": "feishu 99991400"}, 20, "Feishu refuses for now (99991400)"),
        (1, 2, {"waits_for": "StoreUnavailable"}, 20, "the memory's database doesn't answer in"),
        (1, 1, {"waits_for": "KeyError"}, 20, "an error in the bot (KeyError)"),
        (1, 0, {}, 540, "the workers are too busy"),
    ],
)
def test_a_standing_queue_says_how_many_wait_since_when_and_why(
    database: psycopg.Connection,
    database_url: str,
    workers: int,
    attempts: int,
    args: dict[str, str],
    age_s: int,
    why: str,
) -> None:
    for _ in range(workers):
        database.execute("insert into feishu_bot.workers default values")
    for seconds in (age_s - 2, age_s):
        database.execute(
            "insert into feishu_bot.jobs (task, args, attempts, queued_at)"
            " values ('feishu.event', %s, %s, now() - make_interval(secs => %s))",
            [Jsonb(args), attempts, seconds],
        )
    now = datetime.now(UTC)
    since = moment_text(now - timedelta(seconds=age_s), "en", now=now)
    found = {check.name: check for check in health.health_checks(database_url)}[health.QUEUE_CHECK]

    assert found.state == "fail"
    assert f"2 jobs have been waiting, the first since {since[:-1]}" in found.sentence.en
    assert why in found.sentence.en
    assert found.next_step == "scripts/queue list"


def test_a_worker_that_fell_silent_with_jobs_in_hand_is_no_running_one(
    database: psycopg.Connection, database_url: str
) -> None:
    database.execute(
        "with w as (insert into feishu_bot.workers (last_heartbeat)"
        " values (now() - interval '12 seconds') returning id)"
        " insert into feishu_bot.jobs (task, args, status, worker_id, queued_at)"
        " select 'feishu.event', '{}', 'running', id, now() - interval '12 seconds' from w"
    )
    found = {check.name: check for check in health.health_checks(database_url)}[health.QUEUE_CHECK]

    assert found.state == "fail"
    assert "1 job has been waiting" in found.sentence.en
    assert "no worker is running or answering" in found.sentence.en


def test_a_job_that_is_tried_again_stays_named_while_it_is_tried(
    database: psycopg.Connection, database_url: str
) -> None:
    database.execute(
        "with w as (insert into feishu_bot.workers default values returning id)"
        " insert into feishu_bot.jobs (task, args, status, worker_id, attempts, queued_at)"
        """ select 'feishu.event', '{"waits_for": "Unreachable"}', 'running', id, 2,"""
        " now() - interval '20 seconds' from w"
    )
    found = {check.name: check for check in health.health_checks(database_url)}[health.QUEUE_CHECK]

    assert found.state == "fail"
    assert "Feishu doesn't answer" in found.sentence.en


def test_what_feishu_refuses_now_and_then_leads_to_the_queue(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED, ANSWERED)
    is_refused(database, "om_0")

    assert (answers(database_url).state, answers(database_url).next_step) == (
        "warn",
        "scripts/queue list",
    )


def test_what_may_not_run_yet_does_not_stand(
    database: psycopg.Connection, database_url: str
) -> None:
    """An import that goes on tomorrow waits for nobody."""
    database.execute(
        "insert into feishu_bot.jobs (task, args, queued_at, scheduled_at) values"
        " ('feishu.import', '{}', now() - interval '1 hour', now() + interval '1 day'),"
        " ('feishu.import', '{}', now() - interval '1 hour', now() - interval '1 second')"
    )
    found = {check.name: check for check in health.health_checks(database_url)}[health.QUEUE_CHECK]

    assert found.state == "ok"


def test_a_slow_database_is_named(database: psycopg.Connection) -> None:
    (figures,) = database.execute("select feishu_bot.health()").fetchone() or ({},)
    found = health.judge_figures(figures, 3.2, datetime.now(UTC))[-1]

    assert (found.name, found.state) == (health.SPEED_CHECK, "warn")
    assert "The database is slow: it takes 3 s to read and write" in found.sentence.en


def test_what_the_memory_took_of_answers_shows_a_slow_database(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED)
    database.execute(
        "insert into agent_turn_records (turn_id, short) values ('om_0', bot_private.short_record("
        '\'{"memory_load_ms": 1500, "memory_save_ms": 4500.5}\'))'
    )
    found = next(
        one for one in health.health_checks(database_url) if one.name == health.SPEED_CHECK
    )

    assert (found.state, "it takes 6 s to read and write" in found.sentence.en) == ("warn", True)


def test_an_undelivered_answer_is_named_until_it_is_sent(
    database: psycopg.Connection, database_url: str
) -> None:
    ends(database, ANSWERED)
    is_refused(database, "om_0")
    found = {check.name: check for check in health.health_checks(database_url)}[
        health.DELIVERIES_CHECK
    ]

    assert found.state == "warn"
    assert "1 answer could not be delivered" in found.sentence.en
    assert found.next_step == "scripts/queue retry --all"


def test_a_full_disk_of_the_embedded_database_is_named_while_it_still_reads(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "embedded_folder", lambda url: tmp_path / "postgres")
    assert {check.state for check in health.health_checks(database_url)} == {"ok"}
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    found = health.health_checks(database_url)[0]

    assert (found.name, found.state) == (health.DISK_CHECK, "fail")
    assert "Only 0 MB are left" in found.sentence.en
