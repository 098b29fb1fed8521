"""Which questions the bot may answer unasked, and when somebody else has taken one up."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.listening.decisions import (
    Decision,
    IncomingMessage,
    Reason,
    is_any_stated,
    is_open_question,
    is_question_taken_up,
    is_thread_continued,
    may_wait,
    speaks_at,
)
from bot.listening.transcript import MessageRecord
from tests.support.rows import every_row

T0 = 1_790_000_000_000


def said(n: int, who: str, text: str, *, after_s: int = 60, **more: str) -> MessageRecord:
    return MessageRecord(
        author=who,
        author_id=f"ou_{who}",
        content=text,
        timestamp=T0 + n * after_s * 1000,
        is_bot=False,
        message_id=f"om_{n}",
        **more,  # type: ignore[arg-type]
    )


@every_row(
    "text",
    [
        "When is the quince launch?",
        "what is the medlar budget",
        "测试环境的数据库端口是多少？",
        "数据库的备份放在哪里",
        "Does anybody know when the quince launch is?",
        "hi all, can anyone tell me what the medlar budget is?",
        "有人知道上线时间吗？",
        "请问谁知道数据库的端口是多少",
    ],
)
def test_a_question_to_everybody(text: str) -> None:
    assert is_open_question(text, ["Alice", "陈晨"])


@every_row(
    "text",
    [
        "The quince launch is on 3 March.",
        "Alice, when is the quince launch?",
        "陈晨，数据库端口是多少？",
        "@Alice when is the launch?",
        "/why?",
        "thanks!",
        "Does anybody want lunch?",
        "let me check, ok?",
        "有人要喝咖啡吗？",
    ],
)
def test_no_question_to_everybody(text: str) -> None:
    assert not is_open_question(text, ["Alice", "陈晨"])


def test_what_was_decided_on_a_message_says_whether_it_waits() -> None:
    message = IncomingMessage("om_0", "Bob", "ou_Bob", "When is the quince launch?", T0)
    silent = Decision(False, Reason.NO_TRIGGER)
    assert may_wait(message, silent)
    assert may_wait(message, replace(silent, reason=Reason.MODE_MENTION))
    assert not may_wait(message, replace(silent, reason=Reason.QUIET))
    assert not may_wait(message, Decision(True, Reason.RECENT_FOLLOWUP))
    for to_somebody in ({"mentions_others": True}, {"quotes": "om_x"}):
        assert not may_wait(replace(message, **to_somebody), silent)  # type: ignore[arg-type]
    assert not may_wait(replace(message, is_bot=True), silent)
    assert may_wait(replace(message, root_id="om_x"), silent)


QUESTION = said(1, "Bob", "When is the quince launch?")


@every_row(
    "later",
    [
        said(2, "Alice", "the quince launch is on 3 March"),
        said(2, "Alice", "3 March, see the plan", quotes="om_1"),
        said(2, "Alice", "3 March", root_id="om_1"),
        said(2, "Bob", "never mind, I found the quince launch in the plan", quotes="om_1"),
    ],
)
def test_it_is_taken_up(later: MessageRecord) -> None:
    assert is_question_taken_up([QUESTION, later], "om_1")


def test_it_is_not_taken_up_by_silence_or_by_asking_again() -> None:
    assert not is_question_taken_up([QUESTION], "om_1")
    again = said(2, "Bob", "does nobody know when the quince launch is?")
    assert not is_question_taken_up([QUESTION, again], "om_1")


@every_row(
    ("later", "gone_on"),
    [
        ([], False),
        ([said(2, "Bob", "does nobody know when the quince launch is?")], False),
        ([said(2, "Alice", "lunch?")], True),
        ([said(2, "Bob", "found it")], True),
    ],
)
def test_whatever_is_said_after_it_in_a_thread_takes_it_up(
    later: list[MessageRecord], gone_on: bool
) -> None:
    before = said(0, "Alice", "here is the plan")
    assert is_thread_continued([before, QUESTION, *later], "om_1") is gone_on
    assert is_thread_continued([before, *later], "om_1")


def test_a_question_that_is_not_there_any_more_is_left() -> None:
    assert is_question_taken_up([said(2, "Alice", "hello")], "om_1")


def test_a_question_tells_nothing() -> None:
    assert not is_any_stated(["When is the quince launch?", "/digest"])
    assert is_any_stated(["When?", "remember that the quince launch is on 3 March"])


def test_hours_may_go_over_midnight() -> None:
    def at(hour: int) -> datetime:
        return datetime(2026, 3, 3, hour)  # noqa: DTZ001

    assert [h for h in range(24) if speaks_at(at(h), (9, 18))] == list(range(9, 18))
    assert [h for h in range(24) if speaks_at(at(h), (22, 2))] == [0, 1, 22, 23]
    assert all(speaks_at(at(h), (0, 24)) for h in range(24))
