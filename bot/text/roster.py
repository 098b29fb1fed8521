"""Reads and writes the names of the people of a conversation. Pure.

A roster finds names in a text, at-tags of cards become names again, and a template says what
stands around the name of whom an answer addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

from bot.text.languages import InvalidValue
from bot.text.markdown import is_code_indent, opens_block

_GENERIC_NAME = re.compile(r"\w++(?:[.-]+\w++)*+(?!['’]\w)")
SEPARATORS = re.compile(r"[\s,，、:：]*")
_OPEN_ID = re.compile(r"ou_[A-Za-z0-9_-]+")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
EscapeText = Callable[[str], str]
_Value = TypeVar("_Value")

UNKNOWN_NAME = "someone"
CARD_AT_TAG = re.compile(r"<at\s+id=[\"']?([A-Za-z0-9_-]+)[\"']?\s*>[^<]*</at>", re.IGNORECASE)

_ASKER_WORDS = frozenset("me myself i asker 我 我自己 自己 本人".split())
_EVERYBODY_WORDS = frozenset(
    "us everyone everybody all group team channel chat here "
    "我们 咱们 大家 所有人 全体 全员 群里 各位".split()
)

AutoMention = Literal["sender", "meant", "off"]
_AT = "{at}"
_MOST_CHARACTERS = 60
_FORBIDDEN = frozenset("@<>&`{}|\\\r")
_BY_FLAG = {"true": "sender", "1": "sender", "yes": "sender", "on": "sender"}
_NOT_BY_FLAG = {"false": "off", "0": "off", "no": "off"}


@dataclass(frozen=True)
class Person:
    """Somebody in the chat. `name` is user-controlled; an empty one becomes `user-` + id tail."""

    open_id: str
    name: str
    is_bot: bool = False

    def __post_init__(self) -> None:
        name = " ".join(self.name.split()) or f"user-{self.open_id[-6:]}"
        object.__setattr__(self, "name", name)

    @property
    def at_tag(self) -> str | None:
        """The card's at-tag, None for an id that Feishu would refuse (230099/100290)."""
        return f"<at id={self.open_id}></at>" if _OPEN_ID.fullmatch(self.open_id) else None


@dataclass(frozen=True)
class Roster:
    """The people of a conversation. Names may prefix each other and be shared.

    `complete` says that these are all there are, not just one or two of many.
    """

    people: tuple[Person, ...] = ()
    complete: bool = True

    def including(self, *people: Person) -> Roster:
        """This roster and `people`, each person under each name once."""

        def make() -> Roster:
            return replace(self, people=tuple(dict.fromkeys((*self.people, *people))))

        return self._last("including", people, make)

    def people_named(self, name: str) -> tuple[Person, ...]:
        """Everybody of that name, in any case."""
        return self._by_name.get(name.casefold(), ())

    def names(self) -> dict[str, str]:
        """open_id → name."""
        return {person.open_id: person.name for person in self.people}

    def with_escaped_names(self, escape: EscapeText) -> Roster:
        """The same people under their names as they read in escaped text."""

        def make() -> Roster:
            escaped_names = [(person, escape(person.name)) for person in self.people]
            if not [name for person, name in escaped_names if person.name != name]:
                return self
            people = [Person(p.open_id, name, p.is_bot) for p, name in escaped_names]
            return replace(self, people=tuple(people))

        return self._last("escaped", escape, make)

    def index(self, *more: str) -> NameIndex:
        """The names to look for in a text, `more` among them."""

        def make() -> NameIndex:
            names = [*[person.name for person in self.people], *more]
            return NameIndex.of(names, complete=self.complete)

        return self._last("index", more, make)

    def _last(self, kind: str, key: object, make: Callable[[], _Value]) -> _Value:
        """What `make` gives, kept until another `key` comes: the frames of a card come by the dozen
        and ask the roster of their turn for the same."""
        entry = self._values.get(kind)
        if entry is None or entry[0] != key:
            self._values[kind] = entry = (key, make())
        last_made: _Value = entry[1]
        return last_made

    @cached_property
    def _values(self) -> dict[str, tuple[object, Any]]:
        return {}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Person, ...]]:
        people_by_name: dict[str, tuple[Person, ...]] = {}
        for person in self.people:
            key = person.name.casefold()
            people_by_name[key] = (*people_by_name.get(key, ()), person)
        return people_by_name


@dataclass(frozen=True)
class NameAddress:
    """`text[start:end]` is `@name`; `after` is where the text goes on after the separators."""

    name: str
    start: int
    end: int
    after: int


