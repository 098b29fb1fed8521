"""One run of a version among talk, and one of bare Flask beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from lab.benchmark.account import measure_load
from lab.benchmark.bot_processes import bot
from lab.benchmark.checkouts import Checkout
from lab.benchmark.load import MODEL_S, Askers, Load
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import free_port, running, until_ready
from lab.benchmark.setting import Setting
from lab.talk.people import going_on
from lab.talk.phases import Bot, Phase, pace_model, passed
from lab.talk.schedule import arrivals
from lab.talk.speech import CHATS, Group, groups

_FEW, _MANY = (10.0, 5.0), (2.5, 40.0)  # mentions and lines a second while their cost is counted
MEASURES = ("costs", "crowds", "loads")
_QUIET_RATE = 30.0  # lines a second where the bot has not spoken
_HISTORY_RATE = 20.0
_REST_S = 5.0
_WARM_UP_LINES = 40
_ECHO = (
    *("gunicorn", "--worker-class", "gthread", "--threads", "24", "--keep-alive", "75"),
    *("--config", "/dev/null", "lab.talk.flask_echo:create_app()"),
)

Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class TalkPlan:
    """What is measured: models (s an answer) and rates (mentions a second) of the open loop, with
    `ratio` lines to a mention, for `seconds` each; `history`: mentions before."""

    models: Sequence[float] = (2.0,)
    rates: Sequence[float] = (5.0, 25.0, 50.0)
    ratio: float = 2.0
    seconds: float = 8.0
    history: int = 100
    patience_s: float = 60.0
    at_random: bool = False
    measures: Sequence[str] = MEASURES
    calls_per_second: int = 10_000

    @property
    def counted_models(self) -> list[float]:
        """Those whose mentions are counted by part."""
        return sorted({MODEL_S, *self.models})


@dataclass(frozen=True, slots=True)
class Crowds:
    """People who each wait for their answer: one, twenty, a hundred at a time; model 0.3 s."""

    alone: Load
    twenty: Load
    hundred: Load


@dataclass
class TalkRun:
    """One version, started once. `idle`: cores by part at rest, `woken` wake-ups a second;
    `counting`: phases with few and many lines to a mention, by model; `loads`: the open loop, by
    model and rate."""

    pss: Mapping[str, float]
    idle: Mapping[str, float]
    quiet: Phase | None = None
    crowds: Crowds | None = None
    counting: dict[float, list[Phase]] = field(default_factory=dict)
    loads: dict[tuple[float, float], Phase] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    woken: Mapping[str, float] = field(default_factory=dict)


async def run_version(
    setting: Setting, checkout: Checkout, plan: TalkPlan, progress: Progress, *, streaming: bool
) -> TalkRun:
    """Set up anew, so that no run meets what another left."""
    folder = setting.folder / f"{checkout.label}-{time.monotonic_ns()}"
    calls = {"FEISHU_CALLS_PER_SECOND": str(plan.calls_per_second)}
    async with bot(setting, checkout, folder):
        pass  # the first start sets the database up
    async with bot(setting, checkout, folder, streaming=streaming, **calls) as started:
        progress("at rest, and some history")
        idle, woken, pss = await _rest(started.processes)
        found, chats = TalkRun(pss, idle, woken=woken), groups("talk")
        listener = Bot(setting, started.processes, started.port, idle)
        lines = plan.ratio * _HISTORY_RATE
        before = arrivals(_HISTORY_RATE, lines, plan.history / _HISTORY_RATE, CHATS)
        await listener.hear(chats, before, model_s=MODEL_S, patience_s=plan.patience_s)
        if "costs" in plan.measures:
            await _count(listener, chats, plan, found, progress)
        if "crowds" in plan.measures:
            progress("1, 20 and 100 people who wait for their answers")
            found.crowds = await _crowds(setting, started.processes, started.port, chats)
        if "loads" in plan.measures:
            await _load(listener, chats, plan, found, progress)
        return found


async def run_echo(setting: Setting, checkout: Checkout) -> Crowds:
    """Bare Flask under gunicorn, asked by the same people."""
    port, chats = free_port(), groups("echo")
    environment = setting.environment(port, DATA_DIR=str(setting.folder))
    command = (*_ECHO, "--bind", f"127.0.0.1:{port}")
    async with AsyncExitStack() as stack:
        folder = setting.folder / "echo"
        echo = await stack.enter_async_context(
            running("echo", command, folder, environment, checkout)
        )
        await until_ready(echo, port)
        processes = BotProcesses((echo.popen.pid,), folder)
        return await _crowds(setting, processes, port, chats)


async def _rest(
    processes: BotProcesses,
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Cores and wake-ups a second, and MB, by part."""
    await asyncio.sleep(1.0)
    woken, before, began = processes.wake_ups(), processes.cpu_seconds(), time.perf_counter()
    await asyncio.sleep(_REST_S)
    took = time.perf_counter() - began
    spent, wakes = passed(before, processes.cpu_seconds()), passed(woken, processes.wake_ups())
    return (
        {part: seconds / took for part, seconds in spent.items()},
        {part: times / took for part, times in wakes.items()},
        processes.pss_mb(),
    )


