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


USUAL = {"requests_per_minute": 0, "history_messages": 10, "user_token_key": "A" * 43 + "="}


@pytest.fixture
async def on(database_url: str) -> AsyncIterator[Stage]:
    async with stage(database_url, **USUAL) as here:
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


async def test_with_a_model_too_the_bot_is_muted_and_set_in_plain_words(database_url: str) -> None:
    async with stage(database_url, **USUAL, openai_api_key="any") as here:
        lines = await Everyday(here, "en").play(
            "group: silence",
            ["Alice: be quiet here", "Alice: what are your settings?", "Alice: digest of today"],
        )
    assert lines[1].strip().startswith("OK, I'm muted.")
    assert "**Messages I answer**: only mentions, because I'm muted" in "\n".join(lines)
    assert not any("📋" in line for line in lines)  # the model sums up


async def test_the_link_that_is_asked_for_stands_in_the_chat_of_the_question(on: Stage) -> None:
    everyday = Everyday(on, "en")
    for place in ("group: sales", "group: design", "private: alone"):
        question = "Alice: what are my tasks?"
        assert any("[Approve in Feishu]" in line for line in await everyday.play(place, [question]))
    again = await everyday.play("private: alone", ["Alice: what are my tasks?"])
    assert not any("[Approve in Feishu]" in line for line in again)  # it still stands there
