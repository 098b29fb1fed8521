"""What somebody has the bot remember in a group reaches whoever asks about it there."""

from __future__ import annotations

import uuid

import pytest

from bot.agents.prompts.prompt import GROUP_FACTS
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, prompt_of
from tests.acceptance.test_taking_back import take_back

SCENES = {
    "en": (
        "remember that the handover {} is on 3 March",
        "remember that the handover {} moved to 10 March",
        "when is the handover {}?",
        *("3 March", "10 March"),
    ),
    "zh": (
        "请记住：交接{}在3月3号",
        "请记住：交接{}改到3月10号了",
        "交接{}是哪天？",
        *("3月3号", "3月10号"),
    ),
}


def keep(world: World, who: str, said: str, value: str, word: str) -> str:
    """Has the model keep a fact about a matter of the group; returns the message."""
    arguments = {"scope": "thread", "patch": {f"handover_{word}": value}}
    call = {"name": "update_working_memory", "arguments": arguments}
    rules = [{"reply": {"tool_calls": [call]}}, {"reply": {"text": "Kept."}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    question, _ = world.ask(who, said)
    world.settled(question)
    world.model.control("mode", {"mode": "echo"})
    return question


def told(world: World, who: str, question: str) -> str:
    """The section of the group's facts in the prompt for `question`."""
    world.model.forget()
    world.settled(world.ask(who, question)[0])
    requests = [one for one in world.model.requests() if prompt_of(one)[-1][1].endswith(question)]
    texts = [text for _, text in prompt_of(requests[0])]
    return (
        next((text for text in texts if GROUP_FACTS in text), "")
        .partition(f"{GROUP_FACTS}\n")[2]
        .partition("\n\n")[0]
    )


@pytest.mark.parametrize("language", SCENES)
def test_a_colleagues_newer_fact_comes_first_and_goes_with_its_message(
    world: World, language: str
) -> None:
    word = f"q{uuid.uuid4().hex[:12]}"
    first, second, asked, old, new = SCENES[language]
    first, second, asked = (text.format(word) for text in (first, second, asked))
    keep(world, "Alice", first, old, word)
    later = keep(world, "Bob", second, new, word)

    current, former = told(world, "陈晨", asked).splitlines()

    assert "Bob: " in current
    assert current.endswith(new)
    assert "earlier, until" in former
    assert "Alice: " in former
    assert former.endswith(old)
    take_back(world, "Bob", later)
    eventually(
        lambda: not world.rows("select 1 from agent_messages where turn_id = %s", later),
        what="the message is gone",
    )
    [left] = told(world, "陈晨", asked).splitlines()
    assert "earlier" not in left
    assert left.endswith(old)
