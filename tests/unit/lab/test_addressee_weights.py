"""The weights of what is for the bot are learned from labelled messages, and are what is in use."""

from __future__ import annotations

import json
from pathlib import Path

from bot.listening.cues import traits
from bot.listening.reply_links import ADDRESSEE, AddresseeWeights
from lab.corpora.talk import rows_of_talk
from lab.evaluate.listening import exchange_of

DATA = Path(__file__).parents[2] / "data"


def labelled(text: str, expect: str, number: int) -> dict[str, object]:
    asked = {"author": "Ann", "is_bot": False, "text": f"@Memo how is it? {number}"}
    said = {"author": "Memo", "is_bot": True, "text": "@Ann It is fine."}
    rest = {"author": "Ann", "mentions": [], "seconds_since_bot": 9}
    return {"id": "n", "context": [asked, said], "text": text, "expect": expect, **rest}


def test_what_tells_messages_apart_gets_the_weight() -> None:
    rows = [labelled("why?", "respond", n) for n in range(20)]
    rows += [labelled("lunch", "silent", n) for n in range(20)]
    told: list[str] = []

    from lab.learning.addressee_weights import learn  # slow to import

    weights = learn(rows, told.append)

    assert weights.traits["question"][0] > 0 > weights.traits["small talk"][0]
    assert weights.words["why"] > 0 > weights.words["lunch"]
    assert told == [
        "40 messages of 20 talks, each talk judged without it:",
        "precision 1.000, recall 1.000",
    ]


def test_the_file_it_writes_is_what_was_learned() -> None:
    learned = AddresseeWeights({"heard": (1.0, 0.504, -0.25, 0.0), "you": (0.0,)}, {"why": 0.5})

    from lab.learning.addressee_weights import file_of  # slow to import

    written = json.loads(file_of(learned))

    assert written["traits"] == {"heard": [1.0, 0.5, -0.25, 0.0]}
    assert written["words"] == {"why": 0.5}


def test_each_weight_is_of_a_trait_that_messages_have() -> None:
    files = (*DATA.glob("*groups.jsonl"), DATA / "group_talk.jsonl", DATA / "unaddressed.jsonl")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    talk = (DATA / "group_talk.talk").read_text(encoding="utf-8")
    rows = [*map(json.loads, lines), *rows_of_talk(talk)]
    seen = {trait for row in rows for trait in traits(*exchange_of(row))}

    assert set(ADDRESSEE.traits) <= seen
