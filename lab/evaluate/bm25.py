"""Plain BM25 beside recall: bm25s over turns, Chinese cut into words by jieba."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from lab.corpora.recall import Corpus, CorpusTurn

Found = dict[int, float]
"""The share of the evidence among the first k, by k."""
_WORD = re.compile(r"[\u3400-\u9fff]+|[0-9a-z\u00c0-\u024f]+")


def found_by_bm25(corpus: Corpus, ks: Sequence[int]) -> Found:
    """Returns the share of the evidence among the first k turns of a question's conversation."""
    shares: list[Found] = []
    for name, turns in corpus.conversations.items():
        asked = [question for question in corpus.questions if question.conversation == name]
        if not asked:
            continue
        ranked = rankings(turns, [question.text for question in asked], max(ks))
        for question, ranking in zip(asked, ranked, strict=True):
            evidence = question.evidence
            shares.append({k: len(evidence.intersection(ranking[:k])) / len(evidence) for k in ks})
    return mean_found(shares)


def mean_found(shares: Sequence[Found]) -> Found:
    """Averages at least one."""
    return {k: statistics.fmean(one[k] for one in shares) for k in shares[0]}


def rankings(turns: Sequence[CorpusTurn], questions: Sequence[str], k: int) -> list[list[str]]:
    """Returns the ids of the best turns for each question."""
    said = [_words(f"{turn.speaker} {turn.question} {turn.answer}") for turn in turns]
    import bm25s  # slow to import, and rarely needed

    index = bm25s.BM25()
    index.index(said, show_progress=False)
    wanted = [_words(text) for text in questions]
    found, scores = index.retrieve(wanted, k=min(k, len(turns)), show_progress=False)
    return [
        [turns[int(number)].id for number, score in zip(*row, strict=True) if score > 0]
        for row in zip(found, scores, strict=True)
    ]


def _words(text: str) -> list[str]:
    import jieba  # as slow

    words: list[str] = []
    for run in _WORD.findall(text.lower()):
        words += jieba.lcut(run) if run[0] >= "\u3400" else [run]
    return words or [""]
