"""Calls Feishu's documents as the person who reads, and comments in documents.

Every method raises FeishuFailure, and no answer is kept, so none can reach another person. A
reply to a comment has no uuid, so it is never repeated here. Sources: Feishu, docs-v1, docx-v1,
wiki-v2, drive-v1 and v2, sheets-v2 and v3, bitable-v1, search-v2."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bot.feishu.caller import NO_RETRY, Caller
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import required_text
from bot.feishu.other_events import CommentPlace, CommentReply, CommentThread
from bot.feishu.transport import ApiRequest, FairPacer, Pacer, SharedPace

MOST_QUERY = 50
_MOST_BYTES = 32 * 1024 * 1024  # 10 MB of a document, as JSON may write it
_A_SECOND = 5  # of content, app-wide; the SDK's pages say so
_TEN_IN_S = 6.3  # 100 a minute
_SHEETS, _BASES = "/open-apis/sheets", "/open-apis/bitable/v1/apps"
_PAGE = 100
_BLOCKS = 500
_RECORDS = 500
_MOST_RESULTS = 10  # of a search
_HIGHLIGHT = re.compile(r"</?h[b]?>")

MOST_REPLIES = 300  # of a thread; the newest count
CommentElements = Sequence[Mapping[str, Any]]


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
    """A column of a Base's table; `kind` is Feishu's number of its type, `number_format` how its
    numbers are shown ("0.00%"), and `currency` of what they are ("EUR")."""

    name: str
    kind: int
    number_format: str = ""
    currency: str = ""


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A result of the search, without marks of highlighting."""

    url: str
    title: str
    summary: str
    owner: str
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
        node = as_dict((await self._caller.call_as(request, as_user, self._slow)).get("node"))
        return WikiNode(
            required_text(node, "obj_token"),
            required_text(node, "obj_type"),
            as_text(node.get("title")),
            node.get("node_type") == "origin",
        )

    async def docx_title(self, token: str, as_user: str) -> str:
        """The title of a docx."""
        path = f"/open-apis/docx/v1/documents/{_part(token)}"
        data = await self._caller.call_as(
            ApiRequest("GET", path, api="docx"), as_user, self._contents
        )
        return as_text(as_dict(data.get("document")).get("title"))

    async def docx_markdown(self, token: str, as_user: str) -> str:
        """The whole of a docx, up to 10 MB."""
        query = {"doc_token": token, "doc_type": "docx", "content_type": "markdown"}
        path = "/open-apis/docs/v1/content"
        request = ApiRequest("GET", path, query, max_bytes=_MOST_BYTES, api="docx content")
        return as_text(
            (await self._caller.call_as(request, as_user, self._contents)).get("content")
        )

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
        data = await self._caller.call_as(request, as_user, self._slow)
        return as_text(as_dict(data.get("spreadsheet")).get("title"))

    async def sheet_tabs(self, token: str, as_user: str) -> list[SheetTab]:
        """The sheets that are shown and hold cells."""
        path = f"{_SHEETS}/v3/spreadsheets/{_part(token)}/sheets/query"
        data = await self._caller.call_as(
            ApiRequest("GET", path, api="sheets"), as_user, self._slow
        )
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
        data = await self._caller.call_as(
            ApiRequest("GET", path, query, api="sheet protection"), as_user
        )
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
        data = await self._caller.call_as(request, as_user)
        values = as_list(as_dict(data.get("valueRange")).get("values"))
        return [as_list(row) for row in values]

    async def base_title(self, token: str, as_user: str) -> str:
        """The name of a Base."""
        request = ApiRequest("GET", f"{_BASES}/{_part(token)}", api="base")
        data = await self._caller.call_as(request, as_user)
        return as_text(as_dict(data.get("app")).get("name"))

    async def has_advanced_permissions(self, token: str, as_user: str) -> bool:
        """Whether a Base may show each person other tables, records and fields (`is_advanced`).
        True if Feishu does not say."""
        request = ApiRequest("GET", f"{_BASES}/{_part(token)}", api="base")
        data = await self._caller.call_as(request, as_user)
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
            _base_field(one)
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

    async def search(self, query: str, as_user: str) -> list[FoundDocument]:
        """Documents that the person can open; Feishu takes 50 characters of `query`."""
        body = {
            "query": query[:MOST_QUERY],
            "doc_filter": {},
            "wiki_filter": {},
            "page_size": _MOST_RESULTS,
        }
        path = "/open-apis/search/v2/doc_wiki/search"
        request = ApiRequest("POST", path, body=body, api="search documents")
        data = await self._caller.call_as(request, as_user, self._slow)
        return [_found_document(as_dict(one)) for one in as_list(data.get("res_units"))][
            :_MOST_RESULTS
        ]

    async def may_view(self, token: str, kind: str, as_user: str) -> bool:
        """Whether that person can open the document now."""
        path = f"/open-apis/drive/v1/permissions/{_part(token)}/members/auth"
        request = ApiRequest("GET", path, {"type": kind, "action": "view"}, api="own permission")
        return (await self._caller.call_as(request, as_user, self._slow)).get("auth_result") is True

    async def link_sharing(self, token: str, kind: str, as_user: str) -> str:
        """Whom the link lets in, Feishu's `link_share_entity`: closed, tenant_readable, …"""
        path = f"/open-apis/drive/v2/permissions/{_part(token)}/public"
        request = ApiRequest("GET", path, {"type": kind}, api="link sharing")
        data = await self._caller.call_as(request, as_user)
        return as_text(as_dict(data.get("permission_public")).get("link_share_entity"))

    async def collaborators(self, token: str, kind: str, as_user: str) -> list[tuple[str, str]]:
        """The collaborators, the owner too, as kind and id: ("openid", …), ("openchat", …), …"""
        path = f"/open-apis/drive/v1/permissions/{_part(token)}/members"
        request = ApiRequest("GET", path, {"type": kind}, api="collaborators")
        items = as_list((await self._caller.call_as(request, as_user)).get("items"))
        members = [as_dict(one) for one in items]
        return [(as_text(one.get("member_type")), as_text(one.get("member_id"))) for one in members]

    async def _pages(
        self, request: ApiRequest, as_user: str, pacer: Pacer | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The items of a list, page after page, as far as the reader goes on."""
        token = ""
        while True:
            query = dict(request.query) | ({"page_token": token} if token else {})
            page = ApiRequest(request.method, request.path, query, request.body, api=request.api)
            data = await self._caller.call_as(page, as_user, pacer)
            for one in as_list(data.get("items")):
                yield as_dict(one)
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                return


def _tab(tab: Mapping[str, Any]) -> SheetTab:
    grid = as_dict(tab.get("grid_properties"))
    rows, columns = _number(grid.get("row_count")), _number(grid.get("column_count"))
    return SheetTab(as_text(tab.get("sheet_id")), as_text(tab.get("title")), rows, columns)


def _base_field(item: Mapping[str, Any]) -> BaseField:
    shown_as = as_dict(item.get("property"))
    return BaseField(
        as_text(item.get("field_name")),
        _number(item.get("type")),
        as_text(shown_as.get("formatter")),
        as_text(shown_as.get("currency_code")),
    )


def _found_document(unit: Mapping[str, Any]) -> FoundDocument:
    meta = as_dict(unit.get("result_meta"))
    return FoundDocument(
        as_text(meta.get("url")),
        _without_highlights(unit.get("title_highlighted")),
        _without_highlights(unit.get("summary_highlighted")),
        as_text(meta.get("owner_name")),
        meta.get("is_cross_tenant") is True,
    )


def _without_highlights(text: object) -> str:
    return " ".join(html.unescape(_HIGHLIGHT.sub("", as_text(text))).split())


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _part(text: str) -> str:
    return quote(text, safe="")


class CommentCalls:
    """The calls, as the app itself; those that read also `as_user`, the token of a person."""

    def __init__(self, caller: Caller, pace: SharedPace, **seams: Any) -> None:
        self._caller = caller
        self._slow = FairPacer("comment lookup", 10, pace, window_s=_TEN_IN_S, **seams)

    async def thread(self, place: CommentPlace, as_user: str = "") -> CommentThread | None:
        """The thread as it is now; None: it is not there any more."""
        body = {"comment_ids": [place.comment_id]}
        path, query = f"{_comments_path(place)}/batch_query", {"file_type": place.file_type}
        request = ApiRequest("POST", path, query, body=body, api="comment")
        data = await self._caller.call_as(request, as_user, self._slow)
        items = [as_dict(one) for one in as_list(data.get("items"))]
        mine = [one for one in items if as_text(one.get("comment_id")) == place.comment_id]
        if not mine:
            return None
        replies = _replies(as_dict(mine[0].get("reply_list")).get("replies"))
        if mine[0].get("has_more") is True:
            replies = await self._all_replies(place, as_user)
        return _thread(mine[0], replies)

    async def whole(self, place: CommentPlace) -> list[CommentThread]:
        """The threads on the whole document, in which a comment of the app is one of its own."""
        threads, token = list[CommentThread](), ""
        for _ in range(MOST_REPLIES // _PAGE):
            query: dict[str, str | int] = {
                "file_type": place.file_type, "is_whole": "true", "page_size": _PAGE,
                **({"page_token": token} if token else {}),
            }  # fmt: skip
            request = ApiRequest("GET", _comments_path(place), query, api="comments")
            data = await self._caller.call_as(request, "", self._slow)
            for item in map(as_dict, as_list(data.get("items"))):
                replies = _replies(as_dict(item.get("reply_list")).get("replies"))
                threads.append(_thread(item, replies))
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                break
        return threads

    async def reply(self, place: CommentPlace, elements: CommentElements) -> str:
        """Says something in the thread; the id of the reply. Repeated, it is there twice."""
        path = f"{_comments_path(place)}/{quote(place.comment_id, safe='')}/replies"
        body = {"content": {"elements": list(elements)}}
        request = ApiRequest("POST", path, {"file_type": place.file_type}, body, api="add reply")
        return required_text(await self._write(request), "reply_id")

    async def comment(self, place: CommentPlace, elements: CommentElements) -> str:
        """Comments on the whole document; the id of the new thread. Repeated, it is there twice."""
        content = {"content": {"elements": list(elements)}}
        body = {"reply_list": {"replies": [content]}}
        query = {"file_type": place.file_type}
        request = ApiRequest("POST", _comments_path(place), query, body, api="add comment")
        return required_text(await self._write(request), "comment_id")

    async def remove(self, place: CommentPlace, reply_id: str) -> None:
        """Deletes a reply of the app."""
        thread, reply = (quote(one, safe="") for one in (place.comment_id, reply_id))
        path, query = (
            f"{_comments_path(place)}/{thread}/replies/{reply}",
            {"file_type": place.file_type},
        )
        await self._write(ApiRequest("DELETE", path, query, api="delete reply"))

    async def _all_replies(self, place: CommentPlace, as_user: str) -> tuple[CommentReply, ...]:
        path = f"{_comments_path(place)}/{quote(place.comment_id, safe='')}/replies"
        replies, token = list[CommentReply](), ""
        while True:
            query: dict[str, str | int] = {
                "file_type": place.file_type, "page_size": _PAGE,
                **({"page_token": token} if token else {}),
            }  # fmt: skip
            data = await self._caller.call_as(
                ApiRequest("GET", path, query, api="replies"), as_user, self._slow
            )
            replies += _replies(data.get("items"))
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                return tuple(replies[-MOST_REPLIES:])

    async def _write(self, request: ApiRequest) -> dict[str, Any]:
        return as_dict((await self._caller.call(request, policy=NO_RETRY)).get("data"))


def _comments_path(place: CommentPlace) -> str:
    return f"/open-apis/drive/v1/files/{quote(place.file_token, safe='')}/comments"


def _thread(item: Mapping[str, Any], replies: tuple[CommentReply, ...]) -> CommentThread:
    return CommentThread(
        as_text(item.get("comment_id")),
        as_text(item.get("quote")),
        item.get("is_whole") is True,
        replies,
    )


def _replies(items: object) -> tuple[CommentReply, ...]:
    return tuple(
        CommentReply(
            as_text(one.get("reply_id")),
            as_text(one.get("user_id")),
            seconds if isinstance(seconds := one.get("create_time"), int) else 0,
            tuple(as_dict(part) for part in as_list(as_dict(one.get("content")).get("elements"))),
        )
        for one in map(as_dict, as_list(items))
    )
