"""Decides which statements and kept facts a later statement replaces. Pure.

A later statement replaces an earlier one with the same subject and relation, or when a word of
change says so (moved to, now, no longer, 改到, 取消). A missing mark costs little and a wrong one
hides what still holds, so every doubt means no mark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.models import GroupFact
from memory.recall.passages import Passage
from memory.recall.sentences import stated_facts
from memory.recall.stated_facts import StatedFact
from memory.text import has_han

_WHEN = frozenset(("day", "weekday", "time", "month", "period", "year"))
_CERTAIN = _WHEN | {"money", "percent", "place", "color", "code", "person", "company"}

# Of something one does with one value at a time: a name replaces a name.
# A relation that says by itself what its value is: “plays the position of”, “was founded by”.
_EXPLICIT = (" of", " by", " to", " the")
_NAMED_KINDS = frozenset(("person", "place"))
_OPEN = frozenset(("name", "other", "national"))
_SEVERAL = frozenset(
    ("have", "need", "use", "drink", "drive", "play", "speak", "take", "run", "hold")
)
_VAGUE = frozenset(("state", "role", "national"))
_PRICES = frozenset(("price", "cost", "fee", "rate"))
_WE = frozenset(("we", "我们"))
_TAKEN_UP = frozenset(("use", "drink", "drive", "change"))
_LIVING = frozenset(("live", "be", "sit", "stay"))
_ATTRIBUTES = frozenset(
    """password code number phone extension address name title price cost budget deadline venue
    location place room contact owner lead manager boss dentist doctor courier supplier vendor
    caterer client host speaker reviewer author capital email url link port version key pin language
    colour color theme topic motto hotel airline bank insurer printer provider framework database
    editor size officer broadcaster head language religion genre position headquarters""".split()
)
_ATTRIBUTES_ZH = tuple(
    "密码 号码 号 电话 分机 地址 名字 标题 价格 费用 预算 截止 地点 时间 日期"
    " 联系人 负责人 经理 主管 老板 医生 供应商 快递 主题 版本 端口 邮箱 链接 酒店 主持人".split()
)


@dataclass(frozen=True, slots=True)
class _PlacedStatement:
    """A statement with the place of its turn in the order of time."""

    at: int
    passage: Passage
    statement: StatedFact


@dataclass(frozen=True, slots=True)
class Change:
    """A turn whose statements were all replaced at `until` (an `asked_at`), the last of them by the
    turn `by`. `until` is "" for a turn that replaced another and holds."""

    until: str = ""
    by: str = ""


def replacement_times(passages: Sequence[Passage]) -> Mapping[str, str]:
    """Of passages in the order of time: turn_id -> the `asked_at` at which all that the turn states
    was replaced, or "" for a turn that replaced another and holds."""
    return {turn_id: change.until for turn_id, change in changes_by_turn(passages).items()}


def changes_by_turn(passages: Sequence[Passage]) -> Mapping[str, Change]:
    """Of passages in the order of time: turn_id -> its change, if it replaced or was replaced."""
    statements_told = [
        _PlacedStatement(at, passage, statement)
        for at, passage in enumerate(passages)
        for statement in stated_facts(passage.question)
    ]
    ends: dict[int, list[_PlacedStatement | None]] = {}
    holds: set[int] = set()
    for number, one in enumerate(statements_told):
        newer = _replaced_by(one, statements_told[number + 1 :])
        ends.setdefault(one.at, []).append(newer)
        if newer:
            holds.add(newer.at)
    changes_by_turn = {passages[at].turn_id: Change() for at in sorted(holds)}
    for at, ended_by in ends.items():
        known_ends = [one for one in ended_by if one]
        if len(known_ends) == len(ended_by):
            last = max(known_ends, key=lambda one: one.at)
            until = min(one.passage.asked_at for one in known_ends)
            changes_by_turn[passages[at].turn_id] = Change(until, last.passage.turn_id)
    return changes_by_turn


def _replaced_by(
    one: _PlacedStatement, later: Sequence[_PlacedStatement]
) -> _PlacedStatement | None:
    """The first statement since `one` was last said that replaces it."""
    first: _PlacedStatement | None = None
    for other in later:
        if other.at == one.at:
            continue
        if _says_again(other, one):
            first = None
        elif first is None and _replaces(other, one):
            first = other
    return first


def _says_again(other: _PlacedStatement, one: _PlacedStatement) -> bool:
    return (
        _same_place(other, one)
        and other.statement.value == one.statement.value
        and not other.statement.ends
        and (
            (
                other.statement.subject == one.statement.subject
                and other.statement.relation == one.statement.relation
            )
            or (other.statement.changes and is_on_matter(other.statement, one.statement))
        )
    )


def _replaces(other: _PlacedStatement, one: _PlacedStatement) -> bool:
    if not _same_place(other, one):
        return False
    same_author = other.passage.actor_id == one.passage.actor_id
    if not other.statement.changes and not same_author:
        return False
    if not other.statement.subject and not other.statement.personal:
        near = other.passage.conversation_id == one.passage.conversation_id
        return near and other.at - one.at <= 2 and is_on_matter(other.statement, one.statement)
    return replaces(other.statement, one.statement)


def _same_place(other: _PlacedStatement, one: _PlacedStatement) -> bool:
    if other.statement.personal != one.statement.personal:
        return False
    if one.statement.personal:
        return other.passage.actor_id == one.passage.actor_id
    return other.passage.chat_id == one.passage.chat_id


def replaces(later: StatedFact, earlier: StatedFact) -> bool:
    """Whether `later` gives the matter of `earlier` another value. Who said them is the caller's to
    compare: without a word of change only a person's own statement is replaced."""
    if earlier.ends:
        return is_on_matter(later, earlier) and not later.ends and later.changes
    if later.ends:
        return _ends_matter(later, earlier)
    return later.value != earlier.value and is_on_matter(later, earlier)


