"""What is embedded of a text, how a vector travels, and the stand-in's vectors."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.embeddings import build_embedder
from bot.settings import SettingsError, load
from memory.tables.derived import text_to_embed, vector_text
from sandbox.model.model_embeddings import BadEmbeddingRequest, embedding, embeddings
from tests.support.rows import every_row


@every_row(
    ("text", "embedded"),
    [
        ("我们周五上线", "我们周五上线"),
        ("<at id=ou_1></at> we launch on Friday", "we launch on Friday"),
        ('<at user_id="ou_1">Tom</at> launch', "launch"),
        ("@Memo @小明 what is the plan", "what is the plan"),
        ("write to bob@example.com", "write to bob@example.com"),
        ("@小明你好", "@小明你好"),
        ("<at id=ou_1></at>", "<at id=ou_1></at>"),
        ("x" * 9000, "x" * 4000),
    ],
)
def test_names_in_front_and_at_tags_are_not_embedded(text: str, embedded: str) -> None:
    assert text_to_embed(text) == embedded


@given(st.text())
def test_something_is_always_left_of_a_text_that_says_something(text: str) -> None:
    assert bool(text_to_embed(text)) == bool(text.strip())


def test_hostile_texts_take_no_time() -> None:
    for text in ("<at " * 50_000, "@a " * 50_000, "<at id=x>" * 20_000, "@" * 100_000):
        assert len(text_to_embed(text)) <= 4000


def test_a_vector_travels_as_a_list_of_numbers() -> None:
    assert json.loads(vector_text([0.25, -1, 3e-9])) == [0.25, -1, 3e-9]


@every_row("vector", [[], [0.0, 0.0], [1.0, math.nan], [math.inf]])
def test_a_vector_that_points_nowhere_does_not_travel(vector: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        vector_text(vector)


def test_the_stand_in_finds_texts_alike_that_share_spelling() -> None:
    hiking, hiked, tea = map(embedding, ("we go hiking", "we went hiking", "绿茶"))

    assert _cosine(hiking, hiked) > 0.6 > 0.2 > abs(_cosine(hiking, tea))
    assert _cosine(hiking, hiking) == pytest.approx(1)


@every_row(
    "body",
    [
        [],
        {"input": []},
        {"input": [""]},
        {"input": [1]},
        {"input": "a", "dimensions": 0},
        {"input": ["a"] * 2049},
    ],
)
def test_the_stand_in_refuses_what_the_api_refuses(body: object) -> None:
    with pytest.raises(BadEmbeddingRequest):
        embeddings(body, "m")


def _cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EMBEDDING_MODEL", "EMBEDDING_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_without_an_embedding_model_there_is_none(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("OPENAI_API_KEY", "key")

    assert build_embedder(load()) is None


def test_an_embedding_model_needs_an_endpoint(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("EMBEDDING_MODEL", "m")

    with pytest.raises(SettingsError, match="EMBEDDING_BASE_URL"):
        load()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("own_endpoint", "own_key", "used"),
    [("", "", "sk-chat"), ("http://127.0.0.1:1/v1", "", "none"), ("http://127.0.0.1:1", "k", "k")],
)
async def test_the_key_of_the_chat_model_is_not_given_to_another_endpoint(
    environment: pytest.MonkeyPatch, own_endpoint: str, own_key: str, used: str
) -> None:
    environment.setenv("EMBEDDING_MODEL", "m")
    environment.setenv("OPENAI_API_KEY", "sk-chat")
    environment.setenv("EMBEDDING_BASE_URL", own_endpoint)
    environment.setenv("EMBEDDING_API_KEY", own_key)

    embedder = build_embedder(load())

    assert embedder is not None
    assert embedder._endpoint._key == used
    await embedder.close()


def test_vectors_of_another_length_count_as_another_model(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("EMBEDDING_MODEL", "m")
    environment.setenv("EMBEDDING_BASE_URL", "http://127.0.0.1:1/v1")
    environment.setenv("EMBEDDING_DIMENSIONS", "512")

    embedder = build_embedder(load())

    assert embedder is not None
    assert embedder.name == "m/512"
