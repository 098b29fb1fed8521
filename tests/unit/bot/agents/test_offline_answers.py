"""What a group is told by rules: the statement that holds, with whoever differs, and else nothing.

The conversations are not those of `tests/data/group_scenes.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.agents.llm.model import Message, Request
from bot.agents.offline.evidence import statements
from bot.agents.offline.model import next_step, situation_of
from bot.agents.offline.prompt_reading import PromptLine
from bot.agents.prompts.prompt import KNOWN_HEADING, QUESTION_HEADING, RECALLED
from bot.agents.tool_types import Toolbox
from bot.feishu.markup import with_marks
from tests.support.group_scenes import wrong_answer
from tests.support.rows import every_row

ANSWERS = Path(__file__).parents[3] / "data" / "offline" / "answers.txt"
NOW = "Now:\n2026-11-28 10:00 Saturday (Asia/Shanghai)"
RULES = {"role": "system", "content": "You are Memo, a colleague in Feishu."}
_MENTION = re.compile(r"([^>:]{1,40})> (.*)")


@dataclass(frozen=True)
class Conversation:
    """A block of the file: what is said, the question, and what is wanted of the answer."""

    lines: tuple[str, ...]
    question: str
    wanted: dict[str, list[str] | str]


def conversations() -> Iterator[tuple[str, Conversation]]:
    """Each conversation with its heading."""
    for section in ANSWERS.read_text(encoding="utf-8").split("## ")[1:]:
        heading, _, body = section.partition("\n")
        for block in body.strip().split("\n\n"):
            rows = block.splitlines()
            marked = {row[0]: row[2:] for row in rows if row[:2] in ("? ", "= ", "- ", "! ")}
            wanted: dict[str, list[str] | str] = {
                "want": marked["="].split(" ; "),
                "stale": marked.get("-", ""),
                "never": marked.get("!", ""),
            }
            lines = tuple(row for row in rows if row[0] not in "?=-!")
            yield heading, Conversation(lines, marked["?"], wanted)


def messages_of(conversation: Conversation) -> list[Message]:
    """The conversation as the window of a prompt."""
    window: list[Message] = []
    for line in conversation.lines:
        match = _MENTION.match(line)
        said = f"{match[1]}: {match[2]}" if match else line
        stamp = "" if window else "[2026-11-28 09:50] "
        window.append({"role": "user", "content": f"{stamp}{said}"})
        if match:
            window.append({"role": "assistant", "content": f"@{match[1]} Noted."})
    question = f"{KNOWN_HEADING}\n\n{NOW}\n\n{QUESTION_HEADING}\n{conversation.question}"
    return [RULES, *window, {"role": "user", "content": question}]


def answer_to(messages: list[Message]) -> str:
    return with_marks(str(next_step(situation_of(Request(messages, Toolbox(()))))))


@pytest.mark.parametrize(
    "conversation", [pytest.param(one, id=heading) for heading, one in conversations()]
)
def test_the_answer_holds_what_was_said_last_and_nothing_else(conversation: Conversation) -> None:
    answer = answer_to(messages_of(conversation))
    assert not (why := wrong_answer(conversation.wanted, answer)), f"{why}\n{answer}"


@every_row(
    ("recalled_at", "newest"),
    [("2026-11-28 09:00", "Vera"), ("2026-11-28 09:45", "Vera"), ("2026-11-27 08:00", "Tomas")],
)
def test_a_recalled_line_counts_by_its_time(recalled_at: str, newest: str) -> None:
    known = (
        f"{KNOWN_HEADING}\n\n{NOW}\n\n"
        f"{RECALLED}\n[{recalled_at}] Dana: the reviewer is Vera now\n\n"
        f"{QUESTION_HEADING}\nBob: who is the reviewer?"
    )
    said = ("[2026-11-28 09:00] Alice: the reviewer is Tomas", "Emil: ok", known)
    answer = answer_to([RULES, *({"role": "user", "content": text} for text in said)])
    assert newest in answer.strip().splitlines()[-1 if "\n" not in answer else 2]


def test_a_short_correction_is_about_what_was_said_and_not_about_a_kept_fact_beside_it() -> None:
    lines = [
        PromptLine("the ferry to Rab leaves at 7:20", who="Alice"),
        PromptLine("下周去布拉格的是小林", who="Dana", earlier=True),
        PromptLine("nope, 7:50", who="Bob"),
    ]
    *_, correction = statements(lines)
    assert (correction.text, correction.about) == ("7:50", "the ferry to Rab leaves at 7:20")
