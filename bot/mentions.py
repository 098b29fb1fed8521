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

Code is recognised first: an answer that opens with a block of any kind has its address in a
paragraph of its own, and no name within code is an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from bot.text.markdown import code_starts, is_code_indent, opens_block, opens_list_in_one_line
from bot.text.roster import (
    NOBODY,
    PLAIN,
    SEPARATORS,
    UNKNOWN_NAME,
    AutoMention,
    EscapeText,
    MentionTemplate,
    NameAddress,
    NameIndex,
    Person,
    Roster,
    auto_mention_of,
    from_card,
)

__all__ = [
    "ADDRESSED_SENDER_TYPES",
    "ALL_NAMES",
    "NOBODY",
    "PLAIN",
    "UNKNOWN_NAME",
    "AutoMention",
    "MentionTemplate",
    "Person",
    "Roster",
    "add_auto_mention",
    "address_reply",
    "auto_mention_of",
    "compose_reply",
    "extract_paragraph_beginning_mentions",
    "from_card",
    "remove_self_mentions",
    "to_card",
]

# Feishu calls a bot `app` in what it lists and `bot` in what it pushes.
ADDRESSED_SENDER_TYPES = frozenset({"user", "bot", "app"})
ALL_NAMES = ("all", "everyone", "所有人")

_LINE_INDENT = re.compile(r" {0,3}(?=@)")


def extract_paragraph_beginning_mentions(text: str, *, names: Collection[str] = ()) -> list[str]:
    """Names, lower-cased, that begin a line, in order, one per line.

    `names` are the people of the conversation; without them only rule 2 of the module applies, so
    `@王小明你好` is one name.
    """
    index = NameIndex.of(names, complete=bool(names))
    beginnings = (line.lstrip() for line in text.split("\n"))
    ends = ((line, index.end(line, 1)) for line in beginnings if line.startswith("@"))
    return [line[1:end].lower() for line, end in ends if end is not None]


def remove_self_mentions(response: str, agent_id: str, *, names: Collection[str] = ()) -> str:
    """`response` without the consecutive `@agent_id` it starts with, and their separators.

    A response that does not start with one comes back unchanged.
    """
    index = NameIndex.of((agent_id, *names), complete=bool(names))
    return _without_front(response, index, lambda name: _same(name, agent_id))


def add_auto_mention(
    response: str, sender: str, *, names: Collection[str] = (), template: MentionTemplate = PLAIN
) -> str:
    """`response`, trimmed, beginning with `@sender `; unchanged if its opening has the sender.

    Nothing is added to an empty response or for an empty sender.
    """
    index = NameIndex.of((sender, *names), complete=bool(names))
    text = _bare(response)
    if not sender.strip():
        return text
    return _with_address(text, sender, index, template, lambda name: _same(name, sender))


def compose_reply(
    response: str | None,
    sender: str | None,
    agent_id: str,
    *,
    sender_type: str = "user",
    names: Collection[str] = (),
    template: MentionTemplate = PLAIN,
) -> str:
    """The text to send and to store: `address_reply` where people are their names.

    Trimmed, no self-mention first, the sender addressed once. Senders of type `user`, `bot` and
    `app` are addressed, others and the agent itself never. Composing a composed text changes
    nothing.
    """
    return address_reply(
        response,
        sender=_nameless_person(sender) if sender and sender.strip() else None,
        agent=_nameless_person(agent_id),
        sender_type=sender_type,
        roster=Roster(tuple(map(_nameless_person, filter(None, names))), complete=bool(names)),
        template=template,
    )


def address_reply(
    response: str | None,
    *,
    sender: Person | None,
    agent: Person,
    sender_type: str = "user",
    roster: Roster = NOBODY,
    chat_type: str = "group",
    auto_mention: bool = True,
    template: MentionTemplate = PLAIN,
) -> str:
    """The text of a turn's reply, with people compared by open_id.

    The opening loses the agent and repeated addresses; `sender`, whom the reply addresses, is put
    in front when absent, unless `auto_mention` is off. In a p2p chat nobody is added and an address
    of the sender is dropped; give `to_card` the empty roster there. An empty response gives `""`.
    """
    known_roster = roster.including(agent, *([sender] if sender else []))
    index = known_roster.index()
    private = chat_type == "p2p"
    addressee = sender if sender and sender.open_id != agent.open_id else None

    def means(person: Person | None, name: str) -> bool:
        return person is not None and any(
            p.open_id == person.open_id for p in known_roster.people_named(name)
        )

    def tidy(text: str) -> str:
        seen_names: set[str] = set()

        def superfluous(address: NameAddress) -> bool:
            is_sender = means(addressee, address.name)
            if (means(agent, address.name) and not is_sender) or (private and is_sender):
                return True
            key = addressee.open_id if addressee and is_sender else address.name.casefold()
            again = key in seen_names
            seen_names.add(key)
            return again

        return _cut_matches(text, index, superfluous)

    def trim_opening(text: str | None) -> str:
        return tidy(
            _trim_front(text, index, lambda name: means(agent, name) or means(sender, name))
        )

    text = trim_opening(response)
    while (again := trim_opening(text)) != text:  # what stood behind an address can be one itself
        text = again
    if private or not auto_mention or sender_type not in ADDRESSED_SENDER_TYPES or not addressee:
        return _set_apart(text, index)
    lead = template.lead
    if lead and _starts_with(text, lead, index, lambda name: means(addressee, name)):
        return lead + _set_apart(tidy(text[len(lead) :]), index)
    return _with_address(text, addressee.name, index, template, lambda name: means(addressee, name))


