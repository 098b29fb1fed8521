"""The hours of proactive answers as they are written."""

from __future__ import annotations

import pytest

from bot.process.settings_values import SettingsError, hours_of
from tests.support.rows import every_row


@every_row(("written", "read"), [("9-18", (9, 18)), (" 22 - 6 ", (22, 6)), ("0-24", (0, 24))])
def test_hours(written: str, read: tuple[int, int]) -> None:
    assert hours_of("PROACTIVE_HOURS", written) == read


@every_row("written", ["", "9", "9-9", "24-3", "9-25", "9:30-18", "nine", "-1-3"])
def test_no_hours(written: str) -> None:
    with pytest.raises(SettingsError, match="PROACTIVE_HOURS is not a range of full hours"):
        hours_of("PROACTIVE_HOURS", written)
