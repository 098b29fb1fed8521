"""A mere yes or no is told from everything that says more."""

from __future__ import annotations

from bot.card_actions.confirmation import consent_of
from tests.support.rows import every_row


@every_row(
    "text",
    [
        *("yes", "Yes!", "ok", "OK, do it", "yes please", "sure thing", "go ahead", "👍"),
        *("好的", "好的，可以", "是的。", "嗯嗯", "确认", "没问题！"),
    ],
)
def test_a_yes(text: str) -> None:
    assert consent_of(text) == "yes"


@every_row("text", "no|No, thanks|nope|don't|cancel|不用了|不要|算了吧|取消".split("|"))
def test_a_no(text: str) -> None:
    assert consent_of(text) == "no"


@every_row(
    "text",
    [
        "",
        "yes but at ten",
        "ok, and what about Bob?",
        "is that right?",
        "no problem, when is it?",
        "好的，那明天呢？",
        "可以提醒我吗",
        "不是周五",
        "yes no",
        "ok " * 20,
    ],
)
def test_what_says_more_is_no_consent(text: str) -> None:
    assert consent_of(text) is None
