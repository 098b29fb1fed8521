"""Learns the weights that decide whom a message is for, and which message answers which.

Examples:
  python -m lab.learning addressees tests/data/*.jsonl tests/data/*.talk > new.json
                                        for bot/listening/addressee_weights.json
  python -m lab.learning links data/train > new.json
                                        for bot/listening/link_weights.json, about five minutes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.corpora.logs import logs_in
from lab.corpora.talk import labelled_rows
from lab.learning import addressee_weights, link_weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the learned file; 2 if nothing can be read."""
    options = argparse.ArgumentParser(
        "python -m lab.learning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("what", choices=("addressees", "links"))
    options.add_argument("files", type=Path, nargs="+", metavar="FILE")
    given = options.parse_args(arguments)
    learned = _addressees if given.what == "addressees" else _links
    try:
        print(learned(given.files))
    except (OSError, ValueError) as exc:
        print(f"cannot be read: {exc}", file=sys.stderr)
        return 2
    return 0


def _addressees(files: Sequence[Path]) -> str:
    """Learns nothing from rows that are held out, nor from rows of other kinds."""
    rows = [row for file in files for row in labelled_rows(file)]
    labelled = [row for row in rows if {"context", "expect", "mentions"} <= row.keys()]
    learned_from = [row for row in labelled if row.get("split") != "held"]
    return addressee_weights.file_of(addressee_weights.learn(learned_from, _say))


def _links(files: Sequence[Path]) -> str:
    logs = [log for file in files for log in logs_in(file)]
    return link_weights.file_of(link_weights.learn(logs, _say))


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
