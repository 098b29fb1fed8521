"""Knows the names of people, tenant by tenant, and who the bot itself is.

Names are learned from mentions, read from the table `people` and asked of Feishu. A name learned
in one tenant is not shown in another. People write their names themselves: they are shown and
matched, never trusted. Names of authors who are only read (imports) are never written to the
table, so that a removed import leaves nothing behind."""

from __future__ import annotations

import asyncio
import re
import time
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from bot.feishu.models import BotInfo
from bot.listening.turn_request import TurnRequest
from bot.people.membership import Membership, NameKeeper
from bot.text.roster import Person, Roster
from memory.errors import StoreError
from memory.tables.directory import PeopleStore, Sighting
from memory.text import NAMELESS, speaker_label

log = structlog.get_logger()
_MOST_NAMES = 20_000
_FRESH_S = 6 * 3600
_ASK_AGAIN_S = 600
_PER_CALL = 10
_CALL_S = 5.0

# The table is a short cut: what is not read at once is asked of Feishu.
_TABLE_S = 0.25
_TOLD_APART = re.compile(r"[(（]…\w+[)）]\s*$")

_MOST_AUTHORS = 5_000
_AUTHOR_FRESH_S = 6 * 3600.0
_ASK_AUTHOR_AGAIN_S = 600.0


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
        self._sources = NameSources(feishu, clock, table, keeper)
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


@dataclass(slots=True)
class _KnownName:
    """What is known of somebody; `kept_*` is what the table has, or is about to have. `kept_met`:
    it has them for certain, also if they were forgotten."""

    name: str = ""
    seen_ms: int = 0
    fresh_until: float = 0.0
    looked_up: bool = False  # in the table
    kept_name: str | None = None
    kept_ms: int = 0
    kept_met: bool = False


@dataclass(frozen=True, slots=True)
class NameSources:
    """Where names come from and where they are kept. `clock` is seconds since epoch."""

    feishu: FeishuClient
    clock: Callable[[], float]
    table: PeopleStore | None = None
    keeper: NameKeeper | None = None


