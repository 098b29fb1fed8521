"""A press in the bot's menu, as Feishu's documents show it; and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from bot.feishu.events import MalformedEvent, parse_envelope
from bot.feishu.other_events import MenuPress, parse_menu_press
from tests.support.rows import every_row


def pushed(event_id: str = "e1", **event: Any) -> MenuPress:
    header = {
        "event_id": event_id, "event_type": "application.bot.menu_v6",
        "create_time": "1608725989000", "tenant_key": "t",
    }  # fmt: skip
    said = {
        "operator": {"operator_name": "张三", "operator_id": {"open_id": "ou_1"}},
        "event_key": "help",
        "timestamp": 1669364458,
        **event,
    }
    return parse_menu_press(parse_envelope({"schema": "2.0", "header": header, "event": said}))


def test_a_press_is_who_pressed_what_and_when() -> None:
    assert pushed() == MenuPress("ou_1", "t", "help", "1669364458", 1669364458000)


def test_the_same_press_under_another_event_id_is_the_same() -> None:
    assert (pushed("e1").item, pushed("e1").cause) == (pushed("e2").item, pushed("e2").cause)
    assert pushed(timestamp=1669364459).cause != pushed().cause


@every_row("timestamp", [None, "", "soon", -1])
def test_a_press_without_a_time_is_its_event(timestamp: object) -> None:
    assert (pushed(timestamp=timestamp).cause, pushed(timestamp=timestamp).at_ms) == (
        "e1",
        1608725989000,
    )


@every_row("event", [{"operator": {}}, {"operator": None}, {"event_key": ""}, {"event_key": 7}])
def test_a_press_of_nobody_or_of_nothing_is_none(event: dict[str, Any]) -> None:
    with pytest.raises(MalformedEvent):
        pushed(**event)
