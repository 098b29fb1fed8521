"""Who a reply addresses: pure functions over text, names and open_ids.

An *address* is an `@name` at the beginning of a line; the *opening* of a text is the run of
addresses it starts with, white space, commas or colons between. Everything else is a mention in
passing and is left alone.

How a name is read after `@`:

1. Names that are known are tried first, literally, in any case, the longest first, so that
   `@Ann Lee` is never read as `@Ann`.
2. Otherwise a name is a run of word characters, with `.` and `-` inside it but not at its end.

A known name must end at a boundary: the end, white space, punctuation, or a Chinese, Japanese or
Korean character after a name in another script (`@alice你好`). `@alice` is never found in
`@alicesmith`, `@alice-b` or `@alice's`. After a Chinese name a further Chinese character is a
boundary only when a roster says who there is: then `@王小明你好` is 王小明, and `@王小明` is not
王小 when both are known. Without a roster it is somebody else.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from memory.text import one_line

ADDRESSED_SENDER_TYPES = frozenset({"user", "bot"})
ALL_NAMES = ("all", "everyone", "所有人")
UNKNOWN_NAME = "someone"

_GENERIC_NAME = re.compile(r"\w++(?:[.-]+\w++)*+(?!['’]\w)")
_SEPARATORS = re.compile(r"[\s,，、:：]*")
_OPEN_ID = re.compile(r"ou_[A-Za-z0-9_-]+")
_AT_TAG = re.compile(r"<at\s+id=[\"']?([A-Za-z0-9_-]+)[\"']?\s*>[^<]*</at>", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_LINE_INDENT = re.compile(r" {0,3}(?=@)")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

Escape = Callable[[str], str]


def extract_paragraph_beginning_mentions(text: str, *, names: Collection[str] = ()) -> list[str]:
    """Names, lower-cased, that begin a line, in order, one per line.

    `names` are the people of the conversation; without them only rule 2 of the module applies, so
    `@王小明你好` is one name.
    """
    known = _Names.of(names, complete=bool(names))
    beginnings = (line.lstrip() for line in text.split("\n"))
    ends = ((line, known.end(line, 1)) for line in beginnings if line.startswith("@"))
    return [line[1:end].lower() for line, end in ends if end is not None]


def remove_self_mentions(response: str, agent_id: str, *, names: Collection[str] = ()) -> str:
    """`response` without the consecutive `@agent_id` it starts with, and their separators.

    A response that does not start with one comes back unchanged.
    """
    return _without_self(response, agent_id, _Names.of((agent_id, *names), complete=bool(names)))


def add_auto_mention(response: str, sender: str, *, names: Collection[str] = ()) -> str:
    """`response`, trimmed, beginning with `@sender `; unchanged if its opening has the sender.

    Nothing is added to an empty response or for an empty sender.
    """
    known = _Names.of((sender, *names), complete=bool(names))
    return _with_sender(response.strip(), sender, known)


def compose_reply(
    response: str | None,
    sender: str | None,
    agent_id: str,
    *,
    sender_type: str = "user",
    names: Collection[str] = (),
) -> str:
    """The text to send and to store: trimmed, no self-mention first, the sender addressed once.

    Senders of type `user` and `bot` are addressed, others and the agent itself never. An address
    that the opening repeats is dropped. Composing a composed text changes nothing.
    """
    known = _Names.of((agent_id, sender or "", *names), complete=bool(names))
    text = _without_self(_trimmed(response), agent_id, known).strip()
    if sender and sender_type in ADDRESSED_SENDER_TYPES and not _same(sender, agent_id):
        text = _with_sender(text, sender, known)
    seen: set[str] = set()

    def repeated(address: _Address) -> bool:
        key = address.name.casefold()
        again = key in seen
        seen.add(key)
        return again

    return _cut(text, known, repeated)


@dataclass(frozen=True)
class Person:
    """Somebody in the chat. `name` is user-controlled; an empty one becomes `user-` + id tail."""

    open_id: str
    name: str
    is_bot: bool = False

    def __post_init__(self) -> None:
        name = one_line(self.name) or f"user-{self.open_id[-6:]}"
        object.__setattr__(self, "name", name)

    @property
    def at_tag(self) -> str | None:
        """The card's at-tag, None for an id that Feishu would refuse (230099/100290)."""
        return f"<at id={self.open_id}></at>" if _OPEN_ID.fullmatch(self.open_id) else None


