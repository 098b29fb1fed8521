"""A reaction to the bot's question is the answer, of whoever was asked, once."""

from __future__ import annotations

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown, prompt_of

UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"


@pytest.fixture
def group(world: World) -> World:
    """A bot that asks whether it shall, and says what came of it."""
    asks = {"when": [{"contains": "the plan"}], "reply": {"text": "Shall I write it down?"}}
    fragt = {"when": [{"contains": "计划"}], "reply": {"text": "要我记下来吗？"}}
    tells = {"when": [{"contains": "a fact"}], "reply": {"text": "We launch in May."}}
    world.model.control("script", {"rules": [asks, fragt, tells]})
    world.model.control("mode", {"mode": "rules"})
    return world


def asked(world: World, text: str) -> tuple[str, str]:
    """A question, and the id of the card that answers it."""
    question, _ = world.ask("Alice", text)
    world.settled(question)
    return question, world.answers(question)[0]["message_id"]


def react(world: World, who: str, card: str, emoji: str) -> None:
    world.platform.post(
        "/reactions", **{"as": world.people[who], "message_id": card, "emoji_type": emoji}
    )


def turns(world: World, card: str) -> list[dict[str, object]]:
    """What the reactions to the card led to, once the bot has them and has done with them."""
    world.platform.get("/deliveries", wait_s=20)
    eventually(lambda: not world.rows(UNFINISHED), what="the jobs are done")
    return world.rows(
        "select m.content, m.actor_id from agent_messages m join agent_turns t on t.id = m.turn_id"
        " join agent_messages c on c.turn_id = t.parent_id and c.message_id = %s"
        " where t.origin = 'reaction' and m.role = 'user'",
        card,
    )


@pytest.mark.parametrize(
    ("emoji", "text", "word"),
    [
        ("THUMBSUP", "what is the plan?", "Yes"),
        ("CheckMark", "what is the plan?", "Yes"),
        ("OK", "计划是什么？", "是的"),
        ("ThumbsDown", "what is the plan?", "No"),
        ("CrossMark", "计划是什么？", "不用"),
    ],
)
def test_the_askers_reaction_is_yes_or_no(group: World, emoji: str, text: str, word: str) -> None:
    question, card = asked(group, text)
    react(group, "Alice", card, emoji)
    eventually(lambda: turns(group, card), what="a turn")
    assert turns(group, card) == [{"content": word, "actor_id": group.people["Alice"]}]
    eventually(lambda: len(group.under(question)) == 2, what="the answer to it")
    said = prompt_of(group.model.requests()[-1])
    assert word in said[-1][1]


def test_it_counts_once(group: World) -> None:
    question, card = asked(group, "what is the plan?")
    for emoji in ("THUMBSUP", "DONE", "ThumbsDown"):
        react(group, "Alice", card, emoji)
    eventually(lambda: turns(group, card), what="a turn")
    assert len(turns(group, card)) == 1
    assert len(group.under(question)) == 2


def test_what_is_no_answer_is_none(group: World) -> None:
    question, card = asked(group, "what is the plan?")
    react(group, "Bob", card, "THUMBSUP")
    react(group, "Alice", card, "SMILE")
    react(group, "Alice", question, "THUMBSUP")
    assert turns(group, card) == []
    _, fact = asked(group, "tell me a fact")
    react(group, "Alice", fact, "THUMBSUP")
    assert turns(group, fact) == []
    # who has gone on in words meant those
    on = group.say("Alice", f"@{group.bot_name} no, leave it", root_id=question)
    group.settled(on)
    react(group, "Alice", card, "THUMBSUP")
    assert turns(group, card) == []
    assert all("reaction" not in markdown(m) for m in group.under(question))
