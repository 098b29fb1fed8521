"""What the READMEs teach people to say works, without a model and in each language."""

from __future__ import annotations

import re

import pytest

from lab.doubles.processes import ROOT
from tests.acceptance.conftest import World
from tests.support import profiles

pytestmark = pytest.mark.slow

LAUNCH = {"README.md": "10 March", "README.zh.md": "3 月 10 日"}


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


def examples(readme: str) -> list[str]:
    """What is said to the bot, without the mention."""
    return re.findall(r"`@Memo ([^`]+)`", (ROOT / readme).read_text(encoding="utf-8"))


@pytest.mark.parametrize("readme", LAUNCH)
def test_what_one_is_told_to_say_is_understood(world: World, readme: str) -> None:
    told, moved, asked, of_another = examples(readme)
    root, _ = world.ask("Alice", told)
    world.ask("Alice", moved, root_id=root)
    _, answer = world.ask("Bob", asked, root_id=root)
    question, _ = world.ask("Alice", of_another, root_id=root)
    world.settled(question)
    [turn] = world.rows("select user_id, actor_id from agent_turns where id = %s", question)
    [meant] = re.findall(r"^@(\S+)", of_another)

    assert LAUNCH[readme] in answer
    assert turn == {"user_id": world.people[meant], "actor_id": world.people["Alice"]}
