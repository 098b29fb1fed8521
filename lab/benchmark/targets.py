"""One run of the account, and its figures against the bars. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.benchmark.figures import Figure
from lab.benchmark.load import Seen
from lab.benchmark.process_accounting import PARTS


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of people saw and what it took; CPU in seconds by part."""

    seen: Seen
    cpu: Mapping[str, float]
    others_cores: float
    feishu_connections: int

    def cpu_ms(self, part: str) -> float:
        """Of one part, per answered mention."""
        return self.seen.per_mention(1000 * self.cpu.get(part, 0.0))

    @property
    def total_cpu_ms(self) -> float:
        """Of all processes, per answered mention."""
        return self.seen.per_mention(1000 * sum(self.cpu.values()))


@dataclass(frozen=True, slots=True)
class Held:
    """Memory in MB by part, and connections to Postgres."""

    pss: Mapping[str, float]
    connections: int

    @property
    def total(self) -> float:
        return sum(self.pss.values())


@dataclass(frozen=True, slots=True)
class Run:
    """One version, started once; `loaded` is the larger of two looks right after a load."""

    streaming: bool
    ready_s: float
    resting: Held
    loaded: Held
    alone: Load
    twenty: Load
    hundred: Load


def figures(found: Run, first_start_s: float) -> list[Figure]:
    """A run against the bars."""
    return [
        *_of_memory(found, first_start_s),
        *_of_waiting(found),
        *_of_cpu("20 people", found.twenty, found.streaming),
        *_of_cpu("100 people", found.hundred, found.streaming),
    ]


def _of_memory(found: Run, first_start_s: float) -> list[Figure]:
    resting, loaded = found.resting, found.loaded
    first = f"first start with set-up: {first_start_s:.1f} s"
    at_rest, at_load = "connections to Postgres, at rest", "connections to Postgres, 100 people"
    return [
        Figure("start to ready", found.ready_s, "s", 3, note=first),
        Figure("memory at rest, PSS", resting.total, "MB", 150, note=_parts(resting.pss)),
        Figure(
            *("memory under load, PSS", loaded.total, "MB", 220),
            note=_parts(loaded.pss),
            streaming=found.streaming,
        ),
        Figure(at_rest, resting.connections),
        Figure(at_load, loaded.connections, streaming=found.streaming),
    ]


def _of_waiting(found: Run) -> list[Figure]:
    alone, twenty, hundred = found.alone.seen, found.twenty.seen, found.hundred.seen
    on, least = found.streaming, 80 if found.streaming else 120
    answers = f"{len(alone.replies)} replies"
    return [
        _waiting("overhead, 1 person, p50", alone.overhead_ms(0.5), 15, answers, streaming=on),
        _waiting("overhead, 20 people, p50", twenty.overhead_ms(0.5), 25, streaming=on),
        _waiting("overhead, 20 people, p95", twenty.overhead_ms(0.95), 80, streaming=on),
        _waiting("ack, 20 people, p99", twenty.ack_ms(0.99), 20, streaming=on),
        _waiting("overhead, 100 people, p50", hundred.overhead_ms(0.5), streaming=on),
        _waiting("ack, 100 people, p99", hundred.ack_ms(0.99), streaming=on),
        Figure(
            *("throughput, 100 people", hundred.rate, "mentions/s", least),
            at_least=True,
            streaming=on,
        ),
    ]


def _waiting(
    name: str, value: float, bar: float | None = None, note: str = "", *, streaming: bool
) -> Figure:
    return Figure(name, value, "ms", bar, note=note, streaming=streaming)


def _of_cpu(who: str, load: Load, streaming: bool) -> list[Figure]:
    disturbed = "taken by the rest of the machine"
    asked, made = len(load.seen.acks), load.seen.per_mention(load.feishu_connections)
    total, most = load.total_cpu_ms, 18 if streaming else 12
    found = [
        Figure(f"CPU, {who}", total, "ms/mention", most),
        *(Figure(f"CPU, {who}: {part}", load.cpu_ms(part), "ms/mention") for part in PARTS),
        Figure(f"new connections to Feishu, {who}", made, "per mention", 0),
        Figure(f"unanswered, {who}", load.seen.unanswered, "", 0, note=f"of {asked}"),
        Figure(f"other programs, {who}", load.others_cores, "cores", note=disturbed),
    ]
    return [replace(figure, streaming=streaming) for figure in found]


def _parts(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {amount:.0f}" for part, amount in sorted(amounts.items()))
