"""Reads a document behind a link as one person, with that person's access token.

The reader keeps nothing between two calls: what one person can open never answers another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, tzinfo
from typing import Any

import structlog

from bot.documents.cells import base_cell, column_name, row_text, sheet_cell
from bot.documents.contents import (
    MOST_COMMENTS,
    MOST_ROWS,
    Comment,
    Cut,
    ReadDocument,
    Section,
    parted,
)
from bot.documents.differences import (
    Document,
    ShowsEachSomethingElse,
    documents_shown_in,
)
from bot.documents.links import DocumentLink, document_link
from bot.documents.markdown_export import sections_of
from bot.documents.refusals import UnreadDocument, unread
from bot.feishu.documents import DocumentCalls, FoundDocument, SheetTab
from bot.feishu.errors import FeishuFailure
from bot.feishu.fields import as_dict, as_list, as_text
from bot.process.long_texts import computed

MOST_BASE_TABLES = 20
_ROWS_PER_CALL = 1000
_MOST_COLUMNS = 100

_log = structlog.get_logger(__name__)


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
            _log.info("documents.unread", reason=unread(failure).reason)
            return unread(failure)
        if isinstance(document, ReadDocument) and not document.size:
            return UnreadDocument("empty")
        return document

    async def shows_all_the_same(
        self, document: ReadDocument, access_token: str
    ) -> bool | UnreadDocument:
        """Returns whether all who can open the document see the same in it, as far as Feishu tells
        this person. Never raises FeishuFailure."""
        embedded = Document(document.kind, document.token)
        try:
            return not await documents_shown_in(self._calls, embedded, access_token)
        except ShowsEachSomethingElse:
            return False
        except FeishuFailure as failure:
            _log.info("documents.content_unknown", reason=unread(failure).reason)
            return unread(failure)

    async def search(self, query: str, access_token: str) -> list[FoundDocument] | UnreadDocument:
        """Documents that the person can open; those of other companies are left out."""
        try:
            results = await self._calls.search(query, access_token)
        except FeishuFailure as failure:
            return unread(failure)
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
        sections, cut = await computed(lambda: sections_of(markdown), len(markdown))
        return ReadDocument(
            link.url, token, "docx", title, parted(sections), comments, (*cut, *cuts)
        )

    async def _sheet(self, link: DocumentLink, token: str, as_user: str) -> ReadDocument:
        title = await self._calls.spreadsheet_title(token, as_user)
        tabs = await self._calls.sheet_tabs(token, as_user)
        chosen_tabs = [one for one in tabs if one.sheet_id == link.table] or tabs
        sections, left = list[Section](), MOST_ROWS
        for tab in chosen_tabs:
            rows = await self._rows_of(token, tab, left, as_user)
            left -= len(rows)
            sections.append(_table_section(tab.title, rows))
        row_count = sum(one.rows for one in chosen_tabs)
        comments, cuts = await self._comments(token, "sheet", as_user)
        cut: tuple[Cut, ...] = ("rows",) if row_count > MOST_ROWS else ()
        return ReadDocument(
            link.url, token, "sheet", title, parted(sections), comments, (*cut, *cuts)
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
        sections, cuts, left = list[Section](), set[Cut](), MOST_ROWS
        if len(chosen_tables) > MOST_BASE_TABLES:
            cuts.add("tables")
        for table_id, name in chosen_tables[:MOST_BASE_TABLES]:
            rows, more = await self._records_of(token, table_id, left, as_user)
            left -= len(rows) - 1
            if more:
                cuts.add("rows")
            sections.append(_table_section(name, rows))
        return ReadDocument(
            link.url, token, "bitable", title, parted(sections), cuts=tuple(sorted(cuts))
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
            cells = [base_cell(record.get(one.name), one.kind, self._zone) for one in fields]
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
            _log.info("documents.comments_unread", reason=unread(failure).reason)
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
