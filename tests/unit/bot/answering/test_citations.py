"""What stands below an answer as its sources: statements and files, never questions or requests."""

from __future__ import annotations

from typing import cast

import pytest

from bot.answering.answer_sources import cited_sources
from bot.answering.question import Turn
from memory.recall.passages import Passage
from memory.scope import memory_context

ALICE = memory_context(chat_id="oc_1", root="om_1", subject="ou_alice", actor="ou_alice")


class FakeNames:
    def label(self, _: str, name: str) -> str:
        return name


class FakeTurn:
    context, names = ALICE, FakeNames()


def passage(number: int, words: str, who: str = "Alice") -> Passage:
    at = f"2026-11-28T10:{number:02}:00+00:00"
    return Passage(f"om_{number}", number, "c", "oc_1", at, f"ou_{who}", who, words, "")


@pytest.mark.parametrize(
    ("words", "is_source"),
    [
        ("the handover moved to 10 March", True),
        ("remember that the handover is on 3 March", True),
        ("nope, Plum cancelled, we use Fig instead", True),
        ("[file: budget.xlsx]", True),
        ("预算改成8万", True),
        ("记住发布日是3月3号", True),
        ("when is the handover?", False),
        ("summarize what we discussed today", False),
        ("set a reminder for tomorrow 9am to call Fig", False),
        ("thanks!", False),
        ("/settings", False),
        ("总结一下今天的讨论", False),
        ("提醒我明天开会", False),
        ("预算是多少？", False),
    ],
)
def test_statements_are_sources_and_what_asks_for_something_is_not(
    words: str, is_source: bool
) -> None:
    named = list(cited_sources(cast(Turn, FakeTurn()), [passage(1, words)]))
    assert [one.words for one in named] == ([words] if is_source else [])


def test_what_was_replaced_stands_with_what_replaced_it() -> None:
    old, new = "the handover is on 3 March", "the handover moved to 10 March"
    (one,) = cited_sources(cast(Turn, FakeTurn()), [passage(1, old), passage(2, new)])
    assert (one.words, one.replaced_words) == (new, old)
