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
    group_passages: tuple[Passage, ...] = (),
) -> bool:
    """Whether what the person whose own `place` this is told elsewhere says more to `question` than
    the group's `answer`, and than what was told there (`group_passages`)."""
    sources = await private.sources(place, question, asked_in=asked_in)
    parts = [part for one in sources for part in _told(one)][:_MOST_PARTS]
    if not parts:
        return False
    question_part = questions(question)[:PART_CHARS]
    group = [text[:PART_CHARS] for one in group_passages if (text := statements(one.question))]
    texts = [question_part, *group, *parts]
    terms = await private.terms(place, texts)
    weighed_texts = [Weighed(text, term) for text, term in zip(texts, terms, strict=True)]
    of_group = weighed_texts[1 : 1 + len(group)]
    return says_more(weighed_texts[0], weighed_texts[1 + len(group) :], answer, of_group)


def _told(source: PrivateSource) -> list[str]:
    if source.kind == "said":
        return list(parts(statements(source.told)))
    return list(parts(source.told.replace("_", " ") if source.kind == "fact" else source.told))


async def recalled_in_group(
    store: MemoryStore, group: AgentMemoryContext, question: str, *, but: str, now: datetime
) -> tuple[Passage, ...]:
    """What the group was told that is about the question; of its turn `but` nothing."""
    passages = await store.find(group, question, now=now, scope="chat", k=_FROM_GROUP + 1)
    return tuple(one for one in passages if one.turn_id != but)[:_FROM_GROUP]
