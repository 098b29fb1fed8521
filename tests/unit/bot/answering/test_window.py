"""The conversation of a prompt: repeated questions, stale answers, lines that only Feishu has."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from bot.answering.window import stale_answers, with_heard, without_repeats
from bot.listening.transcript import MessageRecord
from memory.models import OpenTurn, StoredMessage
from tests.support.rows import every_row

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lines(*said: str) -> list[StoredMessage]:
    """`Alice: text`; `Alice< text` is an answer to Alice."""
    found = []
    for number, line in enumerate(said):
        author, mark, text = re.split("([:<]) ", line, maxsplit=1)
        found.append(
            StoredMessage(
                number,
                "assistant" if mark == "<" else "user",
                text,
                author,
                author,
                f"om_{number}",
                (BEGAN + timedelta(minutes=number)).isoformat(),
            )
        )
    return found


def shown(*said: str) -> list[str]:
    return [one.content for one in without_repeats(lines(*said))]


def test_the_question_to_answer_stands_once_however_often_it_was_asked() -> None:
    assert shown(
        "Bob: when is the gala?", "Bob< 3 March", "Alice: it moved to 10 March", "Alice< ok",
        "Bob: When is the gala", "Dana: tea?", "Bob< on 3 March", "Bob: when is the gala?",
    ) == ["it moved to 10 March", "ok", "tea?", "when is the gala?"]  # fmt: skip


def test_another_question_stands_once_with_its_first_answer() -> None:
    assert shown(
        "Bob: 晚会是哪天？", "Bob< 3月3号", "Dana: 晚会是哪天？", "Dana< 三号", "Alice: 订蛋糕",
        "Alice< 好的", "Bob: 谁订蛋糕？",
    ) == ["晚会是哪天？", "3月3号", "订蛋糕", "好的", "谁订蛋糕？"]  # fmt: skip


def test_what_was_asked_and_answered_last_stays_for_whoever_asks_back() -> None:
    said = (
        "Bob: 晚会是哪天？", "Bob< 3月3号", "Alice: 我们要订蛋糕", "Alice< 好的",
        "Bob: 晚会是哪天？", "Bob< 3月3号", "Bob: 你确定吗？",
    )  # fmt: skip
    assert len(shown(*said)) == len(said)


def test_the_same_answer_again_is_not_told_to_another_person_after_the_matter_was_spoken_of() -> (
    None
):
    asked = ("Bob: locker pin?", "Bob< It is 5512.")
    spoken = "Emil: they reset the locker, 8830 now"

    assert shown(*asked, spoken, *asked, "Dana: parcel locker pin?") == [
        "locker pin?",
        "It is 5512.",
        "they reset the locker, 8830 now",
        "parcel locker pin?",
    ]
    stays = [
        (*asked, spoken, *asked, "Bob: are you sure?"),
        (*asked, spoken, asked[0], "Bob< It is 8830.", "Dana: are you sure?"),
        (*asked, "Emil: tea?", *asked, "Dana: are you sure?"),
    ]
    assert [len(shown(*said)) for said in stays] == [len(said) for said in stays]


def test_a_question_that_somebody_answered_in_few_words_stays_with_them() -> None:
    asked = ["Bob: who waters the plants?", "Bob< I don't know."]

    assert shown(*asked, "Emil: Leonie does", "Bob: who waters the plants?") == [
        "who waters the plants?",
        "I don't know.",
        "Leonie does",
        "who waters the plants?",
    ]
    assert shown(*asked, "Emil: Leonie waters them", "Bob: who waters the plants?") == [
        "Leonie waters them",
        "who waters the plants?",
    ]


def test_a_statement_that_is_made_again_stays() -> None:
    said = (
        "Alice: lunch is at noon",
        "Bob: lunch is at one",
        "Alice: lunch is at noon",
        "Bob: so?",
    )
    assert len(shown(*said)) == 4


@every_row(
    ("said", "stale"),
    [
        (("the gala is on 3 March", "3 March", "the gala is on 10 March", "On 3 March."), {1, 3}),
        (("the gala is on 3 March", "3 March", "the gala is on 10 March", "On 10 March."), {1}),
        (("the gala is on 3 March", "Noted.", "the fair is on 10 March", "On 3 March."), set()),
        (("周会在3月3号", "周会在3月3号。", "周会改到3月10号", "好的。"), {1}),
    ],
)  # fmt: skip
def test_an_answer_that_repeats_what_was_replaced_is_stale(
    said: tuple[str, ...], stale: set[int]
) -> None:
    told = lines(*(f"Alice{':<'[n % 2]} {text}" for n, text in enumerate(said)))

    assert stale_answers(told) == stale


def test_a_line_that_the_memory_has_is_not_told_twice() -> None:
    history = tuple(lines("Alice: tea?", "Alice< yes", "Bob: and now?"))
    at = int((BEGAN + timedelta(seconds=30)).timestamp() * 1000)
    heard = [
        MessageRecord("Alice", "Alice", "tea?", at, False, "om_0"),
        MessageRecord("Memo", "ou_memo", "yes", at, True, "om_other", ours=True),
        MessageRecord("Dana", "Dana", "milk for me", at, False, "om_9"),
    ]

    opened = with_heard(OpenTurn("open", 1, history=history), heard)

    assert [one.content for one in opened.history] == ["tea?", "milk for me", "yes", "and now?"]
