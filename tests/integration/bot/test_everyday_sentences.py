"""What a new user reads: everyday sentences and their answers, without a model.

After an intended change, RECORD_EVERYDAY=1 writes the answers anew; read the diff like a user."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.agents.manager import Manager
from bot.agents.offline.model import OfflineModel
from bot.features.registry import TOOLS
from tests.support.everyday_answers import Everyday, scenes
from tests.support.whole_turns import Stage, stage

pytestmark = pytest.mark.anyio
DATA = Path(__file__).parents[2] / "data" / "everyday"
LANGUAGES = ("en", "zh")


@pytest.fixture
async def on(database_url: str) -> AsyncIterator[Stage]:
    usual = {"requests_per_minute": 0, "history_messages": 10, "user_token_key": "A" * 43 + "="}
    async with stage(database_url, **usual) as here:
        stores = here.services.manager._stores
        manager = Manager(OfflineModel(), stores=stores, tools=TOOLS)
        yield replace(here, services=replace(here.services, manager=manager))


def test_there_are_130_sentences() -> None:
    said = [line for one in LANGUAGES for _, lines in scenes(DATA / f"{one}.txt") for line in lines]
    assert len(said) >= 130


@pytest.mark.parametrize("language", LANGUAGES)
async def test_everyday_sentences_are_answered_as_written_down(on: Stage, language: str) -> None:
    file = DATA / f"{language}.txt"
    expected = file.read_text()
    text = expected.split("\n# ")[0]
    everyday = Everyday(on, language)
    for heading, sentences in scenes(file):
        lines = await everyday.play(heading, sentences)
        text += "\n".join(("", f"# {heading}", "", *lines, ""))
    if os.environ.get("RECORD_EVERYDAY"):
        file.write_text(text)
    assert text == expected
