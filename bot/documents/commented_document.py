"""The one document that may be told of in its comments: its readers read the answer. No other is,
whoever asks; nor is this one where it shows each reader something else."""

from __future__ import annotations

from bot.documents.contents import ReadDocument
from bot.documents.links import DocumentLink, document_link
from bot.documents.person_documents import PersonDocuments
from bot.documents.refusals import UnreadDocument
from bot.documents.turn_documents import NOT_THERE, TurnDocuments
from bot.feishu.documents import FoundDocument


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
