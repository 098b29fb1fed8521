"""Which questions are about a file that was sent before them."""

from __future__ import annotations

from bot.listening.replies import reference
from tests.support.rows import every_row


@every_row(
    "question",
    ["what is in this?", "what does it say?", "summarise it", "explain this", "这是什么？",
     "帮我看看", "写了什么", "总结一下", "what's in here", "please read this aloud"],
)  # fmt: skip
def test_pointing(question: str) -> None:
    assert reference(question) == "pointed_at"


@every_row(
    "question",
    ["what is in the picture?", "what does Bob's file say", "这张图里写了什么", "图里是什么",
     "他发的文件说了什么", "describe the attached screenshot", "translate that long PDF"],
)  # fmt: skip
def test_naming(question: str) -> None:
    assert reference(question) == "named"


@every_row(
    "question",
    ["is it Friday?", "remind me this Friday at 9", "what's this week's plan", "这个月的计划",
     "make a table of our rooms as a file", "把名单做成表格发我", "提醒我这周五开会", "hello", "",
     "who can send a picture?"],
)  # fmt: skip
def test_neither(question: str) -> None:
    assert reference(question) == ""
