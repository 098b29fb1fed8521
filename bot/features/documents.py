"""Reads and searches documents as the person who asks, and checks before an answer is reused that
everyone in the chat can still open the documents behind it.

In a group the tools return only documents that everyone there can open
(`bot.documents.reading`). The check asks Feishu as the person who had the document read, or
as the asker if that person is no longer connected. Answers that tell of a closed document are
withdrawn; where Feishu does not say, the document is left out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import cast

import structlog

from bot.agents.running_turns import note_sources
from bot.agents.tool_types import Tool, ToolFailed, Wording, tool
from bot.agents.tools.deps import ToolDeps
from bot.answering.question import Turn
from bot.documents.audience import FRESH_S, AskedGroup, GroupAudience, Visibility
from bot.documents.document import (
    SHORT,
    TEXTS,
    DocumentLink,
    LinkKind,
    ReadDocument,
    UnreadDocument,
    chosen_section,
    comment_lines,
    cut_text,
    outline,
    refusal_text,
    say,
)
from bot.documents.reading import DocumentReader, PersonDocuments, TurnDocuments
from bot.features.feature import Feature
from bot.feishu.documents import FoundDocument
from bot.outbox.retractions import withdraw_cards
from bot.people.personal_access import NotConnected, UserToken
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.tables.sources import SourceDocument, SourceDocumentStore
from memory.text import one_line

MOST_CHARACTERS = 12_000  # of one result
MOST_COMMENT_LINES = 40
WORDING = Wording(TEXTS)

log = structlog.get_logger()
_MOST = 20  # documents that are asked about for one answer; those of more are left out
_AT_ONCE = 5
_WITHIN_S = 10.0

_TEND_EVERY_S = 30.0
_CHECK_AGAIN_S = 3000.0
_CHECKED_AT_ONCE = 20


def document_tools() -> list[Tool]:
    return [
        tool(read_document, reads=True, is_kept=False, wording=WORDING),
        tool(search_documents, reads=True, is_kept=False, wording=WORDING),
    ]


async def read_document(deps: ToolDeps, url: str, section: str = "") -> str:
    """Read a Feishu document, wiki page, sheet or Base, as the person who asks.

    Args:
        url: Its link, as somebody wrote it or as search_documents found it.
        section: The number or heading of a section of a long document; its outline lists them.
    """
    documents = _documents(deps)
    document = await documents.read(url)
    if isinstance(document, UnreadDocument):
        raise _tool_failure(document)
    chosen_part = chosen_section(document, section) if section else None
    if chosen_part:
        text = "\n".join(
            [*_heading(document), f"Section: {chosen_part.title}", "", chosen_part.text]
        )
    elif section:
        text = f"{say('why-section', 'en')} Its sections:\n{outline(document)}"
    else:
        text = _document_text(document, deps.prompt.people.names())
    if not await documents.give(document, text):
        raise _tool_failure(UnreadDocument("unavailable"))
    if section and not chosen_part:
        raise ToolFailed(text)
    return text


async def search_documents(deps: ToolDeps, query: str) -> str:
    """Search the documents that the person who asks can open.

    Args:
        query: A few words, at most 50 characters.
    """
    results = await _documents(deps).search(query)
    if isinstance(results, UnreadDocument):
        raise _tool_failure(results)
    return "\n".join(map(_found_line, results)) or "No document was found."


def _tool_failure(refusal: UnreadDocument) -> ToolFailed:
    scopes = ", ".join(refusal.scopes)
    return ToolFailed(refusal_text(refusal, "en"), f"why-{refusal.reason}", scopes=scopes)


def _documents(deps: ToolDeps) -> TurnDocuments:
    documents: TurnDocuments | None = deps.opened_sources.get(DOCUMENTS.name)
    if documents is None:
        raise _tool_failure(UnreadDocument("not_connected"))
    return documents


def _document_text(document: ReadDocument, names: Mapping[str, str]) -> str:
    """All of a short document; of a long one the outline and the first section."""
    lines = _heading(document)
    if document.size <= SHORT:
        for one in document.sections:
            lines += ["", f"{'#' * one.level} {one.title}".strip(), one.text]
    else:
        first = document.sections[0]
        lines += [
            "It is long. Ask for a section by its number or heading.",
            outline(document),
            "",
            f"Section: {first.title or '1'}",
            first.text,
        ]
    safe_names = {open_id: one_line(name) for open_id, name in names.items()}
    comments = comment_lines(document, safe_names)[:MOST_COMMENT_LINES]
    lines += ["", "Comments:", *comments] if comments else []
    return "\n".join(lines)[:MOST_CHARACTERS]


def _heading(document: ReadDocument) -> list[str]:
    cuts = [cut_text(one, "en") for one in document.cuts]
    return [f"Title: {one_line(document.title)}", f"Link: {document.url}", *cuts]


def _found_line(hit: FoundDocument) -> str:
    about = f" by {one_line(hit.owner)}" if hit.owner else ""
    return f"- {hit.title or 'Untitled'}{about}: {one_line(hit.url)}\n  {hit.summary}".rstrip()


def documents_of(services: Services, turn: Turn) -> TurnDocuments | None:
    """None: nobody asked, or nothing is read as people here."""
    if services.access is None or turn.unasked or turn.request.sender_type != "user":
        return None
    reader = DocumentReader(services.feishu.documents, zone=services.settings.zone)
    who = asking_person(turn.context)
    renewed_token = token_of(services, who, is_retry=True)
    own = PersonDocuments(reader, token_of(services, who), renewed_token)
    note = partial(note_document, services, turn.context, turn.id)
    audience = audience_of(services, turn.context) if turn.in_group else None
    return TurnDocuments(own, note, audience)


def audience_of(services: Services, context: AgentMemoryContext) -> GroupAudience:
    """That of the group of `context`, asked as its actor."""
    who = asking_person(context)
    members_of = services.feishu.chat_members
    members = partial(members_of, context.chat_id)
    group = AskedGroup(context.chat_id, context.tenant_key, who, members, members_of)
    return GroupAudience(group, services.feishu.documents, token_of(services, who))


async def note_document(
    services: Services,
    context: AgentMemoryContext,
    turn_id: str,
    link: DocumentLink,
    text: str,
    open_ago_s: float | None = None,
) -> bool:
    """The turn, not answered yet, is given a text of the document, and goes with it. `open_ago_s`:
    how long ago everybody there could open it, so that what follows need not ask again for a
    minute. False: the turn is over. Raises `StoreError`."""
    store = SourceDocumentStore(services.rpc)
    source = await store.note(context, turn_id, str(link.kind), link.token, text)
    note_sources([source])
    if source is not None and open_ago_s is not None:
        await store.found_open(source, open_ago_s)
    return source is not None


def asking_person(context: AgentMemoryContext) -> FeishuPerson:
    """Who asks."""
    return FeishuPerson(context.actor_tenant or context.tenant_key, context.actor_id)


def token_of(
    services: Services, person: FeishuPerson, *, is_retry: bool = False
) -> Callable[[], Awaitable[str | None]]:
    """What gives their access token, None where they are not connected. `is_retry`: Feishu is asked
    whether it takes it; one that it does not is replaced. Raises FeishuFailure and `StoreError`."""

    async def access_token() -> str | None:
        access = services.access
        if access is None:
            return None

        async def take_if_valid(token: UserToken) -> str:
            await access.authorization.who(token.access_token)
            return token.access_token

        try:
            return await access.call(person, take_if_valid if is_retry else _take_token)
        except NotConnected:
            return None

    return access_token


async def _take_token(token: UserToken) -> str:
    return token.access_token


def check_sources(
    services: Services, turn: Turn, open_turn: OpenTurn
) -> SourceDocumentCheck | None:
    """None: answers told of no document, as far as is known."""
    if services.access is None or open_turn.degraded or not open_turn.documents:
        return None
    own = {turn.id, turn.request.message_id}
    return SourceDocumentCheck(services, turn.context, asking_person(turn.context), own=own)


async def may_show_sources(
    services: Services, here: AgentMemoryContext, sources: Collection[str]
) -> bool:
    """Whether everybody who reads in `here` can open the documents that the sources tell of. Raises
    `StoreError`."""
    if services.access is None:
        return True
    return await SourceDocumentCheck(services, here, asking_person(here)).may_be_told(sources)


class SourceDocumentCheck:
    """Made anew for each answer. `asker`: who asks now; None: nobody."""

    def __init__(
        self,
        services: Services,
        here: AgentMemoryContext,
        asker: FeishuPerson | None = None,
        *,
        own: Collection[str] = (),
    ) -> None:
        """`here`: where it is read; `own`: ids of the answer itself, which tell nothing yet."""
        self._services = services
        self._store = SourceDocumentStore(services.rpc)
        self._here = here
        self._asker = asker
        self._own = frozenset(own)
        self._open: dict[SourceDocument, float] = {}  # and when that was found
        self._closed_documents: set[SourceDocument] = set()

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
        source_documents = await self._store.behind_sources(self._here.tenant_key, others)
        self._closed_documents |= {one.document for one in source_documents if one.closed}
        for one in source_documents:
            age_s = FRESH_S if one.age_s is None else one.age_s
            if age_s < FRESH_S and one.document not in self._closed_documents:
                self._open.setdefault(one.document, time.monotonic() - age_s)
        await self._ask({one.document for one in source_documents})
        return frozenset(one.source for one in source_documents if one.document not in self._open)

    async def may_be_told(self, sources: Collection[str]) -> bool:
        """Whether none of them must be left out. Raises `StoreError`."""
        return not await self.untellable(sources)

    async def still_open(self) -> bool:
        """Whether everybody can open all that may be told of, asked again where a minute has
        passed. Raises `StoreError`."""
        documents = set(self._open)
        await self._ask(documents)
        return documents == self._open.keys()

    async def _ask(self, documents: Collection[SourceDocument]) -> None:
        """Those that Feishu did not speak of for a minute are open, or not, as it says now."""
        now = time.monotonic()
        stale = [
            one
            for one in documents
            if one not in self._closed_documents and now - self._open.get(one, -FRESH_S) >= FRESH_S
        ]
        for one in stale:
            self._open.pop(one, None)
        some = asyncio.Semaphore(_AT_ONCE)

        async def check(document: SourceDocument) -> None:
            async with some:
                sight = await check_document_audience(self._services, document, self._asker)
            if sight == "open":
                self._open[document] = now
                await self._store.found_open(document.source, time.monotonic() - now)
            else:
                self._closed_documents.add(document)
                log.info("documents.left_out", chat_id=document.chat_id, seen=sight)

        try:
            async with asyncio.timeout(_WITHIN_S):
                await asyncio.gather(*map(check, sorted(stale, key=lambda one: -one.id)[:_MOST]))
        except TimeoutError:
            log.warning("documents.not_told_in_time", documents=len(stale))


async def check_document_audience(
    services: Services, document: SourceDocument, asker: FeishuPerson | None = None
) -> Visibility:
    """What Feishu says of it now; where it is closed, what tells of it is taken back. Raises
    `StoreError`."""
    sight = await _look_at_document(services, document, document.actor)
    if sight == "unknown" and asker not in (None, document.actor):
        by_asker = await _look_at_document(services, document, asker)
        # who asks may not be shown with whom it is shared: that it is closed is not for them to say
        return "open" if by_asker == "open" else "unknown"
    if sight == "closed":
        await services.store.take_back(document.source, document.chat_id)
        await SourceDocumentStore(services.rpc).drop(document)
        log.info("documents.taken_back", chat_id=document.chat_id)
        await withdraw_cards(services)
    return sight


async def _look_at_document(
    services: Services, document: SourceDocument, person: FeishuPerson
) -> Visibility:
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


async def tend_source_documents(services: Services, _: JobTable) -> None:
    """Looks at documents behind answers twice a minute, while the worker works."""
    while services.access is not None:
        try:
            while (
                await check_source_documents(services, after_s=_CHECK_AGAIN_S) == _CHECKED_AT_ONCE
            ):
                pass
        except StoreUnavailable as exc:
            log.warning("documents.memory_away", error=type(exc).__name__)
        except StoreError as exc:
            log.error("documents.refused", error=type(exc).__name__, code=exc.code)
        await asyncio.sleep(_TEND_EVERY_S)


async def check_source_documents(services: Services, *, after_s: float) -> int:
    """Looks at some that nobody has looked at for so long. Returns at how many. Raises
    `StoreError`."""
    store = SourceDocumentStore(services.rpc)
    due = await store.take_due(after_s, _CHECKED_AT_ONCE)
    for document in due:
        await check_document_audience(services, document)
    return len(due)


DOCUMENTS = Feature(
    name="documents",
    tools=document_tools(),
    gather=documents_of,
    checks={"sources": check_sources},
    card_hooks={"may_show": may_show_sources},
    tending=(tend_source_documents,),
)
