"""Who may ask the database: every kind of token, and the people behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

ALICE, BOB, CARL, DORA, ERIK, FAY = (
    f"ou_{name}" for name in ("alice", "bob", "carl", "dora", "erik", "fay")
)
HERE, THERE, PRIVATE = "oc_here", "oc_there", "oc_private"  # two groups; Alice's p2p chat
# Threads of comments in one document, and in another.
THREAD, SECOND_THREAD, ELSEWHERE = "doc:tok1:71", "doc:tok1:72", "doc:tok2:71"
TENANT, OTHER_TENANT = "tenant", "other tenant"


@dataclass(frozen=True, slots=True)
class Actor:
    """A database role and the claims of its token; no claims, no token. `looks`: an operator at the
    console, of whom it is kept that they look."""

    role: str
    claims: Mapping[str, str] | None = None
    looks: bool = False

    def claim(self, name: str) -> str | None:
        """As the policies read it."""
        return (self.claims or {}).get(name)


def _turn(sub: str, *, by: str = "", chat: str = HERE, kind: str = "group", **more: str) -> Actor:
    claims = {
        "sub": sub,
        "actor": by or sub,
        "chat_id": chat,
        "chat_type": kind,
        "tenant_key": TENANT,
        "role": "authenticated",
    }
    return Actor("authenticated", {name: v for name, v in (claims | more).items() if v})


def _private(person: str, **more: str) -> Actor:
    chat = PRIVATE if person == ALICE else f"oc_p2p_{person}"
    return _turn(person, chat=chat, kind="p2p", **more)


_NARROW = {"sharing": "person"}

ACTORS: dict[str, Actor] = {
    "anon": Actor("anon"),
    "anon with the subject's claims": Actor("anon", _turn(ALICE).claims),
    "a user of Supabase Auth": Actor(
        "authenticated",
        {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88", "role": "authenticated"},
    ),
    "nobody": Actor("authenticated"),
    "empty claims": Actor(
        "authenticated",
        dict.fromkeys(("sub", "actor", "chat_id", "chat_type", "tenant_key"), ""),
    ),
    "the subject's name alone": Actor("authenticated", {"sub": ALICE, "tenant_key": TENANT}),
    "subject here": _turn(ALICE),
    "subject here, kind of chat unknown": _turn(ALICE, kind=""),
    "subject here, narrowed": _turn(ALICE, **_NARROW),
    "sender here": _turn(ALICE, by=BOB),
    "sender here, narrowed": _turn(ALICE, by=BOB, **_NARROW),
    "sender here, mentioned by the subject": _turn(BOB, by=ALICE),
    "member here": _turn(CARL),
    "member here, narrowed": _turn(CARL, **_NARROW),
    "member here who mentions the subject, narrowed": _turn(ALICE, by=CARL, **_NARROW),
    "member here who claims to be the service": _turn(CARL, role="service_role"),
    "subject in another group": _turn(ALICE, chat=THERE),
    "sender in another group": _turn(ALICE, by=BOB, chat=THERE),
    "somebody in another group": _turn(CARL, chat=THERE),
    "subject in p2p": _private(ALICE),
    "subject in p2p, narrowed": _private(ALICE, **_NARROW),
    "subject in p2p, kind of chat unknown": _turn(ALICE, chat=PRIVATE, kind=""),
    "member in p2p": _private(CARL),
    "member in p2p, narrowed": _private(CARL, **_NARROW),
    "member in p2p who speaks of the subject": _turn(
        ALICE, by=CARL, chat="oc_p2p_ou_carl", kind="p2p"
    ),
    "subject in a comment": _turn(ALICE, chat=THREAD),
    "reader in the same comment": _turn(CARL, chat=THREAD),
    "subject in another comment of the document": _turn(ALICE, chat=SECOND_THREAD),
    "subject in a comment of another document": _turn(ALICE, chat=ELSEWHERE),
    "subject in a comment that says the document alone": _turn(ALICE, chat="doc:tok1"),
    "subject in a comment of another tenant": _turn(ALICE, chat=THREAD, tenant_key=OTHER_TENANT),
    "left, in p2p": _private(DORA),
    "membership expired, in p2p": _private(ERIK),
    "joined later, in p2p": _private(FAY),
    "another tenant's subject here": _turn(ALICE, tenant_key=OTHER_TENANT),
    "another tenant's subject in p2p": _private(ALICE, tenant_key=OTHER_TENANT),
    "a guest of the member's open_id, in p2p": _turn(
        CARL, chat="oc_p2p_guest", kind="p2p", actor_tenant=OTHER_TENANT
    ),
    "a guest of the subject's open_id, here": _turn(ALICE, actor_tenant=OTHER_TENANT),
    "a guest's token that says the tenant of the bot": _private(CARL, actor_tenant=TENANT),
    "no tenant": _turn(ALICE, tenant_key=""),
    "service": Actor("service_role"),
    "console": Actor("bot_console"),
    "console with the subject's claims": Actor("bot_console", _turn(ALICE).claims),
    "console, looking": Actor("bot_console", looks=True),
}


# Of the place where a person acts as themselves: their open_id takes the place of a chat.
OWN_PLACES: dict[str, Actor] = {
    "subject at their own place": _turn(ALICE, chat=ALICE, kind="p2p"),
    "subject at their own place, kind of chat unknown": _turn(ALICE, chat=ALICE, kind=""),
    "sender at the subject's own place": _turn(ALICE, by=BOB, chat=ALICE, kind="p2p"),
    "another tenant's subject at their own place": _turn(
        ALICE, chat=ALICE, kind="p2p", tenant_key=OTHER_TENANT
    ),
    "a guest of the subject's open_id, at their own place": _turn(
        ALICE, chat=ALICE, kind="p2p", actor_tenant=OTHER_TENANT
    ),
    "subject at their own place who speaks of another": _turn(
        BOB, by=ALICE, chat=ALICE, kind="p2p"
    ),
    "a member at their own place": _turn(CARL, chat=CARL, kind="p2p"),
    "the subject at a member's own place": _turn(ALICE, chat=CARL, kind="p2p"),
}


def become(connection: psycopg.Connection, actor: Actor) -> None:
    """For the rest of the transaction."""
    claims = json.dumps(actor.claims) if actor.claims is not None else ""
    connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
    connection.execute(sql.SQL("set local role {}").format(sql.Identifier(actor.role)))
    if actor.looks:
        connection.execute(
            "insert into feishu_bot.console_audit (admin, action, about) values ('a', 'look', 'x')"
        )


def succeeds(
    connection: psycopg.Connection,
    actor: Actor,
    statement: sql.Composed,
    parameters: Sequence[object] = (),
) -> bool:
    """Whether `actor` can run the statement and it touches a row; everything is rolled back.

    A constraint is checked after the policies: who is stopped only there was let through by them.
    """
    with connection.transaction(force_rollback=True):
        become(connection, actor)
        try:
            return bool(connection.execute(statement, parameters).rowcount)
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.errors.IntegrityError:
            return True