class Names:
    """A bounded cache of the names of one tenant; `known` is open_id → name.

    Someone unnamed is called by their open_id, which an at-tag shows under their real name anyway.
    """

    def __init__(self, tenant_key: str, sources: NameSources) -> None:
        self.tenant_key = tenant_key
        self.known: dict[str, str] = {}
        self._bearers: Counter[str] = Counter()
        self._sources = sources
        self._entries: OrderedDict[str, _KnownName] = OrderedDict()
        self._lookups: dict[str, asyncio.Future[None]] = {}
        self._asking: asyncio.Task[None] | None = None

    def learn(
        self,
        names: Iterable[tuple[str, str]],
        *,
        seen_ms: int | None = None,
        keep: bool = True,
        was_met: bool = True,
    ) -> None:
        """Takes (open_id, name) pairs as seen at `seen_ms` (ms since epoch, None: now).

        An older sighting never replaces a later one. With `keep` they are kept in the table, too,
        somebody without a name as well. `was_met` is false for names that were looked up.
        """
        now_ms = int(self._sources.clock() * 1000)
        for open_id, name in names:
            if open_id:
                self._see(open_id, name, now_ms if seen_ms is None else min(seen_ms, now_ms))
                if keep:
                    self._keep(open_id, was_met=was_met)

    def forget(self, open_id: str) -> None:
        """Drops what is known of somebody and what was to be kept."""
        self._call(open_id, None)
        self._entries.pop(open_id, None)
        if self._sources.keeper:
            self._sources.keeper.drop(self.tenant_key, open_id)

    def name(self, open_id: str) -> str:
        """The name as known now, else the open_id."""
        return self.known.get(open_id) or open_id

    def label(self, open_id: str, name: str = "") -> str:
        """The name in front of a person's words, on one line; `name` where none is known now.

        People of one name are told apart by the end of their open_id, and nobody can take a name
        that looks like that.
        """
        now = self.known.get(open_id)
        label = speaker_label(now or name)
        others = self._bearers[_alike(now or name)] - (now is not None)
        unclear = others > 0 or label == NAMELESS or _TOLD_APART.search(label)
        return f"{label} (…{open_id[-4:]})" if unclear else label

    def person(self, open_id: str) -> Person:
        return Person(open_id=open_id, name=self.name(open_id))

    def roster(self, open_ids: Iterable[str]) -> Roster:
        unique_ids = dict.fromkeys(filter(None, open_ids))
        return Roster(tuple([Person(one, self.known.get(one) or one) for one in unique_ids]))

    async def look_up(self, open_ids: Iterable[str], *, wait_s: float = 0.5) -> None:
        """Finds names that are missing or old, and waits a moment for them.

        First in the table, where one call serves all; then of Feishu, ten to a call, whoever wants
        them. A name that comes later is kept for later.
        """
        now = self._sources.clock()
        missing = [i for i in dict.fromkeys(open_ids) if i and not self._is_fresh(i, now)]
        if not missing:
            return
        create = asyncio.get_running_loop().create_future
        waiters = [self._lookups.setdefault(open_id, create()) for open_id in missing]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        await asyncio.wait(waiters, timeout=wait_s)

    async def _ask(self) -> None:
        while self._lookups:
            if unknown := [i for i in self._lookups if not self._entry(i).looked_up]:
                await self._ask_table(unknown)
            if batch := list(self._lookups)[:_PER_CALL]:
                await self._ask_feishu(batch)

    async def _ask_table(self, open_ids: list[str]) -> None:
        """Once for everybody; who was found is no longer wanted."""
        for open_id in open_ids:
            self._entry(open_id).looked_up = True
        if self._sources.table is None:
            return
        try:
            async with asyncio.timeout(_TABLE_S):
                rows = await self._sources.table.named(self.tenant_key, open_ids)
        except (TimeoutError, StoreError) as exc:
            log.debug("people.names_unread", error=type(exc).__name__)
            return
        now = self._sources.clock()
        for row in rows:
            entry = self._entry(row.open_id)
            entry.kept_name, entry.kept_ms, entry.kept_met = row.name, row.seen_ms, True
            if row.name:
                self._see(row.open_id, row.name, row.seen_ms)
                entry.fresh_until = max(entry.fresh_until, now + _ASK_AGAIN_S)
                self._answer(row.open_id)

    async def _ask_feishu(self, open_ids: list[str]) -> None:
        asked_ms = int(self._sources.clock() * 1000)
        names_by_id: dict[str, str] = {}
        try:
            async with asyncio.timeout(_CALL_S):
                names_by_id = await self._sources.feishu.names(open_ids)
        except (TimeoutError, FeishuFailure) as exc:
            log.warning("people.names_unavailable", error=type(exc).__name__)
        for open_id in open_ids:
            if names_by_id.get(open_id):
                self.learn([(open_id, names_by_id[open_id])], seen_ms=asked_ms, was_met=False)
            entry = self._entry(open_id)
            entry.fresh_until = max(entry.fresh_until, self._sources.clock() + _ASK_AGAIN_S)
            self._answer(open_id)

    def _answer(self, open_id: str) -> None:
        waiting = self._lookups.pop(open_id, None)
        if waiting is not None:
            waiting.set_result(None)

    def _is_fresh(self, open_id: str, now: float) -> bool:
        entry = self._entries.get(open_id)
        return entry is not None and entry.fresh_until >= now

    def _see(self, open_id: str, name: str, seen_ms: int) -> None:
        entry = self._entry(open_id)
        if name and seen_ms >= entry.seen_ms:
            entry.name, entry.seen_ms = name, seen_ms
            entry.fresh_until = max(entry.fresh_until, seen_ms / 1000 + _FRESH_S)
            self._call(open_id, name)

    def _call(self, open_id: str, name: str | None) -> None:
        """Sets the name of somebody, or (None) drops it."""
        if (old := self.known.pop(open_id, None)) is not None:
            self._bearers.subtract([_alike(old)])
            if not self._bearers[_alike(old)]:
                del self._bearers[_alike(old)]
        if name is not None:
            self.known[open_id] = name
            self._bearers[_alike(name)] += 1

    def _keep(self, open_id: str, *, was_met: bool) -> None:
        """Hands a sighting to the keeper unless the table has it, and from not long ago."""
        entry, keeper = self._entry(open_id), self._sources.keeper
        is_old = entry.seen_ms - entry.kept_ms > _FRESH_S * 1000
        new = entry.kept_name != entry.name or (was_met and not entry.kept_met)
        if keeper and (new or is_old):
            keeper.keep(Sighting(self.tenant_key, open_id, entry.name, entry.seen_ms, was_met))
            entry.kept_name, entry.kept_ms = entry.name, entry.seen_ms
            entry.kept_met = entry.kept_met or was_met

    def _entry(self, open_id: str) -> _KnownName:
        """The entry of somebody, which becomes the youngest; the oldest goes when there are too
        many."""
        entry = self._entries.setdefault(open_id, _KnownName())
        self._entries.move_to_end(open_id)
        if len(self._entries) > _MOST_NAMES:
            oldest, _ = self._entries.popitem(last=False)
            self._call(oldest, None)
        return entry


def _alike(name: str) -> str:
    """The same for names that look the same."""
    return unicodedata.normalize("NFKC", speaker_label(name)).casefold()


class AuthorNames:
    """A bounded cache of names by tenant and open_id. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known_names: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()

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
        _, until = self._known_names.get((tenant_key, open_id), ("", 0.0))
        return self._clock() < until

    def _name(self, tenant_key: str, open_id: str) -> str:
        return self._known_names.get((tenant_key, open_id), ("", 0.0))[0]

    def _keep(self, tenant_key: str, open_id: str, name: str) -> None:
        key = (tenant_key, open_id)
        self._known_names[key] = (
            name,
            self._clock() + (_AUTHOR_FRESH_S if name else _ASK_AUTHOR_AGAIN_S),
        )
        self._known_names.move_to_end(key)
        if len(self._known_names) > _MOST_AUTHORS:
            self._known_names.popitem(last=False)


class BotIdentity:
    """Who the bot itself is; asked of Feishu once, by whoever needs it first."""

    def __init__(self, feishu: FeishuClient) -> None:
        self._feishu = feishu
        self._known_names: BotInfo | None = None
        self._lock = asyncio.Lock()

    async def look_up(self) -> Person:
        """The bot as open_id and name. Raises `FeishuFailure` while Feishu cannot be reached."""
        async with self._lock:
            self._known_names = self._known_names or await self._feishu.bot_info()
        return Person(self._known_names.open_id, self._known_names.app_name or "Bot", is_bot=True)
