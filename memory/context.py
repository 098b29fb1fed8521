"""Fits the parts of a prompt into a token budget, and estimates what texts cost. Pure.

The question is never cut. The system text comes next; the other sections share what is left by
weight. History loses whole messages, the oldest first. The rates are least-squares fits to
o200k_base; for other vocabularies `Calibration` learns the factor."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, Literal

MESSAGE_OVERHEAD = 4  # role and delimiters around one chat message
SECTION_OVERHEAD = 20  # the heading that introduces one text section
REPLY_OVERHEAD = 3  # opens the answer and is counted with the prompt
OMISSION = "…"  # stands where lines of a text were left out
_TIME_COST = 12  # when a message was said
_REPLY_COST = 6  # that it replies to an earlier line
_STALE_COST = 10  # that it rests on something since replaced

# Every repetition is bounded, so hostile input cannot make a pattern backtrack far.
_WORD = re.compile(r"[A-Z]{0,24}[a-z]{1,24}|[A-Z]{1,24}")
_WORD_IN_ID = re.compile(r"[0-9][A-Za-z]{2,24}")
_DIGITS = re.compile(r"[0-9]{1,3}")
_SPACE_BEFORE_DIGIT = re.compile(r"[ \t][0-9]")
_PUNCTUATION = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f!-/:-@\[-`{-~]{1,16}")
_BLANK = re.compile(r"[\r\n]\s{0,32}|[ \t]{2,64}")
_HAN = re.compile(r"[\u4e00-\u9fff\uf900-\ufaff]")

# The 500 characters that most often share a token with their neighbours.
_EVERYDAY_HAN = re.compile(
    "["
    "一万三上下不与专世业东两严个中为主举么义之乐也习书了争事二于五些交产京人亿什仅今从他"
    "代以们件价任企众会传但位体何作你使例供便保信候值做儿元先党入全公共关其具内再军农决况"
    "准几出分划则创利别到制前力办功加务动劳包化北区医十华协单南即历原去参又及发取受变口古"
    "另只可台史司各合同名后向告员命和品响商四回因团国图在地场型城域基境增士声处备复外多大"
    "天太央女她好如始委子字存学孩它安完定实家容富对导将小少就展属山工己已市布师席常平年并"
    "广应府度建开式强当形影很律得心必态怎思性总息情想意成我或战户所手才执批技把投护报括持"
    "指据接推提支收改放政效教数整文料断新方施旅族无日时明易是显更最月有服期本术机权条来极"
    "构果查标校样根格案模次欢正此步武段每比民水求汉江没河治法注洲活流济海消深游湖源点然照"
    "片物特环现理甚生用由电男界百的目直相省看真着知研础确示社神种科积称程究空突立第等筑策"
    "算管米类精系级纪线组织终经结给统续编网置美群老考者而职联股育能自至般色艺英范获营虽行"
    "表被装西要见观规觉解言计认议记论设证识话该语说调负责质费资起越足路身车较辑达过运近还"
    "这进连选通速造道那部都采里重量金长门问间队际限院随集需非面革音项须领题首验高"
    "]"
)
_WIDE_PUNCTUATION = re.compile(r"[\u2010-\u2027\u3000-\u303f\uff00-\uffef]")
_SYLLABLE = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_ALPHABETIC = re.compile(r"[\u00c0-\u1fff]")
_RARE_HAN = re.compile(r"[\u3400-\u4dbf\U00020000-\U0003ffff]")
_SYMBOL = re.compile(
    r"[^\x00-\x7f\u00c0-\u1fff\u2010-\u2027\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)

# The same messages are weighed in each turn of a conversation.
_SHORT = 1000


def estimate_tokens(text: str) -> int:
    """Estimated o200k_base tokens of `text`; 0 only for an empty text. Linear in its length."""
    cost = _known_cost(text) if len(text) <= _SHORT else _cost(text)
    return max(1, math.ceil(cost)) if text else 0


def token_cost(text: str) -> float:
    """The estimate before rounding. A text never costs more than the sum of its lines."""
    return _known_cost(text) if len(text) <= _SHORT else _cost(text)


def _cost(text: str) -> float:
    return _ascii_cost(text) + (0.0 if text.isascii() else _wide_cost(text))


def _ascii_cost(text: str) -> float:
    words = _WORD.findall(text)
    punctuation = _PUNCTUATION.findall(text)
    return (
        1.0 * len(words)
        + 0.1 * sum(length - 6 for length in map(len, words) if length > 6)
        + 0.25 * sum(len(letters) - 2 for letters in _WORD_IN_ID.findall(text))
        + 1.1 * len(_DIGITS.findall(text))
        + 1.1 * len(_SPACE_BEFORE_DIGIT.findall(text))
        + 0.74 * len(punctuation)
        + 0.06 * sum(map(len, punctuation))
        + 1.0 * len(_BLANK.findall(text))
    )


def _wide_cost(text: str) -> float:
    everyday = len(_EVERYDAY_HAN.findall(text))
    return (
        0.54 * everyday
        + 1.38 * (len(_HAN.findall(text)) - everyday)
        + 0.9 * len(_WIDE_PUNCTUATION.findall(text))
        + 0.5 * len(_SYLLABLE.findall(text))
        + 0.3 * len(_ALPHABETIC.findall(text))
        + 2.5 * len(_RARE_HAN.findall(text))
        + 1.2 * len(_SYMBOL.findall(text))
    )


_known_cost = lru_cache(maxsize=4096)(_cost)

_OMISSION_COST = estimate_tokens(OMISSION + "\n")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Tokens the endpoint reports per token we estimate, learned request by request.

    `scale` stays within [0.5, 2]; `requests` counts what it was learned from. The first requests
    move it quickly, later ones by a tenth of the difference.
    """

    scale: float = 1.0
    requests: int = 0

    def observe(self, estimated_tokens: int, reported_tokens: int) -> Calibration:
        """Learn from one request: our raw estimate of all it carried, and its `prompt_tokens`.

        `estimated_tokens` has to include what is sent beside the messages (tool schemas). Pairs
        that say nothing, such as an endpoint that reports no usage, change nothing.
        """
        if estimated_tokens <= 0 or reported_tokens <= 0:
            return self
        weight = max(0.1, 1 / (self.requests + 2))
        scale = self.scale + weight * (
            _bounded_scale(reported_tokens / estimated_tokens) - self.scale
        )
        return Calibration(_bounded_scale(scale), self.requests + 1)

    def reported_tokens(self, estimated_tokens: int) -> int:
        """The tokens the endpoint will probably report for `estimated_tokens` tokens of ours."""
        return math.ceil(round(estimated_tokens * self.scale, 6))

    def affordable(self, reported_tokens: int) -> int:
        """The most of our tokens that stay within `reported_tokens` tokens of the endpoint."""
        estimated_tokens = max(0, math.floor(reported_tokens / self.scale))
        return (
            estimated_tokens
            if self.reported_tokens(estimated_tokens) <= reported_tokens
            else estimated_tokens - 1
        )


