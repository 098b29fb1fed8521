"""The counting of an experiment: what is lost, doubled, or other than stored."""

from __future__ import annotations

from typing import Any

import pytest

from bot.feishu.cards import reply_uuid
from lab.faults.counting import Count, CountedQuestion
from lab.faults.mutating import spoilt
from lab.soak.report import Look, Soaked
from tests.support.deliveries import ENCRYPT_KEY, encrypt
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


def test_in_a_topic_each_question_has_the_card_that_was_sent_for_it() -> None:
    asked = CountedQuestion("om_2", "oc_1", in_topic=True)
    first = CARD | {"uuid": reply_uuid("om_q", 0)}
    second = said("om_b", "om_q", text="hi", at_ms=2000) | {"uuid": reply_uuid("om_2", 0)}

    assert counted([first, second], [("sent", "hi", "om_b")], asked).is_clean
    assert counted([first], [], asked).lost == 1


def test_what_had_to_be_gone_is_not_clean() -> None:
    count = counted([CARD], [STORED])
    count.shown += 1
    assert not count.is_clean


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


def test_what_feishu_ends_is_not_lost_and_an_answer_that_cannot_be_stored_is_no_mismatch() -> None:
    assert counted([], [], CountedQuestion("om_q", "oc_1", may_end=True)).ended == 1
    assert counted([CARD], [], CountedQuestion("om_q", "oc_1", unstored=True)).is_clean


def test_only_a_marked_message_is_spoilt() -> None:
    spoils = {"away": lambda envelope: envelope.clear()}
    plain = f'{{"encrypt": "{encrypt({"text": "hello"})}"}}'.encode()
    marked = f'{{"encrypt": "{encrypt({"text": "spoil=away"})}"}}'.encode()
    assert spoilt(plain, ENCRYPT_KEY, spoils) == plain
    assert spoilt(marked, ENCRYPT_KEY, spoils) != marked


def test_growth_is_of_the_last_third_over_the_second() -> None:
    looks = [
        Look(float(n), 100 * n, {"worker": 100.0 + (n >= 6) * 3}, 10, 90_000 * n) for n in range(9)
    ]
    grown = Soaked(looks=looks).growth()
    assert grown["worker MB"] == pytest.approx(3.0)
    assert grown["connections"] == 0
    assert grown["log bytes a mention"] == 0


def test_what_people_saw_twice_or_otherwise_than_stored_is_counted() -> None:
    answer, other = ("om_1", "hello"), ("om_2", "hello")
    seen = Soaked()
    seen.compare({"q": [answer]}, {"q": [answer]})
    assert seen.is_clean
    seen.compare({"q": [answer, other]}, {"q": [answer]})
    assert (seen.doubled, seen.mismatched) == (1, 1)
    seen.compare({"q": [answer]}, {"q": [("om_1", "hello, you")]})
    assert (seen.doubled, seen.mismatched) == (1, 2)
    assert not seen.is_clean
