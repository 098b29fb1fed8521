"""Everything that `/help` names works, in both languages, with no model connected."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown

DID_NOTHING = re.compile(
    "nothing was changed|changed nothing|don't remember|couldn't find|not sure"
    "|没有改动|没有记住|没有找到|不确定"
)


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"OPENAI_API_KEY": "", "CONVERSATION_TIMEOUT_SECONDS": "1"}


def said(world: World, text: str, root: str = "", chat: str | None = None) -> tuple[str, str]:
    more = {"root_id": root} if root else {}
    question, shown = world.ask("Alice", text, chat=chat, **more)
    return question, shown.partition("</at>")[2].strip() or shown


def answer_to(world: World, command: str) -> str:
    """The answer, in the thread or beside the group for Alice alone."""
    beside = {one["message_id"] for one in world.platform.messages(world.group)}
    question = world.say("Alice", f"@{world.bot_name} {command}")

    def answers() -> list[dict[str, Any]]:
        shown = (m for m in world.platform.messages(world.group) if m["visible_to"])
        alone = [m for m in shown if m["message_id"] not in beside and not m["deleted"]]
        return world.answers(question) or alone

    return markdown(eventually(answers, what=f"an answer to {command}")[-1])


@pytest.mark.parametrize(
    ("ask", "answer", "title"),
    [("/help", "3 March", "Release checklist"), ("/帮助", "3 月 3 日", "发布清单")],
)
def test_each_example_of_the_help_does_what_it_says(
    world: World, ask: str, answer: str, title: str
) -> None:
    root, shown = said(world, ask)
    examples = re.findall("“(.+?)”", shown)
    assert len(examples) > 8
    answers = {}
    for example in examples:
        question, answers[example] = said(world, example, root)
        if not re.search("forget|delete|忘掉|删除", example):
            world.settled(question)
        assert not DID_NOTHING.search(answers[example]), (example, answers[example])
    assert answer in answers[examples[1]]
    assert title in answers[examples[5]]
    assert "urgent" in answers[examples[4]] or "紧急" in answers[examples[4]]
    notes = "select 1 from agent_notes where chat_id = %s"
    assert world.rows(notes, world.group) == [], "the last example deletes the note"


@pytest.mark.parametrize("ask", ["/help", "/帮助"])
def test_each_command_of_the_help_is_one(world: World, ask: str) -> None:
    _, shown = said(world, ask)
    commands = re.findall(r"`(/[^`]+)`", shown)
    assert len(commands) >= 9
    for command in commands:
        if command in ("/memory", "/记忆"):
            continue  # only who asks sees its card, see test_own_memory.py
        answered = answer_to(world, command)
        assert not DID_NOTHING.search(answered), (command, answered)


def test_the_help_of_a_private_chat_names_nothing_of_groups(world: World) -> None:
    chats = world.platform.state()["chats"]
    alice = world.people["Alice"]
    p2p = next(c for c in chats if c["mode"] == "p2p" and alice in c["members"])["chat_id"]
    _, shown = said(world, "/help", chat=p2p)
    assert "/quiet" not in shown
    assert "mention" not in shown
    assert "`/memory`" in shown
