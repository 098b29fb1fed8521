"""What of a model's text is meant for people, whole or while it is written. Pure.

Models and their servers let inner marks through: thoughts, channels, the end of a turn and an
invented next one, tool calls as text, our own label or instructions. `Cleaner.read` takes them out.
A text without such marks is never changed, and what an unfinished text shows is the beginning of
what the finished one shows.

Marks in code that is closed are left alone: there somebody explains them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

from bot.agents.model_text.text_tool_calls import MARKS as CALL_MARKS
from bot.agents.model_text.text_tool_calls import is_open, outside_code, text_tool_calls
from bot.agents.prompts.prompt import KNOWN_HEADING, QUESTION_HEADING
from bot.agents.tool_types import ToolCall

_TAGS = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "seed:think")
_THOUGHTS = (*((f"<{tag}>", f"</{tag}>") for tag in _TAGS), ("◁think▷", "◁/think▷"),
             ("[THINK]", "[/THINK]"), ("<|channel>thought", "<channel|>"))  # fmt: skip
_CLOSING = dict(_THOUGHTS)

# The beginning of a turn, dropped where a text begins with it; elsewhere an invented next turn.
_BEGINNINGS = (
    KNOWN_HEADING, QUESTION_HEADING,
    "<start_of_turn>", "<|im_start|>", "<|start_header_id|>", "<|start_of_role|>", "<|user|>",
    "<|assistant|>", "<|system|>", "<|User|>", "<|Assistant|>", "<｜User｜>", "<｜Assistant｜>",
    "<|START_OF_TURN_TOKEN|>", "[INST]", "<|begin_of_text|>", "<|startoftext|>",
    "<｜begin▁of▁sentence｜>", "<bos>", "<<SYS>>", "<|start|>", "<|header_start|>", "<|turn>",
)  # fmt: skip
_ENDS = (
    "<end_of_turn>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end|>",
    "<|end_of_text|>", "<|end_of_role|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>",
    "<eos>", "</s>", "[/INST]", "<|return|>", "<|endofprompt|>", "<|end_of_sentence|>",
    "[end of text]", "[Tool context:", "<turn|>",
)  # fmt: skip
_ROLE = (
    r"(?:(?:model|assistant|bot)\b)?[ \t]*(?:<\|(?:end_header_id|header_end|end_of_role)\|>)?\s*"
)
_ROLES = ("model", "assistant", "bot")
_START = re.compile(
    rf"\s*(?:(?:{'|'.join(map(re.escape, (*_BEGINNINGS, '[/INST]')))}|<s>(?=\s|\[)){_ROLE})+"
)
# What is left of such a beginning where a server has dropped the marks around the role.
_BARE_ROLES = ("assistant", "model", "user")
_BARE_ROLE = re.compile(rf"\s*(?:{'|'.join(_BARE_ROLES)})[ \t]*\n\s*(?=\S)")
# Any other special token of the usual shape ends the turn too.
_SPECIAL = (
    r"(?!<\|(?:python_tag|tool_call\w*)\|>|<｜tool▁)(?:<\|[A-Za-z_]{2,30}\|>|<｜[^<>｜\s]{2,30}｜>)"
)
_MARK = re.compile("|".join([*map(re.escape, (*_BEGINNINGS, *_ENDS)), _SPECIAL]))
_BEGUN_TOKEN = re.compile(
    r"<(?:\|[A-Za-z_]{0,30}\|?|｜[^<>｜\s]{0,30}｜?|(?:tool|function)[\w=.-]*)?\Z"
)
_CHANNEL = "<|channel|>"
_CHANNEL_MARK = re.compile(re.escape(_CHANNEL))
_SEGMENT = re.compile(
    r"<\|channel\|>(?P<head>.*?)<\|message\|>(?P<body>.*?)"
    r"(?P<end><\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w.-]+)")
# The same channels where a server has dropped the marks themselves.
_ANALYSIS = "analysis"
_BARE_CHANNEL = re.compile(rf"\s*{_ANALYSIS}(?=[A-Z\"“\u3400-\u9fff])")
_BARE_FINAL = "assistantfinal"
_SUSPECT = ("<", "[", "{", "◁", "(", "`", "~", _ANALYSIS, "tool_code")
_HELD_BACK = (
    *_BEGINNINGS, *_ENDS, *CALL_MARKS, "<s>", _CHANNEL, "tool_code\n",
    *(mark for pair in _THOUGHTS for mark in pair),
)  # fmt: skip
_LONGEST_MARK = 34  # of the usual shape
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>")  # GLM: around what is the answer
_BEFORE_WORDS = re.compile(r"[\s\-*>#\d.]*")
_SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_AFTER_WORDS = f"*{_SPACES}{''.join(map(chr, range(0x2000, 0x200B)))}"
_ECHO = 40  # characters; shorter lines may be anybody's
_TIME = r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d\][ \t]*)?"
_BEGUN_TIME = re.compile(r"\A\s*\[[\d: -]{0,16}(?:\]|\Z)")
_OWN_LINE = re.compile(rf"{_TIME}\[you\][ \t]*[:：]")
_BEGUN_OWN_LINE = re.compile(
    r"(?:\[[\d: -]{0,16}\]?[ \t]*)?(?:\[(?:y(?:o(?:u(?:\][ \t]*)?)?)?)?)?\Z"
)
_UNOPENED = re.compile(r"\br1\b|qwq|think|reason|magistral", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The words for people, and the tool calls that stood among them as text."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """What is known of a prompt whose answer is read: the name the model speaks under, the rules it
    was given, and the tools it can name."""

    own_name: str = ""
    rules: str = ""
    tools: Collection[str] = ()


class Cleaner:
    """Reads the texts of one model.

    Some models send thoughts without their opening tag. The first time only the closing tag tells;
    from then on an unfinished text is shown after it. Models known for this by their name are
    treated so from the start.
    """

    def __init__(self, model_name: str = "") -> None:
        self._thinks_unopened = bool(_UNOPENED.search(model_name))

    def read(self, text: str, manner: Manner, *, complete: bool = True) -> Cleaned:
        """What `text` says to people. Not `complete`: as far as that is certain already."""
        calls: tuple[ToolCall, ...] = ()
        if not complete and (self._is_thinking(text) or _ANALYSIS.startswith(text.strip())):
            return Cleaned("")
        if _is_suspect(text) or not (complete or _is_past_beginnings(text)):
            text, calls = self._without_marks(text, manner, complete=complete)
        text = _without_label(text, manner.own_name, complete=complete)
        text = _before_own_line(text, complete=complete)
        return Cleaned(_without_echoes(text, manner.rules, complete=complete), calls)

    def _is_thinking(self, text: str) -> bool:
        return self._thinks_unopened and not any(end in text for end in _CLOSING.values())

    def _without_marks(
        self, text: str, manner: Manner, *, complete: bool
    ) -> tuple[str, tuple[ToolCall, ...]]:
        text, channel_calls = _of_channels(text, complete=complete)
        text = _without_boxes(text, complete=complete)
        text = _without_start(text, complete=complete)
        text = self._without_thoughts(text, complete=complete)
        end = _end(text, complete=complete)
        if end < len(text):
            end = _before_echo(text, end, manner.rules)
            text = text[:end].rstrip() if complete else text[:end]
        text, calls = text_tool_calls(text, manner.tools, complete=complete)
        return text, (*channel_calls, *calls)

    def _without_thoughts(self, text: str, *, complete: bool) -> str:
        has_more = True
        while has_more:
            text, has_more = self._without_thought(text, complete=complete)
        return text

    def _without_thought(self, text: str, *, complete: bool) -> tuple[str, bool]:
        """`text` without its first thought, and whether another may follow."""
        for match in outside_code(_THOUGHT_MARK, text, complete=complete):
            mark, before = match[0], text[: match.start()]
            if not complete and is_open(before):
                return before, False
            if mark in _CLOSING:
                _, closing, rest = text[match.end() :].partition(_CLOSING[mark])
                if complete and not closing and before.strip() and not before.endswith("\n"):
                    continue  # somebody writes about the tag
                text = f"{before}{rest.lstrip()}" if closing else before
            else:
                self._thinks_unopened = True
                text = text[match.end() :].lstrip()
            return text, True
        return text, False


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the answers to one prompt."""

    cleaner: Cleaner = field(default_factory=Cleaner)
    manner: Manner = Manner()

    def read(self, text: str, *, complete: bool = True) -> Cleaned:
        """`Cleaner.read`."""
        return self.cleaner.read(text, self.manner, complete=complete)


