"""Replays recorded scenes against the real bot and reports every difference.

scripts/corpus                            replays everything, over both memories
scripts/corpus --only notes --only help.zh
scripts/corpus --record [--only NAME]     records anew; without --only the shared texts as well
scripts/corpus --accept notes.en:3 --reason "the card names the tags"
                                          records one step anew (without `:3` all that differ;
                                          without `.en` in both languages) and keeps the reason
scripts/corpus --accept §1a2b3c4d --reason "…"
                                          records one shared text anew, wherever it stands
scripts/corpus --count                    turns by part, language and memory
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.corpus import recordings
from tests.corpus.bots import Town
from tests.corpus.recordings import Shared
from tests.corpus.replaying import Task, replay, tasks
from tests.corpus.scenes import PARTS


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/corpus", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], help="scene, scene.language")
    parser.add_argument("--memory", choices=("postgres", "supabase"), help="only that one")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--accept", metavar="SCENE[:STEP]")
    parser.add_argument("--reason")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args(arguments)
    if options.accept and not options.reason:
        parser.error("--accept needs a --reason")
    if options.count:
        print(table())
        return 0
    memories = (options.memory,) if options.memory else ("postgres", "supabase")
    if options.record or options.accept:
        memories = memories[:1]
    target, _, step = (options.accept or "").partition(":")
    only = options.only or ([target] if target and not target.startswith("§") else [])
    started = time.monotonic()
    wanted = tasks(only, memories)
    if not wanted:
        parser.error(f"there is no scene {', '.join(only)}")
    with Town.of_its_own() as town:
        played = replay(town, wanted)
    if options.record:
        failed = record(played, anew=not only)
    elif target.startswith("§"):
        failed = accept_text(target, options.reason, played)
    elif target:
        failed = accept(options.reason, int(step or 0), played)
    else:
        failed = compare(played)
    seconds = time.monotonic() - started
    print(f"{len(played)} scenes, {failed} of them differ or failed, {seconds:.0f} s")
    return 1 if failed else 0


Played = dict[Task, list[recordings.Step] | Exception]


def compare(played: Played) -> int:
    """Prints the differences; returns in how many scenes there are any."""
    shared, failed = Shared.load(), 0
    for task, steps in sorted(played.items(), key=str):
        found = list(report(task, steps, shared))
        failed += bool(found)
        print("".join(found), end="")
    return failed


def report(task: Task, steps: list[recordings.Step] | Exception, shared: Shared) -> list[str]:
    """What to print of a scene."""
    if isinstance(steps, Exception):
        return [f"### {task}: {steps!r}\n"]
    found = recordings.differences(recordings.load(task.name), shared.fold(steps))
    return [f"### {task}, step {number}\n{diff}\n" for number, diff in found]


def record(played: Played, *, anew: bool) -> int:
    """Writes all recordings; returns how many scenes failed."""
    good = {task: steps for task, steps in played.items() if not isinstance(steps, Exception)}
    shared = Shared.among(s for steps in good.values() for s in steps) if anew else Shared.load()
    if anew and len(good) == len(played):
        for path in recordings.FOLDER.glob("*.txt"):
            path.unlink()
    shared.save()
    for task, steps in good.items():
        recordings.save(task.name, shared.fold(steps))
    return _failed(played)


def accept(reason: str, step: int, played: Played) -> int:
    """Writes the accepted steps."""
    shared = Shared.load()
    for task, steps in played.items():
        if not isinstance(steps, Exception):
            before, after = recordings.load(task.name), shared.fold(steps)
            recordings.save(task.name, recordings.accept(before, after, reason, step))
    return _failed(played)


def accept_text(name: str, reason: str, played: Played) -> int:
    """Writes the new text under the same name."""
    shared = Shared.load()
    for task, steps in played.items():
        if isinstance(steps, Exception):
            continue
        before, after = recordings.load(task.name), shared.fold(steps)
        if text := recordings.replacement(name, before, after):
            shared.texts[name] = text
            shared.reasons.setdefault(name, []).append(f"accepted: {reason}")
            shared.save()
            return 0
    print(f"{name} has not changed")
    return 1


def _failed(played: Played) -> int:
    failed = [(task, one) for task, one in played.items() if isinstance(one, Exception)]
    for task, error in failed:
        print(f"### {task}: {error!r}")
    return len(failed)


def table() -> str:
    """The turns of each part, as the README shows them."""
    lines = ["| part | en | zh | embedded | Supabase |", "|---|---|---|---|---|"]
    total = [0, 0, 0, 0]
    for part, scenes in PARTS.items():
        row = [0, 0, 0, 0]
        for task in tasks([*scenes], ("postgres", "supabase")):
            turns = recordings.counts({task.name: recordings.load(task.name)})[task.name]
            if task.memory == task.memories[0]:
                row[task.language == "zh"] += turns
            row[2 + (task.memory == "supabase")] += turns
        lines.append(f"| {part} | " + " | ".join(map(str, row)) + " |")
        total = [a + b for a, b in zip(total, row, strict=True)]
    lines.append("| **all** | " + " | ".join(f"**{one}**" for one in total) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
