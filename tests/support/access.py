"""The audience rule as a model: who reads and writes a row, said without SQL.

Place decides who may read; being the subject gives nobody a right to. A token is of one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.support.actors import (
    ALICE,
    BOB,
    CARL,
    DORA,
    ERIK,
    FAY,
    HERE,
    PRIVATE,
    TENANT,
    THREAD,
    Actor,
)

SAID_AT = datetime(2026, 3, 3, tzinfo=UTC)
# Of the group HERE, as the policies may count on: who is a member, and since when.
MEMBERS: Mapping[str, datetime | None] = {
    ALICE: None,
    BOB: None,
    CARL: datetime(2026, 1, 1, tzinfo=UTC),
    FAY: datetime(2026, 4, 4, tzinfo=UTC),
}
ONCE_MEMBERS = (DORA, ERIK)  # who left, and whose membership has expired


@dataclass(frozen=True, slots=True)
class Row:
    """What of a row decides: where, by whom, about whom. `author` None: from before the rule."""

    name: str
    author: str | None = ALICE
    subject: str = ALICE
    chat: str = HERE
    kind: str = "group"
    scope: str = "chat"
    shared: str | None = None


OWN = Row("own")
ABOUT = Row("about another", author=BOB)
PRIVATELY = Row("private", chat=PRIVATE, kind="p2p")
BESIDE = Row("beside the group", chat=PRIVATE, kind="p2p")
COMMENTED = Row("in a comment", chat=THREAD)
UNAUTHORED = Row("unauthored", author=None)
LASTING = Row("lasting", scope="user")
LASTING_ABOUT = Row("lasting about another", author=BOB, scope="user")
EVERYBODY = Row("of everybody", subject="")
SHARED = Row("shared", chat=PRIVATE, kind="p2p", shared=HERE)

Rule = Callable[[Actor, Row], bool]


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may do what with a row; the service may do everything. `kept`: what an update has to
    leave true, or it fails as a whole."""

    select: Rule
    insert: Rule
    update: Rule
    delete: Rule
    kept: Rule = lambda a, r: True


def nobody(a: Actor, r: Row) -> bool:
    return False


def here(a: Actor, r: Row) -> bool:
    """The answer is given where the row belongs."""
    return a.claim("tenant_key") == TENANT and a.claim("chat_id") == r.chat


def speaks_for_self(a: Actor) -> bool:
    return a.claim("sub") is not None and a.claim("sub") == a.claim("actor")


def is_home(a: Actor) -> bool:
    """Whether the sender is of the tenant of all rows here, that of the bot."""
    return (a.claim("actor_tenant") or a.claim("tenant_key")) == TENANT


def reached(a: Actor, r: Row) -> bool:
    """Here, or in p2p by whoever is in the row's group and was when it was said."""
    if here(a, r):
        return True
    if a.claim("chat_type") != "p2p" or not speaks_for_self(a) or r.chat != HERE:
        return False
    since = MEMBERS.get(a.claim("actor") or "", SAID_AT.max.replace(tzinfo=UTC))
    at_home = a.claim("tenant_key") == TENANT and is_home(a)
    return at_home and (since is None or since <= SAID_AT)


def involved(a: Actor, r: Row) -> bool:
    """The sender wrote it or it is about them."""
    return a.claim("actor") in (r.subject, r.author) and a.claim("actor") is not None


def wanted(a: Actor, r: Row) -> bool:
    return a.claim("sharing") != "person" or involved(a, r)


def stored(a: Actor, r: Row) -> bool:
    """What was said, and what is derived from it."""
    return reached(a, r) and r.author is not None and wanted(a, r)


def of_turn(a: Actor, r: Row) -> bool:
    """A turn writes as its sender, about its subject, in its place."""
    return here(a, r) and (a.claim("sub"), a.claim("actor")) == (r.subject, r.author)


def of_either(a: Actor, r: Row) -> bool:
    return here(a, r) and a.claim("sub") in (r.subject, r.author)


def own_words(a: Actor, r: Row) -> bool:
    """Who asks for it themselves, as author or as subject."""
    return speaks_for_self(a) and involved(a, r)


def authored(a: Actor, r: Row) -> bool:
    return a.claim("tenant_key") == TENANT and a.claim("actor") == r.author is not None


def both(*rules: Rule) -> Rule:
    return lambda a, r: all(rule(a, r) for rule in rules)


def either(*rules: Rule) -> Rule:
    return lambda a, r: any(rule(a, r) for rule in rules)
