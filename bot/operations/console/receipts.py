"""Receipts: what was deleted and when, without words; the chain as JSON Lines."""

from __future__ import annotations

from flask import Flask, Response, request

from bot.operations.console.page_context import Desk, admin, draw, with_memory
from memory.receipts.receipt import Receipt
from memory.rpc import Rpc
from memory.tables.receipts import ReceiptStore

_PAGE = 50


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        before = max(0, request.args.get("before", 0, type=int))

        async def work(rpc: Rpc) -> tuple[Receipt, ...]:
            return await ReceiptStore(rpc).page(before=before, limit=_PAGE)

        rows = with_memory(desk, work)
        more = rows[-1].number if rows and rows[-1].number > 1 else None
        return draw("receipts.html", rows=rows, more=more)

    def export() -> Response:
        desk.reader.note(admin(), "export receipts", "")

        async def work(rpc: Rpc) -> str:
            return "".join([f"{line}\n" async for line in ReceiptStore(rpc).lines()])

        headers = {"Content-Disposition": "attachment; filename=receipts.jsonl"}
        return Response(with_memory(desk, work), headers=headers, mimetype="application/jsonl")

    app.add_url_rule("/console/receipts", "receipts", show)
    app.add_url_rule("/console/receipts/export", "receipts_export", export, methods=["POST"])
