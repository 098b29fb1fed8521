"""A run among groups that talk as figures, against the bars. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.bench.accounting import PARTS
from lab.bench.phases import Phase
from lab.bench.processes import MODEL_S
from lab.bench.runs import TalkRun, load_name
from lab.bench.solving import Counted, cost_of_a_line, costs
from lab.figures import Figure

_SPOKEN = "a line where the bot takes part"
_NOT_SPOKEN = "a line where the bot has not spoken"
_STREAMS_S = 2.0  # the model whose mention is compared with that of the quick one
_BUSY = {25.0: (100.0, 500.0), 50.0: (500.0, 2000.0)}  # p50 and p95 over a model of 2 s, ms
_CROWD_BARS = {1: {0.5: 13.0, 0.95: 18.0}, 20: {0.5: 20.0, 0.95: 55.0}}
_MEMORY_MB = {25.0: 230.0}
_SENT_LATE = "sent late"
_RESTS = "supervisor"  # takes nothing for a line or a mention


def figures(run: TalkRun, measures: Sequence[str]) -> list[Figure]:
    """Lists the figures of one run."""
    return [
        *(_of_costs(run, run.quiet) if run.quiet else ()),
        *(row for people, phase in run.crowds.items() for row in _of_crowd(people, phase)),
        *(_of_memory(run.bot.pss) if "memory" in measures else ()),
        *(row for key, phase in run.loads.items() for row in _of_load(*key, phase, run)),
    ]


def _of_memory(pss: Mapping[str, float]) -> Iterator[Figure]:
    yield Figure("memory at rest, PSS", sum(pss.values()), "MB", 150)
    for part in _in_order(pss):
        yield Figure(f"memory at rest: {part}", pss[part], "MB")


def _of_costs(run: TalkRun, quiet: Phase) -> Iterator[Figure]:
    idle = in_ms(run.bot.idle)
    line = cost_of_a_line(counted(quiet), idle)
    yield from _by_part(_NOT_SPOKEN, line, "ms/line", 3.5, f"{quiet.heard.lines} lines")
    by_model = {model_s: [*map(counted, of_one)] for model_s, of_one in run.counting.items()}
    line, mentions = costs(by_model, idle)
    phases = [phase for of_one in run.counting.values() for phase in of_one]
    answered = f"{sum(phase.heard.answered_lines for phase in phases)} of them answered"
    lines = f"solved from {sum(phase.heard.lines for phase in phases)} lines, {answered}"
    yield from _by_part(_SPOKEN, line, "ms/line", 5.0, lines)
    for model_s, mention in mentions.items():
        name = f"a mention, model {model_s:g} s"
        yield from _by_part(name, mention, "ms/mention", None, _how(by_model[model_s]))
    if _STREAMS_S in mentions:
        slow, quick = (sum(mentions[model_s].values()) for model_s in (_STREAMS_S, MODEL_S))
        name = f"a mention, model {_STREAMS_S:g} s ÷ {MODEL_S:g} s"
        yield Figure(name, slow / quick if quick else float("nan"), "×", 1.25)
    yield from _of_counting(run, [quiet, *phases])


def counted(phase: Phase) -> Counted:
    """Reduces a phase to what the arithmetic needs, in ms of the processor."""
    heard = phase.heard
    return Counted(in_ms(phase.cpu), phase.took_s, heard.heard_lines, heard.turns)


def in_ms(seconds: Mapping[str, float]) -> dict[str, float]:
    return {part: 1000 * amount for part, amount in seconds.items()}


def _how(phases: Sequence[Counted]) -> str:
    said = ", ".join(f"{phase.turns} + {phase.lines}" for phase in phases)
    return f"solved from mentions + lines: {said}"


def _by_part(
    name: str, ms: Mapping[str, float], unit: str, bar: float | None, note: str
) -> list[Figure]:
    return [
        Figure(name, sum(ms.values()), unit, bar, note=note),
        *(Figure(f"{name}: {part}", ms[part], unit) for part in _in_order(ms) if part != _RESTS),
    ]


def _in_order(parts: Mapping[str, float]) -> list[str]:
    return sorted(parts, key=lambda part: PARTS.index(part) if part in PARTS else len(PARTS))


def _of_crowd(people: int, phase: Phase) -> Iterator[Figure]:
    name, heard = f"{people} at a time", phase.heard
    yield Figure(f"{name}: CPU", phase.cpu_ms, "ms/mention")
    yield Figure(f"{name}: throughput", phase.rate, "mentions/s")
    bars = _CROWD_BARS.get(people, {})
    for share in (0.5, 0.95):
        title = f"{name}: overhead, p{100 * share:g}"
        note = f"{len(heard.answers)} replies"
        yield Figure(title, heard.over_model_ms(share), "ms", bars.get(share), note=note)
    yield Figure(f"{name}: unanswered", len(heard.missing), "", 0)


def _of_load(model_s: float, rate: float, phase: Phase, run: TalkRun) -> Iterator[Figure]:
    name, heard = load_name(model_s, rate), phase.heard
    p50, p95 = _BUSY.get(rate, (None, None)) if model_s == _STREAMS_S else (None, None)
    missing = len(heard.missing)
    late = f"at least: {missing} without an answer" if missing else ""
    talk = f"{heard.mentions} mentions, {heard.in_threads} of them in threads, {heard.lines} lines"
    yield Figure(f"{name}: overhead, p50", heard.over_model_ms(0.5), "ms", p50, note=talk)
    yield Figure(f"{name}: overhead, p95", heard.over_model_ms(0.95), "ms", p95, note=late)
    yield Figure(f"{name}: overhead, p99", heard.over_model_ms(0.99), "ms")
    again = f"{heard.again} pushed again" if heard.again else ""
    yield Figure(f"{name}: ack, p50", heard.ack_ms(0.5), "ms")
    yield Figure(f"{name}: ack, p99", heard.ack_ms(0.99), "ms", 60 if p50 else None, note=again)
    beyond = sum(counted(phase).beyond(part, in_ms(run.bot.idle)) for part in phase.cpu)
    spent = f"{beyond / max(heard.turns, 1):.1f} ms a mention with its talk"
    yield Figure(f"{name}: cores used", phase.cores, "cores", note=spent)
    parts = ", ".join(f"{part} {phase.pss[part]:.0f}" for part in _in_order(phase.pss))
    held = sum(phase.pss.values())
    note = f"{phase.waiting} waiting; {parts}"
    yield Figure(f"{name}: memory, PSS", held, "MB", _MEMORY_MB.get(rate), note=note)
    yield Figure(f"{name}: unanswered", missing, "", 0, note=f"of {heard.mentions}")
    yield Figure(f"{name}: lines answered", heard.answered_lines, "", note=f"of {heard.lines}")
    yield Figure(f"{name}: driver", phase.others["driver"], "cores", note=_around(phase))
    yield _sent_late(name, [phase])


def _of_counting(run: TalkRun, phases: Sequence[Phase]) -> Iterator[Figure]:
    """Shows whether those costs are sound."""
    missing = sum(len(phase.heard.missing) for phase in phases)
    asked = sum(phase.heard.mentions for phase in phases)
    rest = sum(run.bot.idle.values())
    yield Figure("costs: at rest", rest, "cores", note="subtracted from lines and mentions")
    yield Figure("costs: unanswered", missing, "", 0, note=f"of {asked} mentions")
    yield _sent_late("costs", phases)


def _around(phase: Phase) -> str:
    rest = (f"{name} {cores:.2f}" for name, cores in phase.others.items() if name != "driver")
    return f"people and Feishu; {', '.join(rest)}"


def _sent_late(name: str, phases: Sequence[Phase]) -> Figure:
    late = [late_s for phase in phases for late_s in phase.heard.lates]
    latest = f"the latest by {1000 * max(late):.0f} ms" if late else ""
    return Figure(f"{name}: {_SENT_LATE}", len(late), note=latest)
