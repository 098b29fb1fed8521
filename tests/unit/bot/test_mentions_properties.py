"""What holds of addressing for every text and every name."""

import html
import re
import time
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from bot.mentions import (
    Person,
    Roster,
    address_reply,
    compose_reply,
    extract_paragraph_beginning_mentions,
    from_card,
    remove_self_mentions,
    to_card,
)
from tests.support.rows import every_row

NAMES = ["alice", "Alice", "bob", "bobby", "Ann", "Ann Lee", "王小", "王小明", "R&D", "all", "x.y"]
PIECES = st.sampled_from(
    [
        *(f"@{name}" for name in NAMES),
        *NAMES,
        "@",
        " ",
        ", ",
        "，",
        ":",
        "\n",
        "'s",
        "```",
        "hi",
        "你好",
    ]
)
names = st.sampled_from(NAMES) | st.text(min_size=1, max_size=8)
texts = st.lists(PIECES, max_size=12).map("".join) | st.text()
people = st.lists(
    st.builds(Person, st.sampled_from(["ou_1", "ou_2", "ou_3", "bad id"]), st.sampled_from(NAMES)),
    max_size=6,
    unique_by=lambda person: person.open_id,
).map(lambda found: Roster(tuple(found)))


@given(texts, st.sampled_from(NAMES) | st.none(), st.sampled_from(NAMES))
def test_a_reply_never_starts_with_the_agent(text, sender, agent):
    reply = compose_reply(text, sender, agent)
    longer = [n for n in (sender or "",) if n.casefold().startswith(agent.casefold() + " ")]
    starts = re.match(rf"@{re.escape(agent)}(?![\w.'-])", reply, re.IGNORECASE)
    assert not starts or any(reply[1:].casefold().startswith(n.casefold()) for n in longer)


@given(texts, st.sampled_from(["alice", "bob", "王小明"]), st.sampled_from(["alice", "bot"]))
def test_no_two_addresses_at_the_start_are_the_same(text, sender, agent):
    opening = re.match(
        r"(?:@\w+(?:[.-]+\w+)*(?!['’\w])[\s,，:]*)*", compose_reply(text, sender, agent)
    )
    found = [name.casefold() for name in re.findall(r"@([\w.-]+\w|\w)", opening[0])]
    assert len(found) == len(set(found))


@given(texts, names)
def test_removing_the_agent_only_takes_from_the_front(text, agent):
    assert text.endswith(remove_self_mentions(text, agent))


@given(texts, people)
def test_a_turn_reply_is_stable_and_reads_back_from_its_card(text, roster):
    agent, sender = Person("ou_bot", "Memo"), Person("ou_9", "alice")
    known = roster.including(sender)
    reply = address_reply(text, sender=sender, agent=agent, roster=roster)
    card = to_card(reply, known, escape=html.escape, preferred="ou_9")
    assert address_reply(reply, sender=sender, agent=agent, roster=roster) == reply
    assert from_card(card, known, unescape=html.unescape).casefold() == reply.casefold()


@given(texts, people)
def test_a_card_never_calls_everybody_or_a_bad_id(text, roster):
    card = to_card(text, roster, escape=html.escape)
    assert set(re.findall(r"<at id=([^>]*)>", card)) <= {"ou_1", "ou_2", "ou_3"}


HOSTILE = [
    "@",
    "@a",
    "@a ",
    "@alice ",
    "@alice,",
    "@a.",
    "@a-",
    "\n@alice",
    "<at id=",
    "```\n",
    " ",
    "王",
]


def cost(work: Callable[[str], object], text: str) -> float:
    def once() -> float:
        start = time.process_time()
        work(text)
        return time.process_time() - start

    return min(once() for _ in range(3))


READERS = {
    "extract": extract_paragraph_beginning_mentions,
    "remove": lambda text: remove_self_mentions(text, "alice"),
    "from_card": lambda text: from_card(text, {}, unescape=html.unescape),
}


@every_row("name", READERS)
@every_row("unit", HOSTILE)
def test_hostile_text_costs_linear_time(name, unit):
    """What composes a card is timed as a whole: test_composing.py."""
    small, large = (unit * (size // len(unit)) for size in (10_000, 100_000))
    assert cost(READERS[name], large) < 30 * max(cost(READERS[name], small), 0.0005)
