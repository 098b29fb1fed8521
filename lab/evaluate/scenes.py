"""Truth among several people, and forgetting in words: the share of the project's own cases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.features.own_memory.matching import match
from bot.feishu.markup import with_marks
from lab.figures import Figure

_DATA = Path(__file__).parents[2] / "tests" / "data"
_BAR = 95.0
_QUIET = {"summary_after_messages": 10, "history_messages": 10, "requests_per_minute": 0}


async def truth(url: str) -> list[Figure]:
    """Plays each scene of several people in one group. The prompt of the last question must hold
    the newest statement, after any earlier one, and nothing that was withdrawn. The offline model
    then answers from the same prompt."""
    from tests.support.group_scenes import scenes  # with packages of the tests

    played: Sequence[dict[str, Any]] = scenes()
    found = [await _play(url, scene) for scene in played]
    tokens = sorted(one.tokens for one in found)
    median, p95 = (tokens[int(part * len(tokens))] for part in (0.5, 0.95))
    return [
        _share(
            "truth: the newest statement reaches the prompt", [one.prompt for one in found], _BAR
        ),
        _share("truth: right answers by rules alone", [one.answer for one in found]),
        Figure("truth: tokens of a prompt, median", median, note=f"p95 {p95}"),
    ]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What is wrong with the prompt and with the answer ("": nothing), after the scene's id, and
    the prompt's tokens."""

    prompt: str
    answer: str
    tokens: int


def _share(name: str, wrongs: Sequence[str], bar: float | None = None) -> Figure:
    failed = list(filter(None, wrongs))
    note = f"{len(wrongs)} scenes; failed: {', '.join(failed) or 'none'}"
    return Figure(name, 100 * (1 - len(failed) / len(wrongs)), "%", bar, True, note)


async def _play(url: str, scene: dict[str, Any]) -> _Outcome:
    from bot.agents.llm.model import Request
    from bot.agents.manager import Manager
    from bot.agents.offline.model import OfflineModel
    from bot.features.registry import TOOLS
    from tests.support.group_scenes import Answering, Played, wrong, wrong_answer
    from tests.support.whole_turns import Stage, stage

    async with stage(url, **_QUIET) as here:
        model = Answering()
        manager = Manager(model, stores=here.services.manager._stores, tools=TOOLS)
        services = replace(here.services, manager=manager)
        on = Stage(here.town, services, model, here.database)
        prompt = await Played(on, scene).prompt()
        answer = await OfflineModel().respond(Request(tuple(model.messages)))
        failed = [
            f"{scene['id']} ({why})" if why else ""
            for why in (wrong(scene, prompt), wrong_answer(scene, with_marks(answer.text)))
        ]
        return _Outcome(failed[0], failed[1], model.tokens)


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
