"""The project's own memory bank: questions that share no telling word with what they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from lab.evaluation.recall_corpora import Corpus, CorpusTurn, Question

BANK = Path(__file__).parents[2] / "tests" / "data" / "recall" / "in_other_words.txt"
_ZONE = ZoneInfo("Asia/Shanghai")
_START = datetime(2026, 1, 1, 9, tzinfo=_ZONE)
_BETWEEN = timedelta(minutes=10)
_TURN = re.compile(r"(?:\[(\w+)\] )?(.*)")
_ASKED = re.compile(r"\?(words|across) ([\w,]+): (.*)")
_ACROSS = {"zh": "English about Chinese", "en": "Chinese about English"}
_WORDS = {"zh": "Chinese", "en": "English"}


@dataclass(slots=True)
class _Conversation:
    name: str
    language: str
    turns: list[CorpusTurn] = field(default_factory=list)
    at: datetime = _START

    def add(self, line: str) -> None:
        said, _, answer = line.partition(" => ")
        named = _TURN.fullmatch(said)
        name, question = named.groups() if named else (None, said)
        turn = name or str(len(self.turns))
        self.turns.append(CorpusTurn(turn, question, answer, self.name, self.at))
        self.at += _BETWEEN


def load_bank(file: Path = BANK) -> tuple[Corpus, Corpus]:
    """The questions in other words and those across languages; both have the whole memory.

    Raises ValueError for evidence that names no turn.
    """
    conversations: list[_Conversation] = []
    asked: dict[str, list[Question]] = {"words": [], "across": []}
    for line in _lines(file):
        if line.startswith("== "):
            _, name, language = line.split(" ")
            conversations.append(_Conversation(name, language))
        elif line.startswith("@ "):
            day = datetime.fromisoformat(line[2:])
            conversations[-1].at = day.replace(hour=9, tzinfo=_ZONE)
        elif found := _ASKED.fullmatch(line):
            here = conversations[-1]
            kind = (_ACROSS if found[1] == "across" else _WORDS)[here.language]
            evidence = frozenset(found[2].split(","))
            if unknown := evidence - {turn.id for turn in here.turns}:
                raise ValueError(f"no turn of {here.name} is called {sorted(unknown)!r}")
            asked[found[1]].append(Question(here.name, found[3], evidence, kind))
        else:
            conversations[-1].add(line)
    memory = {one.name: tuple(one.turns) for one in conversations}
    return (
        Corpus("in other words", memory, tuple(asked["words"])),
        Corpus("across languages", memory, tuple(asked["across"])),
    )


def _lines(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line
