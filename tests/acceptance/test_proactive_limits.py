"""Proactive answers outside of their hours, and whose asker or chat is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_proactive import come, noted, unasked
from tests.acceptance.test_proactive import group as group  # the fixture


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    """Two hours, which begin in six."""
    begin = (datetime.now(UTC) + timedelta(hours=6)).hour
    return {
        "OPENAI_API_KEY": "",
        "TIMEZONE": "UTC",
        "PROACTIVE_HOURS": f"{begin}-{(begin + 2) % 24}",
        "FOLLOWUP_WINDOW_SECONDS": "0",
    }


def test_at_other_hours_nothing_is_said(group: World) -> None:
    _, timer = noted(group, "Bob", "When is the quince launch?")
    come(group, timer)
    assert unasked(group) == []


def test_who_leaves_is_not_answered_and_a_chat_that_is_gone_hears_nothing(group: World) -> None:
    _, of_bob = noted(group, "Bob", "When is the quince launch?")
    _, of_chen = noted(group, "陈晨", "What is the medlar budget?")
    waits = "select 1 from agent_timers where id = %s"
    group.platform.post("/leave", chat_id=group.group, open_id=group.people["Bob"])
    eventually(lambda: not group.rows(waits, of_bob), what="Bob's question is dropped")
    assert group.rows(waits, of_chen)
    group.platform.post("/leave", chat_id=group.group, open_id=group.bot_id)
    eventually(lambda: not group.rows(waits, of_chen), what="all are dropped")
