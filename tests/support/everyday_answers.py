"""Everyday sentences with the bot's answers, as one text a language.

Each scene is a chat of its own. A line without indentation is said to the bot there, and the
indented lines below it are everything that the bot shows then."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox.world.actors import Speech
from sandbox.world.entities import SandboxMessage
from sandbox.world.wire import card_of
from tests.support.whole_turns import Stage

PEOPLE = ("Alice", "Bob", "陈晨")
_MASKS = (
    (re.compile(r"https?://[^\s)]+"), "<link>"),
    (re.compile(r"<at id=\S+?></at> ?"), ""),
    (re.compile(r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug"
                r"|Sep|Oct|Nov|Dec)\b(?: \d{4})?"), "<day>"),
    (re.compile(r"(?:\d{4}年)?\d{1,2}月\d{1,2}日(?:（周[一二三四五六日]）)?"), "<day>"),
    (re.compile(r"(?<=since <day> at )\d\d:\d\d|(?<=<day> )\d\d:\d\d(?= 起|）：| 发的)"
                r"|(?<=[A-Z]\w{4}, <day> at )\d\d:\d\d|(?<=said on <day> at )\d\d:\d\d"), "<time>"),
    (re.compile(r"(?<=\*\* \().+(?=, \d+ message)|(?<=\*\*（).+(?=，\d+ 条消息)"), "<span>"),
)  # fmt: skip
_DAY = re.compile(r"<day \+(\d)>")
_WEEKDAYS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "zh": "周一 周二 周三 周四 周五 周六 周日".split(),
}


def scenes(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The heading of each scene, which says where it is, and what is said there in turn."""
    for part in file.read_text().split("\n# ")[1:]:
        heading, *lines = part.splitlines()
        yield heading, [line for line in lines if line and not line.startswith(" ")]


class Everyday:
    """The bot on its stage, with people and a new group of theirs for each scene."""

    def __init__(self, stage: Stage, language: str) -> None:
        self._stage, self._platform, self._language = stage, stage.town.platform, language
        self._people = {n: self._platform.actors.add_person(n).open_id for n in PEOPLE}
        self._seen = set[str]()

    async def play(self, heading: str, sentences: list[str]) -> list[str]:
        """What is said and shown, line by line. The bot's greeting of the group is left out."""
        self._in_private = heading.startswith("private")
        members = list(self._people.values())
        self._group = self._platform.groups.add(heading.split(": ")[1], members).chat_id
        await self._stage.handle_all()
        list(self._new_lines())
        shown: list[str] = []
        for sentence in sentences:
            speaker, words = sentence.split(": ", 1)
            self._say(speaker, _DAY.sub(self._weekday, words))
            await self._stage.handle_all()
            shown += [sentence, *(f"    {line}".rstrip() for line in self._new_lines())]
        return shown

    def _say(self, speaker: str, words: str) -> None:
        person, world = self._people[speaker], self._platform.world
        chat = world.p2p_chat(person).chat_id if self._in_private else self._group
        is_aside = words.startswith("(") or self._in_private
        text = words.strip("()") if is_aside else f"@{world.bot.name} {words}"
        self._platform.actors.say(Speech(person, chat, text))

    def _weekday(self, days: re.Match[str]) -> str:
        """`<day +3>`: the weekday of the day after the day after tomorrow."""
        now = self._stage.services.now()
        return _WEEKDAYS[self._language][(now.weekday() + int(days[1])) % 7]

    def _new_lines(self) -> Iterator[str]:
        world = self._platform.world
        chats = (self._group, *(world.p2p_chat(one).chat_id for one in self._people.values()))
        messages = [world.messages[id] for chat in chats for id in world.by_chat.get(chat, [])]
        new = [one for one in messages if one.message_id not in self._seen]
        self._seen |= {one.message_id for one in new}
        answers = [one for one in new if one.sender == world.bot.open_id]
        for answer in answers or [None]:
            yield from self._lines_of(answer) if answer else ["(silence)"]

    def _lines_of(self, message: SandboxMessage) -> Iterator[str]:
        if message.visible_to:
            yield f"[only {self._platform.world.people[message.visible_to].name}]"
        elif message.chat_id != self._group and not self._in_private:
            yield "[in private]"
        for line in "\n".join(_texts(card_of(self._platform.world, message))).splitlines():
            yield _masked(line)


def _texts(card: Any) -> Iterator[str]:
    """What a card says, without its footer."""
    if isinstance(card, str):
        card = json.loads(card)
    elements = card["body"]["elements"]
    yield from _texts_of(
        [one for one in elements if one.get("element_id") not in ("foot", "handles")]
    )


def _texts_of(element: Any) -> Iterator[str]:
    match element:
        case list():
            for one in element:
                yield from _texts_of(one)
        case {"tag": "button", "text": {"content": label}}:
            yield f"[{label}]"
        case {"tag": "select_static", "options": options}:
            yield f"({' | '.join(one['text']['content'] for one in options)})"
        case {"content": str(content)}:
            yield content
        case dict():
            yield from _texts_of(
                [value for value in element.values() if isinstance(value, list | dict)]
            )


def _masked(line: str) -> str:
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line
