"""Truth among several people, and forgetting in words: the share of the project's own cases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.features.own_memory.matching import match
from lab.figures import Figure

_DATA = Path(__file__).parents[2] / "tests" / "data"
_BAR = 95.0
_QUIET = {"summary_after_messages": 10, "history_messages": 10, "requests_per_minute": 0}


async def truth(url: str) -> list[Figure]:
    """Plays each scene of several people in one group. The prompt of the last question must hold
    the newest statement, after any earlier one, and nothing that was withdrawn."""
    from tests.support.group_scenes import scenes  # with packages of the tests

    played: Sequence[dict[str, Any]] = scenes()
    found = [(scene["id"], await _wrong(url, scene)) for scene in played]
    failed = [f"{name} ({why})" for name, why in found if why]
    held = 100 * (1 - len(failed) / len(played))
    note = f"{len(played)} scenes; failed: {', '.join(failed) or 'none'}"
    return [Figure("truth: the newest statement reaches the prompt", held, "%", _BAR, True, note)]


async def _wrong(url: str, scene: dict[str, Any]) -> str:
    from bot.agents.manager import Manager
    from bot.features.registry import TOOLS
    from tests.support.group_scenes import Answering, Played, wrong
    from tests.support.whole_turns import Stage, stage

    async with stage(url, **_QUIET) as here:
        model = Answering()
        manager = Manager(model, stores=here.services.manager._stores, tools=TOOLS)
        services = replace(here.services, manager=manager)
        on = Stage(here.town, services, model, here.database)
        return str(wrong(scene, await Played(on, scene).prompt()))


def forgetting() -> list[Figure]:
    """Matches each “forget …” with the items that it means, and with their near twins."""
    cases = _rows("forget_in_words.jsonl")
    right: Counter[str] = Counter()
    wrong: list[str] = []
    for case in cases:
        is_right = (match(case["ask"], case["text"]) or "none") == case["match"]
        right[case["kind"]] += is_right
        wrong += [] if is_right else [f"{case['ask']} | {case['text']}"]
    total = Counter(case["kind"] for case in cases)
    kinds = ", ".join(f"{kind} {right[kind]}/{count}" for kind, count in sorted(total.items()))
    share = 100 * right.total() / len(cases)
    twins = _rows("survivors.jsonl")
    hit = [one["stays"] for one in twins if match(one["withdrawn"], one["stays"]) == "sure"]
    return [
        Figure("forgetting: right items", share, "%", 100, True, f"{kinds}; wrong: {wrong}"),
        Figure("forgetting: near twins ticked", len(hit), "", 0, note=f"of {len(twins)}: {hit}"),
    ]


def _rows(name: str) -> list[dict[str, str]]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
