"""What the tests of intake share."""

from __future__ import annotations

import pytest

from bot.intake.framing import REFUSALS


@pytest.fixture(autouse=True)
def no_refusals_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test's first refused request is the first of its reason, and is logged at once."""
    monkeypatch.setattr(REFUSALS, "_counts", {})