@dataclass(frozen=True)
class Roster:
    """The people of a conversation. Names may prefix each other and be shared."""

    people: tuple[Person, ...] = ()

    def including(self, *people: Person) -> "Roster":
        """This roster and `people`, each person under each name once."""
        return Roster(tuple(dict.fromkeys((*self.people, *people))))

    def named(self, name: str) -> tuple[Person, ...]:
        """Everybody of that name, in any case."""
        return self._by_name.get(name.casefold(), ())

    def names(self) -> dict[str, str]:
        """open_id → name."""
        return {person.open_id: person.name for person in self.people}

    def escaped(self, escape: Escape) -> "Roster":
        """The same people under their names as they read in escaped text."""
        return Roster(tuple(Person(p.open_id, escape(p.name), p.is_bot) for p in self.people))

    @cached_property
    def _by_name(self) -> dict[str, tuple[Person, ...]]:
        found: dict[str, tuple[Person, ...]] = {}
        for person in self.people:
            key = person.name.casefold()
            found[key] = (*found.get(key, ()), person)
        return found

    def _index(self, *more: str) -> "_Names":
        return _Names.of((*(person.name for person in self.people), *more), complete=True)


NOBODY = Roster()


def address_reply(
    response: str | None,
    *,
    sender: Person | None,
    agent: Person,
    sender_type: str = "user",
    roster: Roster = NOBODY,
    chat_type: str = "group",
    auto_mention: bool = True,
) -> str:
    """The text of a turn's reply, with people compared by open_id.

    The opening loses the agent and repeated addresses; the sender is put in front when absent,
    unless `auto_mention` is off. In a p2p chat nobody is added and an address of the sender is
    dropped; give `to_card` the empty roster there. An empty response gives `""`.
    """
    known = roster.including(agent, *([sender] if sender else []))
    private = chat_type == "p2p"
    addressee = sender if sender and sender.open_id != agent.open_id else None
    seen: set[str] = set()

    def superfluous(address: _Address) -> bool:
        ids = {person.open_id for person in known.named(address.name)}
        is_sender = addressee is not None and addressee.open_id in ids
        if (agent.open_id in ids and not is_sender) or (private and is_sender):
            return True
        key = addressee.open_id if addressee and is_sender else address.name.casefold()
        again = key in seen
        seen.add(key)
        return again

    text = _cut(_trimmed(response), known._index(), superfluous)
    silent = private or not auto_mention or sender_type not in ADDRESSED_SENDER_TYPES
    if not text or silent or addressee is None or addressee.open_id in seen:
        return text
    return _prefixed(text, addressee.name, known._index())


def to_card(
    text: str,
    roster: Roster,
    *,
    escape: Escape,
    preferred: str | None = None,
    allow_all: bool = False,
) -> str:
    """Card markdown of a reply: `text` made inert by `escape`, its addresses real at-tags.

    Only addresses of people in the roster become tags. A name that several people bear is the
    one whose open_id is `preferred`, else it stays plain. `@all`, `@everyone` and `@所有人` stay
    plain unless `allow_all`. Code, fenced or indented, is left alone.
    """
    known = roster.escaped(escape)
    index = known._index(*(ALL_NAMES if allow_all else ()))

    def tagged(line: str) -> str:
        parts, done = [], 0
        for address in _opening(line, index):
            people = known.named(address.name)
            tag = _tag_of(people, preferred)
            if not people and allow_all and address.name.casefold() in ALL_NAMES:
                tag = "<at id=all></at>"
            parts += [line[done : address.start], tag or line[address.start : address.end]]
            done = address.end
        return "".join(parts) + line[done:]

    lines = _with_code(escape(text).split("\n"))
    return "\n".join(
        tagged(line) if not code and _LINE_INDENT.match(line) else line for line, code in lines
    )


def from_card(markdown: str, names: Mapping[str, str] | Roster, *, unescape: Escape) -> str:
    """The text that a card's markdown was made from: at-tags are `@Name` again.

    `names` is open_id → name. Somebody unknown is `@someone`.
    """
    known = _mapping(names)
    pieces, done = [], 0
    for tag in _AT_TAG.finditer(markdown):
        pieces += [unescape(markdown[done : tag.start()]), f"@{_name_of(tag[1], known)}"]
        done = tag.end()
    return "".join(pieces) + unescape(markdown[done:])


