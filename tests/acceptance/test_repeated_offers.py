"""Like questions over and over, through the real processes: how many offers they bring."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World
from tests.acceptance.test_private_answers import an_hour_later, looked_up, shown_to, tell

OWN_PROCESSES = True
pytestmark = pytest.mark.slow

ENGLISH = (
    "When is our launch?",
    "when do we launch?",
    "What is the date of our launch?",
    "Which day is the launch?",
    "Does anybody know when the launch is?",
)
CHINESE = (
    "我们什么时候发布产品？",
    "产品发布是哪天？",
    "产品发布的日期是哪天？",
    "谁知道产品哪天发布？",
    "产品几号发布？",
)
LIKE = [
    *ENGLISH,
    *(f"Please tell me: {one}" for one in ENGLISH),
    *CHINESE,
    *(f"请问{one}" for one in CHINESE),
]


def ask_all(world: World) -> None:
    for text in LIKE:
        question, _ = world.ask("Alice", text)
        looked_up(world, question)


def test_where_nothing_was_told_forty_like_questions_bring_no_offer(world: World) -> None:
    other = world.in_a_new_group()
    for group in (world, other):
        ask_all(group)

    assert shown_to(world, "Alice") == shown_to(other, "Alice") == []
    assert world.rows("select from agent_turns where origin = 'offer'") == []


def test_where_it_was_told_forty_like_questions_bring_one_offer_an_hour(world: World) -> None:
    tell(world, "Alice", "Our launch is on 14 May")
    tell(world, "Alice", "产品发布定在5月14号")
    ask_all(world)
    ask_all(world)
    assert len(shown_to(world, "Alice")) == 1

    an_hour_later(world)
    ask_all(world)
    assert len(shown_to(world, "Alice")) == 2
