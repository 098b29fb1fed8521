"""Evaluation data for recall: dated turns, later questions, and the turns that hold the answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

BANK = Path(__file__).parents[2] / "tests" / "data" / "recall" / "in_other_words.txt"
_ZONE = ZoneInfo("Asia/Shanghai")  # of the Chinese corpora
_EVIDENCE = re.compile(r"D\d+:\d+")
_LOCOMO_KINDS = {
    1: "several turns",
    2: "time",
    3: "world knowledge",
    4: "one turn",
    5: "not answered",
}


@dataclass(frozen=True, slots=True)
class CorpusTurn:
    """One question and its answer; `answer` is "" where only one person speaks. `at` is aware."""

    id: str
    question: str
    answer: str
    speaker: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """Asked in `conversation` the day after its last turn; `evidence` are ids of its turns.

    `kind` is the set's own, or the languages of the question and the memory.
    """

    conversation: str
    text: str
    evidence: frozenset[str]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    name: str
    conversations: Mapping[str, tuple[CorpusTurn, ...]]
    questions: tuple[Question, ...]

    def part(self, every: int) -> Corpus:
        """Takes every Nth conversation with its questions."""
        if every == 1:
            return self
        kept = sorted(self.conversations)[::every]
        return Corpus(
            f"{self.name}, 1/{every}",
            {one: self.conversations[one] for one in kept},
            tuple(question for question in self.questions if question.conversation in kept),
        )

    def elsewhere(self, question: Question) -> str:
        """Returns a conversation of the same kind, so in the same language, without the answer."""
        kind = question.kind
        names = sorted({one.conversation for one in self.questions if one.kind == kind})
        return names[(names.index(question.conversation) + len(names) // 2) % len(names)]

    def asked_at(self, conversation: str) -> datetime:
        """Returns the day after its last turn, when its questions are asked."""
        return self.conversations[conversation][-1].at + timedelta(days=1)


def load_locomo(file: Path) -> Corpus:
    """LoCoMo's published format: samples with `session_N`, `session_N_date_time` and `qa`.

    An utterance is a turn, its picture's caption is part of it; questions without evidence and
    evidence that names no utterance are left out.
    """
    samples = json.loads(file.read_text(encoding="utf-8"))
    conversations: dict[str, tuple[CorpusTurn, ...]] = {}
    questions: list[Question] = []
    for number, sample in enumerate(samples):
        name = str(sample.get("sample_id", number))
        conversations[name] = tuple(_sessions(sample["conversation"]))
        known = {turn.id for turn in conversations[name]}
        for qa in sample["qa"]:
            evidence = frozenset(_EVIDENCE.findall(" ".join(qa.get("evidence") or ()))) & known
            if evidence:
                kind = _LOCOMO_KINDS.get(qa.get("category"), "")
                questions.append(Question(name, qa["question"], evidence, kind))
    return Corpus("LoCoMo", conversations, tuple(questions))


def _sessions(conversation: Mapping[str, Any]) -> Iterator[CorpusTurn]:
    numbers = sorted(
        int(m[1]) for key in conversation if (m := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        start = _session_time(conversation[f"session_{number}_date_time"])
        for index, said in enumerate(conversation[f"session_{number}"]):
            text = " ".join(filter(None, (said["text"], said.get("blip_caption"))))
            at = start + timedelta(seconds=index)
            yield CorpusTurn(said["dia_id"], text, "", said["speaker"], at)


def _session_time(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def load_realtalk(folder: Path) -> Corpus:
    """REALTALK's published `data` folder: `Chat_N_A_B.json` with dated utterances and `qa`."""
    conversations: dict[str, tuple[CorpusTurn, ...]] = {}
    questions: list[Question] = []
    for file in sorted(folder.glob("Chat_*.json")):
        chat = json.loads(file.read_text(encoding="utf-8"))
        turns = tuple(_utterances(chat))
        conversations[file.stem] = turns
        known = {turn.id for turn in turns}
        for qa in chat["qa"]:
            evidence = frozenset(_EVIDENCE.findall(" ".join(qa.get("evidence") or ()))) & known
            if evidence:
                questions.append(Question(file.stem, qa["question"], evidence))
    return Corpus("REALTALK", conversations, tuple(questions))


