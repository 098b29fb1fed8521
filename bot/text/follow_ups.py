"""Questions to go on with: they stand on buttons and nowhere else. Pure, linear.

A button asks exactly what stands on it, so what does not fit is refused and never cut, and what a
model writes is never a command.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bot.text.markdown import ITEM
from bot.text.slash_commands import parse_command
from memory.text import display_width

MOST_FOLLOW_UPS = 3
# Two for a Chinese character: what a button shows in two lines on a phone.
MOST_COLUMNS = 80
_SCANNED_LINES = 40

_CUE = re.compile(
    r"\byou (?:might|may|could|can) (?:also|want to|like to)\b.{0,20}\bask\b"
    r"|\b(?:suggested|related|follow[- ]?up|further|next) questions?\b"
    r"|\bquestions? (?:that )?you (?:might|may|could|can)\b.{0,20}\bask\b"
    r"|(?:还|也|继续|接着|接下来).{0,6}(?:可以|能|想)?.{0,4}(?:问|追问|提问)(?:我|：|:|$)"
    r"|(?:后续|相关|推荐|延伸)(?:的)?(?:问题|提问)|猜你想问|可能还?想(?:问|知道|了解)",
    re.IGNORECASE,
)
_TO_EVERYBODY = re.compile(
    r"[@＠][\s_]*(?:(?:all|everyone|everybody)(?![a-z])|所有人|全体|全员)|<at\s[^<>]*\ball\b",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[*_`#>~\"'“”‘’「」]+")
_TYPED_ITEM = re.compile(r"\A\s*(?:[•●▪◦‣]|\d{1,2}、|[①-⑳]|[❓❔👉➡️▶️]+)\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")
_ANNOUNCEMENT = re.compile(r"([^:：]*[:：])(.+)")
_QUESTION = re.compile(r"(?<![^?？])[^?？]+[?？]")
_LIST_ITEM = re.compile(r"\A\s*(?:[-*+]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True)
class FollowUpEnding:
    """A text without the questions that ended it, and these questions."""

    text: str
    questions: tuple[str, ...] = ()


def question_of(text: str) -> str | None:
    """`text` as a button shows and asks it, one line; None when it is too long for a button, is a
    command, addresses everybody, or says nothing."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if _TO_EVERYBODY.search(line):
        return None
    plain = re.sub(r"^(?:@\S+\s*)+", "", line)
    if not line or display_width(line) > MOST_COLUMNS:
        return None
    return None if plain.startswith(("/", "／")) or parse_command(plain) else line


def questions_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Up to three different questions that stand on buttons as they are."""
    questions = (question_of(text) for text in texts)
    return tuple(dict.fromkeys(question for question in questions if question))[:MOST_FOLLOW_UPS]


def split_follow_ups(text: str, suggestions: Collection[str]) -> FollowUpEnding:
    """`text` parted from the follow-up questions listed at its end, and what the buttons ask.

    With `suggestions` questions these are asked, and a list of the same, or one under words like
    “You might also ask”, is gone from the text. Without any, such a list itself becomes buttons, if
    all of it fits. Text that would be nothing else stays.
    """
    suggested_questions = questions_of(suggestions)
    listing = _listed_questions(text, {_key(question) for question in suggestions})
    if not listing.questions or not listing.text.strip():
        return FollowUpEnding(text, suggested_questions)
    if suggested_questions:
        return FollowUpEnding(listing.text, suggested_questions)
    offered_questions = questions_of(listing.questions)
    whole = len(offered_questions) == len(listing.questions) and not suggestions
    return FollowUpEnding(listing.text, offered_questions) if whole else FollowUpEnding(text)


def text_before_questions(partial: str) -> str:
    """An unfinished text up to the words that announce follow-up questions at its end: they are
    likely to become buttons."""
    lines = partial.split("\n")
    for number in range(len(lines) - 1, max(len(lines) - _SCANNED_LINES, 0), -1):
        line = lines[number]
        is_last = number == len(lines) - 1
        in_a_row = _ANNOUNCEMENT.fullmatch(line) if is_last else None
        words = in_a_row[1] if in_a_row else line
        if _announces(words):
            return "\n".join([*lines[:number], _last_sentence(words)[0]]).rstrip()
        if line.strip() and not (is_last or _is_item(line) or line.rstrip().endswith(("?", "？"))):
            break
    return partial


def _listed_questions(text: str, known_keys: Collection[str]) -> FollowUpEnding:
    lines = _in_lines(text.rstrip().split("\n"))
    at, questions = _last_items(lines)
    lead = lines[at - 1] if at else ""
    head, tail = _last_sentence(lead)
    is_announced = bool(_CUE.search(_plain(tail)))
    same = [_key(question) in known_keys for question in questions]
    asking = (q.endswith(("?", "？")) for q in questions)
    all_asked = all(is_same or asks for is_same, asks in zip(same, asking, strict=True))
    if not questions or not (all(same) or (is_announced and all_asked)):
        return FollowUpEnding(text)
    if is_announced or tail.rstrip("*_ ").endswith((":", "：")):
        lines[at - 1] = head
    return FollowUpEnding(_without_rule(lines[:at]), questions)


def _in_lines(lines: list[str]) -> list[str]:
    """`lines`, with questions right after the words that announce them on their own lines."""
    announcement = _ANNOUNCEMENT.fullmatch(lines[-1])
    rest = _plain(announcement[2]) if announcement else ""
    if not announcement or not _announces(announcement[1]) or not rest.endswith(("?", "？")):
        return lines
    return [*lines[:-1], announcement[1], *_QUESTION.findall(rest)]


def _last_items(lines: list[str]) -> tuple[int, tuple[str, ...]]:
    """The number of the first of the listed lines that end the text, and what they say."""
    items: list[str] = []
    has_marker = False
    at = len(lines)
    first = at
    while at > 0 and len(items) <= _SCANNED_LINES:
        at -= 1
        line = lines[at]
        if not line.strip():
            continue
        is_item = _is_item(line)
        question = _plain_line(line)
        if not is_item and (has_marker or not question.endswith(("?", "？"))):
            at += 1
            break
        has_marker = has_marker or is_item
        items.append(question)
        first = at
    while first > 0 and not lines[first - 1].strip():
        first -= 1
    return first, tuple(reversed(items))


def _announces(line: str) -> bool:
    _, tail = _last_sentence(line)
    return len(tail) <= 80 and bool(_CUE.search(_plain(tail))) and not _is_item(line)


def _last_sentence(line: str) -> tuple[str, str]:
    """`line` before its last sentence, and that one."""
    length = len(line.rstrip("*_ "))
    ends = [end.end() for end in _SENTENCE_END.finditer(line) if end.end() < length]
    sentence_start = ends[-1] if ends else 0
    return line[:sentence_start].rstrip(), line[sentence_start:]


def _without_rule(lines: list[str]) -> str:
    while lines and (not lines[-1].strip() or _RULE.fullmatch(lines[-1])):
        lines = lines[:-1]
    return "\n".join(lines).rstrip()


def _is_item(line: str) -> bool:
    return bool(ITEM.fullmatch(line) or _TYPED_ITEM.match(line))


def _plain_line(line: str) -> str:
    """What an item says, without marks."""
    bare = _TYPED_ITEM.sub("", _LIST_ITEM.sub("", line, count=1), count=1)
    return _plain(bare)


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub("", text).split())


def _key(text: str) -> str:
    """What two writings of one question have in common."""
    return "".join(c for c in text.casefold() if c.isalnum())
