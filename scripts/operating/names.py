"""Names and ids: what operators read before an id, and whom they mean by what they type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import psycopg

from bot.operations.console.context import ConsoleDatabase, display_names
from bot.text.languages import Language, Sentence
from memory.scope import FeishuPerson

if TYPE_CHECKING:
    from scripts.operating.desk import OperatorDesk

_PAGE = 1000
_SHOWN = 5

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


async def person_meant(desk: OperatorDesk, text: str, tenant: str | None = None) -> str:
    """The open_id of the person meant. Raises `NotKnown` for nobody, or for more than one."""
    if text.startswith("ou_") and not text.endswith("…") and await _is_stored(desk, text, tenant):
        return text
    wanted, beginning = text.casefold(), text.rstrip("…")
    found = {
        open_id: name
        for open_id, name in (await everybody(desk, tenant)).items()
        if name.casefold() == wanted
        or (beginning.startswith("ou_") and open_id.startswith(beginning))
    }
    if len(found) == 1:
        return next(iter(found))
    raise NotKnown(_nobody(text) if not found else _several(text, sorted(found)))


async def everybody(desk: OperatorDesk, tenant: str | None = None) -> dict[str, str]:
    """Everybody's name by open_id, "" where it is not known."""
    found: dict[str, str] = {}
    after: FeishuPerson | None = None
    while True:
        page = await desk.people.listed(tenant_key=tenant, after=after, limit=_PAGE)
        found |= {one.person.open_id: one.name for one in page}
        if len(page) < _PAGE:
            return found
        after = page[-1].person


async def _is_stored(desk: OperatorDesk, open_id: str, tenant: str | None) -> bool:
    """Whether the memory or the queue holds anything of theirs."""
    counts = await desk.operations.count_person(open_id, tenant)
    return any(counts.values()) or bool(desk.queue.export(open_id))


def _nobody(text: str) -> Sentence:
    return Sentence(
        f"nothing is stored about {text!r}: scripts/check_memory lists whom the memory knows",
        f"没有关于 {text!r} 的任何内容：scripts/check_memory 会列出记忆中的成员",
    )


def _several(text: str, ids: list[str]) -> Sentence:
    listed = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    return Sentence(
        f"{len(ids)} people are meant by {text!r}: give one of {listed}",
        f"{text!r} 对应 {len(ids)} 个人：请指定其中之一：{listed}",
    )