def is_on_matter(later: StatedFact, earlier: StatedFact) -> bool:
    """Whether both give the same matter a value."""
    if later.changes:
        return _is_change_of(later, earlier)
    same = later.subject == earlier.subject and later.relation == earlier.relation
    return same and _of_one_kind(later, earlier)


def _of_one_kind(later: StatedFact, earlier: StatedFact) -> bool:
    kind, was = later.kinds[0], earlier.kinds[0]
    if later.relation in _SEVERAL:
        return later.relation == "have" and _counts_the_same(later, earlier)
    if later.relation.startswith("by:"):
        return "state" not in (kind, was)
    if later.relation.endswith(_EXPLICIT) and _is_plain(kind) == _is_plain(was):
        return _is_plain(kind) or kind == was
    if kind != was and not (_is_attribute(later.subject) and {kind, was} <= _OPEN | _NAMED_KINDS):
        return False
    if later.relation == "work at" and kind == "other":
        return False  # where, or for whom
    if kind == was and (kind in _CERTAIN or kind.startswith("number:")):
        return True
    if {kind, was} & {"state", "role"}:
        return False
    # “is Lake Hall”: of an attribute always, of a person or thing nothing certain
    return later.relation != "be" or _is_attribute(later.subject)


def _is_plain(kind: str) -> bool:
    return kind not in _CERTAIN - _NAMED_KINDS and not kind.startswith("number:")


def _is_open(later: StatedFact, earlier: StatedFact) -> bool:
    """Whether “is X” can say who or what it is: of an attribute, or where both are names."""
    is_named = "other" not in (later.kinds[0], earlier.kinds[0])
    chinese = any(has_han(one) for one in later.subject)
    return bool(later.subject) and (is_named or chinese or _is_attribute(later.subject))


def _counts_the_same(later: StatedFact, earlier: StatedFact) -> bool:
    return later.kinds[0] == earlier.kinds[0] and later.kinds[0].startswith("number:")


def _is_attribute(subject: frozenset[str]) -> bool:
    return bool(subject & _ATTRIBUTES) or any(one.endswith(_ATTRIBUTES_ZH) for one in subject)


def _is_change_of(later: StatedFact, earlier: StatedFact) -> bool:
    names_agent = later.relation.startswith("by:")  # “the lead is Uma” has no other subject
    points_back = not (later.subject or later.personal or names_agent)
    if later.relation == "change" and earlier.relation == "cost":
        about = later.subject - _PRICES
        return bool(about) and about <= earlier.subject and _may_follow(later, earlier)
    if not points_back and not _names_same(later.subject, earlier.subject):
        return False
    if later.relation == "went":
        return earlier.relation == "work at"
    if later.relation in _SEVERAL:
        return later.relation == earlier.relation and _counts_the_same(later, earlier)
    if points_back:
        return bool(_typed_kinds(later) & _typed_kinds(earlier))
    if later.relation.removesuffix(" the") == earlier.relation.removesuffix(" the"):
        return _may_follow(later, earlier)  # “our insurer is …” after “the insurer is …”
    if later.relation == "move":
        return _is_moved(later, earlier)
    if later.relation == "join":
        return earlier.relation.startswith("work") or earlier.relation == "join"
    if later.relation == "become":
        return earlier.relation == "be" and earlier.kinds[0] in ("role", "other", "name")
    if later.relation == "change":
        speaker = later.subject <= _WE
        return earlier.relation in _TAKEN_UP if speaker else _may_follow(later, earlier)
    # “lunch is at noon again” after “lunch starts at half past twelve”
    return earlier.relation in ("change", "move", "become", "join") and _may_follow(later, earlier)