def after_thoughts(text: str) -> str:
    """What follows the last mark that ends a thought; "" without one. Some servers put that into
    the field for thoughts."""
    end = max(text.rfind(mark) + len(mark) if mark in text else 0 for mark in _CLOSING.values())
    return text[end:].strip() if end else ""


def _is_suspect(text: str) -> bool:
    """Whether there may be marks in `text`; without, a finished one has none."""
    return any(sign in text for sign in _SUSPECT) or bool(_BARE_ROLE.match(text))


def _is_past_beginnings(text: str) -> bool:
    """Whether an unfinished text without anything suspicious cannot be the beginning of a mark: it
    has more than one word, and its last line is none that may become `tool_code`."""
    last_line = text[text.rfind("\n") + 1 :]
    return len(text.split(maxsplit=1)) > 1 and not "tool_code".startswith(last_line)


_THOUGHT_MARK = re.compile("|".join(re.escape(mark) for pair in _THOUGHTS for mark in pair))


def _without_start(text: str, *, complete: bool) -> str:
    """`text` without the marks and the role that begin a turn."""
    start = _START.match(text) or _BARE_ROLE.match(text)
    if not start:
        is_incomplete = not complete and any(role.startswith(text.strip()) for role in _BARE_ROLES)
        return "" if is_incomplete else text
    rest = text[start.end() :]
    return "" if not complete and any(role.startswith(rest) for role in _ROLES) else rest


def _without_boxes(text: str, *, complete: bool) -> str:
    parts, at = [], 0
    for match in outside_code(_BOX, text, complete=complete):
        parts.append(text[at : match.start()])
        at = match.end()
        if not complete and is_open(text[: match.start()]):
            return "".join(parts)
    return "".join([*parts, text[at:]])


