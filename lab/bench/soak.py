"""`scripts/bench --soak`: what grows while people keep asking, and what a burst leaves behind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from lab.bench.accounting import BotProcesses, own_seconds, passed
from lab.bench.checkouts import Checkout
from lab.bench.people import GroupPeople, TalkHeard
from lab.bench.processes import Setting, database_url, running_bot
from lab.bench.speech import CHATS, arrivals, groups
from lab.doubles.minimal_feishu import StandIn, text_of
from lab.figures import Figure

_MODEL_S = 2.0
_GIVE_UP_S = 300.0
_BURST_S = 5.0
_LOOKS = 30
_GROWS_MB = 20.0
_LEFT = """
    select count(*) filter (where status in ('waiting', 'running') or task = 'feishu.store'),
           count(*) filter (where status = 'failed')
    from feishu_bot.jobs
"""
_SENT = """
    select turn_id, message_id, content from agent_messages
    where role = 'assistant' and status = 'sent'
"""

Card = tuple[str, str]  # message_id and text


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the processes: MB by part, connections, and bytes of log so far."""

    answered: int
    pss_mb: Mapping[str, float]
    connections: int
    log_bytes: int


@dataclass
class Soaked:
    """`left` are the jobs that wait, for a worker or for the memory, and those that failed."""

    steady: TalkHeard
    burst: TalkHeard
    looks: list[Look] = field(default_factory=list)
    left: tuple[int, int] = (0, 0)
    doubled: int = 0
    mismatched: int = 0
    cpu: Mapping[str, float] = field(default_factory=dict)

    def compare(
        self, shown: Mapping[str, Sequence[Card]], stored: Mapping[str, Sequence[Card]]
    ) -> None:
        """Counts what people see below each question against the stored answers."""
        for question, cards in shown.items():
            rows = stored.get(question, ())
            self.doubled += len(cards) > max(1, len(rows))
            self.mismatched += sorted(cards) != sorted(rows)

    def figures(self) -> list[Figure]:
        asked = self.steady.mentions + self.burst.mentions
        missing = len(self.steady.missing) + len(self.burst.missing)
        again = self.burst.again
        waiting, failed = self.left
        return [
            *(
                Figure(f"{name}: overhead, p{100 * share:g}", heard.over_model_ms(share), "ms")
                for name, heard in (("steady", self.steady), ("burst", self.burst))
                for share in (0.5, 0.95, 1.0)
            ),
            Figure("lost", missing, "", 0, note=f"of {asked}; {again} deliveries pushed again"),
            Figure("doubled", self.doubled, "", 0),
            Figure("other than stored", self.mismatched, "", 0),
            Figure("left waiting", waiting, "", 0),
            Figure("failed", failed, "", 0),
            *self.growth(),
            *(
                Figure(f"CPU: {part}", 1000 * seconds / max(1, asked), "ms/mention")
                for part, seconds in sorted(self.cpu.items())
            ),
        ]

    def growth(self) -> list[Figure]:
        """Compares the last third of the steady time with the second."""
        if not self.looks:
            return []
        third = max(1, len(self.looks) // 3)
        before, after = self.looks[third : 2 * third] or self.looks, self.looks[-third:]
        parts = sorted({part for look in self.looks for part in look.pss_mb})
        grown = [
            Figure(f"growth: {part}", _mean(after, part) - _mean(before, part), "MB", _GROWS_MB)
            for part in parts
        ]
        connections = after[-1].connections - before[0].connections
        logged = _logged(after) - _logged(before)
        return [
            *grown,
            Figure("growth: connections", connections, "", 0, note=f"{after[-1].connections} open"),
            Figure("growth: log", logged, "bytes/mention", note=f"{_logged(after):.0f} at the end"),
        ]


def _mean(looks: Sequence[Look], part: str) -> float:
    return sum(look.pss_mb.get(part, 0.0) for look in looks) / len(looks)


def _logged(looks: Sequence[Look]) -> float:
    answered = looks[-1].answered - looks[0].answered
    return (looks[-1].log_bytes - looks[0].log_bytes) / answered if answered else 0.0


class RememberingFeishu(StandIn):
    """Also remembers what people see. A uuid that came before is the same message."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, dict[str, Card]] = {}

    def replied(self, question: str, reply: Mapping[str, str]) -> dict[str, str]:
        cards = self.seen.setdefault(question, {})
        if reply["uuid"] in cards:
            return {"message_id": cards[reply["uuid"]][0], "create_time": "0"}
        answer = super().replied(question, reply)
        content = json.loads(reply["content"])
        text = text_of({"card": content if "body" in content else None, **content})
        cards[reply["uuid"]] = (answer["message_id"], text)
        return answer


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """`rate` mentions a second with `ratio` lines each for `minutes`, then `burst` mentions within
    five seconds."""

    minutes: float
    rate: float = 50.0
    ratio: float = 2.0
    burst: int = 1000


async def soak(
    setting: Setting, this: Checkout, plan: SoakPlan, progress: Callable[[str], object]
) -> list[Figure]:
    """Runs the plan against one bot; `setting.platform` is a `RememberingFeishu`."""
    folder, platform = setting.folder / "soak", setting.platform
    if not isinstance(platform, RememberingFeishu):
        raise TypeError("the soak compares what people see, which only RememberingFeishu knows")
    await setting.pace_model(_MODEL_S)
    async with running_bot(setting, this, folder) as (processes, port):
        before = _spent(processes, setting)
        people = GroupPeople(platform, port, groups("soak"), _MODEL_S)
        progress(f"soaking for {plan.minutes:g} min")
        looks = await _steady(people, plan, processes, folder)
        steady = people.heard
        progress(f"a burst of {plan.burst} mentions")
        people.heard = TalkHeard(_MODEL_S)
        await people.speak(arrivals(plan.burst / _BURST_S, 0, _BURST_S, CHATS))
        await people.finish(_GIVE_UP_S)
        seen = Soaked(steady, people.close(), looks, await _until_empty(folder))
        seen.cpu = passed(before, _spent(processes, setting))
        shown = {question: list(cards.values()) for question, cards in platform.seen.items()}
        seen.compare(shown, _stored(folder))
    return seen.figures()


async def _steady(
    people: GroupPeople, plan: SoakPlan, processes: BotProcesses, folder: Path
) -> list[Look]:
    looks: list[Look] = []
    seconds = 60 * plan.minutes
    watching = asyncio.create_task(_watch(people, processes, folder, looks, seconds / _LOOKS))
    await people.speak(arrivals(plan.rate, plan.ratio * plan.rate, seconds, CHATS))
    watching.cancel()
    await people.finish(_GIVE_UP_S)
    return looks


async def _watch(
    people: GroupPeople, processes: BotProcesses, folder: Path, looks: list[Look], every_s: float
) -> None:
    while True:
        await asyncio.sleep(every_s)
        pss = await asyncio.to_thread(processes.pss_mb)
        size = (folder / "web.log").stat().st_size
        looks.append(Look(len(people.heard.answers), pss, processes.connections(), size))


def _spent(processes: BotProcesses, setting: Setting) -> dict[str, float]:
    """Returns processor seconds so far, by part of the bot, of the model and of the people."""
    own = {"(the model)": own_seconds(setting.model_pid), "(the people)": time.process_time()}
    return {**processes.cpu_seconds(), **own}


async def _until_empty(folder: Path) -> tuple[int, int]:
    """Looks until nothing waits, or for as long as a question may take."""
    deadline = time.monotonic() + _GIVE_UP_S
    while True:
        left = await asyncio.to_thread(_left, folder)
        if not left[0] or time.monotonic() > deadline:
            return left
        await asyncio.sleep(1)


def _left(folder: Path) -> tuple[int, int]:
    with psycopg.connect(database_url(folder)) as connection:
        row = connection.execute(_LEFT.encode()).fetchone()
    return tuple(row) if row else (0, 0)


def _stored(folder: Path) -> dict[str, list[Card]]:
    """Returns message_id and text of the answers stored as sent, by question."""
    found: dict[str, list[Card]] = {}
    with psycopg.connect(database_url(folder)) as connection:
        for question, message_id, text in connection.execute(_SENT.encode()):
            found.setdefault(question, []).append((message_id, text))
    return found
