"""Stores which chats there are, who is in which group, and the names of people.

Feishu's news is stored for the service, in the background; `sql/functions/chats.sql` says what
counts when two pieces of news disagree. Names outlive a process and belong to no one's memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal
from uuid import UUID

from memory.rpc import Rpc
from memory.scope import FeishuPerson

ChatType = Literal["group", "p2p"]


@dataclass(frozen=True, slots=True)
class SeenChat:
    """A chat as it was met in a message at `seen_ms`, ms since epoch."""

    tenant_key: str
    chat_id: str
    chat_type: ChatType | None
    seen_ms: int


@dataclass(frozen=True, slots=True)
class TakenChat:
    """A chat to ask Feishu about. `chat_type` None: not known; `named`: whether its name is known,
    and if it consists of topics;
    `asked_ms`: as of when the answer counts, ms since epoch by the database's clock."""

    chat_id: str
    chat_type: ChatType | None
    named: bool
    asked_ms: int


@dataclass(frozen=True, slots=True)
class KnownChat:
    """A chat of a tenant as it is known; `chat_type` None: not told yet."""

    tenant_key: str
    chat_type: ChatType | None
    name: str


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """What a list of members changed: how many are in by it, came new, and are out."""

    members: int
    joined: int
    left: int


class ChatStore:
    """Reads and writes chats and memberships with the service's role. Times are ms since epoch."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def remember(self, chats: Sequence[SeenChat]) -> int:
        """Stores where messages came from. Returns how many chats are new."""
        rows = json.dumps([asdict(chat) for chat in chats])
        new: int = await self._rpc.call("remember_chats", {"p_chats": rows}, None)
        return new

    async def find(self) -> int:
        """Makes chats known that only the memory knows. Returns how many."""
        count: int = await self._rpc.call("find_chats", {}, None)
        return count

    async def take(self, *, a_minute: int, infos: bool, members: bool) -> tuple[TakenChat, ...]:
        """Chats to ask about that no other worker asks about for ten minutes; with `infos` those
        without a type, with `members` groups. At most `a_minute` for all workers together."""
        params = {"p_a_minute": a_minute, "p_infos": infos, "p_members": members}
        rows = await self._rpc.call("take_chats", params, None)
        return tuple(TakenChat(**row) for row in rows)

    async def describe(
        self,
        chat_id: str,
        *,
        chat_type: ChatType | None,
        name: str,
        at_ms: int,
        topics: bool | None = None,
    ) -> None:
        """Type and form (None: as it was) and name of a chat as of `at_ms`."""
        params = {
            "p_chat_id": chat_id,
            "p_chat_type": chat_type,
            "p_name": name,
            "p_at_ms": at_ms,
            "p_topics": topics,
        }
        await self._rpc.call("describe_chat", params, None)

    async def known(self, chat_id: str) -> tuple[KnownChat, ...]:
        """The chat in each tenant that it is known in: one, but for chats of several companies."""
        rows = await self._rpc.call("known_chats", {"p_chat_id": chat_id}, None)
        return tuple(KnownChat(**row) for row in rows)

    async def is_topic_group(self, chat_id: str) -> bool:
        """Whether a group is known to consist of topics."""
        is_topic: bool = await self._rpc.call("is_topic_group", {"p_chat_id": chat_id}, None)
        return is_topic

    async def postpone(self, chat_id: str, *, wait_s: int | None = None) -> None:
        """Asks again after `wait_s`; None: after a pause that grows with every failure."""
        await self._rpc.call("postpone_chat", {"p_chat_id": chat_id, "p_wait_s": wait_s}, None)

    async def save_members(
        self, chat_id: str, members: Iterable[FeishuPerson], *, asked_ms: int
    ) -> MembershipChange | None:
        """The whole list of a group; whoever is not in it is out. None: later news is known."""
        params = {"p_chat_id": chat_id, "p_members": _member_rows(members), "p_asked_ms": asked_ms}
        row = await self._rpc.call("save_chat_members", params, None)
        return MembershipChange(**row) if row else None

    async def add(
        self, tenant_key: str, chat_id: str, members: Iterable[FeishuPerson], *, at_ms: int
    ) -> int:
        """People joined a group. `tenant_key` is the bot's. Returns how many are in by this."""
        return await self._change("add_chat_members", tenant_key, chat_id, members, at_ms)

    async def remove(
        self, tenant_key: str, chat_id: str, members: Iterable[FeishuPerson], *, at_ms: int
    ) -> int:
        """People are out of a group. Returns how many are out by this."""
        return await self._change("remove_chat_members", tenant_key, chat_id, members, at_ms)

    async def enter(self, tenant_key: str, chat_id: str, *, name: str, at_ms: int) -> None:
        """The bot was added to a group; its members are asked for soon."""
        params = {
            "p_tenant_key": tenant_key,
            "p_chat_id": chat_id,
            "p_name": name,
            "p_at_ms": at_ms,
        }
        await self._rpc.call("enter_chat", params, None)

    async def save_adder(self, tenant_key: str, chat_id: str, open_id: str) -> None:
        """Who added the bot to a group may change its rules."""
        params = {"p_tenant_key": tenant_key, "p_chat_id": chat_id, "p_open_id": open_id}
        await self._rpc.call("save_chat_adder", params, None)

    async def save_managers(self, tenant_key: str, chat_id: str, open_ids: Iterable[str]) -> None:
        """Owner and managers of a chat as Feishu names them now; nobody else is one any more."""
        params = {
            "p_tenant_key": tenant_key,
            "p_chat_id": chat_id,
            "p_managers": json.dumps(list(open_ids)),
        }
        await self._rpc.call("save_chat_managers", params, None)

    async def leave(self, tenant_key: str, chat_id: str, *, at_ms: int) -> bool:
        """The bot is out, or the chat is no more. Returns False if later news says otherwise."""
        params = {"p_tenant_key": tenant_key, "p_chat_id": chat_id, "p_at_ms": at_ms}
        has_left: bool = await self._rpc.call("leave_chat", params, None)
        return has_left

    async def begin_welcome(
        self, tenant_key: str, chat_id: str, chat_type: ChatType, *, at_ms: int
    ) -> int | None:
        """The first words that a chat is owed after an event at `at_ms`: the time of the event that
        they are for, the same for every event until the bot has left. None: none."""
        params = {
            "p_tenant_key": tenant_key,
            "p_chat_id": chat_id,
            "p_chat_type": chat_type,
            "p_at_ms": at_ms,
        }
        owed_ms: int | None = await self._rpc.call("begin_welcome", params, None)
        return owed_ms

    async def end_welcome(self, chat_id: str, for_ms: int) -> None:
        """The first words for that event were said, or cannot be."""
        await self._rpc.call("end_welcome", {"p_chat_id": chat_id, "p_for_ms": for_ms}, None)

    async def _change(
        self,
        function: str,
        tenant_key: str,
        chat_id: str,
        members: Iterable[FeishuPerson],
        at_ms: int,
    ) -> int:
        params = {
            "p_tenant_key": tenant_key,
            "p_chat_id": chat_id,
            "p_members": _member_rows(members),
            "p_at_ms": at_ms,
        }
        count: int = await self._rpc.call(function, params, None)
        return count


def _member_rows(members: Iterable[FeishuPerson]) -> str:
    return json.dumps([{"tenant_key": m.tenant_key, "open_id": m.open_id} for m in members])


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
