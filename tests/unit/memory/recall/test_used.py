"""The passages that an answer was made with: those that share words which the question lacks."""

from __future__ import annotations

from dataclasses import replace

from memory.recall.passages import Passage
from memory.recall.selection import answer_sources, used_passages
from tests.support.rows import every_row

TOLD = "our launch is on 3 March, Bob has the keys"


def passage(question: str, answer: str = "I will remember that.") -> Passage:
    at = "2026-11-01T09:00:00+00:00"
    return Passage("om_1", 1, "feishu:oc_1:om_1", "oc_1", at, "ou_a", "Alice", question, answer)


@every_row(
    ("question", "answer", "given"),
    [
        ("when is our launch?", "It is on 3 March.", passage(TOLD)),
        ("who has the keys?", "Bob.", passage(TOLD)),
        ("which room?", "Room 5", passage("the workshop is in room 5")),
        (
            "when is our launch?",
            "On 3 March.",
            passage("when do we launch?", "On 3 March, I heard."),
        ),
        ("what did they decide?", "They have moved it.", passage("the fair was moved to June")),
        ("发布会是哪天？", "三月三日。", passage("我们的发布会定在三月三日")),
    ],
)
def test_what_the_answer_says_was_said_there(question: str, answer: str, given: Passage) -> None:
    assert used_passages(answer, [given], question=question) == (given,)


@every_row(
    ("question", "answer", "given"),
    [
        ("remind me in 2 minutes: stretch", "In 2 minutes I remind you: stretch", passage(TOLD)),
        ("when is our launch?", "Nobody has told me when your launch is.", passage(TOLD)),
        (
            "and the canteen?",
            "I only know a few commands.",
            passage("hi", "I only know a few commands."),
        ),
        (
            "is the canteen open?",
            "It opens at eleven. Nobody of the kitchen answers, and Carol has gone home by now.",
            passage("Carol likes tea"),
        ),
        ("发布会是哪天？", "没有人告诉过我发布会的日子。", passage("我们的发布会定在三月三日")),
    ],
)
def test_what_it_has_from_elsewhere_is_no_source(
    question: str, answer: str, given: Passage
) -> None:
    assert used_passages(answer, [given], question=question) == ()


def imported(name: str, words: str) -> Passage:
    return replace(passage(words, ""), turn_id=f"import:{name}", source="import", feishu_id=name)


ROOM = imported("om_2", "I booked the back room of Trattoria Rosa for 7 pm")
ALLERGIES = imported("om_3", "somebody is allergic to nuts")


def test_of_imported_messages_that_were_found_an_answer_names_those_it_uses() -> None:
    answer = "Maria booked the back room of Trattoria Rosa."
    own = passage("lunch is at noon")

    named = answer_sources(answer, (), (ALLERGIES, ROOM, own), question="where do we have dinner?")

    assert named == [ROOM, own] or named == [own, ROOM]


def test_an_answer_that_uses_none_of_them_by_its_words_names_all() -> None:
    named = answer_sources("No idea.", (), (ROOM, ALLERGIES), question="where do we have dinner?")

    assert len(named) == 2