@dataclass(frozen=True)
class NameIndex:
    """Known names, case-folded, and their lengths from the longest."""

    keys: frozenset[str]
    lengths: tuple[int, ...]
    complete: bool

    @classmethod
    def of(cls, names: Iterable[str], *, complete: bool) -> NameIndex:
        nonempty = [name for name in names if name]
        lengths = sorted(set(map(len, nonempty)), reverse=True)
        return cls(frozenset(map(str.casefold, nonempty)), tuple(lengths), complete)

    def end(self, text: str, start: int) -> int | None:
        """Where the name that begins at `start` ends, None where there is no name."""
        for length in self.lengths:
            end = start + length
            is_known = end <= len(text) and text[start:end].casefold() in self.keys
            if is_known and _is_boundary(text, end, self.complete):
                return end
        generic = _GENERIC_NAME.match(text, start)
        return generic.end() if generic else None

    def opening(self, text: str) -> Iterator[NameAddress]:
        """The addresses that `text` begins with."""
        position = len(text) - len(text.lstrip())
        while text.startswith("@", position):
            end = self.end(text, position + 1)
            if end is None:
                return
            after = _end_of_separators(text, end)
            yield NameAddress(text[position + 1 : end], position, end, after)
            position = after


def _end_of_separators(text: str, end: int) -> int:
    """Where the text goes on after the separators; indented code keeps its first indentation."""
    following = SEPARATORS.match(text, end)
    after = following.end() if following else end
    *_, blank, indent = ["", "", *text[end:after].split("\n")]
    is_code = not blank.strip() and text.count("\n", end, after) > 1 and is_code_indent(indent)
    return after - len(indent) if is_code else after


def _is_boundary(text: str, end: int, complete: bool) -> bool:
    last, following, second = text[end - 1], text[end : end + 1], text[end + 1 : end + 2]
    if following and following in ".-'’":
        return not _is_word(second) or bool(_WIDE.match(second))
    if not _is_word(following) or not _is_word(last):
        return True
    return bool(_WIDE.match(following)) and (complete or not _WIDE.match(last))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


NOBODY = Roster()


def from_card(markdown: str, names: Mapping[str, str] | Roster, *, unescape: EscapeText) -> str:
    """The text that a card's markdown was made from: at-tags are `@Name` again.

    `names` is open_id → name. Somebody unknown is `@someone`.
    """
    known_names = names_by_id(names)
    pieces, position = [], 0
    for tag in CARD_AT_TAG.finditer(markdown):
        pieces += [
            unescape(markdown[position : tag.start()]),
            f"@{name_of_id(tag[1], known_names)}",
        ]
        position = tag.end()
    return "".join(pieces) + unescape(markdown[position:])


def name_of_id(open_id: str, names: Mapping[str, str]) -> str:
    return "all" if open_id == "all" else names.get(open_id, UNKNOWN_NAME)


def names_by_id(names: Mapping[str, str] | Roster) -> Mapping[str, str]:
    """open_id → name."""
    return names.names() if isinstance(names, Roster) else names


def means_asker(name: str) -> bool:
    return bare_name(name).casefold() in _ASKER_WORDS


def means_everybody(name: str) -> bool:
    return bare_name(name).casefold() in _EVERYBODY_WORDS


def bare_name(name: str) -> str:
    """The name without the sign of a mention."""
    return name.strip().lstrip("@").strip()


def auto_mention_of(value: object) -> AutoMention:
    """`sender`, `meant` or `off`; true and false are the first and the last.

    Raises InvalidValue with the values there are.
    """
    word = str(value).strip().lower()
    flag_value = (_BY_FLAG | _NOT_BY_FLAG).get(word, word)
    for mode in get_args(AutoMention):
        if flag_value == mode:
            return mode  # type: ignore[no-any-return]
    raise InvalidValue(
        "it must be sender (true), meant or off (false)",
        "必须是 sender（true）、meant 或 off（false）",
    )


@dataclass(frozen=True, slots=True)
class MentionTemplate:
    """What stands before and after the address, as `{at} ` says: nothing, and a space."""

    lead: str = ""
    tail: str = " "

    @classmethod
    def parse(cls, text: str) -> MentionTemplate:
        """Raises InvalidValue with a sentence for what would not read as an address any more."""
        if text.count(_AT) != 1:
            raise InvalidValue(
                "it must hold {at} once, where the address stands",
                "必须恰好包含一个 {at}，表示称呼的位置",
            )
        lead, _, tail = text.lstrip().partition(_AT)
        if len(lead) + len(tail) > _MOST_CHARACTERS:
            raise InvalidValue(
                f"it may have at most {_MOST_CHARACTERS} characters besides {{at}}",
                f"除 {{at}} 外最多 {_MOST_CHARACTERS} 个字符",
            )
        if _FORBIDDEN.intersection(lead + tail):
            raise InvalidValue(
                "it may not hold another address, tag, code or table: @ < > & ` | \\",
                "不能包含其他称呼、标签、代码或表格：@ < > & ` | \\",
            )
        is_printable = f"{lead}{tail}".replace("\n", " ").isprintable()
        bare = bool(lead) and bool(SEPARATORS.fullmatch(lead))
        if "\n" in lead or bare or not is_printable or opens_block(f"{lead}x"):
            raise InvalidValue(
                "it must begin with plain words or {at}", "必须以普通文字或 {at} 开头"
            )
        return cls(lead, tail)


PLAIN = MentionTemplate()
