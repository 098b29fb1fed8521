"""What is meant by “forget …”."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.features.own_memory.matching import match, names_something
from bot.text.spelling import folded_text

DATA = Path(__file__).parents[3] / "data" / "forget_in_words.jsonl"
TWINS = DATA.with_name("survivors.jsonl")
CASES = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{one['kind']}: {one['ask']}|{one['text']}" for one in CASES]
)
def test_a_description_finds_what_it_means_and_no_bystander(case: dict[str, str]) -> None:
    assert (match(case["ask"], case["text"]) or "none") == case["match"]


def test_folding_twice_changes_nothing() -> None:
    for case in CASES:
        assert folded_text(folded_text(case["text"])) == folded_text(case["text"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("alice@acme.io", "Her address is ALICE＠acme.io."),
        ("alice at acme dot io", "alice@acme.io"),
        ("a-l-i-c-e", "Alice has the key"),
        ("the gym code", "gym_code 4471"),
        ("about the gym codes", "The code of the gym is 4471"),
        ("138 0013 8000", "call 13800138000"),
        ("四四七一", "the code is 4471"),
        ("號碼4471", "号码是4471"),
        ("健身房密码", "健身房密码 4471"),
        ("everything about Halden", "vendor Halden charges 40 euros"),
        ("/srv/data/keys", "look into /srv/data/keys."),
    ],
)
def test_it_is_found_in_any_spelling(words: str, text: str) -> None:
    assert match(words, text) == "sure"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("alice@acme.io", "alice.smith@acme.io has signed"),
        ("bob@example.com NDA", "bob@example.com.uk has the NDA"),
        ("4471", "the code is 44712"),
        ("/srv/data", "look into /srv/data/keys"),
        ("the gym", "the gymnast won"),
    ],
)
def test_an_identifier_matches_as_a_whole_only(words: str, text: str) -> None:
    assert not match(words, text)


def test_half_of_the_words_is_not_sure() -> None:
    assert match("the gym code in Porto", "the gym code is 4471") == "likely"
    assert not match("the code of the gym in Porto", "the code review")


@pytest.mark.parametrize("words", ["", "that", "about it", "这个", "关于我的"])
def test_words_that_name_nothing_find_nothing(words: str) -> None:
    assert not names_something(words)


def test_no_near_twin_is_deleted_unless_it_is_chosen() -> None:
    pairs = [json.loads(line) for line in TWINS.read_text("utf-8").splitlines()]
    assert [one for one in pairs if match(one["withdrawn"], one["withdrawn"]) != "sure"] == []
    assert [one for one in pairs if match(one["withdrawn"], one["stays"]) == "sure"] == []


@pytest.mark.parametrize(
    ("words", "text", "sure"),
    [
        ("Priya works from Lisbon", "Priya's husband works from Lisbon", False),
        ("Priya works from Lisbon", "Priya works from Lisbon on Fridays", True),
        ("my brother is a nurse", "my brother's wife is a nurse", False),
        ("my brother is a nurse", "My brother is a nurse!", True),
        ("the contract is with Orbis", "the contract draft is with Orbis", False),
        ("the contract is with Orbis", "By the way, the contract is with Orbis", True),
        ("release R7 is on Monday", "release R8 is on Monday, a week after release R7", False),
        ("release R7 is on Monday", "release r7 is on Monday", True),
        ("that the router password is basil", "the router password is basil", True),
        ("Mira badge code", "Mira's badge code is 4471", True),
    ],
)
def test_words_about_another_thing_leave_a_doubt(words: str, text: str, sure: bool) -> None:
    assert (match(words, text) == "sure") == sure
