"""Evaluation data for recall is read as it is published."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from lab.corpora.recall import load_locomo, load_realtalk

LOCOMO = Path(__file__).parents[2] / "data" / "recall" / "locomo_small.json"


def test_a_locomo_utterance_is_a_turn_with_its_time_and_its_picture() -> None:
    turns = load_locomo(LOCOMO).conversations["kite"]

    assert [turn.id for turn in turns] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2"]
    assert turns[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns[3].at == datetime(2023, 6, 3, 0, 5, tzinfo=UTC)
    assert turns[2].question == "Here is the place. a windy beach with tall dunes"


def test_locomo_questions_keep_the_evidence_that_exists() -> None:
    questions = load_locomo(LOCOMO).questions

    assert [question.evidence for question in questions] == [{"D1:1"}, {"D1:3"}, {"D1:1", "D2:1"}]


def test_a_realtalk_utterance_is_a_turn_and_evidence_that_is_not_there_is_left_out(
    tmp_path: Path,
) -> None:
    said = {"speaker": "Ann", "date_time": "29.12.2023, 22:42:04"}
    chat = {
        "session_2": [{**said, "clean_text": "Later", "dia_id": "D2:1"}],
        "session_1": [
            {**said, "clean_text": "I row", "dia_id": "D1:1"},
            {**said, "clean_text": " ", "dia_id": "D1:2"},
        ],
        "session_1_date_time": "29.12.2023, 22:42:04",
        "qa": [
            {"question": "What sport?", "evidence": ["D1:1", "D9:9"]},
            {"question": "Nothing?", "evidence": ["D1:2"]},
        ],
    }
    (tmp_path / "Chat_1_Ann_Bo.json").write_text(json.dumps(chat))

    corpus = load_realtalk(tmp_path)

    [(name, turns)] = corpus.conversations.items()
    assert [(turn.id, turn.question, turn.speaker) for turn in turns] == [
        ("D1:1", "I row", "Ann"),
        ("D2:1", "Later", "Ann"),
    ]
    assert turns[0].at.isoformat() == "2023-12-29T22:42:04+00:00"
    assert [(q.conversation, q.text, q.evidence) for q in corpus.questions] == [
        (name, "What sport?", {"D1:1"})
    ]
