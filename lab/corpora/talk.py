"""Labelled messages: the rows of a .jsonl file, and talk that is written by hand (.talk).

A row is a message after a short context: `id`, `context` (author, is_bot, text; `other_bot` marks
another bot), `seconds_since_bot`, `author` (`is_bot` for another bot), `text`, `mentions` (bot,
other, all) and `expect` (respond, silent). Talk is written so:

    # en
    Ann> @Memo what is the wifi code for guests?
    Memo< The guest wifi is "Birch-Hall".
    7 Ann+ and for the workshop
    Memo< I know no other wifi.
    15 Bo- the workshop one is on the fridge

`# en` or `# zh` begins a conversation; nothing is learned from `# en held`. `Name>` is an earlier
line, `Memo<` one of the bot's. A number (seconds since the bot spoke first) labels a line, with `+`
for the bot and `-` for people. A line for the bot precedes later ones only if the bot's answer
follows it; otherwise each is asked as if it were not there.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BOT = "Memo"
ANSWER_TAKES_S = 3  # from the line to the bot's answer
_HEAD = re.compile(r"# *(en|zh)( held)?")
_LABELLED = re.compile(r"(\d+) (\S+?)([+-]) (.+)")
_SAID = re.compile(r"(\S+?)> (.+)")
_ANSWERED = re.compile(rf"{BOT}< (.+)")


@dataclass
class _Talk:
    """A conversation as far as it was read. `open` is the line for the bot that it may answer next,
    with its seconds and its place."""

    lang: str
    held: bool
    number: int
    context: list[Mapping[str, Any]] = field(default_factory=list)
    spoke_at: int = 0
    open: tuple[int, int, Mapping[str, Any]] | None = None

    def say(self, author: str, text: str) -> None:
        self.context.append({"author": author, "is_bot": author == BOT, "text": text})

    def answer(self, text: str) -> None:
        if self.open:
            at, place, line = self.open
            self.context.insert(place, line)
            self.spoke_at = at + ANSWER_TAKES_S
            self.open = None
        self.say(BOT, text)

    def row(self, at: int, author: str, text: str, *, for_bot: bool) -> Mapping[str, Any]:
        row = {
            "conversation": f"talk {self.number}",
            "split": "held" if self.held else "tune",
            "lang": self.lang,
            "context": list(self.context),
            "seconds_since_bot": at - self.spoke_at,
            "author": author,
            "text": text,
            "mentions": [],
            "expect": "respond" if for_bot else "silent",
        }
        line = {"author": author, "is_bot": False, "text": text}
        self.open = (at, len(self.context), line) if for_bot else None
        if not for_bot:
            self.context.append(line)
        return row


def labelled_rows(file: Path) -> list[Mapping[str, Any]]:
    """Reads a .talk or .jsonl file. Raises `OSError`, `ValueError`."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".talk":
        return list(rows_of_talk(text))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def rows_of_talk(text: str) -> Iterator[Mapping[str, Any]]:
    """Yields a row for each labelled line, whose number is its id. Raises `ValueError`, which names
    the malformed line."""
    talk: _Talk | None = None
    talks = 0
    for number, line in enumerate(text.splitlines(), 1):
        if head := _HEAD.fullmatch(line.strip()):
            talks += 1
            talk = _Talk(head[1], bool(head[2]), talks)
        elif line.strip():
            if talk is None:
                raise ValueError(f"line {number}: a conversation begins with # en or # zh")
            if row := _read(talk, line.strip(), number):
                yield {"id": f"line {number}", **row}


def _read(talk: _Talk, line: str, number: int) -> Mapping[str, Any] | None:
    if answered := _ANSWERED.fullmatch(line):
        talk.answer(answered[1])
    elif labelled := _LABELLED.fullmatch(line):
        at, author, label, text = labelled.groups()
        if not any(said["is_bot"] for said in talk.context):
            raise ValueError(f"line {number}: the bot has not spoken yet")
        return talk.row(int(at), author, text, for_bot=label == "+")
    elif said := _SAID.fullmatch(line):
        talk.say(said[1], said[2])
    else:
        raise ValueError(f"line {number}: neither “Name> …”, “{BOT}< …” nor “7 Name+ …”")
    return None
