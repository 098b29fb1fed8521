"""Reads and searches documents as one person, with that person's access token, and limits what a
turn may use of them.

The reader keeps nothing between two calls: what one person can open never answers another.
`PersonDocuments` keeps what it read for the length of one turn. In a group, `TurnDocuments` treats
a document that somebody there cannot open as if it did not exist; the outcome then says that the
bot may answer the person privately. Each text is noted with the turn before a model sees it. In a
document's comments the bot uses that document only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, tzinfo
from typing import Any, TypeVar

import structlog

from bot.documents.audience import (
    AccessToken,
    Document,
    GroupAudience,
    ShowsEachSomethingElse,
    documents_shown_in,
)
from bot.documents.document import (
    MOST_COMMENTS,
    MOST_ROWS,
    Comment,
    Cut,
    DocumentLink,
    ReadDocument,
    Reason,
    Section,
    UnreadDocument,
    document_link,
    split_sections,
    unread_document,
)
from bot.documents.formats import base_cell, column_name, row_text, sections_of, sheet_cell
from bot.feishu.documents import DocumentCalls, FoundDocument, SheetTab
from bot.feishu.errors import FeishuFailure
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.user_scopes import AccessNeeds
from bot.process.concurrency import compute_apart

MOST_BASE_TABLES = 20
_ROWS_PER_CALL = 1000
_MOST_COLUMNS = 100
_log = structlog.get_logger(__name__)

_Result = TypeVar("_Result")


class DocumentReader:
    """`tenant_host` is where the tenant's own documents are, such as acme.feishu.cn; "" is unknown.
    `zone` is that of dates in Bases."""

    def __init__(self, calls: DocumentCalls, *, tenant_host: str = "", zone: tzinfo = UTC) -> None:
        self._calls = calls
        self._tenant_host = tenant_host
        self._zone = zone

    async def read(self, url: str, access_token: str) -> ReadDocument | UnreadDocument:
        """The document behind `url`, as far as the limits allow. Never raises FeishuFailure."""
        link = document_link(url)
        if link is None:
            return UnreadDocument("link")
        if link.kind == "other":
            return UnreadDocument("kind")
        if self._tenant_host and link.host != self._tenant_host:
            return UnreadDocument("tenant")
        try:
            document = await self._document(link, access_token)
        except FeishuFailure as failure:
            _log.info("documents.unread", reason=unread_document(failure).reason)
            return unread_document(failure)
        if isinstance(document, ReadDocument) and not document.size:
            return UnreadDocument("empty")
        return document

    async def shows_all_the_same(
        self, document: ReadDocument, access_token: str
    ) -> bool | UnreadDocument:
        """Returns whether all who can open the document see the same in it, as far as Feishu tells
        this person. Never raises FeishuFailure."""
        target = Document(document.kind, document.token)
        try:
            return not await documents_shown_in(self._calls, target, access_token)
        except ShowsEachSomethingElse:
            return False
        except FeishuFailure as failure:
            _log.info("documents.content_unknown", reason=unread_document(failure).reason)
            return unread_document(failure)

    async def search(self, query: str, access_token: str) -> list[FoundDocument] | UnreadDocument:
        """Documents that the person can open; those of other companies are left out."""
        try:
            results = await self._calls.search(query, access_token)
        except FeishuFailure as failure:
            return unread_document(failure)
        return [one for one in results if not one.is_foreign]

    async def _document(self, link: DocumentLink, as_user: str) -> ReadDocument | UnreadDocument:
        kind, token, title = str(link.kind), link.token, ""
        if kind == "wiki":
            node = await self._calls.wiki_node(token, as_user)
            kind, token, title = node.kind, node.token, node.title
        if kind == "docx":
            return await self._docx(link, token, as_user)
        if kind == "sheet":
            return await self._sheet(link, token, as_user)
        if kind == "bitable":
            return await self._base(link, token, title, as_user)
        return UnreadDocument("kind")

    async def _docx(self, link: DocumentLink, token: str, as_user: str) -> ReadDocument:
        title = await self._calls.docx_title(token, as_user)
        markdown = await self._calls.docx_markdown(token, as_user)
        comments, cuts = await self._comments(token, "docx", as_user)
        sections, cut = await compute_apart(lambda: sections_of(markdown), len(markdown))
        return ReadDocument(
            link.url, token, "docx", title, split_sections(sections), comments, (*cut, *cuts)
        )

    async def _sheet(self, link: DocumentLink, token: str, as_user: str) -> ReadDocument:
        title = await self._calls.spreadsheet_title(token, as_user)
        tabs = await self._calls.sheet_tabs(token, as_user)
        chosen_tabs = [one for one in tabs if one.sheet_id == link.table] or tabs
        sections, rows_left = list[Section](), MOST_ROWS
        for tab in chosen_tabs:
            rows = await self._rows_of(token, tab, rows_left, as_user)
            rows_left -= len(rows)
            sections.append(_table_section(tab.title, rows))
        row_count = sum(one.rows for one in chosen_tabs)
        comments, cuts = await self._comments(token, "sheet", as_user)
        cut: tuple[Cut, ...] = ("rows",) if row_count > MOST_ROWS else ()
        return ReadDocument(
            link.url, token, "sheet", title, split_sections(sections), comments, (*cut, *cuts)
        )

    async def _rows_of(self, token: str, tab: SheetTab, most: int, as_user: str) -> list[str]:
        """The rows that hold something, as lines."""
        last, columns = min(tab.rows, most), min(tab.columns, _MOST_COLUMNS)
        lines: list[str] = []
        for first in range(1, last + 1, _ROWS_PER_CALL):
            end = min(first + _ROWS_PER_CALL - 1, last)
            cells = f"{tab.sheet_id}!A{first}:{column_name(max(columns, 1))}{end}"
            rows = await self._calls.sheet_values(token, cells, as_user)
            lines += filter(None, (row_text([sheet_cell(one) for one in row]) for row in rows))
        return lines

    async def _base(self, link: DocumentLink, token: str, title: str, as_user: str) -> ReadDocument:
        title = title or await self._calls.base_title(token, as_user)
        tables = await self._calls.base_tables(token, as_user)
        chosen_tables = [one for one in tables if one[0] == link.table] or tables
        sections, cuts, rows_left = list[Section](), set[Cut](), MOST_ROWS
        if len(chosen_tables) > MOST_BASE_TABLES:
            cuts.add("tables")
        for table_id, name in chosen_tables[:MOST_BASE_TABLES]:
            rows, more = await self._records_of(token, table_id, rows_left, as_user)
            rows_left -= len(rows) - 1
            if more:
                cuts.add("rows")
            sections.append(_table_section(name, rows))
        return ReadDocument(
            link.url, token, "bitable", title, split_sections(sections), cuts=tuple(sorted(cuts))
        )

    async def _records_of(
        self, token: str, table_id: str, most: int, as_user: str
    ) -> tuple[list[str], bool]:
        """The line of its columns and those of its records; whether there are more."""
        fields = await self._calls.base_fields(token, table_id, as_user)
        lines = [row_text([one.name for one in fields])]
        async for record in self._calls.base_records(token, table_id, as_user):
            if len(lines) > most:
                return lines, True
            cells = [base_cell(record.get(one.name), one, self._zone) for one in fields]
            lines.append(row_text(cells))
        return lines, False

    async def _comments(
        self, token: str, kind: str, as_user: str
    ) -> tuple[tuple[Comment, ...], tuple[Cut, ...]]:
        """Comments are an addition: without them the document is read all the same, and says so."""
        comments: list[Comment] = []
        try:
            async for comment in _within(self._calls.comments(token, kind, as_user)):
                comments += _comments_of(comment)
        except FeishuFailure as failure:
            _log.info("documents.comments_unread", reason=unread_document(failure).reason)
            return tuple(comments), ("comments",)
        cut: tuple[Cut, ...] = ("comments",) if len(comments) > MOST_COMMENTS else ()
        return tuple(comments[:MOST_COMMENTS]), cut


async def _within(comments: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """The first of them, and one more, which says that there are more."""
    count = 0
    async for one in comments:
        yield one
        count += 1
        if count > MOST_COMMENTS:
            return


def _comments_of(comment: dict[str, Any]) -> list[Comment]:
    """A comment and the replies to it."""
    quote, is_solved = as_text(comment.get("quote")), comment.get("is_solved") is True
    replies = as_list(as_dict(comment.get("reply_list")).get("replies"))
    return [
        Comment(text, quote, as_text(as_dict(reply).get("user_id")), is_solved)
        for reply in replies
        if (text := _reply_text(as_dict(reply)))
    ]


def _reply_text(reply: dict[str, Any]) -> str:
    elements = [as_dict(one) for one in as_list(as_dict(reply.get("content")).get("elements"))]
    return "".join(
        as_text(as_dict(one.get("text_run")).get("text"))
        or as_text(as_dict(one.get("docs_link")).get("url"))
        for one in elements
    ).strip()


def _table_section(title: str, rows: list[str]) -> Section:
    head, *others = rows or [""]
    return Section(title, 1, "\n".join(others), head)


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
        self._renewed_token = renewed_token
        self._documents: dict[DocumentLink | str, ReadDocument] = {}

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        """The document behind a link."""
        link = document_link(url) or url  # what else a URL carries leads to the same document
        if previous := self._documents.get(link):
            return previous
        document = await self._as_person(lambda token: self._reader.read(url, token))
        if isinstance(document, ReadDocument):
            self._documents[link] = document
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
        self, make: Callable[[str], Awaitable[_Result | UnreadDocument]]
    ) -> _Result | UnreadDocument:
        """What `make` gives with their token, and once more with another where Feishu does not take
        that."""
        outcome: _Result | UnreadDocument = await self._call(make, self._access_token)
        if (
            isinstance(outcome, UnreadDocument)
            and outcome.reason == "token"
            and self._renewed_token
        ):
            return await self._call(make, self._renewed_token)
        return outcome

    async def _call(
        self, make: Callable[[str], Awaitable[_Result | UnreadDocument]], source: AccessToken
    ) -> _Result | UnreadDocument:
        try:
            token = await source()
        except FeishuFailure as failure:
            return unread_document(failure)
        return UnreadDocument("not_connected") if token is None else await make(token)


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
