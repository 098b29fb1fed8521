"""What of an unfinished answer is shown, and how often. Pure."""

from __future__ import annotations

from collections.abc import Collection

from bot.agents.progress import Progress
from bot.feishu.normalising import normalised
from bot.outbox.texts import say
from bot.text.follow_ups import before_questions
from bot.text.languages import Language
from memory.text import columns

# After these a name is only known to have ended when the next character is there (`mentions`).
_WITHIN_NAMES = tuple(".-'’")

# Feishu: 10 operations a second on one card, and 1000 a minute on all cards of an app.
_LEAST_GAP_S = 0.6
_GAP_PER_STREAM_S = 0.07
_GAP_PER_CHARACTER_S = 1 / 40_000
_LINE = 60  # columns; a Chinese character takes two
_LONGEST_WAIT_S = 1.0
_LEAST_STAGE_GAP_S = 1.0
_STAGE_GAP_BESIDE_TEXT_S = 5.0
_FRAMES_PER_STAGE = 5  # of a busy app's operations one in so many may go to the seconds


def showable(progress: Progress, names: Collection[str], language: Language) -> str:
    """The text so far as far as its end is certain; before there is any, what goes on.

    `names` are of people whom the answer may address: an `@name` at the end that could still become
    one of them waits, because half a name may be another person's. So do follow-up questions, which
    become buttons. A code fence that is still open is closed.
    """
    return settled(progress.text, names) or status(progress.tool, language)


def status(tool: str, language: Language) -> str:
    """One line: the tool that runs, or that the model thinks."""
    return say("using" if tool else "thinking", language, tool=tool)


def stage(progress: Progress, seconds: float, language: Language) -> str:
    """What goes on and for how long, in small below the answer, which itself says it until there
    is text."""
    elapsed_text = say("seconds", language, seconds=max(0, int(seconds)))
    return f"{say('answering', language)} · {elapsed_text}" if progress.text else elapsed_text


def stage_gap_s(streams: int, *, with_text: bool = False) -> float:
    """Seconds between two times that a card shows how long it has taken: longer while text grows,
    which itself shows that the answer goes on."""
    least = _STAGE_GAP_BESIDE_TEXT_S if with_text else _LEAST_STAGE_GAP_S
    return max(least, streams * _GAP_PER_STREAM_S * _FRAMES_PER_STAGE)


def settled(text: str, names: Collection[str]) -> str:
    """Of an unfinished text what is certain (`showable`); "" when that is nothing."""
    return normalised(before_questions(_settled(text, names))).rstrip()


def line_gap_s(visible_text: str, text: str) -> float:
    """Seconds that `text` waits for more of its line after `visible_text`: none where it is a line
    longer, ends one, or is another text."""
    new_text = text.removeprefix(visible_text)
    is_line = new_text == text or "\n" in new_text.rstrip() or columns(new_text) >= _LINE
    return 0.0 if is_line else _LONGEST_WAIT_S


def frame_gap_s(characters: int, streams: int) -> float:
    """Seconds between two frames of a card: longer for long texts, and when many cards stream."""
    return max(_LEAST_GAP_S + characters * _GAP_PER_CHARACTER_S, streams * _GAP_PER_STREAM_S)


def _settled(text: str, names: Collection[str]) -> str:
    start = text.rfind("@")
    if start < 0:
        return text
    name_start = text[start + 1 :].casefold()
    folded_names = [name.casefold() for name in names]
    may_go_on = name_start[-1:] in _WITHIN_NAMES and name_start[:-1] in folded_names
    is_unfinished = may_go_on or any(name.startswith(name_start) for name in folded_names)
    return text[:start] if is_unfinished else text
