"""Killed at any point, the bot answers once: one card, one stored row, the same text."""

from __future__ import annotations

import signal

import psycopg
import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.support.patience import limit_s

pytestmark = pytest.mark.slow

UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"


def kill_and_replace(world: World) -> None:
    world.bot.workers[-1].kill()
    world.bot.start_worker()


def assert_answered_once(world: World, question: str) -> None:
    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    assert row["content"] == markdown(sent)
    assert row["message_id"] == sent["message_id"]
    eventually(lambda: not world.rows(UNFINISHED), what="the job is done")


def test_killed_while_the_model_thinks(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "thought", "delay_s": 1.5}}]})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} think")
    eventually(world.model.requests, what="the model is asked")
    kill_and_replace(world)

    assert_answered_once(world, question)


def test_killed_after_the_model_answered_and_before_the_reply_is_stored(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "thought", "delay_s": 1.5}}]})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} think")
    eventually(world.model.requests, what="the model is asked")
    with psycopg.connect(world.database_url) as blocker:
        blocker.execute("select 1 from agent_turns where id = %s for update", [question])
        eventually(lambda: waiting(world, "record_reply"), what="the reply is being stored")
        world.bot.workers[-1].kill()
    world.bot.start_worker()

    assert_answered_once(world, question)


def test_killed_after_the_reply_is_stored_and_before_it_is_sent(world: World) -> None:
    world.platform.disturb_replies(delay_s=4)
    question = world.say("Alice", f"@{world.bot_name} hello")
    eventually(lambda: world.stored(question), what="the reply is stored")
    stored_text = world.stored(question)[0]["content"]
    kill_and_replace(world)

    assert_answered_once(world, question)
    assert world.stored(question)[0]["content"] == stored_text
    assert len(world.model.requests()) == 1, "the model was asked again"


def test_killed_after_sending_and_before_it_is_marked(world: World) -> None:
    world.platform.disturb_replies(delay_s=1.5)
    question = world.say("Alice", f"@{world.bot_name} hello")
    eventually(lambda: world.stored(question), what="the reply is stored")
    with psycopg.connect(world.database_url) as blocker:
        blocker.execute("select 1 from agent_messages where turn_id = %s for update", [question])
        eventually(lambda: waiting(world, "mark_sent"), what="the reply is being marked")
        assert len(world.answers(question)) == 1
        world.bot.workers[-1].kill()
    world.bot.start_worker()

    assert_answered_once(world, question)


def test_a_lost_answer_of_the_platform_does_not_double_the_reply(world: World) -> None:
    world.platform.post("/faults", path_prefix="/open-apis/im/v1/messages", method="POST",
                        drop=True, times=1)  # fmt: skip
    question, _ = world.ask("Alice", "hello")

    assert_answered_once(world, question)


@pytest.mark.parametrize("takes_part", [False, True])
def test_a_line_whose_worker_dies_while_it_is_heard_is_decided_on_once(
    world: World, takes_part: bool
) -> None:
    if takes_part:
        world.settled(world.ask("Alice", "hello")[0])
    with psycopg.connect(world.database_url) as blocker:
        blocker.execute("lock table agent_decisions in share mode")
        line = world.say("Bob", "the invoices went out this morning, by the way")
        heard = "log_decision" if takes_part else "hear_message"
        eventually(lambda: waiting(world, heard), what="the line is being decided on")
        world.bot.workers[-1].kill()
    world.bot.start_worker()

    eventually(lambda: not world.rows(UNFINISHED), what="the job is done")
    (decision,) = world.rows("select * from agent_decisions where message_id = %s", line)
    assert decision["respond"] is False
    kept = world.rows("select * from chat_transcript where message_id = %s", line)
    assert len(kept) == takes_part
    assert not world.answers(line)


def test_two_workers_racing_answer_each_question_once(world: World) -> None:
    world.bot.start_worker()
    questions = [world.say("Alice", f"@{world.bot_name} number {n}", count=2) for n in range(8)]
    for question in questions:
        world.settled(question)
        assert len(world.answers(question)) == 1
        assert len(world.stored(question)) == 1
    world.bot.workers.pop().terminate()


def test_sigterm_finishes_what_is_running_and_ends_within_ten_seconds(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "thought", "delay_s": 2}}]})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} think")
    eventually(world.model.requests, what="the model is asked")
    assert world.bot.workers[-1].terminate() < limit_s(10)

    (row,) = world.settled(question)
    assert row["content"].endswith("thought")


def test_sigterm_hands_back_what_takes_too_long(world: World) -> None:
    slow = {"reply": {"text": "slow", "delay_s": 30}, "times": 1}
    world.model.control("script", {"rules": [slow, {"reply": {"text": "quick"}}]})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} think")
    eventually(world.model.requests, what="the model is asked")
    took = world.bot.workers[-1].terminate()
    assert took < limit_s(10.5), took
    world.bot.start_worker()

    assert world.settled(question)[0]["content"].endswith("quick")


def test_sighup_does_not_end_a_worker_by_itself(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "thought", "delay_s": 1}}]})
    world.model.control("mode", {"mode": "rules"})
    question = world.say("Alice", f"@{world.bot_name} think")
    eventually(world.model.requests, what="the model is asked")
    world.bot.workers[-1].popen.send_signal(signal.SIGHUP)
    eventually(lambda: "worker.hung_up" in world.bot.workers[-1].output(), what="it is said")

    assert_answered_once(world, question)
    assert world.bot.workers[-1].popen.poll() is None


def waiting(world: World, function: str) -> bool:
    """Whether a call of `function` waits for a lock."""
    return bool(
        world.rows(
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like %s",
            f"%{function}%",
        )
    )
