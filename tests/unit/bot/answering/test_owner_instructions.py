"""The owner's instructions as a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import SettingsError, load


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))


def test_they_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_INSTRUCTIONS", "Say 您.")
    assert load().bot_instructions == "Say 您."


def test_a_start_with_more_than_a_quarter_of_the_budget_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOT_INSTRUCTIONS", "我们下周三讨论预算。" * 400)
    with pytest.raises(SettingsError, match="BOT_INSTRUCTIONS costs about"):
        load()
    monkeypatch.setenv("HISTORY_TOKEN_BUDGET", "20000")
    assert load().bot_instructions
