"""Reading evaluation data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from lab.evaluation.recall_corpora import Question, load_locomo, load_memory_bank

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


def test_a_memory_bank_exchange_is_a_turn_named_by_its_day_and_index(tmp_path: Path) -> None:
    history = {
        "2023-05-02": [{"query": "Q3", "response": "A3"}],
        "2023-05-01": [{"query": "Q1", "response": "A1"}, {"query": "Q2", "response": "A2"}],
    }
    (tmp_path / "memory_bank_cn.json").write_text(json.dumps({"王峰": {"history": history}}))
    (tmp_path / "memory_bank_cn_evidence.json").write_text(
        json.dumps([{"user": "王峰", "q": "?", "ev": ["2023-05-01.1"]}])
    )

    corpus = load_memory_bank(tmp_path)

    turns = corpus.conversations["王峰"]
    assert [turn.id for turn in turns] == ["2023-05-01.0", "2023-05-01.1", "2023-05-02.0"]
    assert (turns[1].question, turns[1].answer) == ("Q2", "A2")
    assert corpus.questions == (Question("王峰", "?", frozenset({"2023-05-01.1"})),)
    assert corpus.asked_at("王峰").date().isoformat() == "2023-05-03"
