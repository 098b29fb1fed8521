"""`scripts/queue`: what was given up is seen, tried again and dropped, and what people wrote is not
shown."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.forking import run_script

_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")
_SECRET = "the launch code is 0000"
_PAYLOAD = {
    "header": {"event_type": "im.message.receive_v1"},
    "event": {
        "sender": {"sender_id": {"open_id": "ou_alice"}},
        "message": {"message_id": "om_1", "content": json.dumps({"text": _SECRET})},
    },
}


class Queue:
    """The script beside a database."""

    def __init__(self, url: str, folder: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        self._environment = {**kept, "DATABASE_URL": url, "DATA_DIR": str(folder), "COLUMNS": "200"}
        self.database = psycopg.connect(url, autocommit=True)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = run_script("queue", *arguments, env=self._environment)
        assert _SECRET not in done.stdout + done.stderr
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def value(self, query: str, *params: object) -> Any:
        row = self.database.execute(query.encode(), params).fetchone()
        assert row
        return row[0]

    def fail_a_job(self, *, excused: bool = False) -> int:
        args = {"payload": _PAYLOAD, "received_ms": 1_800_000_000_000}
        job: int = self.value(
            "select feishu_bot.enqueue('k' || gen_random_uuid(), 'feishu.event',"
            " 'feishu:oc_1:om_1', %s::jsonb)",
            json.dumps(args),
        )
        worker = self.value("select feishu_bot.begin_work(null, false)")
        self.value("select feishu_bot.take_jobs(%s, 10)", worker)
        assert self.value(
            "select feishu_bot.fail_job(%s, %s, 'KeyError', %s)",
            job,
            worker,
            json.dumps({"excused": excused}),
        )
        return job

    def refuse_a_turn(self) -> int:
        args = {
            "conversation_id": "feishu:oc_1:om_2", "chat_id": "oc_1", "user_id": "ou_bob",
            "turn": {"turn_id": "om_2", "content": _SECRET, "cards": [], "given": []},
            "writes": [], "message_ids": [], "people": [],
        }  # fmt: skip
        self.value("select feishu_bot.keep_turn(%s::jsonb, true)", json.dumps(args))
        self.value("select feishu_bot.wake_stores()")
        worker = self.value("select feishu_bot.begin_work(null, false)")
        [job] = self.value("select feishu_bot.take_jobs(%s, 10)", worker)
        assert self.value("select feishu_bot.fail_job(%s, %s, 'PT403')", job["id"], worker)
        return int(job["id"])


@pytest.fixture
def queue(database_url: str, tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(database_url, tmp_path)
    with queue.database:
        yield queue


def test_everything_given_up_is_listed_without_what_people_wrote(queue: Queue) -> None:
    job, turn = queue.fail_a_job(), queue.refuse_a_turn()

    found = {one["reference"]: one for one in queue.json("list")["failed"]}
    assert set(found) == {f"J{job}", f"J{turn}"}
    assert found[f"J{job}"]["reason"] == "KeyError"
    assert found[f"J{job}"]["person"] == "ou_alice"
    assert found[f"J{turn}"]["message_id"] == "om_2"
    assert found[f"J{turn}"]["person"] == "ou_bob"
    assert "KeyError" in queue.run("list").stdout
    shown = queue.json("show", f"J{job}")
    assert [event["type"] for event in shown["events"]] == ["queued", "failed"]
    assert "KeyError" in queue.run("show", f"j{job}").stdout


def test_what_waits_is_listed_with_why_and_can_be_shown(queue: Queue) -> None:
    job = queue.value(
        "insert into feishu_bot.jobs (task, args, attempts, lock)"
        """ values ('feishu.event', '{"waits_for": "Unreachable"}', 3, 'feishu:oc_1:om_1')"""
        " returning id"
    )
    [listed] = queue.json("list", "--json")["unfinished"]
    chinese = queue.run("list", "--lang", "zh").stdout

    assert (listed["reference"], listed["reason"], listed["attempts"]) == (
        f"J{job}",
        "Unreachable",
        3,
    )
    assert "等待或进行中 (1)" in chinese
    assert f"J{job}" in queue.run("show", f"J{job}").stdout


@pytest.mark.parametrize("excused", [True, False])
def test_a_job_tried_again_has_a_day_of_patience_anew(queue: Queue, excused: bool) -> None:
    job = queue.fail_a_job(excused=excused)

    assert queue.json("retry", f"J{job}") == {"retried": [f"J{job}"]}

    status, args = queue.database.execute(
        "select status, args from feishu_bot.jobs where id = %s", [job]
    ).fetchone()  # type: ignore[misc]
    assert status == "waiting"
    assert args["payload"] == _PAYLOAD
    assert abs(args["retried_ms"] - time.time() * 1000) < 60_000
    assert args.get("anew") == (1 if excused else None)
    assert not {"failed_with", "failed_once", "excused"} & set(args)
    again = queue.run("retry", f"J{job}")
    assert again.returncode == 1
    assert "scripts/queue list" in again.stderr


def test_a_card_that_may_be_there_stays_in_doubt_until_somebody_has_looked(queue: Queue) -> None:
    unseen, looked = queue.fail_a_job(), queue.fail_a_job()
    doubt = "update feishu_bot.jobs set args = args || '{\"maybe_sent_ms\": 7}'"
    queue.database.execute(doubt.encode())

    queue.run("retry", f"J{unseen}")
    queue.run("retry", f"J{looked}", "--not-sent")

    in_doubt = "select args ? 'maybe_sent_ms' from feishu_bot.jobs where id = %s"
    assert queue.value(in_doubt, unseen)
    assert not queue.value(in_doubt, looked)


def test_all_are_tried_again_and_dropping_asks_first(queue: Queue) -> None:
    turn = queue.refuse_a_turn()

    assert queue.json("retry", "--all")["retried"] == [f"J{turn}"]
    assert queue.value("select count(*) from feishu_bot.jobs where status = 'waiting'") == 1
    job = queue.fail_a_job()
    assert queue.run("drop", f"J{job}").returncode == 1
    assert queue.json("list")["failed"]
    assert queue.json("drop", "--all", "--yes") == {"dropped": [f"J{job}"]}
    assert not queue.json("list")["failed"]
    assert queue.run("retry", "--all").returncode == 0


@pytest.mark.parametrize("arguments", [["retry"], ["show", "12"], ["drop", "X1"], []])
def test_a_mistaken_call_says_what_to_give(queue: Queue, arguments: list[str]) -> None:
    done = queue.run(*arguments)

    assert done.returncode == 2
    assert "J12" in done.stderr or "COMMAND" in done.stderr


def test_what_was_given_up_long_ago_is_deleted_whatever_it_was(queue: Queue) -> None:
    job = queue.fail_a_job()
    queue.refuse_a_turn()
    assert queue.value("select feishu_bot.forget_failed(30)") == 0

    queue.database.execute(
        "update feishu_bot.jobs set events ="
        " jsonb_set(events, '{-1,at}', to_jsonb(now() - interval '31 days'))"
    )
    young = queue.fail_a_job()

    assert queue.value("select feishu_bot.forget_failed(30)") == 2
    assert [one["reference"] for one in queue.json("list")["failed"]] == [f"J{young}"]
    assert young != job
