"""Gives everybody in `people` their user of Supabase Auth: in the background, or for an operator.

What is to be done stands in the table, so nothing is lost when Auth is away or a worker dies, and
any number of workers may do it at once: they arrive at the same users and the same links.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from memory.errors import AuthRefused, AuthUnavailable, NotTheSamePerson, StoreError
from memory.scope import FeishuPerson
from memory.tables.directory import PeopleStore, StoredPerson

if TYPE_CHECKING:
    from memory.accounts.users import AuthUsers  # brings the client of Supabase Auth with it

log = structlog.get_logger()

_PAGE = 100
_LOOK_EVERY_S = 600.0
_RETRY_FIRST_S = 15.0


@dataclass(frozen=True, slots=True)
class LinkResult:
    """People linked now, and those who were not because of what the message says."""

    people: int
    refused: tuple[tuple[FeishuPerson, str], ...] = ()


class AccountLinker:
    """Links people to their Auth users, one round at a time in a process."""

    def __init__(
        self,
        people: PeopleStore,
        users: AuthUsers,
        *,
        look_every_s: float = _LOOK_EVERY_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._people = people
        self._users = users
        self._look_every_s = look_every_s
        self._retry_first_s = retry_first_s
        self._round = asyncio.Lock()
        self._new_people = asyncio.Event()
        self._refused: dict[FeishuPerson, str] = {}

    def wake(self) -> None:
        """There are new people: `run` looks now."""
        self._new_people.set()

    async def link_everybody(
        self, *, again: bool = False, on_person: Callable[[], None] = lambda: None
    ) -> LinkResult:
        """One round over who is not linked, or with `again` over everybody.

        Raises `AuthUnavailable`, `AuthRefused` and `StoreError`; who was linked until then stays.
        """
        linked, after = 0, None
        async with self._round:
            if again:
                self._refused.clear()
            while page := await self._people.listed(
                only_unlinked=not again, after=after, limit=_PAGE
            ):
                for stored in page:
                    linked += await self._link(stored)
                    on_person()
                after = page[-1].person
        return LinkResult(linked, tuple(sorted(self._refused.items())))

    async def run(self) -> None:
        """Links until cancelled; what goes wrong is logged and tried again later."""
        retry_s = self._retry_first_s
        while True:
            self._new_people.clear()
            try:
                await self.link_everybody()
            except (AuthUnavailable, AuthRefused, StoreError) as exc:
                level = log.error if isinstance(exc, AuthRefused) else log.warning
                level("people.linking_postponed", error=str(exc), retry_in_s=retry_s)
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, self._look_every_s)
                continue
            except Exception:
                log.exception("people.linking_interrupted")
            retry_s = self._retry_first_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_every_s):
                    await self._new_people.wait()

    async def _link(self, stored_person: StoredPerson) -> bool:
        """Whether the person is linked now; a person refused once is left alone until restart."""
        person = stored_person.person
        if person in self._refused:
            return False
        try:
            user = await self._users.ensure(person)
        except NotTheSamePerson as exc:
            return self._refuse(person, str(exc))
        is_linked = await self._people.link(person, user)
        if is_linked not in (user, None):
            return self._refuse(person, f"they are linked to another Auth user, {is_linked}")
        return is_linked is not None

    def _refuse(self, person: FeishuPerson, reason: str) -> bool:
        self._refused[person] = reason
        log.error("people.not_linked", **_ids(person), reason=reason)
        return False


def _ids(person: FeishuPerson) -> dict[str, str]:
    return {"tenant_key": person.tenant_key, "open_id": person.open_id}
