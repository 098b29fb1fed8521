"""What stands below an answer: one folded line, and what can be pressed. Pure.

It is no part of what is said: it holds names of tools and times, and nobody's words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from bot.agents.prompts.prompt import Ended
from bot.feishu import cards
from bot.text.languages import Language

Where = Literal["thread", "chat", "elsewhere"]

_MOST_TOOLS, _MOST_SOURCES = 12, 8
_SECONDS: Mapping[Language, str] = {"zh": "{} 秒", "en": "{} s"}
_AT_ONCE: Mapping[Language, str] = {"zh": "不到 1 秒", "en": "under 1 s"}
_TOOK: Mapping[Language, str] = {"zh": "用时 {} 秒", "en": "Took {} s"}
_STEPS: Mapping[Language, str] = {"zh": "{} 次工具调用", "en": "{} tool calls"}
_STEP: Mapping[Language, str] = {"zh": "1 次工具调用", "en": "1 tool call"}
_EARLIER: Mapping[Language, str] = {"zh": "参考了 {} 处之前的对话", "en": "{} earlier exchanges"}
_EARLIER_ONE: Mapping[Language, str] = {"zh": "参考了 1 处之前的对话", "en": "1 earlier exchange"}
_TOOLS: Mapping[Language, str] = {"zh": "工具：{}", "en": "Tools: {}"}
_FAILED: Mapping[Language, str] = {"zh": "（未成功）", "en": " (failed)"}
_RECALLED: Mapping[Language, str] = {"zh": "回想自 {}", "en": "From {}"}
_PLACES: Mapping[Language, Mapping[Where, str]] = {
    "zh": {"thread": "本话题", "chat": "本群的另一个话题", "elsewhere": "另一个聊天"},
    "en": {"thread": "this thread", "chat": "another thread here", "elsewhere": "another chat"},
}
_MORE: Mapping[Language, str] = {"zh": "等", "en": "and more"}
_ENDED: Mapping[Ended, Mapping[Language, str]] = {
    "time": {
        "zh": "回答没有写完：模型太久没有继续输出。可以重新生成。",
        "en": "Unfinished: the model took too long to go on. You can ask again.",
    },
    "connection": {
        "zh": "回答没有写完：与模型的连接断了。可以重新生成。",
        "en": "Unfinished: the connection to the model broke off. You can ask again.",
    },
    "length": {
        "zh": "回答没有写完：到了模型的长度上限。可以让我接着说。",
        "en": "Unfinished: the model's length limit was reached. You can ask me to go on.",
    },
    "stopped": {"zh": "已按要求停止。", "en": "Stopped on request."},
}
_AGAIN: Mapping[Language, str] = {"zh": "重新生成", "en": "Again"}
_MONTHS = (
    "January February March April May June July August September October November December".split()
)


@dataclass(frozen=True, slots=True)
class Source:
    """Something that was recalled: when it was said (ISO 8601), and where, seen from the answer."""

    at: str
    where: Where


@dataclass(frozen=True, slots=True)
class Foot:
    """`seconds` from the question to the answer; `tools` by name in the order of the calls, with
    whether they worked. `ended`: why the answer came no further. `bare`: only that is shown, where
    nothing can be pressed."""

    language: Language
    seconds: float
    tools: tuple[tuple[str, bool], ...] = ()
    recalled: tuple[Source, ...] = ()
    ended: Ended = ""
    bare: bool = False

    def row(self) -> dict[str, Any]:
        """As it is kept with the turn."""
        return {
            "language": self.language,
            "seconds": round(self.seconds, 1),
            "tools": [list(tool) for tool in self.tools[:50]],
            "recalled": [[source.at, source.where] for source in self.recalled],
            **({"ended": self.ended} if self.ended else {}),
            **({"bare": True} if self.bare else {}),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any] | None) -> Foot | None:
        """What was kept; None without anything."""
        if not row:
            return None
        return cls(
            row["language"],
            row["seconds"],
            tuple((name, ok) for name, ok in row["tools"]),
            tuple(Source(at, where) for at, where in row["recalled"]),
            row.get("ended", ""),
            row.get("bare", False),
        )


def card_foot(foot: Foot, now: datetime, *, again: bool = True) -> cards.Foot:
    """As the card shows it; times are in the zone of `now`. Without `again`: it was pressed."""
    language = foot.language
    notice = _ENDED[foot.ended][language] if foot.ended else ""
    if foot.bare:
        return cards.Foot("", (), (), notice)
    handles = [cards.Button("👍", {"h": "helpful"}), cards.Button("👎", {"h": "unhelpful"})]
    if again:
        handles.append(cards.Button(_AGAIN[language], {"h": "again"}))
    return cards.Foot(_line(foot), tuple(_details(foot, now)), tuple(handles), notice)


def _line(foot: Foot) -> str:
    language, parts = foot.language, []
    if calls := len(foot.tools):
        parts.append(_STEP[language] if calls == 1 else _STEPS[language].format(calls))
    if sources := len(foot.recalled):
        one = sources == 1
        parts.append(_EARLIER_ONE[language] if one else _EARLIER[language].format(sources))
    whole = round(foot.seconds)
    took = _SECONDS[language].format(whole) if foot.seconds >= 1 else _AT_ONCE[language]
    return " · ".join([took, *parts])


def _details(foot: Foot, now: datetime) -> Sequence[str]:
    language = foot.language
    said = [_TOOK[language].format(f"{foot.seconds:.1f}")]
    if foot.tools:
        said.append(_TOOLS[language].format(_few(_counted(foot), _MOST_TOOLS, language)))
    if foot.recalled:
        recalled = dict.fromkeys(_said(source, now, language) for source in foot.recalled)
        said.append(_RECALLED[language].format(_few([*recalled], _MOST_SOURCES, language)))
    return said


def _counted(foot: Foot) -> list[str]:
    times = Counter(foot.tools)
    return [
        name + (f" ×{count}" if count > 1 else "") + ("" if ok else _FAILED[foot.language])
        for (name, ok), count in times.items()
    ]


def _few(said: Sequence[str], most: int, language: Language) -> str:
    comma = "、" if language == "zh" else ", "
    return comma.join([*said[:most], *([_MORE[language]] if len(said) > most else [])])


def _said(source: Source, now: datetime, language: Language) -> str:
    at = datetime.fromisoformat(source.at).astimezone(now.tzinfo)
    year = "" if at.year == now.year else str(at.year)
    if language == "zh":
        day = f"{year and year + ' 年 '}{at.month} 月 {at.day} 日 {at:%H:%M}"
        return f"{day}（{_PLACES[language][source.where]}）"
    day = f"{at.day} {_MONTHS[at.month - 1]}{year and ' ' + year} {at:%H:%M}"
    return f"{day} ({_PLACES[language][source.where]})"
