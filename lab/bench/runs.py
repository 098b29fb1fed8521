"""One run of one version among groups that talk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.bench.checkouts import Checkout
from lab.bench.phases import Bot, Phase
from lab.bench.processes import MODEL_S, Setting, running_bot
from lab.bench.speech import CHATS, Group, arrivals, groups

TALK = ("costs", "crowds", "loads", "memory")
_FEW, _MANY = (10.0, 5.0), (2.5, 40.0)  # mentions and lines a second while their cost is counted
_QUIET_RATE = 30.0  # lines a second where the bot has not spoken
_HISTORY_RATE = 20.0
_WARM_UP_LINES = 40
_CROWDS = (1, 20, 100)

Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class TalkPlan:
    """The open loop runs each of `models` (s an answer) at each of `rates` (mentions a second),
    with `ratio` lines to a mention, for `seconds`. `history` mentions come before."""

    models: Sequence[float] = (2.0,)
    rates: Sequence[float] = (5.0, 25.0, 50.0)
    ratio: float = 2.0
    seconds: float = 8.0
    history: int = 100
    patience_s: float = 60.0
    streaming: bool = True
    measures: Sequence[str] = TALK

    @property
    def counted_models(self) -> list[float]:
        """The models whose mentions are costed."""
        return sorted({MODEL_S, *self.models})


@dataclass
class TalkRun:
    """One version, started once. `counting` are phases with few and many lines to a mention, by
    model; `crowds` people who ask in turn, by number; `loads` the open loop, by model and rate."""

    bot: Bot
    quiet: Phase | None = None
    crowds: dict[int, Phase] = field(default_factory=dict)
    counting: dict[float, list[Phase]] = field(default_factory=dict)
    loads: dict[tuple[float, float], Phase] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


async def run_version(
    setting: Setting, checkout: Checkout, plan: TalkPlan, progress: Progress
) -> TalkRun:
    """Starts the version with an empty database, so that no run meets what another left."""
    folder = setting.folder / f"{checkout.label}-{time.monotonic_ns()}"
    async with running_bot(setting, checkout, folder):
        pass  # the first start sets the database up
    streaming = str(plan.streaming).lower()
    async with running_bot(setting, checkout, folder, STREAM_REPLIES=streaming) as (
        processes,
        port,
    ):
        progress("at rest, and some history")
        run = TalkRun(await Bot.at_rest(setting, processes, port))
        chats, lines = groups("talk"), plan.ratio * _HISTORY_RATE
        before = arrivals(_HISTORY_RATE, lines, plan.history / _HISTORY_RATE, CHATS)
        await run.bot.hear(chats, before, model_s=MODEL_S, patience_s=plan.patience_s)
        if "costs" in plan.measures:
            await _count(run, chats, plan, progress)
        if "crowds" in plan.measures:
            await _crowd(run, chats, plan, progress)
        if "loads" in plan.measures:
            await _load(run, chats, plan, progress)
        return run


async def _crowd(run: TalkRun, chats: Sequence[Group], plan: TalkPlan, progress: Progress) -> None:
    progress("1, 20 and 100 people who wait for their answers")
    await run.bot.hear(chats, _CROWDS[-1], model_s=MODEL_S, seconds=plan.seconds / 4)
    for people in _CROWDS:
        run.crowds[people] = await run.bot.hear(
            chats, people, model_s=MODEL_S, seconds=plan.seconds / 2
        )


async def _count(run: TalkRun, chats: Sequence[Group], plan: TalkPlan, progress: Progress) -> None:
    """Few lines, many, few with the other models, many, few: the bot warms up and chats grow long
    meanwhile, which adds to both alike."""
    part, others = 0.75 * plan.seconds, [one for one in plan.counted_models if one != MODEL_S]
    steps = [(MODEL_S, _FEW, part), (MODEL_S, _MANY, part)]
    steps += [*((model_s, _FEW, plan.seconds) for model_s in others), *reversed(steps)]
    for model_s, (mentions, lines), seconds in steps:
        progress(f"cost: {mentions:g} mentions and {lines:g} lines a second, model {model_s:g} s")
        said = arrivals(mentions, lines, seconds, CHATS)
        phase = await run.bot.hear(chats, said, model_s=model_s, patience_s=plan.patience_s)
        run.counting.setdefault(model_s, []).append(phase)
    progress("cost: lines where the bot has not spoken")
    elsewhere = groups("quiet")
    for seconds in (_WARM_UP_LINES / _QUIET_RATE, plan.seconds):
        said = arrivals(0, _QUIET_RATE, seconds, CHATS)
        run.quiet = await run.bot.hear(elsewhere, said, model_s=MODEL_S)


async def _load(run: TalkRun, chats: Sequence[Group], plan: TalkPlan, progress: Progress) -> None:
    """From the lightest load on. After one that was not finished, the rest would meet its questions
    and is skipped."""
    left_over = ""
    for model_s in sorted(plan.models):
        for rate in sorted(plan.rates):
            name = load_name(model_s, rate)
            if left_over:
                run.skipped.append(f"{name}: not begun, {left_over}")
                continue
            progress(name)
            lines = rate * plan.ratio
            said = arrivals(rate, lines, plan.seconds, CHATS)
            phase = await run.bot.hear(chats, said, model_s=model_s, patience_s=plan.patience_s)
            run.loads[model_s, rate] = phase
            if phase.heard.missing:
                left_over = f"{len(phase.heard.missing)} questions of {name} were left"


def load_name(model_s: float, rate: float) -> str:
    """Names a load in the tables."""
    return f"{rate:g}/s, model {model_s:g} s"
