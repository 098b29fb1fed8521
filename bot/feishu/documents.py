"""Feishu's documents as a person reads them: every call is made with that person's access token.

Source: Feishu's API pages for docs-v1 content, docx-v1, wiki-v2 get_node, drive-v1 file-comment,
sheets-v3 and v2 values, bitable-v1, search-v2 doc_wiki, drive-v2 and v1 permissions. Every method
raises FeishuFailure. No answer is kept, so none can reach another person.
"""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bot.feishu.caller import Caller
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import required
from bot.feishu.pacing import FairPacer, Pacer, SharedPace
from bot.feishu.retry import RetryPolicy
from bot.feishu.transport import ApiRequest

MOST_QUERY = 50
_MOST_BYTES = 32 * 1024 * 1024  # 10 MB of a document, as JSON may write it
_PATIENCE = RetryPolicy(max_attempts=3, max_total_s=10.0)
_A_SECOND = 5  # of content, app-wide; the SDK's pages say so
_TEN_IN_S = 6.3  # 100 a minute
_SHEETS, _BASES = "/open-apis/sheets", "/open-apis/bitable/v1/apps"
_PAGE = 100
_BLOCKS = 500
_RECORDS = 500
_HIGHLIGHT = re.compile(r"</?h[b]?>")


@dataclass(frozen=True, slots=True)
class WikiNode:
    """The document that a page of the wiki shows; `kind` as Feishu names it (`obj_type`).
    `is_origin`: the page is the document's own place. A shortcut leads to one that stands elsewhere
    and keeps the rights that it has there."""

    token: str
    kind: str
    title: str
    is_origin: bool = False


