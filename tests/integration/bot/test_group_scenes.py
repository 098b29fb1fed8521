"""A colleague's statement reaches whoever asks next: scenes of several people in one group."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from bot.agents.manager import Manager
from bot.features.registry import TOOLS
from tests.support.group_scenes import DATA, Answering, Played, Scene, scenes, wrong
from tests.support.whole_turns import Stage, stage

pytestmark = pytest.mark.anyio

SCENES = scenes(Path(os.environ.get("GROUP_SCENES", DATA)))
LONG = [one for one in SCENES if sum(step.get("noise", 1) for step in one["steps"]) > 100]
OTHERS = [one for one in SCENES if one not in LONG]


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**before)


@pytest.fixture(scope="module")
async def on(shared_database_url: str) -> AsyncIterator[Stage]:
    usual = {"summary_after_messages": 10, "history_messages": 10, "requests_per_minute": 0}
    async with stage(shared_database_url, **usual) as here:
        model = Answering()
        stores = here.services.manager._stores
        services = replace(here.services, manager=Manager(model, stores=stores, tools=TOOLS))
        yield Stage(here.town, services, model, here.database)  # type: ignore[arg-type]


@pytest.mark.parametrize("scene", LONG, ids=[one["id"] for one in LONG])
async def test_a_statement_reaches_the_prompt_a_hundred_turns_later(
    on: Stage, scene: Scene
) -> None:
    await test_the_newest_statement_reaches_the_prompt(on, scene)


@pytest.mark.parametrize("scene", OTHERS, ids=[one["id"] for one in OTHERS])
async def test_the_newest_statement_reaches_the_prompt(on: Stage, scene: Scene) -> None:
    prompt = await Played(on, scene).prompt()

    assert not (why := wrong(scene, prompt)), f"{why}\n{prompt}"
