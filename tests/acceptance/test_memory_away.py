"""The memory goes away while people talk to the bot, and comes back: nobody notices much.

Supabase Lite is really stopped, on a fixed port, or hangs; the queue has a database of its own.
MEMORY_OUTAGE_SECONDS and MEMORY_OUTAGE_QUESTIONS_PER_S make it longer and the talk livelier. The
outage in which the bot is killed has the size that LONG_OUTAGE says: seconds, turns, retractions
and kills. The full proof is LONG_OUTAGE=600,200,20,5.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from bot.agents.prompts.prompt import MEMORY_AWAY
from bot.features import commands as command_texts
from bot.outbox import texts as outbox_texts
from lab.doubles import lite
from lab.doubles.processes import eventually, free_port
from scripts.operating.logs import percentile
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_buttons import button_on, click, toast
from tests.support import depth, postgres
from tests.support.outage import (
    Question,
    Retractions,
    Talk,
    Thread,
    assert_stored_in_order,
    assert_stored_once,
)

pytestmark = pytest.mark.slow

OUTAGE_S = float(os.environ.get("MEMORY_OUTAGE_SECONDS", "6"))
EVERY_S = 1 / depth.count("MEMORY_OUTAGE_QUESTIONS_PER_S", short=2, deep=4)
LASTS_S, TURNS, RECALLS, KILLS = map(int, os.environ.get("LONG_OUTAGE", "6,20,4,1").split(","))
PEOPLE = ("Alice", "Bob", "陈晨")
# The reply of the model, and what it would say if it were asked without its memory.
ANSWERS = [
    {"when": {"in": "system", "contains": "cannot be reached at the moment"},
     "reply": {"text": "I cannot look that up now: {{last_user}}"}},
    {"reply": {"text": "As you told me: {{last_user}}"}},
]  # fmt: skip
UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"
READY = {"ready": True, "degraded": []}


@pytest.fixture(scope="module")
def server(postgres_server: postgres.Server, migrated_template: str) -> Iterator[lite.Outage]:
    if reason := lite.missing():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with (
        postgres_server.fresh_database(template=migrated_template) as url,
        lite.outage(url, socket_folder=postgres_server.socket_folder) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def bot_options(server: lite.Outage, metrics_port: int) -> dict[str, str]:
    return {
        "SUPABASE_URL": server.address.url,
        "SUPABASE_PUBLISHABLE_KEY": server.address.publishable_key,
        "SUPABASE_SECRET_KEY": server.address.secret_key,
        "SUPABASE_JWT_SECRET": server.address.jwt_secret,
        "METRICS_PORT": str(metrics_port),
    }


@pytest.fixture
def talk(processes: World, server: lite.Outage) -> Talk:
    """A conversation to be had; the memory is there and nothing waits."""
    talk = Talk(processes, server.address.database_url, processes.database_url)
    processes.model.control("script", {"rules": ANSWERS})
    processes.model.forget()
    return talk


@dataclass
class Story:
    """What happened before, during and after one outage."""

    talk: Talk
    threads: list[Thread]
    away: list[Question] = field(default_factory=list)
    readiness: dict[str, Any] = field(default_factory=dict)
    metrics: str = ""
    forgetting: str = ""
    recalled: str = ""
    prompts: dict[str, str] = field(default_factory=dict)
    drained_in_s: float = 0.0
    later: list[Question] = field(default_factory=list)
    log: str = ""


@pytest.fixture(scope="module")
def story(processes: World, server: lite.Outage, metrics_port: int) -> Story:
    talk = Talk(processes, server.address.database_url, processes.database_url)
    processes.model.control("script", {"rules": ANSWERS})
    aside = talk.new_world()
    taken_back, _ = aside.ask("Bob", "my plum, remembered before")
    aside.settled(taken_back)
    story = Story(talk, talk.open_threads(PEOPLE, 2))
    ready = f"{processes.bot.url}/readyz"
    eventually(lambda: READY.items() <= requests.get(ready, timeout=9).json().items())
    ask = talk.ask_in_turn
    before = time.monotonic()
    list(ask(story.threads, every_s=EVERY_S, while_=lambda: time.monotonic() < before + 1.5))

    server.kill()
    gone_at = time.monotonic()
    lasts = gone_at + OUTAGE_S
    half = gone_at + OUTAGE_S / 2
    story.away += ask(story.threads, every_s=EVERY_S, while_=lambda: time.monotonic() < half)
    story.recalled = aside.say("Bob", f"@{aside.bot_name} a secret quince")
    aside.answer(story.recalled)
    for message in (taken_back, story.recalled):
        aside.platform.post("/recall", **{"message_id": message, "as": aside.people["Bob"]})
    _, story.forgetting = aside.ask("Alice", "/forget all")
    answer = requests.get(ready, timeout=9)
    story.readiness = {"status": answer.status_code, **answer.json()}
    story.metrics = requests.get(f"http://127.0.0.1:{metrics_port}/metrics", timeout=9).text
    story.away += ask(story.threads, every_s=EVERY_S, while_=lambda: time.monotonic() < lasts)
    talk.answered(story.away, within_s=20)
    story.prompts = talk.prompts()

    server.start()
    back_at = time.monotonic()
    talk.drained()
    story.drained_in_s = time.monotonic() - back_at
    talk.answered(talk.asked, within_s=20)
    processes.model.forget()
    story.later = [
        talk.ask(thread, f"what was said in {number}?")
        for number, thread in enumerate(story.threads)
    ]
    talk.answered(story.later, within_s=20)
    story.prompts = talk.prompts() | story.prompts
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")
    story.log = processes.bot.workers[0].output()
    return story


def test_every_question_gets_exactly_one_card(story: Story) -> None:
    cards = story.talk.cards(story.talk.asked)

    assert {len(found) for found in cards.values()} == {1}
    assert len(story.away) >= OUTAGE_S / EVERY_S / 2


def test_nobody_waits_for_a_memory_that_is_away(story: Story) -> None:
    took = story.talk.seconds(story.away)
    usual, slowest = percentile(took, 0.5), percentile(took, 0.95)
    print(f"away: {len(took)} answers, p50 {usual:.2f} s, p95 {slowest:.2f} s, ", end="")
    print(f"drained in {story.drained_in_s:.1f} s; questions in all: {len(story.talk.asked)}")

    assert usual < 3
    assert max(took) < 6


def test_the_model_is_told_that_the_memory_is_away_and_nothing_else_of_the_past(
    story: Story,
) -> None:
    late = story.away[len(story.threads) :]  # the first may have begun with the memory
    for question in late:
        prompt = story.prompts[question.text]
        assert MEMORY_AWAY[:30] in prompt
        assert "apricot" not in prompt
        (card,) = story.talk.cards([question])[question.message_id]
        assert "As you told me" not in markdown(card)
        assert outbox_texts.say("without-memory", "en") in str(card)


def test_the_memory_holds_everything_in_order_once_and_as_it_was_sent(story: Story) -> None:
    for thread in story.threads:
        assert_stored_in_order(story.talk, thread)


def test_a_later_question_sees_what_was_said_while_the_memory_was_away(story: Story) -> None:
    for question in story.later:
        said = [one.text for one in story.away if one.thread is question.thread]
        assert said[-1] in story.prompts[question.text]
        assert "I cannot look that up now" in story.prompts[question.text]


def test_a_message_taken_back_meanwhile_is_in_no_table(story: Story) -> None:
    world = story.talk.new_world()
    for word in ("plum", "quince"):
        rows = world.rows(
            "select content from agent_messages where role = 'user' and content like %s"
            " union all select content from chat_transcript where not ours and content like %s",
            f"%{word}%",
            f"%{word}%",
        )
        assert rows == []
    assert world.rows("select 1 from recalled_messages where message_id = %s", story.recalled)


def test_forgetting_is_not_promised_while_there_is_nothing_to_forget_in(story: Story) -> None:
    assert command_texts.say("memory-away", "en") in story.forgetting


def test_what_the_group_said_and_why_the_bot_spoke_is_kept_too(story: Story) -> None:
    world = story.talk.new_world()
    asked = [question.message_id for question in story.talk.asked]
    decided = world.rows("select message_id from agent_decisions where message_id = any(%s)", asked)
    heard = world.rows("select message_id from chat_transcript where message_id = any(%s)", asked)

    assert {row["message_id"] for row in decided} == set(asked)
    assert {row["message_id"] for row in heard} == set(asked)
    for thread in story.threads:
        said = world.rows(
            "select ours from chat_transcript where chat_id = %s and root_id = %s"
            ' order by "timestamp"',
            thread.world.group,
            thread.opening,
        )
        assert sum(row["ours"] for row in said) == len(said) / 2 + 0.5


def test_readiness_says_what_is_missing_and_stays_ready(story: Story) -> None:
    memory = story.readiness["checks"]["memory"]

    assert (story.readiness["status"], story.readiness["ready"]) == (200, True)
    assert story.readiness["degraded"] == ["memory"]
    assert memory.startswith("away since 2")
    assert "turns wait to be written" in memory
    assert " 0 turns" not in memory


def test_the_metrics_tell_of_the_outage(story: Story) -> None:
    values = {
        name: float(value)
        for name, value in (
            line.rsplit(" ", 1) for line in story.metrics.splitlines() if line[:1] not in ("", "#")
        )
    }

    assert values["bot_memory_breaker"] >= 1
    assert values["bot_unstored_turns"] >= 1
    assert values["bot_turns_unstored_total"] >= 1
    assert values["bot_unstored_oldest_seconds"] > 0
    assert any(name.startswith("bot_memory_failures_total{") for name in values)


def test_the_log_tells_that_the_memory_went_and_came_back_and_no_words(story: Story) -> None:
    times = [story.log.count(f'"event": "memory.{which}"') for which in ("away", "back")]
    assert times[0] == times[1]
    assert 1 <= times[0] <= 2
    assert '"event": "memory.wakes_jobs"' in story.log
    assert "apricot" not in story.log
    assert "what about item" not in story.log


def test_a_memory_that_hangs_delays_the_first_answers_only(talk: Talk, server: lite.Outage) -> None:
    threads = talk.open_threads(("Alice", "Bob"), 2)
    server.hang()
    began = time.monotonic()
    list(talk.ask_in_turn(threads, every_s=0.4, while_=lambda: time.monotonic() < began + 8))
    talk.answered(talk.asked, within_s=20)
    later = [question for question in talk.asked if question.at > began + 6]
    server.go_on()
    talk.drained()

    assert max(talk.seconds(talk.asked)) < 12
    assert max(talk.seconds(later)) < 4
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")
    for thread in threads:
        assert_stored_in_order(talk, thread)


def test_a_tool_that_finds_the_memory_gone_fails_honestly(talk: Talk, server: lite.Outage) -> None:
    (thread,) = talk.open_threads(("Alice",), 1)
    note = {"name": "create_note", "arguments": {"title": "Plan", "body": "all of it"}}
    rules = [
        {"reply": {"tool_calls": [note], "delay_s": 1.0}, "after_tool": False},
        {"reply": {"text": "That could not be done."}},
    ]
    talk.world.model.control("script", {"rules": rules})
    talk.world.model.forget()
    question = talk.ask(thread, "write this down as a note")
    eventually(talk.world.model.requests, what="the model is asked")
    server.kill()
    talk.answered([question], within_s=20)
    _, told = talk.world.model.requests()
    server.start()
    talk.drained()

    result = told["body"]["messages"][-1]
    assert result["role"] == "tool"
    assert "the memory does not answer right now. Nothing was changed" in result["content"]
    assert_stored_in_order(talk, thread)
    (row,) = thread.world.stored(question.message_id)
    assert [(call["name"], call["ok"]) for call in row["tool_calls"]] == [("create_note", False)]
    assert thread.world.rows("select 1 from agent_notes where title = 'Plan'") == []


def test_a_worker_killed_meanwhile_loses_nothing_and_clicks_wait_without_holding_up_questions(
    talk: Talk,
    server: lite.Outage,
) -> None:
    quick, thinking, clicked = talk.open_threads(("Alice", "Bob", "陈晨"), 1)
    button = button_on(clicked.world, clicked.opening, "and then?")
    bot = talk.world.bot
    slow = {"when": {"contains": "think"}, "reply": {"text": "thought", "delay_s": 2.0}}
    talk.world.model.control("script", {"rules": [slow, *ANSWERS]})
    server.kill()
    first = talk.ask(quick, "the first of two")
    talk.answered([first], within_s=20)
    talk.world.model.forget()
    interrupted = talk.ask(thinking, "think about it")
    eventually(talk.world.model.requests, what="the model is asked")
    bot.workers[-1].kill()
    assert talk.waiting() > 0
    second = talk.ask(quick, "the second of two")

    server.start()
    eventually(
        lambda: "On it" in toast(click(clicked.world, "陈晨", clicked.opening, {"b": button})),
        what="the click is accepted",
    )
    server.kill()
    bot.start_worker()
    eventually(lambda: '"event": "click.waits"' in bot.workers[-1].output(), what="a click waits")
    meanwhile = talk.ask(clicked, "a question beside it")
    talk.answered([second, meanwhile], within_s=8)
    talk.answered([interrupted], within_s=40)
    assert clicked.world.answers(clicked.world.turn_of(button)) == []

    server.start()
    talk.drained()
    (row,) = clicked.world.settled(clicked.world.turn_of(button))
    (answer,) = clicked.world.answers(clicked.world.turn_of(button))
    assert row["content"] == markdown(answer)
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")
    for thread in (quick, thinking):
        assert_stored_in_order(talk, thread)
    assert [len(found) for found in talk.cards(talk.asked).values()] == [1] * 4


def test_through_kills_and_retractions_nothing_is_lost_doubled_or_survives(
    talk: Talk, server: lite.Outage
) -> None:
    bot, taken_back = talk.world.bot, Retractions(talk)
    rules = [{"reply": {"text": "As you told me: {{last_user}}"}}]
    talk.world.model.control("script", {"rules": rules})
    threads = talk.open_threads(PEOPLE, 3)
    deadly = {TURNS * (n + 1) // (KILLS + 1) for n in range(KILLS)}
    server.kill()
    began = time.monotonic()
    for number in range(TURNS):
        time.sleep(max(0.0, began + LASTS_S * number / TURNS - time.monotonic()))
        thread = threads[number % len(threads)]
        if number * RECALLS // TURNS != (number - 1) * RECALLS // TURNS:
            taken_back.ask(thread, at_once=number % 2 == 0)
        else:
            talk.ask(thread, f"what about item {number:04d}?")
        if number in deadly:
            bot.kill()
            bot.start(1)
    talk.answered(taken_back.others(), within_s=60)
    waiting, away_s = talk.waiting(), time.monotonic() - began
    server.start()
    talk.drained(within_s=120)
    eventually(lambda: not talk.queue_rows(UNFINISHED), what="all jobs are done")
    print(
        f"away {away_s:.0f} s, {len(talk.asked)} turns, {len(taken_back.words)} taken back, ",
        end="",
    )
    print(f"{len(deadly)} kills; {waiting} jobs waited")

    assert waiting >= TURNS - RECALLS
    assert talk.queue_rows("select 1 from feishu_bot.jobs") == []
    eventually(lambda: not taken_back.remains(), what=f"gone: {taken_back.remains()}")
    for thread in threads:
        assert_stored_once(talk, thread, taken_back.others())