def without_at(
    markdown: str,
    names: Mapping[str, str] | Roster,
    *,
    escape: Escape,
    open_ids: Collection[str] | None = None,
) -> str:
    """Card markdown with at-tags degraded to plain `@Name`; only those of `open_ids` if given.

    For people who left the chat (Feishu: 230099 with ErrCode 100290).
    """
    known = _mapping(names)

    def plain(tag: re.Match[str]) -> str:
        if open_ids is not None and tag[1] not in open_ids:
            return tag[0]
        return f"@{escape(_name_of(tag[1], known))}"

    return _AT_TAG.sub(plain, markdown)


@dataclass(frozen=True)
class _Address:
    """`text[start:end]` is `@name`; `after` is where the text goes on after the separators."""

    name: str
    start: int
    end: int
    after: int


@dataclass(frozen=True)
class _Names:
    """Known names, case-folded, and their lengths from the longest."""

    keys: frozenset[str]
    lengths: tuple[int, ...]
    complete: bool

    @classmethod
    def of(cls, names: Iterable[str], *, complete: bool) -> "_Names":
        """`complete` says that the names are a roster, not just one or two of many."""
        wanted = [name for name in names if name]
        lengths = sorted({len(name) for name in wanted}, reverse=True)
        return cls(frozenset(name.casefold() for name in wanted), tuple(lengths), complete)

    def end(self, text: str, start: int) -> int | None:
        """Where the name that begins at `start` ends, None where there is no name."""
        for length in self.lengths:
            end = start + length
            known = end <= len(text) and text[start:end].casefold() in self.keys
            if known and _is_boundary(text, end, self.complete):
                return end
        generic = _GENERIC_NAME.match(text, start)
        return generic.end() if generic else None


def _is_boundary(text: str, end: int, complete: bool) -> bool:
    last, following, second = text[end - 1], text[end : end + 1], text[end + 1 : end + 2]
    if following and following in ".-'’":
        return not _is_word(second) or bool(_WIDE.match(second))
    if not _is_word(following) or not _is_word(last):
        return True
    return bool(_WIDE.match(following)) and (complete or not _WIDE.match(last))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _opening(text: str, names: _Names) -> Iterator[_Address]:
    position = len(text) - len(text.lstrip())
    while text.startswith("@", position):
        end = names.end(text, position + 1)
        if end is None:
            return
        following = _SEPARATORS.match(text, end)
        after = following.end() if following else end
        yield _Address(text[position + 1 : end], position, end, after)
        position = after


def _cut(text: str, names: _Names, unwanted: Callable[[_Address], bool]) -> str:
    kept, done = "", 0
    for address in _opening(text, names):
        if not unwanted(address):
            kept += text[done : address.end]
            done = address.end
        else:
            done = address.end if kept else address.after
    return (kept + text[done:]).strip()


def _trimmed(response: str | None) -> str:
    """Without white space around, and without separators in front of an opening address."""
    text = (response or "").strip()
    bare = _SEPARATORS.sub("", text, count=1)
    return bare if bare.startswith("@") else text


def _without_self(text: str, agent: str, known: _Names) -> str:
    cut = 0
    for address in _opening(text, known):
        if not _same(address.name, agent):
            break
        cut = address.after
    return text[cut:]


def _with_sender(text: str, sender: str, known: _Names) -> str:
    if not text or not sender.strip():
        return text
    if any(_same(address.name, sender) for address in _opening(text, known)):
        return text
    return _prefixed(text, sender, known)


def _prefixed(text: str, sender: str, known: _Names) -> str:
    spaced = f"@{sender} {text}"
    first = next(_opening(spaced, known), None)
    if first and _same(first.name, sender):
        return spaced
    return f"@{sender}, {text}"  # “Ann” before “Lee is right” must not address Ann Lee


def _tag_of(people: tuple[Person, ...], preferred: str | None) -> str | None:
    ids = {person.open_id for person in people}
    chosen = [p for p in people if len(ids) == 1 or p.open_id == preferred]
    return chosen[0].at_tag if chosen else None


def _with_code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each line and whether it belongs to a fenced code block (CommonMark 4.5)."""
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        yield line, bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""


def _name_of(open_id: str, names: Mapping[str, str]) -> str:
    return "all" if open_id == "all" else names.get(open_id, UNKNOWN_NAME)


def _mapping(names: Mapping[str, str] | Roster) -> Mapping[str, str]:
    return names.names() if isinstance(names, Roster) else names


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
