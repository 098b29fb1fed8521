"""Recall: what to ask the memory for, and when to ask. Pure.

The search itself is the SQL function `recall`; it knows words, this module knows time and people.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from memory.models import QuestionEmbedding
from memory.recall.dates import DateRange, date_range
from memory.scope import AgentMemoryContext
from memory.text import as_json, has_han

RecallScope = Literal["thread", "chat", "everywhere"]

# In units of the best text score. A date in Chinese puts its turns first; one in English, more
# often the time of what is asked about than of the talk, moves them up; “lately” tips the scales.
_DATE_BOOST = 1.0
_ENGLISH_DATE_BOOST = 0.5
_FUZZY_BOOST = 0.1


@dataclass(frozen=True, slots=True)
class Passage:
    """One earlier turn. `asked_at` is ISO 8601; `before` and `after` are the turns around it.
    `among` is how many turns were searched, as far as they were counted; 0: not known.

    A message of imported history is one without an answer, of a `source`: then `feishu_id` is its
    message_id, `import_id` the import it came with, and `position` its number in its chat, or 0.
    """

    turn_id: str
    message_id: int
    conversation_id: str
    chat_id: str
    asked_at: str
    actor_id: str | None
    actor_name: str
    question: str
    answer: str
    before: str = ""
    after: str = ""
    score: float = 0.0
    source: Literal["", "import"] = ""
    feishu_id: str = ""
    import_id: int = 0
    position: int = 0
    among: int = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """As what an answer was given it: all that is to be taken back makes it go."""
        if self.source:
            return self.feishu_id, f"import:{self.import_id}"
        return (self.turn_id,)


def usual_scope(context: AgentMemoryContext) -> RecallScope:
    """Where earlier messages are looked for, unless somebody says where."""
    return "everywhere" if context.chat_type == "p2p" else "chat"


def recall_params(
    context: AgentMemoryContext,
    query: str,
    *,
    now: datetime,
    scope: RecallScope = "thread",
    k: int = 5,
    before_id: int | None = None,
    likeness: QuestionEmbedding | None = None,
    newest_too: bool = False,
) -> dict[str, object]:
    """The arguments of the SQL function `recall` that the identity does not give.

    `now` is aware: in its zone days begin and end. With `before_id` (the oldest message that the
    prompt already has) only what came before it in this conversation is found. With `likeness` also
    what was said in other words. `newest_too`: where little was said at all, whatever it was.
    """
    when = date_range(query, now)
    return {
        "p_chat_id": context.chat_id,
        "p_tenant_key": context.tenant_key,
        "p_query": _telling(_without_date(query, when)),
        "p_scope": scope,
        "p_k": k,
        "p_spans": as_json(_spans(when)),
        "p_boost": _boost(query, when),
        "p_before_id": before_id,
        "p_model": likeness.model if likeness else None,
        "p_embedding": likeness.embedding if likeness else None,
        "p_weight": likeness.weight if likeness else 0.0,
        "p_newest_too": newest_too,
    }


# English words of asking and pointing, of talking and of kinds: in a search they find what is about
# something else.
_TELLS_NOTHING = frozenset(
    """i me my mine we us our ours you your yours he him his she her hers they them their theirs can
    could would should shall might must there here any some so if not no yes just also than then
    into about during while both each other being am having
    kind kinds type types sort sorts mention mentions mentioned mentioning discuss discusses
    discussed discussing discussion discussions conversation conversations talk talks talked talking
    tell tells told telling say says said saying describe describes described""".split()
)
_WORD = re.compile(r"[A-Za-z]+(?:['\u2019][A-Za-z]+)?")


def _without_date(query: str, when: DateRange | None) -> str:
    """What is said then seldom names the month in which it is said. In English the words stay: they
    often are of what is asked about."""
    if when is None or when.fuzzy or not has_han(query):
        return query
    rest = f"{query[: when.start]} {query[when.end :]}"
    return rest if any(map(str.isalnum, rest)) else query


def _telling(query: str) -> str:
    """`query` without the words that tell nothing, or as it is where it has no others."""
    telling_words = _WORD.sub(
        lambda word: "" if word[0].lower() in _TELLS_NOTHING else word[0], query
    )
    return telling_words if any(map(str.isalnum, telling_words)) else query


def recall_at_once(
    context: AgentMemoryContext, question: str, *, now: datetime, k: int
) -> dict[str, object] | None:
    """What `MemoryStore.begin_turn` is to recall for `question` with the turn's beginning: `k`
    turns beside those of its window. In p2p only if `needs_recall` says so of the window; in a
    group others may have spoken since. None of what has no matter: a greeting."""
    own = context.chat_type == "p2p"
    points_back = _points_back(question, now)
    matter = sorted(content_words(question))
    if not matter and not points_back:
        return None
    words = matter if own and not points_back else None
    scope = usual_scope(context)
    params = recall_params(context, question, now=now, scope=scope, k=k, newest_too=own)
    return {key: params[key] for key in _OF_QUERY} | {"words": words}


_OF_QUERY = ("p_query", "p_scope", "p_k", "p_spans", "p_boost", "p_newest_too")


def _boost(query: str, when: DateRange | None) -> float:
    if when and when.fuzzy:
        return _FUZZY_BOOST
    return _DATE_BOOST if has_han(query) else _ENGLISH_DATE_BOOST


def _spans(when: DateRange | None) -> list[tuple[str, str]]:
    spans = when.spans if when else ()
    return [(span.since.isoformat(), span.until.isoformat()) for span in spans]


def passages(rows: Sequence[Mapping[str, Any]]) -> tuple[Passage, ...]:
    """The hits of the SQL function, best first."""
    return tuple(map(_passage, rows))


def _passage(row: Mapping[str, Any]) -> Passage:
    texts = {key: row[key] or "" for key in _TEXTS}
    return Passage(**{**row, **texts})


_TEXTS = ("actor_name", "question", "answer", "before", "after")


# When to ask

_POINTS_BACK = re.compile(
    r"上[次回]|之前|以前|先前|曾经?|从前|过去|当时|那[次时天]|早些时候|还?记得|记不记得|忘了|告诉过|提到?过"
    r"|[说讲聊问推荐分享咨询答应给]过|是不是说|我说的那个|老样子"
    r"|\blast\s+time\b|\bpreviously\b|\bearlier\b|\bbefore\b|\bremember\b|\bremind\s+me\b|\bforg[eo]t"
    r"|\b(?:did|have|had|was|were)\s+(?:i|we|you|he|she|they)\b|\b(?:i|we|you)\s+(?:said|told|mentioned|asked"
    r"|talked|discussed|recommended|suggested|agreed|decided|promised)\b|\bonce\s+(?:said|told)\b"
    r"|\bwhen\s+did\b|\bback\s+then\b|\bused\s+to\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}|[0-9a-z\u00c0-\u02af\u0370-\u0fff]{3,}"
)
_NO_CONTENT = re.compile(
    r"什么|怎么样?|[今明昨]天|现在|哪[些个里儿]|多少|为什么|是不是|有没有|可以|一下|请问?|帮我|谢谢|你好|我们?|你们?|他们?|她们?"
    r"|早上好|早安|午安|晚安|[下上中]午好|晚上好|大家好|辛苦了?|再见|收到|没问题|好的"
    r"|这个?|那个?|就是|的|了|吗|呢|吧|啊|是|在|有|和|与|给|把|对|很|都|也|要|想|能|会|不"
)
_ENGLISH_NO_CONTENT = frozenset(
    """the and for from with are was were been does did has have had what when where who whose which
    why how that this its you your can could would should will please thanks thank hello about tell
    give make help any some not but just more there here they them she him her his our all get let
    know want need like then than out one hey good morning afternoon evening night okay yes
    welcome bye goodbye""".split()
)
_LACKING = 0.5


def needs_recall(question: str, window_texts: Sequence[str], now: datetime | None = None) -> bool:
    """Whether the answer may lie in what was said before the window.

    True when the question points to the past, names a past time (with `now`, aware), or when at
    least half of its content words appear nowhere in `window_texts`.
    """
    if _points_back(question, now):
        return True
    words = content_words(question)
    if not words:
        return False
    window = "\n".join(window_texts).lower()
    missing = [word for word in words if word not in window]
    return len(missing) >= _LACKING * len(words)


def _points_back(question: str, now: datetime | None) -> bool:
    when = date_range(question, now) if now else None
    past = when is not None and now is not None and when.spans[0].until <= now
    return past or _POINTS_BACK.search(question) is not None


def content_words(text: str) -> frozenset[str]:
    """Words that carry the matter of `text`: Latin words, and CJK as pairs of characters."""
    return _known_content(text) if len(text) <= _SHORT else _content(text)


def _content(text: str) -> frozenset[str]:
    words: set[str] = set()
    for run in _CONTENT.findall(_NO_CONTENT.sub(" ", text.lower())):
        if run[0] < "\u3040":
            words.add(run)
        else:
            words.update(map(operator.add, run, run[1:]))
    return frozenset(words - _ENGLISH_NO_CONTENT)


# The steps of a turn ask about one question and one answer.
_SHORT = 1000
_known_content = lru_cache(maxsize=256)(_content)
