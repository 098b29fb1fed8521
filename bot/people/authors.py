"""Names of those who wrote what is only read: known for a while, and kept nowhere.

An import that is taken out again must leave nothing behind, so the table of people is read here and
never written.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from memory.tables.people import PeopleStore

log = structlog.get_logger()

_KEPT = 5_000
_FRESH_S = 6 * 3600.0
_ASK_AGAIN_S = 600.0


class Authors:
    """A bounded cache of names by tenant and open_id. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()

    async def find(
        self, tenant_key: str, open_ids: Iterable[str], feishu: FeishuClient, table: PeopleStore
    ) -> dict[str, str]:
        """Names by open_id, from the table, else of Feishu; who is not known is absent. Raises
        `StoreError`; what Feishu does not say now is asked again later."""
        wanted_ids = list(dict.fromkeys(filter(None, open_ids)))
        if missing := [one for one in wanted_ids if not self._is_fresh(tenant_key, one)]:
            for row in await table.named(tenant_key, missing):
                if row.name:
                    self._keep(tenant_key, row.open_id, row.name)
            await self._ask(
                [one for one in missing if not self._name(tenant_key, one)], tenant_key, feishu
            )
        names_by_id = {one: self._name(tenant_key, one) for one in wanted_ids}
        return {open_id: name for open_id, name in names_by_id.items() if name}

    async def _ask(self, open_ids: list[str], tenant_key: str, feishu: FeishuClient) -> None:
        if not open_ids:
            return
        try:
            names_by_id = await feishu.names(open_ids)
        except FeishuFailure as exc:
            log.warning("authors.names_unavailable", error=type(exc).__name__)
            return
        for open_id in open_ids:
            self._keep(tenant_key, open_id, names_by_id.get(open_id, ""))

    def _is_fresh(self, tenant_key: str, open_id: str) -> bool:
        _, until = self._known.get((tenant_key, open_id), ("", 0.0))
        return self._clock() < until

    def _name(self, tenant_key: str, open_id: str) -> str:
        return self._known.get((tenant_key, open_id), ("", 0.0))[0]

    def _keep(self, tenant_key: str, open_id: str, name: str) -> None:
        key = (tenant_key, open_id)
        self._known[key] = name, self._clock() + (_FRESH_S if name else _ASK_AGAIN_S)
        self._known.move_to_end(key)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
