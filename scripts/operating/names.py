"""Names of people and chats, which operators read before their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import psycopg

from bot.operations.console.context import ConsoleDatabase, display_names
from bot.text.languages import Language, Sentence

NamesOf = Callable[[Iterable[str]], Mapping[str, Sentence]]

# A person, a chat, or a conversation of either.
_ID = re.compile(r"(?:feishu:)?\b((?:oc|ou)_[0-9A-Za-z_-]+)(?:~\w+)?(?::\w+)?")


def names_of(url: str, ids: Iterable[str]) -> Mapping[str, Sentence]:
    """The names of people and chats by id, as far as they are known; none where the database does
    not answer."""
    wanted = sorted(set(ids))
    people, chats = ([one for one in wanted if one.startswith(kind)] for kind in ("ou_", "oc_"))
    if not wanted:
        return {}
    try:
        with ConsoleDatabase(url).view() as view:
            known = display_names(view, people, chats)
    except psycopg.Error:
        return {}
    of_people = {one: Sentence(name, name) for one in people if (name := known.person(one))}
    return of_people | {one: _said(*known.chat(one)) for one in chats if known.chat(one)[0]}


class NamedIds:
    """Texts with names before their ids; what was looked up once is kept."""

    def __init__(self, language: Language, look_up: NamesOf) -> None:
        self._language = language
        self._look_up = look_up
        self._known: dict[str, Sentence | None] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Looks up the ids in the texts, all at once."""
        ids = {found[1] for text in texts for found in _ID.finditer(text)} - self._known.keys()
        self._known |= dict.fromkeys(ids) | dict(self._look_up(ids))

    def put(self, text: str) -> str:
        """“Alice (ou_…)” for each id in it whose name is known."""
        self.learn([text])
        return _ID.sub(self._named, text)

    def put_into_cell(self, cell: str) -> str:
        """The same where the cell holds nothing but ids: other text is what people wrote."""
        parts = cell.split(", ")
        return self.put(cell) if all(map(_ID.fullmatch, parts)) else cell

    def _named(self, found: re.Match[str]) -> str:
        name = self._known.get(found[1])
        return f"{name.said(self._language)} ({found[0]})" if name else found[0]


def _said(name: str, kind: str) -> Sentence:
    if kind == "p2p":
        return Sentence(f"private chat with {name}", f"与 {name} 的单聊")
    return Sentence(name, name)


class NotKnown(Exception):
    """Nothing is stored about whom the arguments name; `sentence` says so and what to do."""

    def __init__(self, sentence: Sentence) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence
