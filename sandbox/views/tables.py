"""REST views of sheets and Bases (open.feishu.cn, sheets-v3, sheets-v2 values, bitable-v1)."""

import re
from typing import Any

from flask import request

from sandbox.errors import ApiError, not_played
from sandbox.http import current_platform, json_body
from sandbox.views.documents import caller, page_bounds, page_shape, readable
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import BASE, SHEET

MOST_COLUMNS = 100
TABLES_PER_PAGE = 20
MOST_TABLES_PER_PAGE = 100
MOST_RECORDS_PER_PAGE = 500
_CELLS = re.compile(r"([A-Z]{1,3})([1-9]\d*)?:([A-Z]{1,3})([1-9]\d*)?")
_UI_TYPES = {
    1: "Text", 2: "Number", 3: "SingleSelect", 4: "MultiSelect", 5: "DateTime", 7: "Checkbox",
    11: "User", 15: "Url",
}  # fmt: skip


def get_spreadsheet(spreadsheet_token: str) -> dict[str, Any]:
    """GET /sheets/v3/spreadsheets/:token"""
    document, library = _spreadsheet(spreadsheet_token), current_platform().library
    shape = {
        "title": document.title,
        "owner_id": document.owner,
        "token": document.token,
        "url": library.url(document),
    }
    return {"spreadsheet": shape}


def list_sheets(spreadsheet_token: str) -> dict[str, Any]:
    """GET /sheets/v3/spreadsheets/:token/sheets/query"""
    sheets = [
        {
            "sheet_id": one["sheet_id"],
            "title": one["title"],
            "index": index,
            "hidden": bool(one.get("hidden")),
            "grid_properties": {
                "frozen_row_count": 0,
                "frozen_column_count": 0,
                "row_count": len(one["rows"]),
                "column_count": max(map(len, one["rows"]), default=0),
            },
            "resource_type": one.get("resource_type", "sheet"),
        }
        for index, one in enumerate(_spreadsheet(spreadsheet_token).body["sheets"])
    ]
    return {"sheets": sheets}


def sheet_meta(spreadsheet_token: str) -> dict[str, Any]:
    """GET /sheets/v2/spreadsheets/:token/metainfo?extFields=protectedRange"""
    asked = "protectedRange" in request.args.get("extFields", "")
    document = _spreadsheet(spreadsheet_token)
    sheets = [
        {
            "sheetId": one["sheet_id"],
            "title": one["title"],
            "index": index,
            "rowCount": len(one["rows"]),
            "columnCount": max(map(len, one["rows"]), default=0),
        }
        | ({"protectedRange": one["protected"]} if asked and one.get("protected") else {})
        for index, one in enumerate(document.body["sheets"])
    ]
    properties = {
        "title": document.title,
        "sheetCount": len(sheets),
        "revision": document.revision,
    }
    return {"spreadsheetToken": document.token, "properties": properties, "sheets": sheets}


def sheet_values(spreadsheet_token: str, cells: str) -> dict[str, Any]:
    """GET /sheets/v2/spreadsheets/:token/values/:range; empty cells are null."""
    refusals = (ApiError(90214), ApiError(90214), ApiError(90213, status=403))
    document = readable(spreadsheet_token, SHEET, refusals)
    if request.args.get("valueRenderOption") == "Formula":
        raise not_played("valueRenderOption=Formula")
    sheet_id, _, span = cells.partition("!")
    sheets = {one["sheet_id"]: one for one in document.body["sheets"]}
    if sheet_id not in sheets:
        raise ApiError(90215)
    rows = _cut(sheets[sheet_id]["rows"], span)
    shape = {
        "majorDimension": "ROWS",
        "range": cells,
        "revision": document.revision,
        "values": rows,
    }
    return {"revision": document.revision, "spreadsheetToken": document.token, "valueRange": shape}


def get_base(app_token: str) -> dict[str, Any]:
    """GET /bitable/v1/apps/:token"""
    document = _base(app_token)
    shape = {
        "app_token": document.token,
        "name": document.title,
        "revision": document.revision,
        "is_advanced": bool(document.body.get("is_advanced")),
        "time_zone": current_platform().config.timezone,
    }
    return {"app": shape}


def base_tables(app_token: str) -> dict[str, Any]:
    """GET /bitable/v1/apps/:token/tables"""
    tables = [
        {"table_id": one["table_id"], "revision": 1, "name": one["name"]}
        for one in _base(app_token).body["tables"]
    ]
    return _page(tables)


def base_fields(app_token: str, table_id: str) -> dict[str, Any]:
    """GET /bitable/v1/apps/:token/tables/:id/fields"""
    for name in ("view_id", "text_field_as_array"):
        if request.args.get(name, "false") != "false":
            raise not_played(name)
    fields = [
        {
            "field_id": f"fld{index:07}",
            "field_name": one["name"],
            "type": one["type"],
            "ui_type": _UI_TYPES.get(one["type"], "Text"),
            "is_primary": index == 0,
            **({"property": one["property"]} if "property" in one else {}),
        }
        for index, one in enumerate(_table(app_token, table_id)["fields"])
    ]
    return _page(fields)


def base_records(app_token: str, table_id: str) -> dict[str, Any]:
    """POST /bitable/v1/apps/:token/tables/:id/records/search, in pages of at most 500."""
    table, body = _table(app_token, table_id), json_body()
    for name in ("filter", "sort", "view_id", "automatic_fields"):
        if body.get(name):
            raise not_played(name)
    types = {one["name"]: one["type"] for one in table["fields"]}
    names = body.get("field_names") or list(types)
    if not set(names) <= types.keys():
        raise ApiError(1254024, "InvalidFieldNames", status=200)
    advanced = _base(app_token).body.get("is_advanced")
    found = [
        (f"rec{index:07}", record)
        for index, record in enumerate(table["records"])
        if not advanced or caller() in record.get("readers", [caller()])
    ]
    records = [
        {
            "record_id": record_id,
            "fields": {
                name: _value(record[name], types[name])
                for name in names
                if record.get(name) is not None
            },
        }
        for record_id, record in found
    ]
    return _page(records, MOST_RECORDS_PER_PAGE)


def _spreadsheet(token: str) -> SandboxDocument:
    return readable(token, SHEET, (ApiError(1310214), ApiError(1310249), ApiError(1310213)))


def _base(token: str) -> SandboxDocument:
    return readable(token, BASE, (ApiError(91402), ApiError(91402), ApiError(91403, status=403)))


def _table(app_token: str, table_id: str) -> dict[str, Any]:
    tables = {one["table_id"]: one for one in _base(app_token).body["tables"]}
    if table_id not in tables:
        raise ApiError(1254041, status=200)
    found: dict[str, Any] = tables[table_id]
    return found


def _page(items: list[dict[str, Any]], most: int = MOST_TABLES_PER_PAGE) -> dict[str, Any]:
    size = request.args.get("page_size", str(TABLES_PER_PAGE))
    if not size.isdigit() or not int(size):
        raise ApiError(1254011, "Page size must greater than 0.")
    if int(size) > most:
        raise ApiError(1254001, status=200)
    token = request.args.get("page_token", "")
    start, end = page_bounds(token, int(size), len(items), ApiError(1254001, status=200))
    return {"total": len(items), **page_shape(items[start:end], end, len(items))}


def _cut(rows: list[list[Any]], span: str) -> list[list[Any]]:
    """The cells of `span`, such as A1:B20, A:C or "" for all; at most 100 columns."""
    found = _CELLS.fullmatch(span) if span else None
    if span and found is None:
        raise ApiError(90202)
    left, top, right, bottom = found.groups() if found else ("A", None, "CV", None)
    first, last = _column(left), _column(right)
    if last < first or last - first >= MOST_COLUMNS:
        raise ApiError(90202)
    begin, end = int(top or 1) - 1, int(bottom) if bottom else len(rows)
    widest = max(map(len, rows), default=0)
    last = min(last, widest - 1)
    return [[*row, *[None] * (widest - len(row))][first : last + 1] for row in rows[begin:end]]


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _value(value: Any, kind: int) -> Any:
    """As records come back: text as a list of parts, a person as a list of one."""
    if kind == 1:
        return [{"text": str(value), "type": "text"}]
    if kind == 11:
        return [{"id": value, "name": _name(value), "en_name": _name(value), "email": ""}]
    if kind == 15:
        return {"link": value, "text": value}
    return value


def _name(open_id: str) -> str:
    person = current_platform().world.people.get(open_id)
    return person.name if person else ""