def _typed_kinds(statement: StatedFact) -> set[str]:
    return {k for k in statement.kinds if k in _CERTAIN or k.startswith("number:")}


def _is_moved(later: StatedFact, earlier: StatedFact) -> bool:
    if _WHEN.intersection(later.kinds):
        return bool(_WHEN.intersection(earlier.kinds))
    is_place_or_name = {"place", "name"}.intersection(earlier.kinds)
    if earlier.relation == "be" and not is_place_or_name:
        return later.value.split()[-1:] == earlier.value.split()[-1:]  # one team, another team
    return earlier.relation in _LIVING or earlier.relation in ("change", "move")


def _may_follow(later: StatedFact, earlier: StatedFact) -> bool:
    kinds, was = set(later.kinds), set(earlier.kinds)
    if kinds & was - _VAGUE or (kinds & _WHEN and was & _WHEN):
        return True
    if _VAGUE & (kinds | was) or (kinds | was) & _WHEN:
        return later.kinds[0] == earlier.kinds[0] == "role" or bool(
            kinds == was == {"state"}
            and later.relation == earlier.relation == "be"
            and " " not in later.value
        )
    if kinds | was <= _CERTAIN:
        return False
    if later.relation == "be" and not _is_open(later, earlier):
        return False
    amounts = [
        any(k.startswith("number:") or k in ("money", "percent") for k in one)
        for one in (kinds, was)
    ]
    if any(amounts):
        return all(amounts) and not (_counted(kinds) and "number:" in was)
    return True


def _counted(kinds: set[str]) -> set[str]:
    """Those of `kinds` that count things: “300” may be of anything, “two pages” are not."""
    return {kind for kind in kinds if kind.startswith("number:") and kind != "number:"}


def _names_same(brief: frozenset[str], full: frozenset[str]) -> bool:
    """Whether `brief` names the same: the same words, or two and more of them; one Chinese subject
    may be the end of the other."""
    return brief == full or (len(brief) > 1 and brief < full)


def _ends_matter(later: StatedFact, earlier: StatedFact) -> bool:
    if later.subject and not _names_same(later.subject, earlier.subject):
        return False
    if later.relation == "end":
        return earlier.relation in ("be", "change", "move", "start", "have", "take") and not (
            {"state", "role"} & set(earlier.kinds)
        )
    if later.relation == "leave off":
        return bool(later.value) and (later.value in earlier.value or earlier.value in later.value)
    same = later.relation == earlier.relation
    return same and (
        not later.value or later.value in earlier.value or earlier.value in later.value
    )


def replaced_facts(
    facts: Sequence[GroupFact], patch: Mapping[str, Any], *, statement: str, author: str
) -> tuple[str, ...]:
    """Returns the ids of those of `facts` that hold no more now that `author` has `patch` kept.

    `statement` are the author's own words. A fact of another person is replaced only if a word of
    change stands there (“moved to”, “now”, 改到), and never what people had kept about themselves.
    The same key is the same matter.
    """
    new = [*stated_facts(statement), *_statements_of_facts(patch)]
    changes = any(one.changes for one in stated_facts(statement))
    return tuple(
        fact.id
        for fact in facts
        if fact.until is None and fact.may_be_replaced_by(author)
        if changes or fact.actor_id == author
        if _has_key(patch, fact.key)
        or any(
            _replaces_stated(one, old, changes) for one in new for old in _statements_of_fact(fact)
        )
    )


def _has_key(patch: Mapping[str, Any], key: str) -> bool:
    """Whether `patch` sets the key: people and models name a matter in other languages than the
    one in which it is told."""
    set_anew = {_plain_key(one) for one, value in patch.items() if value is not None}
    return _plain_key(key) in set_anew


def _plain_key(key: str) -> str:
    return key.replace("_", " ").casefold().strip()


def _replaces_stated(new: StatedFact, old: StatedFact, changes: bool) -> bool:
    if new.personal or old.personal:
        return False
    return replaces(replace(new, changes=new.changes or changes), old)


def _statements_of_fact(fact: GroupFact) -> Iterator[StatedFact]:
    return _statements_of_facts({fact.key: fact.value})


def _statements_of_facts(facts: Mapping[str, Any]) -> Iterator[StatedFact]:
    """What facts state: the sentences of a value, or else what its key is said to be."""
    for key, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        told_facts = stated_facts(text) if value is not None else ()
        yield from told_facts or stated_facts(_sentence(key.replace("_", " "), text))


def _sentence(key: str, value: str) -> str:
    return f"{key}是{value}" if has_han(key) else f"the {key} is {value}"