@dataclass(frozen=True, slots=True)
class SheetTab:
    """A sheet of a spreadsheet with its size."""

    sheet_id: str
    title: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class BaseField:
    """A column of a Base's table; `kind` is Feishu's number of its type."""

    name: str
    kind: int


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A result of the search, without marks of highlighting; `edited_s` since the epoch."""

    url: str
    title: str
    summary: str
    owner: str
    edited_s: int
    is_foreign: bool = False


class DocumentCalls:
    """The calls, each `as_user`: the access token of the person who reads."""

    def __init__(self, caller: Caller, pace: SharedPace, **seams: Any) -> None:
        self._caller = caller
        self._contents = FairPacer("document", _A_SECOND, pace, **seams)
        self._slow = FairPacer("document lookup", 10, pace, window_s=_TEN_IN_S, **seams)

    async def wiki_node(self, token: str, as_user: str) -> WikiNode:
        """What a page of the wiki leads to."""
        path = "/open-apis/wiki/v2/spaces/get_node"
        request = ApiRequest("GET", path, {"token": token}, api="wiki node")
        node = as_dict((await self._get(request, as_user, self._slow)).get("node"))
        return WikiNode(
            required(node, "obj_token"),
            required(node, "obj_type"),
            as_text(node.get("title")),
            node.get("node_type") == "origin",
        )

    async def docx_title(self, token: str, as_user: str) -> str:
        """The title of a docx."""
        path = f"/open-apis/docx/v1/documents/{_part(token)}"
        data = await self._get(ApiRequest("GET", path, api="docx"), as_user, self._contents)
        return as_text(as_dict(data.get("document")).get("title"))

    async def docx_markdown(self, token: str, as_user: str) -> str:
        """The whole of a docx, up to 10 MB."""
        query = {"doc_token": token, "doc_type": "docx", "content_type": "markdown"}
        path = "/open-apis/docs/v1/content"
        request = ApiRequest("GET", path, query, max_bytes=_MOST_BYTES, api="docx content")
        return as_text((await self._get(request, as_user, self._contents)).get("content"))

    def docx_blocks(self, token: str, as_user: str) -> AsyncIterator[dict[str, Any]]:
        """The blocks of a docx, as Feishu lists them (docx-v1, document-block list)."""
        path = f"/open-apis/docx/v1/documents/{_part(token)}/blocks"
        request = ApiRequest("GET", path, {"page_size": _BLOCKS}, api="docx blocks")
        return self._pages(request, as_user, self._contents)

    def comments(self, token: str, kind: str, as_user: str) -> AsyncIterator[dict[str, Any]]:
        """The comments of a docx or sheet, as Feishu lists them."""
        path = f"/open-apis/drive/v1/files/{_part(token)}/comments"
        query: dict[str, str | int] = {"file_type": kind, "page_size": _PAGE}
        return self._pages(ApiRequest("GET", path, query, api="comments"), as_user)

    async def spreadsheet_title(self, token: str, as_user: str) -> str:
        """The title of a spreadsheet."""
        request = ApiRequest("GET", f"{_SHEETS}/v3/spreadsheets/{_part(token)}", api="sheet")
        data = await self._get(request, as_user, self._slow)
        return as_text(as_dict(data.get("spreadsheet")).get("title"))

    async def sheet_tabs(self, token: str, as_user: str) -> list[SheetTab]:
        """The sheets that are shown and hold cells."""
        path = f"{_SHEETS}/v3/spreadsheets/{_part(token)}/sheets/query"
        data = await self._get(ApiRequest("GET", path, api="sheets"), as_user, self._slow)
        tabs = [as_dict(one) for one in as_list(data.get("sheets"))]
        return [
            _tab(one)
            for one in tabs
            if one.get("hidden") is not True and one.get("resource_type", "sheet") == "sheet"
        ]

    async def has_protection(self, token: str, as_user: str) -> bool:
        """Returns whether a sheet or range of a spreadsheet is protected. Feishu says who may edit
        such cells, but not who may see them. True if Feishu does not say."""
        path = f"{_SHEETS}/v2/spreadsheets/{_part(token)}/metainfo"
        query = {"extFields": "protectedRange"}
        data = await self._get(ApiRequest("GET", path, query, api="sheet protection"), as_user)
        sheets = [as_dict(one) for one in as_list(data.get("sheets"))]
        return not sheets or any(one.get("protectedRange") for one in sheets)

    async def sheet_values(self, token: str, cells: str, as_user: str) -> list[list[Any]]:
        """The values of `cells`, such as `sheetId!A1:B2`, calculated and as they are shown."""
        path = f"{_SHEETS}/v2/spreadsheets/{_part(token)}/values/{quote(cells, safe='!:')}"
        query = {
            "valueRenderOption": "FormattedValue",
            "dateTimeRenderOption": "FormattedString",
        }
        request = ApiRequest("GET", path, query, api="sheet values")
        data = await self._get(request, as_user)
        values = as_list(as_dict(data.get("valueRange")).get("values"))
        return [as_list(row) for row in values]

    async def base_title(self, token: str, as_user: str) -> str:
        """The name of a Base."""
        request = ApiRequest("GET", f"{_BASES}/{_part(token)}", api="base")
        data = await self._get(request, as_user)
        return as_text(as_dict(data.get("app")).get("name"))

    async def has_advanced_permissions(self, token: str, as_user: str) -> bool:
        """Whether a Base may show each person other tables, records and fields (`is_advanced`).
        True if Feishu does not say."""
        request = ApiRequest("GET", f"{_BASES}/{_part(token)}", api="base")
        data = await self._get(request, as_user)
        return as_dict(data.get("app")).get("is_advanced") is not False

    async def base_tables(self, token: str, as_user: str) -> list[tuple[str, str]]:
        """Id and name of each table of a Base."""
        path = f"{_BASES}/{_part(token)}/tables"
        request = ApiRequest("GET", path, {"page_size": _PAGE}, api="base tables")
        return [
            (as_text(one.get("table_id")), as_text(one.get("name")))
            async for one in self._pages(request, as_user)
        ]

    async def base_fields(self, token: str, table_id: str, as_user: str) -> list[BaseField]:
        """The columns of a table, in their order."""
        path = f"{_BASES}/{_part(token)}/tables/{_part(table_id)}/fields"
        request = ApiRequest("GET", path, {"page_size": _PAGE}, api="base fields")
        return [
            BaseField(as_text(one.get("field_name")), _number(one.get("type")))
            async for one in self._pages(request, as_user)
            if one.get("is_hidden") is not True
        ]

    async def base_records(
        self, token: str, table_id: str, as_user: str
    ) -> AsyncIterator[Mapping[str, Any]]:
        """The fields of each record of a table, by name; fetched five hundred at a time."""
        path = f"{_BASES}/{_part(token)}/tables/{_part(table_id)}/records/search"
        query = {"page_size": _RECORDS}
        request = ApiRequest("POST", path, query, body={}, api="base records")
        async for one in self._pages(request, as_user):
            yield as_dict(one.get("fields"))

    async def search(self, query: str, as_user: str, *, most: int = 10) -> list[FoundDocument]:
        """Documents that the person can open; Feishu takes 50 characters of `query`."""
        body = {
            "query": query[:MOST_QUERY],
            "doc_filter": {},
            "wiki_filter": {},
            "page_size": most,
        }
        path = "/open-apis/search/v2/doc_wiki/search"
        request = ApiRequest("POST", path, body=body, api="search documents")
        data = await self._get(request, as_user, self._slow)
        return [_found(as_dict(one)) for one in as_list(data.get("res_units"))][:most]

    async def may_view(self, token: str, kind: str, as_user: str) -> bool:
        """Whether that person can open the document now."""
        path = f"/open-apis/drive/v1/permissions/{_part(token)}/members/auth"
        request = ApiRequest("GET", path, {"type": kind, "action": "view"}, api="own permission")
        return (await self._get(request, as_user, self._slow)).get("auth_result") is True

    async def link_sharing(self, token: str, kind: str, as_user: str) -> str:
        """Whom the link lets in, Feishu's `link_share_entity`: closed, tenant_readable, …"""
        path = f"/open-apis/drive/v2/permissions/{_part(token)}/public"
        request = ApiRequest("GET", path, {"type": kind}, api="link sharing")
        data = await self._get(request, as_user)
        return as_text(as_dict(data.get("permission_public")).get("link_share_entity"))

    async def collaborators(self, token: str, kind: str, as_user: str) -> list[tuple[str, str]]:
        """The collaborators, the owner too, as kind and id: ("openid", …), ("openchat", …), …"""
        path = f"/open-apis/drive/v1/permissions/{_part(token)}/members"
        request = ApiRequest("GET", path, {"type": kind}, api="collaborators")
        items = as_list((await self._get(request, as_user)).get("items"))
        members = [as_dict(one) for one in items]
        return [(as_text(one.get("member_type")), as_text(one.get("member_id"))) for one in members]

    async def _get(
        self, request: ApiRequest, as_user: str, pacer: Pacer | None = None
    ) -> dict[str, Any]:
        answer = await self._caller.call(request, pacer, request.api, _PATIENCE, as_user=as_user)
        return as_dict(answer.get("data"))

    async def _pages(
        self, request: ApiRequest, as_user: str, pacer: Pacer | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The items of a list, page after page, as far as the reader goes on."""
        token = ""
        while True:
            query = dict(request.query) | ({"page_token": token} if token else {})
            page = ApiRequest(request.method, request.path, query, request.body, api=request.api)
            data = await self._get(page, as_user, pacer)
            for one in as_list(data.get("items")):
                yield as_dict(one)
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                return


def _tab(tab: Mapping[str, Any]) -> SheetTab:
    grid = as_dict(tab.get("grid_properties"))
    rows, columns = _number(grid.get("row_count")), _number(grid.get("column_count"))
    return SheetTab(as_text(tab.get("sheet_id")), as_text(tab.get("title")), rows, columns)


def _found(unit: Mapping[str, Any]) -> FoundDocument:
    meta = as_dict(unit.get("result_meta"))
    return FoundDocument(
        as_text(meta.get("url")),
        _unmarked(unit.get("title_highlighted")),
        _unmarked(unit.get("summary_highlighted")),
        as_text(meta.get("owner_name")),
        _number(meta.get("update_time")),
        meta.get("is_cross_tenant") is True,
    )


def _unmarked(text: object) -> str:
    return " ".join(html.unescape(_HIGHLIGHT.sub("", as_text(text))).split())


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _part(text: str) -> str:
    return quote(text, safe="")
