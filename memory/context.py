"""What of a conversation goes into a model prompt, within a token budget. Pure and deterministic.

The question is never cut. The system text comes next. The other sections share what is left by
weight, and what one does not need flows to the others. History loses whole messages, the oldest
first; texts lose whole lines: the transcript its oldest, what was recalled those that are worth
least, every other text its last ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, Literal

from memory.tokens import Calibration, estimate_lines, estimate_tokens, token_cost

MESSAGE_OVERHEAD = 4  # role and delimiters around one chat message
SECTION_OVERHEAD = 20  # the heading that introduces one text section
REPLY_OVERHEAD = 3  # opens the answer and is counted with the prompt
OMISSION = "…"  # stands where lines of a text were left out

_TIME_COST = 12  # when a message was said
_STALE_COST = 10  # that it rests on something since replaced
_OMISSION_COST = estimate_tokens(OMISSION + "\n")
_UNCALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A tool call of an earlier turn and its result, as they are sent; `arguments` is JSON."""

    id: str
    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True)
class Message:
    """One earlier message; `author` is the name it is shown with, if any.

    `exchanges` are what the tools did before an assistant's message. `at` is when it was said, if
    the prompt tells that. `is_stale`: an answer that rests on a statement which was replaced since.
    What `stays` is dropped last: the asker's own exchanges and the root of the thread.
    """

    role: Literal["user", "assistant"]
    content: str
    author: str | None = None
    exchanges: tuple[Exchange, ...] = ()
    at: str = ""
    is_stale: bool = False
    stays: bool = True


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of one prompt. Transcript and history have their newest entry last; `recalled` has
    lines worth `recalled_worth`; in the other texts the most important lines come first."""

    question: str
    system: str = ""
    working_memory: str = ""
    registry: str = ""
    summary: str = ""
    transcript: str = ""
    recalled: str = ""
    history: tuple[Message, ...] = ()
    recalled_worth: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Shares:
    """Relative weights of the sections when they do not all fit; every weight is above 0."""

    working_memory: float = 2
    registry: float = 1
    summary: float = 3
    transcript: float = 4
    recalled: float = 4
    history: float = 6

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"the share of {field.name!r} must be above 0")


@dataclass(frozen=True, slots=True)
class Assembly:
    """What fits: `sections` is what to send, `tokens` what the endpoint will probably report.

    `estimated` is the count before calibration, for `Calibration.observe`; `cut` names the texts
    that lost lines. `over_budget`: the question alone exceeds the budget; all else is empty.
    """

    sections: Sections
    tokens: int
    estimated: int
    cut: tuple[str, ...] = ()
    dropped_messages: int = 0
    over_budget: bool = False


_DEFAULT_SHARES = Shares()
_SHARING_TEXTS = tuple(field.name for field in fields(Shares) if field.name != "history")


def assemble(
    sections: Sections,
    budget_tokens: int,
    calibration: Calibration = _UNCALIBRATED,
    shares: Shares = _DEFAULT_SHARES,
) -> Assembly:
    """Fit `sections` into `budget_tokens`, counted as the endpoint behind `calibration` does.

    The result is within the budget unless it says `over_budget`. Linear in the sections' length.
    """
    question_cost = estimate_tokens(sections.question) + MESSAGE_OVERHEAD + REPLY_OVERHEAD
    room = calibration.affordable(budget_tokens) - question_cost
    free = max(0, room)
    texts: dict[str, Any] = {}
    texts["system"], cost = _shorten(sections.system, free, price=_rules_cost)
    free -= cost
    grants = _grants(sections, free, shares)
    for name in _SHARING_TEXTS:
        newest_last = name == "transcript"
        worth = sections.recalled_worth if name == "recalled" else ()
        texts[name], cost = _shorten(
            getattr(sections, name), grants[name], newest_last=newest_last, worth=worth
        )
        free -= cost
    history, cost = _newest(sections.history, free)
    free -= cost
    estimated_tokens = question_cost + max(0, room) - free
    return Assembly(
        sections=Sections(question=sections.question, history=history, **texts),
        tokens=calibration.reported(estimated_tokens),
        estimated=estimated_tokens,
        cut=tuple(name for name, text in texts.items() if text != getattr(sections, name)),
        dropped_messages=len(sections.history) - len(history),
        over_budget=room < 0,
    )


def _grants(sections: Sections, room: int, shares: Shares) -> dict[str, int]:
    """Split `room` among the texts by weight, leaving the history its part.

    None gets more than it needs; the rest goes to the others. The newest message counts before
    the split unless it alone would take more than half of the room.
    """
    needs = {name: _text_cost(getattr(sections, name)) for name in _SHARING_TEXTS}
    costs = _message_costs(sections.history, room)
    if sum(needs.values()) + sum(costs) <= room:
        return needs
    newest = costs[0] if costs and costs[0] <= room // 2 else 0
    room -= newest
    needs["history"] = sum(costs) - newest
    weights = {name: float(getattr(shares, name)) for name in needs}
    left_weight = sum(weights.values())
    grants: dict[str, int] = {}
    for name in sorted(needs, key=lambda name: needs[name] / weights[name]):
        grants[name] = min(needs[name], int(room * min(1.0, weights[name] / left_weight)))
        room -= grants[name]
        left_weight -= weights[name]
    return grants


@lru_cache(maxsize=16)  # each section is priced before the room is shared, and when it is given
def _text_cost(text: str) -> int:
    return estimate_lines(text) + SECTION_OVERHEAD if text else 0


def _rules_cost(text: str) -> int:
    """As of any text; most lines of the rules are the same in every turn."""
    cost = math.ceil(sum(map(_line_cost, text.splitlines(keepends=True))))
    return cost + SECTION_OVERHEAD if text else 0


@lru_cache(maxsize=512)
def _line_cost(line: str) -> float:
    return token_cost(line)


def exchange_cost(exchange: Exchange) -> int:
    """What a call and its result cost, as two messages."""
    call = estimate_tokens(f"{exchange.name} {exchange.arguments}")
    return call + estimate_tokens(exchange.result) + 2 * MESSAGE_OVERHEAD


def _message_costs(history: tuple[Message, ...], room: int) -> list[int]:
    """Costs of the newest messages, newest first, ending with the first that exceeds `room`."""
    costs: list[int] = []
    for message in reversed(history):
        costs.append(_message_cost(message))
        room -= costs[-1]
        if room < 0:
            break
    return costs


def _message_cost(message: Message) -> int:
    author = estimate_tokens(message.author) + 1 if message.author else 0
    remarks = (_TIME_COST if message.at else 0) + (_STALE_COST if message.is_stale else 0)
    exchanges = sum(map(exchange_cost, message.exchanges))
    return estimate_tokens(message.content) + author + remarks + exchanges + MESSAGE_OVERHEAD


def _newest(history: tuple[Message, ...], room: int) -> tuple[tuple[Message, ...], int]:
    """The newest messages that fit, first of those that stay, and their cost."""
    kept_indexes: set[int] = set()
    spent_tokens = 0
    for stays in (True, False):
        for place in range(len(history) - 1, -1, -1):
            if history[place].stays is stays:
                cost = _message_cost(history[place])
                if spent_tokens + cost > room:
                    break
                spent_tokens += cost
                kept_indexes.add(place)
    return tuple(one for place, one in enumerate(history) if place in kept_indexes), spent_tokens


def _shorten(
    text: str,
    room: int,
    *,
    newest_last: bool = False,
    worth: Sequence[float] = (),
    price: Callable[[str], int] = _text_cost,
) -> tuple[str, int]:
    """The lines of `text` that fit into `room`, marked where some are missing, and their cost."""
    cost = price(text)
    if cost <= room:
        return text, cost
    limit = room - SECTION_OVERHEAD - _OMISSION_COST
    if worth:
        kept_text = _worthiest(text, limit, worth)
    else:
        kept_text = _lines_within(text, limit, newest_last=newest_last)
    if not kept_text:
        return "", 0
    short_text = f"{OMISSION}\n{kept_text}" if newest_last else f"{kept_text}\n{OMISSION}"
    return short_text, price(short_text)


def _lines_within(text: str, limit: int, *, newest_last: bool) -> str:
    """As many whole lines as cost at most `limit`; of a first line that is too long, a part."""
    lines = text.splitlines(keepends=True)
    order = lines[::-1] if newest_last else lines
    running_costs = accumulate(map(token_cost, order))
    fitting = sum(1 for _ in takewhile(lambda cost: cost <= limit, running_costs))
    kept_lines = lines[len(lines) - fitting :] if newest_last else lines[:fitting]
    return "".join(kept_lines).strip("\r\n") or _clip(order[0].strip("\r\n"), limit, newest_last)


def _worthiest(text: str, limit: int, worth: Sequence[float]) -> str:
    """The lines that are worth most and cost at most `limit`, in their order; a part of the best
    one if it is too long. Of two of one worth the first is kept."""
    lines = text.splitlines(keepends=True)
    best = sorted(range(len(lines)), key=lambda place: (-worth[place], place))
    running_costs = accumulate(token_cost(lines[place]) for place in best)
    fitting = sum(1 for _ in takewhile(lambda cost: cost <= limit, running_costs))
    if not fitting:
        return _clip(lines[best[0]].strip("\r\n"), limit, keep_end=False)
    return "".join(lines[place] for place in sorted(best[:fitting])).strip("\r\n")


def _clip(line: str, limit: int, keep_end: bool) -> str:
    """A part of `line`, from its start or its end, that costs at most `limit`."""
    length = int(len(line) * max(0, limit) / max(1.0, token_cost(line)))
    while length > 0:
        part = line[-length:] if keep_end else line[:length]
        if token_cost(part) <= limit:
            return part
        length = length * 9 // 10
    return ""
