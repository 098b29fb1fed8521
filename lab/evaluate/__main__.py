"""Evaluates recall, truth, forgetting, listening and offers on labelled data, in one table.

It fetches nothing: the project's own questions, scenes and messages come with it, and public sets
are read where their paths are given. Databases are embedded and thrown away.

Examples:
  scripts/evaluate                           everything that comes with the project
  scripts/evaluate recall --embeddings       with vectors too
  scripts/evaluate recall --locomo locomo10.json --realtalk data --memdaily DIR
  scripts/evaluate past --messages 100000    a longer imported past
  scripts/evaluate listening --labelled FILE.jsonl FILE.talk

recall: the share of the annotated evidence among the first k hits, asked through the SQL function
as the person concerned. past: the same in the imported past of the sandbox's group. truth: the
newest statement of several people reaches the prompt. forgetting: “forget …” means the right items.
listening: when the bot answers. offers: private offers that help. The exit status is 1 if something
could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from bot.agents.embeddings import Embedder
from bot.settings import SettingsError
from lab.corpora import recall as corpora
from lab.corpora.recall import Corpus, load_bank
from lab.corpora.talk import labelled_rows
from lab.doubles.processes import ROOT, postmaster, stop_server
from lab.evaluate import listening, offers, past, recall, scenes
from lab.figures import FailedMeasure, Figure, Results, machine
from memory import migrations
from memory.backends import embedded
from scripts.operating.arguments import run_script
from scripts.operating.console import quiet

PARTS = ("recall", "past", "truth", "forgetting", "listening", "offers")
_DATA = ROOT / "tests" / "data"
_LABELLED = [
    _DATA / name
    for name in ("followups.jsonl", "unaddressed.jsonl", "unseen_groups.jsonl", "unseen_talk.talk")
]
_PUBLIC: dict[str, tuple[Callable[[Path], Corpus], str]] = {
    "locomo": (corpora.load_locomo, "LoCoMo's JSON file"),
    "realtalk": (corpora.load_realtalk, "REALTALK's folder data"),
    "memdaily": (corpora.load_memdaily, "MemDaily's questions"),
}


def parser() -> argparse.ArgumentParser:
    """Builds the command line."""
    made = argparse.ArgumentParser(
        prog="evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    for name, (_, help) in _PUBLIC.items():
        add(f"--{name}", type=Path, metavar="PATH", help=help)
    add("--facts", type=Path, metavar="PATH", help="EvoMemBench's Conflict_Resolution.json")
    add("--embeddings", action="store_true", help="recall with vectors, from EMBEDDING_MODEL")
    add("--part", type=int, default=1, metavar="N", help="every Nth conversation of a public set")
    add("--k", type=int, nargs="+", default=[1, 5, 10])
    add("--messages", type=int, default=20_000, help="of the imported past (20,000)")
    add("--labelled", type=Path, nargs="+", default=_LABELLED, metavar="FILE", help="for listening")
    add("--offers", type=Path, default=_DATA / "private_offers.jsonl", metavar="FILE")
    add("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates and prints; 1 if a part could not be evaluated, 2 for wrong use."""
    options = _options(arguments)
    quiet()
    results = Results(conditions=machine())
    with tempfile.TemporaryDirectory(prefix="evaluate-", ignore_cleanup_errors=True) as name:
        evaluation = Evaluation(options, Path(name))
        try:
            for part in options.parts or PARTS:
                print(f"evaluating {part}", file=sys.stderr, flush=True)
                try:
                    results.figures += evaluation.of(part)
                except (OSError, ValueError, SettingsError, ModuleNotFoundError) as exc:
                    results.failed.append(FailedMeasure.by(part, exc))
        finally:
            stop_server(postmaster(Path(name)))
    return results.show(as_json=options.json)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    made = parser()
    options = made.parse_args(arguments)
    if unknown := set(options.parts) - {*PARTS}:
        made.error(f"no part {', '.join(sorted(unknown))}: choose of {', '.join(PARTS)}")
    return options


class Evaluation:
    """The parts, each with a database of its own on one embedded server."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options, self._folder = options, folder

    def of(self, part: str) -> list[Figure]:
        """Evaluates one part. Raises `OSError`, `ValueError` for data that cannot be read."""
        options = self._options
        match part:
            case "recall":
                return asyncio.run(self._recall())
            case "past":
                found = past.evaluate_past(self._database(), options.messages, options.k)
                return asyncio.run(found)
            case "truth":
                return asyncio.run(scenes.truth(self._database()))
            case "forgetting":
                return scenes.forgetting()
            case "listening":
                of_files = [
                    listening.of_labelled(f.name, labelled_rows(f)) for f in options.labelled
                ]
                return [figure for figures in of_files for figure in figures]
            case _:
                cases = offers.load_offer_cases(options.offers)
                made = asyncio.run(offers.offers_made(self._database(), cases))
                return offers.offer_figures(cases, made)

    async def _recall(self) -> list[Figure]:
        options = self._options
        found: list[Figure] = []
        with self._embedder() as embedder:
            for corpus in _corpora(options):
                found += await recall.evaluate_recall(
                    self._database(), corpus, options.k, embedder=embedder, report=_progress
                )
            if embedder:
                await embedder.close()
        return found

    def _embedder(self) -> contextlib.AbstractContextManager[Embedder | None]:
        if self._options.embeddings:
            return recall.running_embedder(self._folder)
        return contextlib.nullcontext()

    def _database(self) -> str:
        """Makes a new migrated database, in place of the last one."""
        server = embedded.start_embedded(self._folder)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("drop database if exists evaluation with (force)")
            connection.execute("create database evaluation")
        url = server.replace("/postgres?", "/evaluation?")
        migrations.apply_migrations(url)
        return url


def _corpora(options: argparse.Namespace) -> list[Corpus]:
    public = [
        load(path).part(options.part)
        for name, (load, _) in _PUBLIC.items()
        if (path := getattr(options, name))
    ]
    if options.facts:
        public += corpora.load_facts(options.facts)
    return [*load_bank(), *public]


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_script(main)
