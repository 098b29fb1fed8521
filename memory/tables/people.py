"""The table `people`: names that outlive a process, and who is linked to Supabase Auth.

Names belong to no one's memory: they are kept for the service, in one call for many people.
Methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from memory.identity import FeishuPerson
from memory.rpc import Rpc


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name as the table has it, "" for none. `seen_ms`: last seen, ms since epoch."""

    open_id: str
    name: str
    seen_ms: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """A name (or "", none) as it was seen at `seen_ms`, ms since epoch.

    `met`: the person wrote, or somebody mentioned them. A looked-up name does not make somebody
    known again who was forgotten.
    """

    tenant_key: str
    open_id: str
    name: str
    seen_ms: int
    met: bool = True


@dataclass(frozen=True, slots=True)
class StoredPerson:
    """A row of `people`."""

    person: FeishuPerson
    name: str
    auth_user_id: UUID | None


class PeopleStore:
    """Reads and writes `people` with the service's role."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def named(self, tenant_key: str, open_ids: Iterable[str]) -> tuple[KnownName, ...]:
        """What is known in one tenant of these people; who is not known is absent."""
        ids = json.dumps(list(open_ids))
        params = {"p_tenant_key": tenant_key, "p_open_ids": ids}
        rows = await self._rpc.call("people_named", params, None)
        return tuple(KnownName(**row) for row in rows)

    async def remember(self, sightings: Sequence[Sighting]) -> int:
        """Stores names; an older sighting never replaces a later one. Returns how many people
        are new."""
        rows = json.dumps([asdict(sighting) for sighting in sightings])
        new: int = await self._rpc.call("remember_people", {"p_people": rows}, None)
        return new

    async def listed(
        self,
        *,
        open_id: str | None = None,
        tenant_key: str | None = None,
        only_unlinked: bool = False,
        after: FeishuPerson | None = None,
        limit: int = 100,
    ) -> tuple[StoredPerson, ...]:
        """People in the order of tenant and open_id, from the one behind `after` on."""
        params = {
            "p_open_id": open_id,
            "p_tenant_key": tenant_key,
            "p_unlinked": only_unlinked,
            "p_after_tenant": after.tenant_key if after else None,
            "p_after_open_id": after.open_id if after else None,
            "p_limit": limit,
        }
        rows = await self._rpc.call("list_people", params, None)
        return tuple(
            StoredPerson(
                FeishuPerson(row["tenant_key"], row["open_id"]),
                row["name"],
                UUID(row["auth_user_id"]) if row["auth_user_id"] else None,
            )
            for row in rows
        )

    async def count(self, *, only_unlinked: bool = False) -> int:
        """How many people there are."""
        count: int = await self._rpc.call("count_people", {"p_unlinked": only_unlinked}, None)
        return count

    async def link(self, person: FeishuPerson, auth_user_id: UUID) -> UUID | None:
        """Links a person to an Auth user unless they are linked already.

        Returns whom they are linked to now; None: they were forgotten meanwhile.
        """
        params = {
            "p_tenant_key": person.tenant_key,
            "p_open_id": person.open_id,
            "p_auth_user_id": str(auth_user_id),
        }
        user_id = await self._rpc.call("link_person", params, None)
        return UUID(user_id) if user_id else None
