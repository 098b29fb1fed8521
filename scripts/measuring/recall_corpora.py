"""Evaluation data for recall: who said what when, what is asked later, where the answer stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

_ZONE = ZoneInfo("Asia/Shanghai")  # of the Chinese corpus
_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and its answer; `answer` is "" where only one person speaks. `at` is aware."""

    id: str
    question: str
    answer: str
    speaker: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """Asked in `conversation` the day after its last turn; `evidence` are ids of its turns."""

    conversation: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    conversations: Mapping[str, tuple[Turn, ...]]
    questions: tuple[Question, ...]

    def asked_at(self, conversation: str) -> datetime:
        """When its questions are asked: the day after its last turn."""
        return self.conversations[conversation][-1].at + timedelta(days=1)


def load_memory_bank(folder: Path) -> Corpus:
    """`memory_bank_cn.json` and `memory_bank_cn_evidence.json`; a turn's id is `date.index`."""
    people = json.loads((folder / "memory_bank_cn.json").read_text(encoding="utf-8"))
    asked = json.loads((folder / "memory_bank_cn_evidence.json").read_text(encoding="utf-8"))
    return Corpus(
        name="MemoryBank-cn",
        conversations={name: tuple(_days(name, person)) for name, person in people.items()},
        questions=tuple(Question(q["user"], q["q"], frozenset(q["ev"])) for q in asked),
    )


def _days(name: str, person: Mapping[str, Any]) -> Iterator[Turn]:
    for day, exchanges in sorted(person["history"].items()):
        noon = datetime.combine(datetime.fromisoformat(day), time(12), _ZONE)
        for index, exchange in enumerate(exchanges):
            at = noon + timedelta(minutes=index)
            yield Turn(f"{day}.{index}", exchange["query"], exchange["response"], name, at)


def load_locomo(file: Path) -> Corpus:
    """LoCoMo's published format: samples with `session_N`, `session_N_date_time` and `qa`.

    An utterance is a turn, its picture's caption is part of it; questions without evidence and
    evidence that names no utterance are left out.
    """
    samples = json.loads(file.read_text(encoding="utf-8"))
    conversations: dict[str, tuple[Turn, ...]] = {}
    questions: list[Question] = []
    for number, sample in enumerate(samples):
        name = str(sample.get("sample_id", number))
        conversations[name] = tuple(_sessions(sample["conversation"]))
        known = {turn.id for turn in conversations[name]}
        for qa in sample["qa"]:
            evidence = frozenset(_EVIDENCE.findall(" ".join(qa.get("evidence") or ()))) & known
            if evidence:
                questions.append(Question(name, qa["question"], evidence))
    return Corpus("LoCoMo", conversations, tuple(questions))


def _sessions(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(
        int(m[1]) for key in conversation if (m := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        start = _session_time(conversation[f"session_{number}_date_time"])
        for index, said in enumerate(conversation[f"session_{number}"]):
            text = " ".join(filter(None, (said["text"], said.get("blip_caption"))))
            at = start + timedelta(seconds=index)
            yield Turn(said["dia_id"], text, "", said["speaker"], at)


def _session_time(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
