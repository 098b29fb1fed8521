"""What an answer is made of may tell of documents that earlier answers read: it may be told while
everybody there can open them, asked afresh.

It is asked as the person who had the document read, and where they are no longer connected as who
asks now. What tells of one that is closed is taken back; where nobody says, it is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import cast

import structlog

from bot.answering.documents import token_of
from bot.documents.group_audience import FRESH_S, AskedGroup, GroupAudience, Seen
from bot.documents.links import DocumentLink, LinkKind
from bot.outbox.withdrawing import withdraw_cards
from bot.services import Services
from memory.identity import FeishuPerson
from memory.scope import AgentMemoryContext
from memory.tables.told_documents import ToldDocument, ToldDocumentStore

log = structlog.get_logger()

_MOST = 20  # documents that are asked about for one answer; those of more are left out
_AT_ONCE = 5
_WITHIN_S = 10.0


class DocumentsBehind:
    """Made anew for each answer. `asker`: who asks now; None: nobody."""

    def __init__(
        self,
        services: Services,
        here: AgentMemoryContext,
        asker: FeishuPerson | None = None,
        *,
        own: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`here`: where it is read; `own`: ids of the answer itself, which tell nothing yet."""
        self._services = services
        self._store = ToldDocumentStore(services.rpc)
        self._here = here
        self._asker = asker
        self._own = frozenset(own)
        self._clock = clock
        self._open: dict[ToldDocument, float] = {}  # and when that was found
        self._closed: set[ToldDocument] = set()

    @property
    def sources(self) -> frozenset[str]:
        """The ids of the documents that the answer may tell of."""
        return frozenset(document.source for document in self._open)

    async def untellable(self, sources: Iterable[str]) -> frozenset[str]:
        """Those of `sources` (ids as an answer notes what it was given) that must be left out.
        Raises `StoreError`."""
        others = frozenset(sources) - self._own
        if not others:
            return frozenset()
        behind = await self._store.behind_sources(self._here.tenant_key, others)
        self._closed |= {one.document for one in behind if one.closed}
        for one in behind:
            age_s = FRESH_S if one.age_s is None else one.age_s
            if age_s < FRESH_S and one.document not in self._closed:
                self._open.setdefault(one.document, self._clock() - age_s)
        await self._ask({one.document for one in behind})
        return frozenset(one.source for one in behind if one.document not in self._open)

    async def may_be_told(self, sources: Collection[str]) -> bool:
        """Whether none of them must be left out. Raises `StoreError`."""
        return not await self.untellable(sources)

    async def still_open(self) -> bool:
        """Whether everybody can open all that may be told of, asked again where a minute has
        passed. Raises `StoreError`."""
        documents = set(self._open)
        await self._ask(documents)
        return documents == self._open.keys()

    async def _ask(self, documents: Collection[ToldDocument]) -> None:
        """Those that Feishu did not speak of for a minute are open, or not, as it says now."""
        now = self._clock()
        stale = [
            one
            for one in documents
            if one not in self._closed and now - self._open.get(one, -FRESH_S) >= FRESH_S
        ]
        for one in stale:
            self._open.pop(one, None)
        some = asyncio.Semaphore(_AT_ONCE)

        async def asked(document: ToldDocument) -> None:
            async with some:
                sight = await look(self._services, document, self._asker)
            if sight == "open":
                self._open[document] = now
                await self._store.found_open(document.source, self._clock() - now)
            else:
                self._closed.add(document)
                log.info("documents.left_out", chat_id=document.chat_id, seen=sight)

        try:
            async with asyncio.timeout(_WITHIN_S):
                await asyncio.gather(*map(asked, sorted(stale, key=lambda one: -one.id)[:_MOST]))
        except TimeoutError:
            log.warning("documents.not_told_in_time", documents=len(stale))


async def look(
    services: Services, document: ToldDocument, asker: FeishuPerson | None = None
) -> Seen:
    """What Feishu says of it now; where it is closed, what tells of it is taken back. Raises
    `StoreError`."""
    sight = await _seen(services, document, document.actor)
    if sight == "unknown" and asker not in (None, document.actor):
        by_asker = await _seen(services, document, asker)
        # who asks may not be shown with whom it is shared: that it is closed is not for them to say
        return "open" if by_asker == "open" else "unknown"
    if sight == "closed":
        await services.store.take_back(document.source, document.chat_id)
        await ToldDocumentStore(services.rpc).drop(document)
        log.info("documents.taken_back", chat_id=document.chat_id)
        await withdraw_cards(services)
    return sight


async def _seen(services: Services, document: ToldDocument, person: FeishuPerson) -> Seen:
    """What Feishu says to `person`."""

    async def alone() -> list[FeishuPerson]:
        return [document.actor]

    chat_id, is_alone = document.chat_id, document.chat_type == "p2p"
    members_of = services.feishu.chat_members
    members = alone if is_alone else partial(members_of, chat_id)
    group = AskedGroup(chat_id, document.tenant_key, person, members, members_of)
    token = token_of(services, person)
    audience = GroupAudience(group, services.feishu.documents, token)
    return await audience.look(DocumentLink(cast(LinkKind, document.kind), document.token))
