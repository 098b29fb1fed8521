"""What one person can open, for the length of one turn: read and searched with their own token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.documents.contents import ReadDocument
from bot.documents.reading import DocumentReader
from bot.documents.refusals import UnreadDocument, unread
from bot.feishu.documents import FoundDocument
from bot.feishu.errors import FeishuFailure


class PersonDocuments:
    """Made anew for each turn of a person. `access_token` gives their token, None where they are
    not connected (it may raise FeishuFailure); what was read is kept until the turn ends, for its
    further sections."""

    def __init__(
        self, reader: DocumentReader, access_token: Callable[[], Awaitable[str | None]]
    ) -> None:
        self._reader = reader
        self._access_token = access_token
        self._read: dict[str, ReadDocument] = {}

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        """The document behind a link."""
        if known := self._read.get(url):
            return known
        token = await self._token()
        if isinstance(token, UnreadDocument):
            return token
        document = await self._reader.read(url, token)
        if isinstance(document, ReadDocument):
            self._read[url] = document
        return document

    async def search(self, query: str) -> list[FoundDocument] | UnreadDocument:
        """Documents that the person can open, the best first."""
        token = await self._token()
        if isinstance(token, UnreadDocument):
            return token
        return await self._reader.search(query, token)

    async def _token(self) -> str | UnreadDocument:
        try:
            return await self._access_token() or UnreadDocument("not_connected")
        except FeishuFailure as failure:
            return unread(failure)