def to_card(
    text: str,
    roster: Roster,
    *,
    escape: EscapeText,
    preferred: str | None = None,
    allow_all: bool = False,
    lead: str = "",
) -> str:
    """Card markdown of a reply: `text` made inert by `escape`, its addresses real at-tags.

    Only addresses of people in the roster become tags. A name that several people bear is the
    one whose open_id is `preferred`, else it stays plain. `@all`, `@everyone` and `@所有人` stay
    plain unless `allow_all`. Code, fenced, indented or inline, is left alone. `lead` is the
    template's, before the first address.
    """
    escaped_roster = roster.with_escaped_names(escape)
    index = escaped_roster.index(*(ALL_NAMES if allow_all else ()))

    def with_tags(line: str) -> str:
        parts, position = [], 0
        for address in index.opening(line):
            people = escaped_roster.people_named(address.name)
            tag = _tag_of(people, preferred)
            if not people and allow_all and address.name.casefold() in ALL_NAMES:
                tag = "<at id=all></at>"
            parts += [line[position : address.start], tag or line[address.start : address.end]]
            position = address.end
        return "".join(parts) + line[position:]

    lines = escape(text).split("\n")
    escaped_lead = escape(lead)
    if escaped_lead and lines[0].startswith(f"{escaped_lead}@"):
        lines[0] = escaped_lead + with_tags(lines[0][len(escaped_lead) :])
    return "\n".join(
        with_tags(line) if not code and _LINE_INDENT.match(line) else line
        for line, code in zip(lines, code_starts(lines), strict=True)
    )


IsMeant = Callable[[str], bool]


def _trim_front(response: str | None, index: NameIndex, mine: IsMeant) -> str:
    """Without white space around, and without separators in front of an opening address.

    Indented code keeps its indentation, unless it is one of ours who is addressed there.
    """
    text = _bare(response or "")
    if text[:1].isspace():
        first = next(index.opening(text), None)
        return text.lstrip() if first and mine(first.name) else text
    bare = SEPARATORS.sub("", text, count=1)
    return bare if bare.startswith("@") else text


def _bare(text: str) -> str:
    """Without white space around; code that begins the text stays indented."""
    bare_text = text.strip()
    indent = text[: len(text) - len(text.lstrip())].rpartition("\n")[2]
    return indent + bare_text if bare_text and is_code_indent(indent) else bare_text


def _opening(text: str, index: NameIndex) -> Iterator[NameAddress]:
    """The addresses `text` opens with; code that opens it, which alone is indented, has none."""
    return iter(()) if text[:1].isspace() else index.opening(text)


def _without_front(text: str, index: NameIndex, is_unwanted: IsMeant) -> str:
    last_end = 0
    for address in index.opening(text):
        if not is_unwanted(address.name):
            break
        last_end = address.after
    return text[last_end:]


def _cut_matches(text: str, index: NameIndex, is_unwanted: Callable[[NameAddress], bool]) -> str:
    """`text` without the unwanted addresses of its opening."""
    kept_text, position = "", 0
    for address in _opening(text, index):
        if not is_unwanted(address):
            kept_text += text[position : address.end]
            position = address.end
        else:
            position = address.end if kept_text else address.after
    return _bare(kept_text + text[position:])


def _with_address(
    text: str, name: str, index: NameIndex, template: MentionTemplate, mine: IsMeant
) -> str:
    """`text` with `@name` before it; as it is where the opening has it already."""
    if not text or any(mine(address.name) for address in _opening(text, index)):
        return _set_apart(text, index)
    text = _set_apart(text, index)
    tails = [template.tail, " ", ", ", "\n\n"]
    if opens_block(text):
        tails = [f"{template.tail.rstrip()}\n\n", "\n\n"]
    # “Ann” before “Lee is right” must not address Ann Lee; a line's end always ends a name.
    for tail in tails:
        addressed_text = f"@{name}{tail}{text}"
        first = next(index.opening(addressed_text), None)
        if first and mine(first.name):
            break
    return template.lead + _set_apart(addressed_text, index)


def _set_apart(text: str, index: NameIndex) -> str:
    """`text` with an empty line between the addresses it opens with and a block after them."""
    *_, last = (None, *_opening(text, index))
    if last is None or not opens_block(text[last.after :]):
        return text
    gap, rest = text[last.end : last.after], text[last.after :]
    if gap.count("\n") > 1 or ("\n" not in gap and opens_list_in_one_line(rest)):
        return text
    return f"{text[: last.end]}{''.join(gap.split())}\n\n{rest}"


def _starts_with(text: str, lead: str, index: NameIndex, mine: IsMeant) -> bool:
    if not text.startswith(f"{lead}@"):
        return False
    first = next(index.opening(text[len(lead) :]), None)
    return first is not None and mine(first.name)


def _tag_of(people: tuple[Person, ...], preferred_id: str | None) -> str | None:
    ids = {person.open_id for person in people}
    candidates = [p for p in people if len(ids) == 1 or p.open_id == preferred_id]
    return candidates[0].at_tag if candidates else None


def _nameless_person(name: str) -> Person:
    """Somebody of whom only the name is known: the name is who they are."""
    person = Person("", name)
    return Person(person.name.casefold(), person.name)


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
