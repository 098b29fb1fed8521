"""Users of Supabase Auth in `scripts/memory`: made for everybody, deleted on request."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.settings import Settings, SettingsError
from memory.accounts.linking import Linked, Linker
from memory.identity import FeishuPerson
from scripts.operating.console import FINDINGS, Screen, print_json, progress
from scripts.operating.desk import OperatorDesk

if TYPE_CHECKING:
    from memory.accounts.users import AuthUsers

_TENANTS = 1000


@dataclass(frozen=True, slots=True)
class AuthOutcome:
    """Whose users of Supabase Auth were deleted, and whose stay."""

    deleted: tuple[FeishuPerson, ...] = ()
    kept: tuple[FeishuPerson, ...] = ()

    def ids(self) -> dict[str, list[str]]:
        """For JSON: the ids of the users."""
        named = {"deleted": self.deleted, "kept": self.kept}
        return {name: [str(one.auth_user_id) for one in people] for name, people in named.items()}


async def link_users(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Gives everybody their Auth user; status 1 when somebody could not be linked."""
    total = await desk.people.count(unlinked=not given.all)
    async with _open(desk.settings) as users:
        with progress("people", total) as step:
            linker = Linker(desk.people, users)
            linked = await linker.link_everybody(again=given.all, on_person=step)
    _show(desk, linked, as_json=given.json)
    return FINDINGS if linked.refused else 0


async def forget_auth_users(desk: OperatorDesk, given: argparse.Namespace) -> AuthOutcome:
    """Deletes the person's Auth users, before the memory forgets who they are; or names those
    that stay."""
    if not given.person or given.conversation:
        return AuthOutcome()
    stored = await desk.people.listed(open_id=given.person, tenant_key=given.tenant, limit=_TENANTS)
    if not given.auth_user:
        return AuthOutcome(kept=tuple(one.person for one in stored if one.auth_user_id))
    people = {one.person for one in stored}
    if given.tenant is not None:  # they may be forgotten already
        people.add(FeishuPerson(given.tenant, given.person))
    async with _open(desk.settings) as users:
        return AuthOutcome(tuple([one for one in sorted(people) if await users.delete(one)]))


def tell_auth_users(outcome: AuthOutcome) -> None:
    """What became of the Auth users, and how those that stay could go."""
    for person in outcome.deleted:
        print(f"deleted in Supabase Auth: {person.auth_user_id}")
    for person in outcome.kept:
        print(
            f"their user of Supabase Auth, {person.auth_user_id}, stays, for other apps share it; "
            f"to delete it: scripts/memory forget --person {shlex.quote(person.open_id)} "
            f"--tenant {shlex.quote(person.tenant_key)} --auth-user"
        )


def _show(desk: OperatorDesk, linked: Linked, *, as_json: bool) -> None:
    refused: Sequence[tuple[str, str, str]] = [
        (person.tenant_key, person.open_id, reason) for person, reason in linked.refused
    ]
    if as_json:
        print_json({"linked": linked.people, "refused": refused})
        return
    screen = Screen(names_of=desk.names_of)
    screen.say(f"{linked.people} people linked")
    if refused:
        screen.table("Not linked", ("tenant", "person", "why"), refused)


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[AuthUsers]:
    """Supabase Auth as configured. Raises `SettingsError`."""
    for name in ("SUPABASE_URL", "SUPABASE_SECRET_KEY"):
        if not getattr(settings, name.lower()):
            raise SettingsError(f"{name} is not set: without it there are no users of Auth.")
    from memory.accounts.users import AuthUsers  # 0.3 s that the other commands do not need

    users = AuthUsers(settings.supabase_url, settings.supabase_secret_key)
    try:
        yield users
    finally:
        await users.close()