async def _crowds(
    setting: Setting, processes: BotProcesses, port: int, chats: Sequence[Group]
) -> Crowds:
    await pace_model(setting, MODEL_S)
    people = Askers(setting.platform, port, MODEL_S, questions=going_on(chats))
    await people.talk(100, setting.seconds / 4)
    loads = [
        await measure_load(processes, people, number, setting.seconds / 2)
        for number in (1, 20, 100)
    ]
    return Crowds(*loads)


async def _count(
    listener: Bot, chats: Sequence[Group], plan: TalkPlan, found: TalkRun, progress: Progress
) -> None:
    """Few lines, many, few with the other models, many, few: the bot grows warm and chats grow
    long meanwhile, which so adds to both alike."""
    part, others = 0.75 * plan.seconds, [one for one in plan.counted_models if one != MODEL_S]
    steps = [(MODEL_S, _FEW, part), (MODEL_S, _MANY, part)]
    steps += [*((model_s, _FEW, plan.seconds) for model_s in others), *reversed(steps)]
    for model_s, (mentions, lines), seconds in steps:
        progress(f"cost: {mentions:g} mentions and {lines:g} lines a second, model {model_s:g} s")
        said = arrivals(mentions, lines, seconds, CHATS)
        phase = await listener.hear(chats, said, model_s=model_s, patience_s=plan.patience_s)
        found.counting.setdefault(model_s, []).append(phase)
    progress("cost: lines where the bot has not spoken")
    elsewhere = groups("quiet")
    for seconds in (_WARM_UP_LINES / _QUIET_RATE, plan.seconds):
        said = arrivals(0, _QUIET_RATE, seconds, CHATS)
        found.quiet = await listener.hear(
            elsewhere, said, model_s=MODEL_S, patience_s=plan.patience_s
        )


async def _load(
    listener: Bot, chats: Sequence[Group], plan: TalkPlan, found: TalkRun, progress: Progress
) -> None:
    """From the lightest on; what comes after one that was not finished would meet its questions."""
    left_over = ""
    for model_s in sorted(plan.models):
        for rate in sorted(plan.rates):
            name = load_name(model_s, rate)
            if left_over:
                found.skipped.append(f"{name}: not begun, {left_over}")
                continue
            progress(name)
            lines = rate * plan.ratio
            said = arrivals(rate, lines, plan.seconds, CHATS, at_random=plan.at_random)
            phase = await listener.hear(chats, said, model_s=model_s, patience_s=plan.patience_s)
            found.loads[model_s, rate] = phase
            if phase.heard.missing:
                left_over = f"{len(phase.heard.missing)} questions of {name} were left"


def load_name(model_s: float, rate: float) -> str:
    """What tables call it."""
    return f"{rate:g}/s, model {model_s:g} s"
