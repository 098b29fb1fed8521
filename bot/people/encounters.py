"""Who the bot meets, tenant by tenant: a name learned in one is not shown in another."""

from __future__ import annotations

import time
from collections.abc import Callable

from bot.feishu.client import FeishuClient
from bot.listening.turn_request import TurnRequest
from bot.people.membership import Membership
from bot.people.names import Names, Sources
from bot.people.write_behind import NameKeeper
from bot.text.roster import Person
from memory.tables.people import PeopleStore


class People:
    """The names of each tenant. With a `table` they outlive the process, written by `keeper`;
    `membership` is told where people were met."""

    def __init__(
        self,
        feishu: FeishuClient,
        *,
        table: PeopleStore | None = None,
        keeper: NameKeeper | None = None,
        membership: Membership | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._membership = membership
        self._sources = Sources(feishu, clock, table, keeper)
        self._tenants: dict[str, Names] = {}

    def of(self, tenant_key: str) -> Names:
        """The names as they are known in one tenant."""
        if tenant_key not in self._tenants:
            self._tenants[tenant_key] = Names(tenant_key, self._sources)
        return self._tenants[tenant_key]

    def forget(self, open_id: str) -> None:
        """Drops what is known of somebody, whatever their tenant."""
        for names in self._tenants.values():
            names.forget(open_id)

    def meet(self, request: TurnRequest, bot: Person) -> Names:
        """Learns who wrote a message, where, and whom it mentions; gives the names of its tenant.

        Kept in the table are the people of that tenant: bots are no people, and somebody of another
        tenant is kept under that once they write themselves.
        """
        if self._membership:
            self._membership.meet(request)
        names = self.of(request.tenant_key)
        seen_ms = request.create_time_ms or None
        for mention in request.mentions:
            is_bot = mention.is_bot or mention.open_id == bot.open_id
            at_home = mention.tenant_key in ("", request.tenant_key)
            names.learn(
                [(mention.open_id, mention.name)],
                seen_ms=seen_ms,
                keep=at_home and not is_bot,
            )
        own = self.of(request.sender_tenant or request.tenant_key)
        name = names.known.get(request.sender_open_id, "") if request.sender_tenant else ""
        own.learn([(request.sender_open_id, name)], keep=request.sender_type == "user")
        return names

    async def look_up_sender(self, request: TurnRequest) -> None:
        """Finds the name of who wrote a message, in their own tenant."""
        own = self.of(request.sender_tenant or request.tenant_key)
        await own.look_up([request.sender_open_id])
        if request.sender_tenant:
            name = own.known.get(request.sender_open_id, "")
            self.of(request.tenant_key).learn([(request.sender_open_id, name)], keep=False)
