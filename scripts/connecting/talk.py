"""How set-up talks: in one language, to a terminal or to a pipe, asking only where it may."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from rich.cells import cell_len

from bot.operations.doctor.result import Check
from bot.settings import SettingsError
from bot.text.languages import Language, Sentence
from scripts.operating.checklist import WIDTH, show_line, wrapped
from scripts.operating.console import Screen


class Unanswered(Exception):
    """A question that nobody answers: with --yes, or at the end of what was piped in."""

    def __init__(self, option: str) -> None:
        self.sentence = Sentence(
            f"nobody is there to answer: add {option}, or run this in a terminal",
            f"没有人可以回答：请加上 {option}，或在终端中运行",
        )
        super().__init__(self.sentence.en)


@dataclass(frozen=True, slots=True)
class Talk:
    """`asks`: whether somebody can answer. All output is flushed at once, for people wait on it."""

    language: Language
    asks: bool
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    def say(self, sentence: Sentence, *, indent: str = "") -> None:
        lines = wrapped(sentence.said(self.language), WIDTH - cell_len(indent))
        for number, line in enumerate(lines):
            print(f"{indent if number == 0 else ' ' * cell_len(indent)}{line}")
        sys.stdout.flush()

    def title(self, sentence: Sentence) -> None:
        print()
        Screen().say(sentence.said(self.language), style="bold")
        sys.stdout.flush()

    def step(self, title: Sentence) -> None:
        """The title of the next step, with its number."""
        number = next(self._numbers)
        self.title(Sentence(f"{number}. {title.en}", f"{number}. {title.zh}"))

    def raw(self, text: str) -> None:
        """Something to be copied, as it is."""
        print(text, flush=True)

    def check(self, check: Check) -> None:
        show_line(Screen(), check, self.language)

    def ask(self, question: Sentence, *, option: str, default: str = "") -> str:
        """A line, stripped. Raises `Unanswered` when there is nobody, and no default."""
        if not self.asks:
            return _or_raise(default, option)
        hint = f" [{default}]" if default else ""
        print(f"{question.said(self.language)}{hint}: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            raise Unanswered(option)
        return line.strip() or default

    def secret(self, question: Sentence, *, option: str) -> str:
        """Like `ask`, unseen on a terminal."""
        if not (self.asks and sys.stdin.isatty()):
            return self.ask(question, option=option)
        try:
            return getpass.getpass(f"{question.said(self.language)}: ").strip()
        except EOFError:
            print()
            raise Unanswered(option) from None

    def ask_until(self, valid: Callable[[str], None], ask: Callable[[], str]) -> str:
        """Asks until the answer is one that the bot would start with. `valid` raises
        `SettingsError`, which goes on where nobody can answer again."""
        while True:
            value = ask()
            try:
                valid(value)
            except SettingsError as exc:
                if not self.asks:
                    raise
                self.say(Sentence(str(exc), exc.zh), indent="  ✗ ")
            else:
                return value

    def confirmed(self, question: Sentence) -> bool:
        """True if the answer is yes or empty, or if there is nobody to ask."""
        if not self.asks:
            return True
        asked = Sentence(f"{question.en} [Y/n]", f"{question.zh} [Y/n]")
        answer = self.ask(asked, option="--yes")
        return not answer or answer.lower() in ("y", "yes", "是", "好")

    def chosen(self, question: Sentence, choices: Sequence[Sentence], *, option: str) -> int:
        """The number of a choice, counted from 0; the first is the default."""
        for number, choice in enumerate(choices, 1):
            self.say(choice, indent=f"  {number}  ")
        while True:
            answer = self.ask(question, option=option, default="1")
            if answer.isdecimal() and 1 <= int(answer) <= len(choices):
                return int(answer) - 1
            self.say(_out_of(len(choices)), indent="  ✗ ")


def require_answer(value: str) -> None:
    """Raises `SettingsError` for an empty answer where there is no usual one."""
    if not value:
        raise SettingsError("This cannot be empty.", "这里不能留空。")


def _out_of(choices: int) -> Sentence:
    return Sentence(f"Choose a number from 1 to {choices}.", f"请输入 1 到 {choices} 之间的数字。")


def _or_raise(default: str, option: str) -> str:
    if not default:
        raise Unanswered(option)
    return default
