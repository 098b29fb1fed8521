"""What one person can open, for the length of one turn: read and searched with their own token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.documents.contents import ReadDocument
from bot.documents.links import DocumentLink, document_link
from bot.documents.reading import DocumentReader
from bot.documents.refusals import UnreadDocument, unread
from bot.feishu.documents import FoundDocument
from bot.feishu.errors import FeishuFailure

_Read = TypeVar("_Read")

AccessToken = Callable[[], Awaitable[str | None]]


class PersonDocuments:
    """Made anew for each turn of a person. `access_token` gives their token, None where they are
    not connected (it may raise FeishuFailure), and `renewed` one that Feishu takes, where it took
    that not; what was read is kept until the turn ends, for its further sections."""

    def __init__(
        self,
        reader: DocumentReader,
        access_token: AccessToken,
        renewed_token: AccessToken | None = None,
    ) -> None:
        self._reader = reader
        self._access_token = access_token
        self._renewed = renewed_token
        self._read: dict[DocumentLink | str, ReadDocument] = {}

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        """The document behind a link."""
        link = document_link(url) or url  # what else a URL carries leads to the same document
        if previous := self._read.get(link):
            return previous
        document = await self._as_person(lambda token: self._reader.read(url, token))
        if isinstance(document, ReadDocument):
            self._read[link] = document
        return document

    async def shows_all_the_same(self, document: ReadDocument) -> bool:
        """Returns whether all who can open the document see in it what the person sees. False if
        Feishu does not say."""
        same = await self._as_person(lambda token: self._reader.shows_all_the_same(document, token))
        return same is True

    async def search(self, query: str) -> list[FoundDocument] | UnreadDocument:
        """Documents that the person can open, the best first."""
        return await self._as_person(lambda token: self._reader.search(query, token))

    async def _as_person(
        self, make: Callable[[str], Awaitable[_Read | UnreadDocument]]
    ) -> _Read | UnreadDocument:
        """What `make` gives with their token, and once more with another where Feishu does not take
        that."""
        outcome: _Read | UnreadDocument = await self._made(make, self._access_token)
        if isinstance(outcome, UnreadDocument) and outcome.reason == "token" and self._renewed:
            return await self._made(make, self._renewed)
        return outcome

    async def _made(
        self, make: Callable[[str], Awaitable[_Read | UnreadDocument]], source: AccessToken
    ) -> _Read | UnreadDocument:
        try:
            token = await source()
        except FeishuFailure as failure:
            return unread(failure)
        return UnreadDocument("not_connected") if token is None else await make(token)
