"""Recall of an earlier version in the same run: its SQL and its `memory`, from a checkout of it."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.benchmark.checkouts import Checkout
from lab.evaluation.databases import fresh_database
from lab.evaluation.recall_asking import (
    PromptShare,
    RecallLatency,
    RecallReport,
    Telling,
    evaluate,
    store,
)
from lab.evaluation.recall_corpora import Corpus

_ROOT = Path(__file__).parents[2]
_TOLD = 5  # turns, and so many characters of a question and of an answer
_QUESTION, _ANSWER = 600, 300


def evaluate_before(
    checkout: Checkout, server: str, corpora: Sequence[Corpus], ks: Sequence[int]
) -> list[RecallReport]:
    """The reports of `corpora`, by words and with dates, of the version in `checkout`.

    It tells the first five turns, as versions did that had no `worth_telling`. Raises
    CalledProcessError where the version cannot be asked.
    """
    done = subprocess.run(
        [checkout.python, "-P", "-m", __name__],
        input=pickle.dumps((server, tuple(corpora), tuple(ks))),
        stdout=subprocess.PIPE,
        check=True,
        cwd=checkout.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (checkout.root, _ROOT)))},
    )
    return [_report(one) for one in json.loads(done.stdout)]


def _report(one: dict[str, Any]) -> RecallReport:
    kinds = {kind: _by_k(found) for kind, found in one["kinds"].items()}
    return RecallReport(
        **one
        | {
            "found": _by_k(one["found"]),
            "ms": RecallLatency(**one["ms"]),
            "prompt": PromptShare(**one["prompt"]),
            "kinds": kinds,
        }
    )


def _by_k(found: dict[str, float]) -> dict[int, float]:
    return {int(k): share for k, share in found.items()}


def _main() -> None:
    """Runs with the earlier version's packages first on the path."""
    server, corpora, ks = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process above)
    telling = Telling(
        _TOLD,
        lambda found: found[:_TOLD],
        lambda one: f"{one.question[:_QUESTION]}\n{one.answer[:_ANSWER]}",
    )
    reports = []
    for corpus in corpora:
        url = fresh_database(server, "before")
        store(url, corpus)
        reports.append(asdict(asyncio.run(evaluate(url, corpus, ks, telling))))
    json.dump(reports, sys.stdout)


if __name__ == "__main__":
    _main()
