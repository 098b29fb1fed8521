"""The day of TIMEZONE, on a machine whose own clock never shows the same one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.conftest import World, prompt_of

# 26 hours apart: it is never the same day in both.
EARLIEST, LATEST = ZoneInfo("Pacific/Kiritimati"), "Etc/GMT+12"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"TIMEZONE": EARLIEST.key, "TZ": LATEST}


def system(world: World) -> str:
    """What the model was told in the last request."""
    told = prompt_of(world.model.requests()[-1])
    return "\n\n".join(text for role, text in told if role == "system")


def test_now_and_the_time_tool_are_in_the_zone(world: World) -> None:
    before = datetime.now(EARLIEST)
    call = {"tool_calls": [{"name": "current_time", "arguments": {"timezone": None}}]}
    rules = [{"when": [{"contains": "what time"}], "reply": call}, {"reply": {"text": "Late."}}]
    world.model.control("script", {"rules": rules})
    world.ask("Alice", "what time is it?")
    days = {f"{now:%Y-%m-%d}" for now in (before, datetime.now(EARLIEST))}

    (result,) = (text for role, text in prompt_of(world.model.requests()[-1]) if role == "tool")
    assert any(f"Now:\n{day} " in system(world) for day in days)
    assert any(day in result for day in days)


@pytest.mark.parametrize("question", ["昨天我们聊了什么？", "what did we talk about yesterday?"])
def test_yesterday_is_the_day_before_in_the_zone(world: World, question: str) -> None:
    midnight = datetime.now(EARLIEST).replace(hour=0, minute=0, second=0, microsecond=0)
    told = {"apricot": midnight - timedelta(hours=2), "walnut": midnight - timedelta(hours=25)}
    for word, at in told.items():
        message, _ = world.ask("Alice", f"{word} harvest")
        world.settled(message)
        world.rows("update agent_messages set created_at = %s where turn_id = %s returning id",
                   at.astimezone(UTC), message)  # fmt: skip
        world.rows("update bot_private.turn_words set asked_at = %s where first_id in"
                   " (select id from agent_messages where turn_id = %s) returning first_id",
                   at.astimezone(UTC), message)  # fmt: skip
    world.ask("Alice", question)

    prompt = prompt_of(world.model.requests()[-1])
    lines = [line for _, text in prompt for line in text.splitlines() if " harvest" in line]
    yesterday = f"[{midnight - timedelta(days=1):%Y-%m-%d} 22:00]"
    assert f"{yesterday} Alice: apricot harvest" in lines
    assert f"{yesterday} Alice: apricot harvest" in lines
    # Within a day it stands in the window, later among what is recalled.
    assert any(line.endswith("@Alice echo: Alice: apricot harvest") for line in lines)
    assert not any(raw in line for line in lines for raw in ("oc_", "om_", "feishu:", "<at"))
