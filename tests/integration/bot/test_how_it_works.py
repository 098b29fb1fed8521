"""The page on how a message travels names the modules that a mention enters."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

_ROOT = Path(__file__).parents[3]
_PIPELINE = re.compile(r"bot/(?:turn|worker|(?:answering|outbox)/\w+)\.py")


class ModulesEntered:
    """Notes the pipeline's modules of which a function is called."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename.removeprefix(f"{_ROOT}/")
        if event == "call" and _PIPELINE.fullmatch(file):
            self.names.add(file)


async def test_the_page_names_the_modules_that_a_mention_enters(database_url: str) -> None:
    page = (_ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    travels = page.partition("\n## ")[0].partition("\n\n**Files**")[0]
    entered = ModulesEntered()
    async with stage(database_url) as on:
        ann = on.town.platform.actors.add_person("Ann").open_id
        group = on.town.platform.groups.add("Garden", [ann]).chat_id
        sys.setprofile(entered)
        try:
            await on.mention(ann, group, "when is the trip to Lisbon?")
        finally:
            sys.setprofile(None)

    assert set(_PIPELINE.findall(travels)) == entered.names
    assert all((_ROOT / name).is_file() for name in re.findall(r"(?:bot|memory)/[\w/]+\.py", page))
