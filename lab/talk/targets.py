"""A run among talk as figures, against the bars. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lab.benchmark.figures import Figure
from lab.benchmark.load import MODEL_S, Load
from lab.benchmark.process_accounting import PARTS
from lab.talk.phases import Phase
from lab.talk.runs import Crowds, TalkRun, load_name
from lab.talk.solving import Counted, cost_of_a_line, costs

_SPOKEN = "a line where the bot takes part"
_NOT_SPOKEN = "a line where the bot has not spoken"
_STREAMS_S = 2.0  # of the model whose mention is compared with the quick one's
_BUSY = {25.0: (100.0, 500.0), 50.0: (500.0, 2000.0)}  # p50 and p95 over a model of 2 s, ms
_CEILING = 50.0
SENT_LATE = "sent late"
_RESTS = "supervisor"  # takes nothing for a line or a mention


def figures(found: TalkRun, echo: Crowds) -> list[Figure]:
    """A run, beside bare Flask in the same round."""
    rest = sum(found.pss.values())
    return [
        *_of_echo(echo),
        *(_of_costs(found, found.quiet, echo) if found.quiet else ()),
        *(_of_crowds(found.crowds, echo) if found.crowds else ()),
        Figure("memory at rest, PSS", rest, "MB", 150, note=_mb(found.pss)),
        *(row for key, phase in found.loads.items() for row in _of_load(*key, phase, found)),
    ]


def _of_echo(echo: Crowds) -> list[Figure]:
    name = "bare Flask"
    return [
        Figure(f"{name}: CPU, 100 people", echo.hundred.total_cpu_ms, "ms/mention"),
        Figure(f"{name}: throughput, 100 people", echo.hundred.seen.rate, "mentions/s"),
        Figure(f"{name}: overhead, 20 people, p50", echo.twenty.seen.overhead_ms(0.5), "ms"),
        Figure(f"{name}: overhead, 20 people, p95", echo.twenty.seen.overhead_ms(0.95), "ms"),
        Figure(f"{name}: overhead, 1 person, p50", echo.alone.seen.overhead_ms(0.5), "ms"),
        Figure(f"{name}: unanswered", echo.hundred.seen.unanswered, "", 0),
    ]


def _of_costs(found: TalkRun, quiet: Phase, echo: Crowds) -> Iterator[Figure]:
    flask_ms, idle = echo.hundred.total_cpu_ms, in_ms(found.idle)
    line = cost_of_a_line(counted(quiet), idle)
    yield from _by_part(_NOT_SPOKEN, line, "ms/line", 3.5, f"{quiet.heard.lines} lines")
    yield _ratio(f"{_NOT_SPOKEN} ÷ bare Flask", sum(line.values()), flask_ms, 1.0)
    by_model = {model_s: [*map(counted, of_one)] for model_s, of_one in found.counting.items()}
    line, mentions = costs(by_model, idle)
    phases = [phase for of_one in found.counting.values() for phase in of_one]
    answered = f"{sum(phase.heard.answered_lines for phase in phases)} of them answered"
    lines = f"solved from {sum(phase.heard.lines for phase in phases)} lines, {answered}"
    yield from _by_part(_SPOKEN, line, "ms/line", 5.0, lines)
    yield _ratio(f"{_SPOKEN} ÷ bare Flask", sum(line.values()), flask_ms, 1.5)
    for model_s, mention in mentions.items():
        name = f"a mention, model {model_s:g} s"
        yield from _by_part(name, mention, "ms/mention", None, _how(by_model[model_s]))
    if _STREAMS_S in mentions:
        slow, quick = (sum(mentions[model_s].values()) for model_s in (_STREAMS_S, MODEL_S))
        yield _ratio(f"a mention, model {_STREAMS_S:g} s ÷ {MODEL_S:g} s", slow, quick, 1.25)
    yield from _of_wake_ups(found, quiet)
    yield from _of_counting(found, [quiet, *phases])


def _of_wake_ups(found: TalkRun, quiet: Phase) -> Iterator[Figure]:
    """How often a thread of the bot that waited went on."""
    line, mentions = costs(
        {model_s: [*map(_woken, of_one)] for model_s, of_one in found.counting.items()}, found.woken
    )
    yield _in_all(_NOT_SPOKEN, cost_of_a_line(_woken(quiet), found.woken), "a line")
    yield _in_all(_SPOKEN, line, "a line")
    for model_s, mention in mentions.items():
        yield _in_all(f"a mention, model {model_s:g} s", mention, "a mention")


def _in_all(name: str, times: Mapping[str, float], unit: str) -> Figure:
    parts = ", ".join(f"{part} {times[part]:.1f}" for part in times if part != _RESTS)
    return Figure(f"{name}: wake-ups", sum(times.values()), unit, note=parts)


def counted(phase: Phase) -> Counted:
    """What the arithmetic needs of a phase, in ms of the processor."""
    heard = phase.heard
    return Counted(in_ms(phase.cpu), phase.took_s, heard.heard_lines, heard.turns)


def in_ms(seconds: Mapping[str, float]) -> dict[str, float]:
    """By part."""
    return {part: 1000 * amount for part, amount in seconds.items()}


def _woken(phase: Phase) -> Counted:
    return Counted(phase.wake_ups, phase.took_s, phase.heard.heard_lines, phase.heard.turns)


def _how(phases: Sequence[Counted]) -> str:
    said = ", ".join(f"{phase.turns} + {phase.lines}" for phase in phases)
    return f"solved from mentions + lines: {said}"


def _by_part(
    name: str, ms: Mapping[str, float], unit: str, bar: float | None, note: str
) -> list[Figure]:
    parts = sorted(ms, key=lambda part: PARTS.index(part) if part in PARTS else len(PARTS))
    return [
        Figure(name, sum(ms.values()), unit, bar, note=note),
        *(Figure(f"{name}: {part}", ms[part], unit) for part in parts if part != _RESTS),
    ]


def _of_crowds(crowds: Crowds, echo: Crowds) -> Iterator[Figure]:
    cpu, rate = crowds.hundred.total_cpu_ms, crowds.hundred.seen.rate
    yield Figure("100 people, chats that go on: CPU", cpu, "ms/mention")
    yield _ratio("the same ÷ bare Flask", cpu, echo.hundred.total_cpu_ms, 4.0)
    yield Figure("100 people, chats that go on: throughput", rate, "mentions/s")
    yield _ratio("its share of bare Flask's", rate, echo.hundred.seen.rate, 0.42, at_least=True)
    for name, load, bars in (
        ("20 people", crowds.twenty, {0.5: 25.0, 0.95: 80.0}),
        ("1 person", crowds.alone, {0.5: 15.0}),
    ):
        for share, bar in bars.items():
            title = f"overhead, {name}, p{100 * share:g}"
            yield Figure(title, load.seen.overhead_ms(share), "ms", bar, note=_asked(load))
    missing = [load.seen.unanswered for load in (crowds.alone, crowds.twenty, crowds.hundred)]
    yield Figure("unanswered, 1, 20 and 100 people", sum(missing), "", 0)


def _asked(load: Load) -> str:
    return f"{len(load.seen.replies)} replies"


def _of_load(model_s: float, rate: float, phase: Phase, found: TalkRun) -> Iterator[Figure]:
    name, heard = load_name(model_s, rate), phase.heard
    usual = model_s == _STREAMS_S
    p50, p95 = _BUSY.get(rate, (None, None)) if usual else (None, None)
    missing = len(heard.missing)
    late = f"at least: {missing} without an answer" if missing else ""
    talk = f"{heard.mentions} mentions, {heard.in_threads} of them in threads, {heard.lines} lines"
    yield Figure(f"{name}: overhead, p50", heard.over_model_ms(0.5), "ms", p50, note=talk)
    yield Figure(f"{name}: overhead, p95", heard.over_model_ms(0.95), "ms", p95, note=late)
    yield Figure(f"{name}: overhead, p99", heard.over_model_ms(0.99), "ms")
    again = f"{heard.again} pushed again" if heard.again else ""
    yield Figure(f"{name}: ack, p50", heard.ack_ms(0.5), "ms")
    yield Figure(f"{name}: ack, p99", heard.ack_ms(0.99), "ms", 60 if p50 else None, note=again)
    beyond = sum(counted(phase).beyond(part, in_ms(found.idle)) for part in phase.cpu)
    ms = beyond / max(heard.turns, 1)
    spent = f"{ms:.1f} ms a mention with its talk"
    yield Figure(f"{name}: cores used", phase.cores, "cores", note=spent)
    most = 230 if rate == _CEILING else None
    waiting = f"{phase.waiting} waiting; {_mb(phase.pss)}"
    yield Figure(f"{name}: memory, PSS", sum(phase.pss.values()), "MB", most, note=waiting)
    yield Figure(f"{name}: unanswered", missing, "", 0, note=f"of {heard.mentions}")
    yield Figure(f"{name}: lines answered", heard.answered_lines, "", note=f"of {heard.lines}")
    yield Figure(f"{name}: driver", phase.others["driver"], "cores", note=_around(phase))
    yield _sent_late(name, [phase])


def _of_counting(found: TalkRun, phases: Sequence[Phase]) -> Iterator[Figure]:
    """Whether those costs are sound."""
    missing = sum(len(phase.heard.missing) for phase in phases)
    asked = sum(phase.heard.mentions for phase in phases)
    rest = sum(found.idle.values())
    yield Figure("costs: at rest", rest, "cores", note="taken off lines and mentions")
    yield Figure("costs: unanswered", missing, "", 0, note=f"of {asked} mentions")
    yield _sent_late("costs", phases)


def _around(phase: Phase) -> str:
    rest = (f"{name} {cores:.2f}" for name, cores in phase.others.items() if name != "driver")
    return f"people and Feishu; {', '.join(rest)}"


def _sent_late(name: str, phases: Sequence[Phase]) -> Figure:
    late = [late_s for phase in phases for late_s in phase.heard.lates]
    latest = f"the latest by {1000 * max(late):.0f} ms" if late else ""
    return Figure(f"{name}: {SENT_LATE}", len(late), note=latest)


def _ratio(name: str, value: float, beside: float, bar: float, *, at_least: bool = False) -> Figure:
    return Figure(name, value / beside if beside else float("nan"), "×", bar, at_least=at_least)


def _mb(pss: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {amount:.0f}" for part, amount in sorted(pss.items()))
