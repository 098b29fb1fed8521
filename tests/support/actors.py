"""Who may ask the database: Alice about her memory, and everybody else about hers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

ALICE, BOB = "ou_alice", "ou_bob"
HERE, THERE = "oc_here", "oc_there"
TENANT, OTHER_TENANT = "tenant", "other tenant"


@dataclass(frozen=True, slots=True)
class Actor:
    """A database role and the claims of its token; no claims, no token."""

    role: str
    claims: Mapping[str, str] | None = None

    @property
    def sender(self) -> str:
        """Who writes: the token's actor, Alice where there is no token."""
        return (self.claims or {}).get("actor", ALICE)


def _person(
    sub: str, *, actor: str = "", chat: str = HERE, tenant: str = TENANT, **more: str
) -> Actor:
    claims = {"sub": sub, "actor": actor or sub, "chat_id": chat, "tenant_key": tenant}
    return Actor("authenticated", claims | {"role": "authenticated"} | more)


ACTORS: dict[str, Actor] = {
    "subject here": _person(ALICE),
    "subject elsewhere": _person(ALICE, chat=THERE),
    "sender here": _person(ALICE, actor=BOB),
    "sender elsewhere": _person(ALICE, actor=BOB, chat=THERE),
    "other user": _person(BOB),
    "other user mentioned by the subject": _person(BOB, actor=ALICE),
    "other user who claims to be the service": _person(BOB, role="service_role"),
    "other user elsewhere": _person(BOB, chat=THERE),
    "other tenant": _person(ALICE, tenant=OTHER_TENANT),
    "nobody": Actor("authenticated"),
    "anon": Actor("anon"),
    "anon with the subject's claims": Actor("anon", _person(ALICE).claims),
    "service": Actor("service_role"),
}


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
        claims = json.dumps(actor.claims) if actor.claims else ""
        connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(actor.role)))
        try:
            return bool(connection.execute(statement, parameters).rowcount)
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.errors.IntegrityError:
            return True
