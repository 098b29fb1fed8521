"""Limits what one turn may tell of documents: read as the person who asks, told to those who can
open them.

In a group a document that somebody there cannot open is treated as if it did not exist; the
outcome then says that the person may be told alone. What a turn is given is noted before a model
sees it. In a document's comments only that document may be told of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.documents.audience import GroupAudience
from bot.documents.document import (
    DocumentLink,
    ReadDocument,
    Reason,
    UnreadDocument,
    document_link,
)
from bot.documents.reading import PersonDocuments
from bot.feishu.documents import FoundDocument
from bot.feishu.user_scopes import AccessNeeds

_MOST_FOUND = 5
NOT_THERE = UnreadDocument("not_found")

# That it is there, and what is with it, is for those who can open it.
_OF_A_DOCUMENT: frozenset[Reason] = frozenset({"forbidden", "deleted", "empty", "size", "kind"})
Note = Callable[[DocumentLink, str, float | None], Awaitable[bool]]
"""Notes with the turn that it is given a text of a document, and how many seconds ago everybody in
the group could open it (None: no group reads it). False: the turn is over. Raises `StoreError`."""


class TurnDocuments:
    """Made anew for each turn. `audience` None: only the person reads the answer."""

    def __init__(
        self, own: PersonDocuments, note: Note, audience: GroupAudience | None = None
    ) -> None:
        self._own = own
        self._note = note
        self._audience = audience
        self._withheld = self._is_unconnected = False

    @property
    def needs(self) -> AccessNeeds:
        return AccessNeeds(self._withheld, self._is_unconnected)

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        """The document behind a link, of which a model sees what `give` was called with. Raises
        `StoreError`."""
        document = await self._own.read(url)
        if isinstance(document, UnreadDocument):
            self._note_refusal(document)
            may_tell = self._audience is None or document.reason not in _OF_A_DOCUMENT
            return document if may_tell else NOT_THERE
        link = document_link(document.url)
        if link is None or not await self._may_tell(link):
            self._withheld = True
            return NOT_THERE
        return document

    async def give(self, document: ReadDocument, text: str) -> bool:
        """Notes that the turn is given this text of a document that was read. False: the turn is
        over. Raises `StoreError`."""
        link = document_link(document.url)
        return link is not None and await self._note(link, text, self._open_ago_s(link))

    async def search(self, query: str) -> list[FoundDocument] | UnreadDocument:
        """The best of the documents that may be told of. Raises `StoreError`."""
        results = await self._own.search(query)
        if isinstance(results, UnreadDocument):
            self._note_refusal(results)
            return results
        visible_results = []
        for one in results[:_MOST_FOUND]:
            link = document_link(one.url)
            if link and await self._may_tell(link):
                text = f"{one.title}\n{one.summary}"
                if not await self._note(link, text, self._open_ago_s(link)):
                    return UnreadDocument("unavailable")
                visible_results.append(one)
        self._withheld = self._withheld or bool(results and not visible_results)
        return visible_results

    async def may_still_be_told(self) -> bool:
        """Whether everybody can open all that was read, asked again where a minute has passed."""
        return self._audience is None or await self._audience.all_open()

    def _note_refusal(self, refusal: UnreadDocument) -> None:
        if refusal.reason == "not_connected":
            self._is_unconnected = True

    def _open_ago_s(self, link: DocumentLink) -> float | None:
        return self._audience.open_ago_s(link) if self._audience else None

    async def _may_tell(self, link: DocumentLink) -> bool:
        return self._audience is None or await self._audience.is_open(link)


class CommentedDocument(TurnDocuments):
    """Made anew for each turn. `token` is the document's; `others`: who reads it where the first
    cannot, in their order."""

    def __init__(self, token: str, own: PersonDocuments, *others: PersonDocuments) -> None:
        super().__init__(own, _nothing_to_note)
        self._token = token
        self._readers = (own, *others)

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        """The document, and what others say of it where it cannot be read; of another document, and
        of one that shows its readers different contents, that it is not there."""
        link = document_link(url)
        if link is None or link.token != self._token:
            return NOT_THERE
        document: ReadDocument | UnreadDocument = NOT_THERE
        for reader in self._readers:
            document = await reader.read(url)
            if isinstance(document, ReadDocument):
                return document if await reader.shows_all_the_same(document) else NOT_THERE
        return document

    async def search(self, query: str) -> list[FoundDocument] | UnreadDocument:
        """Nothing: `query` would find other documents."""
        return NOT_THERE


async def _nothing_to_note(link: DocumentLink, text: str, open_ago_s: float | None) -> bool:
    """What stands in its comments goes with the document."""
    return True
