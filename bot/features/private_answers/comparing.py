"""What a person told the bot elsewhere beside what a group was answered, under a token of theirs.

Of what they told only yes or no leaves this module.
"""

from __future__ import annotations

from datetime import datetime

from bot.features.private_answers.statements import PART_CHARS, parts, questions, statements
from bot.features.private_answers.weighing import Weighed, says_more
from memory.recall.passages import Passage
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.private import PrivateSource, PrivateStore

_MOST_PARTS = 16
_FROM_GROUP = 5


async def helps(
    private: PrivateStore,
    place: AgentMemoryContext,
    question: str,
    *,
    asked_in: str,
    answer: str = "",
    given: tuple[Passage, ...] = (),
) -> bool:
    """Whether what the person whose own `place` this is told elsewhere says more to `question` than
    the group's `answer`, and than what was told there (`given`)."""
    sources = await private.sources(place, question, asked_in=asked_in)
    told = [part for one in sources for part in _told(one)][:_MOST_PARTS]
    if not told:
        return False
    asked = questions(question)[:PART_CHARS]
    group = [text[:PART_CHARS] for one in given if (text := statements(one.question))]
    texts = [asked, *group, *told]
    terms = await private.terms(place, texts)
    weighed = [Weighed(text, term) for text, term in zip(texts, terms, strict=True)]
    of_group = weighed[1 : 1 + len(group)]
    return says_more(weighed[0], weighed[1 + len(group) :], answer, of_group)


def _told(source: PrivateSource) -> list[str]:
    if source.kind == "said":
        return list(parts(statements(source.told)))
    return list(parts(source.told.replace("_", " ") if source.kind == "fact" else source.told))


async def recalled_in_group(
    store: MemoryStore, group: AgentMemoryContext, question: str, *, but: str, now: datetime
) -> tuple[Passage, ...]:
    """What the group was told that is about the question; of its turn `but` nothing."""
    found = await store.find(group, question, now=now, scope="chat", k=_FROM_GROUP + 1)
    return tuple(one for one in found if one.turn_id != but)[:_FROM_GROUP]