def _utterances(chat: Mapping[str, Any]) -> Iterator[CorpusTurn]:
    for key in sorted((key for key in chat if re.fullmatch(r"session_\d+", key)), key=_number):
        for said in chat[key]:
            at = datetime.strptime(said["date_time"], "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
            if text := said["clean_text"].strip():
                yield CorpusTurn(said["dia_id"], text, "", said["speaker"], at)


def _number(key: str) -> int:
    return int(key.rpartition("_")[2])


def load_memdaily(folder: Path) -> Corpus:
    """MemDaily's folder of one kind of file each: lists of `message_list` and `question_list`.

    A message is a turn. A question is asked in a chat that holds its own messages alone.
    """
    conversations: dict[str, tuple[CorpusTurn, ...]] = {}
    questions: list[Question] = []
    for file in sorted(folder.glob("*_hybrid.json")) or sorted(folder.glob("*.json")):
        kind = re.sub(r"^\d+_|_[a-z]+$", "", file.stem).replace("_", " ")
        for story in json.loads(file.read_text(encoding="utf-8")):
            name = f"{file.stem}_{story['tid']}"
            turns = tuple(
                CorpusTurn(str(said["mid"]), said["message"], "", "我", _chinese_time(said["time"]))
                for said in story["message_list"]
            )
            conversations[name] = turns
            questions += [
                Question(
                    name, asked["question"], frozenset(map(str, asked["target_step_id"])), kind
                )
                for asked in story["question_list"]
                if asked["target_step_id"]
            ]
    return Corpus("MemDaily", conversations, tuple(questions))


def _chinese_time(text: str) -> datetime:
    """`2024年04月01日 周一 08:39`."""
    day, _, clock = text.split(" ")
    return datetime.strptime(f"{day} {clock}", "%Y年%m月%d日 %H:%M").replace(tzinfo=_ZONE)


_FACT = re.compile(r"^\d+\. (.+)$", re.M)
_PLAIN_WORD = re.compile(r"[\w']+")


def load_facts(file: Path) -> Iterator[Corpus]:
    """Reads FactConsolidation's single-hop questions from EvoMemBench's `Conflict_Resolution.json`:
    numbered facts, of which later ones contradict earlier ones, in several sizes.

    A fact is a turn. The evidence of a question is the last fact that has the answer and the rarest
    of the question's words.
    """
    for one in json.loads(file.read_text(encoding="utf-8")):
        _, single_hop, size = one["metadata"]["source"].partition("sh_")
        if single_hop:
            yield _facts(one, size)


def _facts(one: Mapping[str, Any], size: str) -> Corpus:
    facts = _FACT.findall(one["context"])
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    turns = tuple(
        CorpusTurn(str(n), fact, "", "", start + timedelta(minutes=n))
        for n, fact in enumerate(facts)
    )
    words = [frozenset(_PLAIN_WORD.findall(fact.lower())) for fact in facts]
    common = Counter(word for each in words for word in each)
    questions = []
    for question, answers in zip(one["questions"], one["answers"], strict=True):
        asked = frozenset(_PLAIN_WORD.findall(question.lower()))
        holds = [n for n, fact in enumerate(facts) if any(each in fact for each in answers)]
        newest = max(holds, key=lambda n: (sum(1 / common[w] for w in asked & words[n]), n))
        questions.append(Question(f"facts_{size}", question, frozenset({str(newest)})))
    return Corpus(f"FactConsolidation {size}", {f"facts_{size}": turns}, tuple(questions))


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
    """Reads the project's own bank: questions that share no telling word with their answers, and
    questions across languages, both over the whole memory. Raises ValueError for evidence that
    names no turn."""
    conversations: list[_Conversation] = []
    asked: dict[str, list[Question]] = {"words": [], "across": []}
    lines = file.read_text(encoding="utf-8").splitlines()
    for line in (one for one in lines if one and not one.startswith("#")):
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
