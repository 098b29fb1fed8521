"""Hundreds of people wait for a slow model: nobody waits for them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown, prompt_of
from tests.support import depth
from tests.support.patience import limit_s

pytestmark = pytest.mark.slow

MANY = depth.count("MANY_WAITING", short=60, deep=300)
FEW = MANY // 2
ALONE = "select turn_id, count(*) from agent_messages where role = 'assistant' group by turn_id"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"MODEL_TIMEOUT_SECONDS": "300"}


@pytest.fixture(scope="module")
def crowd(processes: World) -> list[str]:
    """The open_ids of people, of whom nobody asks more than a worker does of one at a time."""
    made = [processes.platform.post("/people", name=f"Person {n}") for n in range(50)]
    return [str(one["open_id"]) for one in made]


def ask_in_new_groups(world: World, crowd: list[str], count: int) -> dict[str, World]:
    """One question in each of so many groups: the groups by the ids of the questions."""

    def ask(number: int) -> tuple[str, World]:
        group = copy.copy(world)
        person = crowd[number % len(crowd)]
        chat = world.platform.post("/chats", name="Many", members=[person], silently=True)
        group.group = chat["chat_id"]
        return world.platform.say(person, group.group, f"@{world.bot_name} {number}?"), group

    with ThreadPoolExecutor(8) as asking:
        return dict(asking.map(ask, range(count)))


def held(world: World, **more: object) -> None:
    """The model takes requests and answers none."""
    world.model.control("mode", {"mode": "echo", "hold": True, **more})


def release(world: World) -> None:
    world.model.control("mode", {"mode": "echo"})


def under_way(world: World, count: int) -> None:
    eventually(
        lambda: world.model.load()["under_way"] >= count,
        within_s=180,
        what=f"{count} requests at the model, not {world.model.load()}",
    )


def assert_each_answered_once(world: World, asked: dict[str, World]) -> None:
    def done() -> bool:
        query = "select count(*) from agent_turns where state = 'sent' and id = any(%s)"
        return bool(world.rows(query, list(asked))[0]["count"] == len(asked))

    eventually(done, within_s=240, what="all are answered")
    stored = {row["turn_id"]: row["count"] for row in world.rows(ALONE) if row["turn_id"] in asked}
    assert Counter(stored.values()) == {1: len(asked)}
    for question, group in asked.items():
        (answer,) = group.answers(question)
        assert "echo:" in markdown(answer)


def questions_in(requests: Sequence[dict[str, object]]) -> list[str]:
    """What was asked of the model, in its order."""
    return [prompt_of(one)[-1][1] for one in requests]


def test_many_wait_at_the_model_at_once_and_a_line_is_decided_meanwhile(
    world: World, crowd: list[str]
) -> None:
    held(world)
    asked = ask_in_new_groups(world, crowd, MANY)
    under_way(world, MANY)
    line = world.say("Alice", "lunch at one?")
    decided = "select 1 from agent_decisions where message_id = %s"
    eventually(lambda: world.rows(decided, line), what="the line is decided")
    assert world.model.load()["under_way"] >= MANY
    release(world)

    assert_each_answered_once(world, asked)


def test_killed_with_many_waiting_each_is_answered_once(world: World, crowd: list[str]) -> None:
    held(world)
    asked = ask_in_new_groups(world, crowd, MANY)
    under_way(world, MANY)
    world.bot.workers[-1].kill()
    world.model.forget()
    world.bot.start_worker()
    eventually(
        lambda: len(world.model.requests()) >= MANY, within_s=180, what="all are asked again"
    )
    release(world)

    assert_each_answered_once(world, asked)


def test_sigterm_with_many_waiting_hands_them_over_in_time(world: World, crowd: list[str]) -> None:
    held(world)
    asked = ask_in_new_groups(world, crowd, MANY)
    under_way(world, MANY)
    took = world.bot.workers[-1].terminate()
    assert took < limit_s(10.5), took
    running = "select count(*) from feishu_bot.jobs where status = 'running'"
    assert world.rows(running)[0]["count"] == 0
    world.model.forget()
    world.bot.start_worker()
    release(world)

    assert_each_answered_once(world, asked)


def test_a_model_with_room_for_few_answers_everybody_and_more_when_it_has_more(
    world: World, crowd: list[str]
) -> None:
    world.model.control("mode", {"mode": "echo", "delay_s": 0.3, "at_once": 6})
    assert_each_answered_once(world, ask_in_new_groups(world, crowd, FEW))
    load = world.model.load()
    assert load["most"] <= 6
    assert load["refused"] < 2 * FEW, "it was asked again and again"

    world.model.control("mode", {"mode": "echo", "delay_s": 1.0, "at_once": 200})
    assert_each_answered_once(world, ask_in_new_groups(world, crowd, MANY // 2))
    assert world.model.load()["most"] > 6


def test_a_chat_with_many_questions_does_not_hold_up_another(
    world: World, crowd: list[str]
) -> None:
    held(world, at_once=4)
    full = world.platform.post("/chats", name="Full", members=crowd, silently=True)["chat_id"]
    for number in range(FEW):
        person = crowd[number % len(crowd)]
        world.platform.say(person, full, f"@{world.bot_name} crowd {number}?")
    query = "select count(*) from agent_turns where conversation_id like %s"
    eventually(
        lambda: world.rows(query, f"feishu:{full}:%")[0]["count"] == FEW,
        what="all of the crowd are begun",
    )
    question = world.say("Bob", f"@{world.bot_name} and mine?")
    eventually(
        lambda: world.rows("select 1 from agent_turns where id = %s", question),
        what="the other question is begun",
    )
    world.model.control("mode", {"mode": "echo", "at_once": 4, "delay_s": 0.5})
    world.answer(question)

    asked = questions_in(world.model.requests())
    before = next(n for n, one in enumerate(asked) if "and mine?" in one)
    assert before < FEW // 2, f"{before} of the crowd went first"


def test_questions_of_a_thread_are_answered_in_order_among_many(
    world: World, crowd: list[str]
) -> None:
    held(world)
    asked = ask_in_new_groups(world, crowd, FEW)
    group = world.in_a_new_group()
    thread: list[str] = []
    accepted = "select 1 from feishu_bot.jobs where args::text like %s"
    for text in ("first?", *(f"next {n}?" for n in range(4))):
        in_thread = {"root_id": thread[0]} if thread else {}
        thread.append(group.say("Alice", f"@{world.bot_name} {text}", **in_thread))
        eventually(lambda: world.rows(accepted, f"%{thread[-1]}%"), what="it is accepted")
    under_way(world, FEW + 1)
    release(world)
    for question in thread:
        group.settled(question)
    assert_each_answered_once(world, asked)

    query = (
        "select turn_id from agent_messages where turn_id = any(%s) and role = 'assistant'"
        " order by id"
    )
    assert [row["turn_id"] for row in world.rows(query, thread)] == thread
