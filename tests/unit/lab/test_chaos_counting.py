"""The counting of an experiment: what is lost, doubled, or other than stored."""

from __future__ import annotations

from typing import Any

from lab.chaos.counting import Count, CountedQuestion
from tests.support.rows import every_row

BOT = "ou_bot"
ASKED = CountedQuestion("om_q", "oc_1")


def said(message_id: str, root_id: str = "", *, text: str = "", at_ms: int = 0) -> dict[str, Any]:
    card = {"body": {"elements": [{"element_id": "answer", "content": text}]}}
    who = BOT if root_id else "ou_alice"
    return {"message_id": message_id, "root_id": root_id, "sender": {"open_id": who},
            "card": card if root_id else None, "text": text, "create_ms": at_ms}  # fmt: skip


QUESTION = said("om_q", at_ms=1000)
CARD = said("om_a", "om_q", text="hello", at_ms=3500)
STORED = ("sent", "hello", "om_a")


def counted(
    messages: list[dict[str, Any]], rows: list[Any], asked: CountedQuestion = ASKED
) -> Count:
    count = Count("x", BOT)
    count.add(asked, [QUESTION, *messages], rows, 1000)
    return count


def test_one_card_as_stored_is_clean_and_its_silence_is_measured() -> None:
    count = counted([CARD], [STORED])
    assert count.is_clean
    assert (count.pushed, count.longest_s) == (1, 2.5)


@every_row(
    ("messages", "rows", "found"),
    [
        ([], [], (1, 0, 0)),
        ([], [("pending", "hello", None)], (1, 0, 0)),
        ([said("om_b", "om_other", text="hello")], [], (1, 0, 0)),
        ([CARD, said("om_b", "om_q", text="hello")], [STORED], (0, 1, 1)),
        ([CARD], [("sent", "hello ", "om_a")], (0, 0, 1)),
        ([CARD], [("sent", "hello", "om_b")], (0, 0, 1)),
        ([CARD], [], (0, 0, 1)),
    ],
)
def test_what_is_wrong_is_counted(
    messages: list[dict[str, Any]], rows: list[Any], found: tuple[int, int, int]
) -> None:
    count = counted(messages, rows)
    assert (count.lost, count.doubled, count.mismatched) == found
    assert not count.is_clean


def test_an_answer_of_two_cards_is_not_doubled() -> None:
    second = said("om_b", "om_q", text="more")
    assert counted([CARD, second], [STORED, ("sent", "more", "om_b")]).is_clean
