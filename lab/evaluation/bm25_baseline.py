"""Plain BM25 beside recall: bm25s over turns, Chinese cut into words by jieba."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.evaluation.recall_asking import Found, mean_found
from lab.evaluation.recall_corpora import Corpus, CorpusTurn

_WORD = re.compile(r"[\u3400-\u9fff]+|[0-9a-z\u00c0-\u024f]+")


def found_by_bm25(corpus: Corpus, ks: Sequence[int]) -> tuple[Found, dict[str, Found]]:
    """The share of the evidence among the first k turns of a question's conversation, by k: of all
    questions, and of each kind."""
    shares: list[tuple[str, Found]] = []
    for name, turns in corpus.conversations.items():
        asked = [question for question in corpus.questions if question.conversation == name]
        if not asked:
            continue
        ranked = rankings(turns, [question.text for question in asked], max(ks))
        for question, ranking in zip(asked, ranked, strict=True):
            evidence = question.evidence
            by_k = {k: len(evidence.intersection(ranking[:k])) / len(evidence) for k in ks}
            shares.append((question.kind, by_k))
    kinds = sorted({kind for kind, _ in shares} - {""})
    return mean_found([one for _, one in shares]), {
        kind: mean_found([one for its, one in shares if its == kind]) for kind in kinds
    }


def rankings(turns: Sequence[CorpusTurn], questions: Sequence[str], k: int) -> list[list[str]]:
    """For each question the ids of the best turns."""
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