def _bounded_scale(scale: float) -> float:
    return min(2.0, max(0.5, scale))


_UNCALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """A tool call of an earlier turn and its result, as they are sent; `arguments` is JSON."""

    id: str
    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One earlier message; `author` is the name it is shown with, if any.

    `exchanges` are what the tools did before an assistant's message. `at` is when it was said, if
    the prompt tells that. `is_stale`: an answer that rests on a statement which was replaced since.
    `replies_to` is the beginning of the line that it replies to, with its author, where that line
    does not stand right before it. What `stays` is dropped last: the asker's own exchanges and the
    root of the thread.
    """

    role: Literal["user", "assistant"]
    content: str
    author: str | None = None
    exchanges: tuple[ToolExchange, ...] = ()
    at: str = ""
    is_stale: bool = False
    replies_to: str = ""
    stays: bool = True


@dataclass(frozen=True, slots=True)
class PromptSections:
    """The parts of one prompt. Transcript and history have their newest entry last; `recalled` has
    lines worth `recalled_worth`; in the other texts the most important lines come first."""

    question: str
    system: str = ""
    working_memory: str = ""
    registry: str = ""
    summary: str = ""
    transcript: str = ""
    recalled: str = ""
    history: tuple[PromptMessage, ...] = ()
    recalled_worth: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SectionShares:
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
class FittedPrompt:
    """What fits: `sections` is what to send, `tokens` what the endpoint will probably report.

    `estimated_tokens` is the count before calibration, for `Calibration.observe`; `cut` names the
    texts that lost lines. `over_budget`: the question alone exceeds the budget; all else is empty.
    """

    sections: PromptSections
    tokens: int
    estimated_tokens: int
    cut: tuple[str, ...] = ()
    dropped_messages: int = 0
    over_budget: bool = False


_DEFAULT_SHARES = SectionShares()
_SHARING_TEXTS = tuple(field.name for field in fields(SectionShares) if field.name != "history")


def fit_sections(
    sections: PromptSections,
    budget_tokens: int,
    calibration: Calibration = _UNCALIBRATED,
    shares: SectionShares = _DEFAULT_SHARES,
) -> FittedPrompt:
    """Fit `sections` into `budget_tokens`, counted as the endpoint behind `calibration` does.

    The result is within the budget unless it says `over_budget`. Linear in the sections' length.
    """
    question_cost = estimate_tokens(sections.question) + MESSAGE_OVERHEAD + REPLY_OVERHEAD
    room = calibration.affordable(budget_tokens) - question_cost
    free = max(0, room)
    texts: dict[str, Any] = {}
    texts["system"], cost = _shorten(sections.system, free, price=_rules_cost)
    free -= cost
    costs = _message_costs(sections.history, free)
    grants = _grants(sections, costs, free, shares)
    for name in _SHARING_TEXTS:
        newest_last = name == "transcript"
        worth = sections.recalled_worth if name == "recalled" else ()
        texts[name], cost = _shorten(
            getattr(sections, name), grants[name], newest_last=newest_last, worth=worth
        )
        free -= cost
    history, cost = _newest(sections.history, costs, free)
    free -= cost
    estimated_tokens = question_cost + max(0, room) - free
    return FittedPrompt(
        sections=PromptSections(question=sections.question, history=history, **texts),
        tokens=calibration.reported_tokens(estimated_tokens),
        estimated_tokens=estimated_tokens,
        cut=tuple(name for name, text in texts.items() if text != getattr(sections, name)),
        dropped_messages=len(sections.history) - len(history),
        over_budget=room < 0,
    )


def _grants(
    sections: PromptSections, costs: Sequence[int], room: int, shares: SectionShares
) -> dict[str, int]:
    """Split `room` among the texts by weight, leaving the history its part.

    `costs` are those of the newest messages. None gets more than it needs; the rest goes to the
    others. The newest message counts before the split unless it alone would take more than half of
    the room.
    """
    needs = {name: _text_cost(getattr(sections, name)) for name in _SHARING_TEXTS}
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


def exchange_cost(exchange: ToolExchange) -> int:
    """What a call and its result cost, as two messages."""
    call = estimate_tokens(f"{exchange.name} {exchange.arguments}")
    return call + estimate_tokens(exchange.result) + 2 * MESSAGE_OVERHEAD


def _message_costs(history: tuple[PromptMessage, ...], room: int) -> list[int]:
    """Costs of the newest messages, newest first, ending with the first that exceeds `room`."""
    costs: list[int] = []
    for message in reversed(history):
        costs.append(_message_cost(message))
        room -= costs[-1]
        if room < 0:
            break
    return costs


def _message_cost(message: PromptMessage) -> int:
    author = estimate_tokens(message.author) + 1 if message.author else 0
    remarks = (_TIME_COST if message.at else 0) + (_STALE_COST if message.is_stale else 0)
    remarks += estimate_tokens(message.replies_to) + _REPLY_COST if message.replies_to else 0
    exchanges = sum(map(exchange_cost, message.exchanges))
    return estimate_tokens(message.content) + author + remarks + exchanges + MESSAGE_OVERHEAD


def _newest(
    history: tuple[PromptMessage, ...], costs: Sequence[int], room: int
) -> tuple[tuple[PromptMessage, ...], int]:
    """The newest messages that fit, first of those that stay, and their cost. `costs` are those of
    the newest, newest first."""
    kept_indexes: set[int] = set()
    spent_tokens = 0
    for stays in (True, False):
        for back, place in enumerate(range(len(history) - 1, -1, -1)):
            if history[place].stays is stays:
                cost = costs[back] if back < len(costs) else _message_cost(history[place])
                if spent_tokens + cost > room:
                    break
                spent_tokens += cost
                kept_indexes.add(place)
    kept_messages = [one for place, one in enumerate(history) if place in kept_indexes]
    return tuple(kept_messages), spent_tokens


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


def estimate_lines(text: str) -> int:
    """Line by line: never less than as a whole, and cheap where most lines came before."""
    return math.ceil(sum(map(token_cost, text.splitlines(keepends=True))))
