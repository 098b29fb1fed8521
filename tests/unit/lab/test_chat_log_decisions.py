"""Annotated chat logs as decisions of the people in them."""

from lab.corpora.logs import ChatLog, links_of, spoken
from lab.evaluate.listening import DecisionScore, rows_of, rule_answers, score

LOG = """[10:00] <ann> how do I mount a disk?
=== zed has joined #ubuntu
[10:01] <bob> ann: with mount /dev/sdb1 /mnt
[10:01] <ann> and for a stick?
[10:02] <cyd> bob: are you there
[10:02] <bob> the same""".split("\n")
LINKS = ("0 0 -", "0 2 -", "2 3 -", "4 4 -", "3 5 -")
CHAT = ChatLog("log", spoken(LOG), links_of(LINKS))


def test_a_row_is_a_line_that_names_nobody_and_one_person_who_spoke_lately():
    rows = list(rows_of(CHAT))
    seen = [(row.message.text, row.person, row.spoke_last, row.answered) for row in rows]
    assert seen == [
        ("and for a stick?", "bob", True, True),
        ("the same", "ann", False, False),
        ("the same", "cyd", True, False),
    ]


def test_the_rules_decide_as_that_person():
    rows = list(rows_of(CHAT))
    assert [rule_answers(row, 60_000) for row in rows] == [True, False, False]


def test_the_score_averages_both_classes():
    assert score([True, False, True], [True, False, False]) == DecisionScore(
        0.5, 1.0, (2 / 3 + 2 / 3) / 2
    )
    assert score([False, False], [True, False]) == DecisionScore(0.0, 0.0, (0 + 2 / 3) / 2)
