"""Recordings as files: one for each scene and language, and the texts that many of them share.

A recording is a list of steps. A step begins with `== NUMBER TITLE`; lines `accepted: REASON` after
it say why it was recorded anew. A line `§NAME` stands for a text in `shared.txt`, where such lines
may stand too.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"

_ACCEPTED = "accepted: "
_LEAST_CHARS, _LEAST_TIMES = 120, 4
_REFERENCE = re.compile(r"^ *(§\w+)$")
_HEAD = re.compile(r"^== (\d+) ", re.MULTILINE)


@dataclass
class Step:
    """What was done, and what was seen of it; an item may have several lines."""

    title: str
    items: list[str]
    accepted: list[str] = field(default_factory=list)

    def text(self, number: int, *, with_reasons: bool = True) -> str:
        reasons = [_ACCEPTED + one for one in self.accepted if with_reasons]
        return "\n".join([f"== {number} {self.title}", *reasons, *self.items])


@dataclass
class Shared:
    """Texts by name."""

    texts: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Shared:
        path, shared = folder / "shared.txt", cls()
        for block in path.read_text(encoding="utf-8").split("\n\n") if path.exists() else ():
            name, *lines = block.strip("\n").split("\n")
            shared.reasons[name] = [one for one in lines if one.startswith(_ACCEPTED)]
            shared.texts[name] = "\n".join(o for o in lines if not o.startswith(_ACCEPTED))
        return shared

    def save(self, folder: Path = FOLDER) -> None:
        blocks = ("\n".join([name, *self.reasons.get(name, ()), self.texts[name]])
                  for name in sorted(self.texts))  # fmt: skip
        (folder / "shared.txt").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

    @classmethod
    def among(cls, steps: Iterable[Step]) -> Shared:
        """The long texts that the steps repeat."""
        counts = Counter(item for step in steps for item in step.items)
        often = (one for one, n in counts.items() if n >= _LEAST_TIMES and len(one) > _LEAST_CHARS)
        return cls({f"§{hashlib.sha256(one.encode()).hexdigest()[:8]}": one for one in often})

    def fold(self, steps: Iterable[Step]) -> list[Step]:
        """The steps with names in place of shared texts."""
        names = {text: name for name, text in self.texts.items()}
        return [Step(one.title, [f"  {names[i]}" if i in names else i for i in one.items])
                for one in steps]  # fmt: skip


def load(name: str, folder: Path = FOLDER) -> list[Step]:
    """The recorded steps of `scene.language`; none without a file."""
    path = folder / f"{name}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [_step(block) for block in re.split(r"^(?=== \d+ )", text, flags=re.MULTILINE) if block]


def _step(block: str) -> Step:
    head, *lines = block.rstrip("\n").split("\n")
    reasons = [one.removeprefix(_ACCEPTED) for one in lines if one.startswith(_ACCEPTED)]
    return Step(_HEAD.sub("", head), [o for o in lines if not o.startswith(_ACCEPTED)], reasons)


def save(name: str, steps: Sequence[Step], folder: Path = FOLDER) -> None:
    """Writes the recording."""
    text = "\n".join(one.text(number) for number, one in enumerate(steps, 1))
    (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")


def differences(recorded: Sequence[Step], played: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """The number of each step that differs, and how. `played` is folded."""
    for index in range(max(len(recorded), len(played))):
        before = _lines(recorded, index)
        after = _lines(played, index)
        if before != after:
            diff = difflib.unified_diff(before, after, "recorded", "played", lineterm="", n=2)
            yield index + 1, "\n".join(diff)


def _lines(steps: Sequence[Step], index: int) -> list[str]:
    if index >= len(steps):
        return []
    return steps[index].text(index + 1, with_reasons=False).split("\n")


def accept(
    recorded: Sequence[Step], played: Sequence[Step], reason: str, only: int = 0
) -> list[Step]:
    """The recording with the steps that differ (or `only` that one) as they were played."""
    differ = {number for number, _ in differences(recorded, played)}
    taken = differ & {only} if only else differ
    steps = []
    for number in range(1, max(len(recorded), len(played)) + 1):
        old = recorded[number - 1] if number <= len(recorded) else None
        new = played[number - 1] if number <= len(played) else None
        if number not in taken:
            steps += [old] if old else []
        elif new:
            steps.append(Step(new.title, new.items, [*(old.accepted if old else ()), reason]))
    return steps


def replacement(name: str, recorded: Sequence[Step], played: Sequence[Step]) -> str:
    """The text that was played in place of the shared one; "" if it still stands everywhere.
    `played` is folded."""
    for before, after in zip(recorded, played, strict=False):
        matcher = difflib.SequenceMatcher(None, before.items, after.items, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag == "replace" and b - a == d - c:
                pairs = zip(before.items[a:b], after.items[c:d], strict=True)
                for old, new in pairs:
                    if (found := _REFERENCE.match(old)) and found[1] == name:
                        return new
    return ""


def counts(recorded: Mapping[str, Sequence[Step]]) -> Counter[str]:
    """How many turns each recording has: steps in which somebody does something."""
    idle = re.compile(r"the scene begins|group .* of |.* is new in the tenant")
    return Counter(
        {n: sum(not idle.match(step.title) for step in steps) for n, steps in recorded.items()}
    )
