"""How many tokens a text costs, estimated without a vocabulary and corrected by reported usage.

The rates are least-squares fits to o200k_base over Chinese and English prose, chat, code, JSON,
logs and ids; of the passages fitted, 150 to 900 characters each, 97 in 100 come out within 15 %.
For other vocabularies `Calibration` learns the factor.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

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


def estimate_tokens(text: str) -> int:
    """Estimated o200k_base tokens of `text`; 0 only for an empty text. Linear in its length."""
    return max(1, math.ceil(token_cost(text))) if text else 0


def estimate_lines(text: str) -> int:
    """Line by line: never less than as a whole, and cheap where most lines came before."""
    return math.ceil(sum(map(token_cost, text.splitlines(keepends=True))))


def token_cost(text: str) -> float:
    """The estimate before rounding. A text never costs more than the sum of its lines."""
    return _known_cost(text) if len(text) <= _SHORT else _cost(text)


def _cost(text: str) -> float:
    return _ascii_cost(text) + (0.0 if text.isascii() else _wide_cost(text))


# The same messages are weighed in each turn of a conversation.
_SHORT = 1000
_known_cost = lru_cache(maxsize=4096)(_cost)


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
        scale = self.scale + weight * (_bounded(reported_tokens / estimated_tokens) - self.scale)
        return Calibration(_bounded(scale), self.requests + 1)

    def reported(self, estimated_tokens: int) -> int:
        """The tokens the endpoint will probably report for `estimated_tokens` tokens of ours."""
        return math.ceil(round(estimated_tokens * self.scale, 6))

    def affordable(self, reported_tokens: int) -> int:
        """The most of our tokens that stay within `reported_tokens` tokens of the endpoint."""
        estimated_tokens = max(0, math.floor(reported_tokens / self.scale))
        return (
            estimated_tokens
            if self.reported(estimated_tokens) <= reported_tokens
            else estimated_tokens - 1
        )


def _bounded(scale: float) -> float:
    return min(2.0, max(0.5, scale))
