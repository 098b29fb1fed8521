"""Below an answer stands what it rests on: who said what and when, for as long as that is there."""

from __future__ import annotations

from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_handles import elements
from tests.acceptance.test_taking_back import take_back, where
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


def panel_of(card: dict[str, Any]) -> tuple[str, str]:
    """The folded line, and the sources that it unfolds to."""
    (panel,) = [one for one in elements(card) if one["tag"] == "collapsible_panel"]
    (sources,) = [one for one in panel["elements"] if one.get("element_id") == "sources"]
    return panel["header"]["title"]["content"], sources["content"]


@pytest.mark.parametrize(
    ("first", "second", "asked", "quoted", "count"),
    [
        (
            "remember that the zeppelin dinner is on 3 March",
            "the zeppelin dinner moved to 10 March",
            "when is the zeppelin dinner?",
            "“the zeppelin dinner moved to 10 March”",
            "source",
        ),
        (
            "请记住：飞艇晚宴在3月3号",
            "飞艇晚宴改到3月10号了",
            "飞艇晚宴是哪天？",
            "“飞艇晚宴改到3月10号了”",
            "个来源",
        ),
    ],
)
def test_a_source_is_quoted_with_its_author_and_goes_with_its_message(
    world: World, first: str, second: str, asked: str, quoted: str, count: str
) -> None:
    here = world.in_a_new_group()
    here.settled(here.ask("Alice", first)[0])
    newest, _ = here.ask("Alice", second)
    here.settled(newest)
    question, _ = here.ask("Bob", asked)
    here.settled(question)
    (card,) = here.answers(question)
    line, sources = panel_of(card)

    assert count in line
    (cited,) = [one for one in sources.splitlines() if quoted in one]
    assert cited.startswith("Alice")
    assert f"openChatId={here.group}" in cited
    for tool in ("recall", "update_working_memory"):
        assert tool not in str(card)
    (turn,) = here.rows("select shown::text as shown from agent_turns where id = %s", question)
    assert quoted[1:-1] not in turn["shown"]

    again = "select bot_private.told_foot(shown)::text as foot from agent_turns where id = %s"
    assert quoted[1:-1] in here.rows(again, question)[0]["foot"]

    take_back(here, "Alice", newest)
    eventually(
        lambda: all(one["deleted"] for one in here.answers(question)),
        what="the answer that quotes it is withdrawn",
    )
    assert not where(here, quoted[1:-1])