def _of_channels(text: str, *, complete: bool) -> tuple[str, tuple[ToolCall, ...]]:
    """The final channel of gpt-oss, and the calls it makes in others."""
    if _BARE_CHANNEL.match(text):
        _, marker, final = text.partition(_BARE_FINAL)
        return (final if marker or not complete else text), ()
    first = next(outside_code(_CHANNEL_MARK, text, complete=complete), None)
    if first is None:
        return text, ()
    if not complete and is_open(text[: first.start()]):
        return text[: first.start()], ()
    parts = [text.partition(_CHANNEL)[0].replace("<|start|>assistant", "")]
    calls: list[ToolCall] = []
    for match in _SEGMENT.finditer(text):
        to = _RECIPIENT.search(match["head"])
        if to:
            calls.append(ToolCall(f"channel_{len(calls)}", to[1], match["body"].strip() or "{}"))
        elif not match["head"].lstrip().startswith("analysis"):
            parts.append(match["body"])
    return "".join(parts), tuple(calls)


def _end(text: str, *, complete: bool) -> int:
    """Where the turn ends. Of an unfinished text, where a mark may have begun at its end."""
    for match in outside_code(_MARK, text, complete=complete):
        if match[0] != "</s>" or not _is_struck_out(text, match.start()):
            return match.start()
    if complete:
        return len(text)
    tail = len(text) - _LONGEST_MARK
    starts = (at for at in range(max(0, tail), len(text)) if _may_begin_mark(text, at))
    return next(starts, len(text))


def _may_begin_mark(text: str, at: int) -> bool:
    if text[at] == "t":
        return text[at - 1 : at] in ("", "\n") and "tool_code\n".startswith(text[at:])
    if text[at] not in "<[◁":
        return False
    return bool(_BEGUN_TOKEN.match(text, at)) or any(m.startswith(text[at:]) for m in _HELD_BACK)


def _is_struck_out(text: str, end: int) -> bool:
    """Whether `</s>` closes a `<s>` that strikes something out."""
    before = text[:end]
    return before.count("<s>") > before.count("</s>")


def _without_label(text: str, own_name: str, *, complete: bool) -> str:
    """`text` without the label that lines in a prompt bear: `Name:` or `[you]:`, some after their
    time."""
    labels = [own_name, f"{own_name} [you]", "[you]"] if own_name else ["[you]"]
    if label := _label(tuple(labels)).match(text):
        return text[label.end() :]
    label_start = _BEGUN_TIME.sub("", text).strip().strip("*_ :：")
    is_unfinished = not complete and any(label.startswith(label_start) for label in labels)
    return "" if is_unfinished else text


@lru_cache
def _label(labels: tuple[str, ...]) -> re.Pattern[str]:
    name = "|".join(map(re.escape, labels))
    bold = "|".join(rf"{m}(?:{name})(?:\s*[:：]{m}|{m}\s*[:：])" for m in (r"\*\*", "__"))
    return re.compile(rf"\s*{_TIME}(?:{bold}|(?:{name})\s*[:：])\s*")


def _before_own_line(text: str, *, complete: bool) -> str:
    """`text` up to a line that the model invents as said by the bot, in the form of the prompt."""
    if ("[you]" if complete else "[") not in text:
        return text
    for match in outside_code(_OWN_LINE, text, complete=complete):
        return text[: match.start()].rstrip()
    line_start = None if complete else _BEGUN_OWN_LINE.search(text)
    return text[: line_start.start()] if line_start else text


def _without_echoes(text: str, rules: str, *, complete: bool) -> str:
    """`text` without lines of the instructions."""
    if not rules:
        return text
    flat_rules = _flat(rules)
    *lines, last = text.split("\n")
    kept_lines = [line for line in lines if not _is_echo(line, flat_rules)]
    if complete or _plain(last) not in flat_rules:
        if not _is_echo(last, flat_rules):
            kept_lines.append(last)
        if len(kept_lines) == len(lines) + 1:
            return text
    text_left = "\n".join(kept_lines)
    return text_left if len(kept_lines) == len(lines) else text_left.strip("\n")


def _before_echo(text: str, end: int, rules: str) -> int:
    """Where the line begins in which `text` ends at a mark, if it is one of the instructions.

    They name such marks, and what stands before one may be too short to be known for an echo.
    """
    start = text.rfind("\n", 0, end) + 1
    line = text[start:].partition("\n")[0]
    return start if rules and _is_echo(line, _flat(rules)) else end


def _is_echo(line: str, rules: str) -> bool:
    plain = _plain(line)
    return len(plain) >= _ECHO and plain in rules


@lru_cache(maxsize=64)
def _flat(rules: str) -> str:
    """The instructions as one line, because models break lines elsewhere."""
    return " ".join(map(_plain, rules.split("\n")))


def _plain(line: str) -> str:
    """The words of a line, without the marks of lists and headings around them."""
    words = _BEFORE_WORDS.sub("", line, count=1).rstrip(_AFTER_WORDS)
    return " ".join(words.split()).casefold()
