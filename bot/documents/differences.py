"""Whether a document shows each of its readers the same.

Everybody can open a Base with advanced permissions, and each sees other records in it. A docx shows
parts of other documents to those alone who can open these. Blocks that are not known count as such.

Source: Feishu, docx-v1 “Block data structure”, bitable-v1 get app, sheets-v2 metainfo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.feishu.documents import DocumentCalls
from bot.feishu.fields import as_dict, as_text

# Text, headings, lists, code, quotes, todos, callouts, dividers, files, columns, pictures, tables,
# boards, agendas, links, and the synced block where it was made.
_OF_THE_DOCUMENT = frozenset(
    (*range(1, 16), 17, 19, *range(21, 28), *range(31, 35), *range(43, 50))
)
MOST_BLOCKS = 20_000


@dataclass(frozen=True, slots=True)
class Document:
    """A document; `kind` as Feishu names it."""

    kind: str
    token: str


class ShowsEachSomethingElse(Exception):
    """The document may show its readers different contents."""


async def documents_shown_in(
    calls: DocumentCalls, document: Document, as_user: str
) -> frozenset[Document]:
    """Returns the other documents of which this one shows parts. Raises `ShowsEachSomethingElse`
    and FeishuFailure."""
    kind, token = document.kind, document.token
    if kind == "wiki":
        node = await calls.wiki_node(token, as_user)
        embedded = Document(node.kind, node.token)
        return await documents_shown_in(calls, embedded, as_user) | (
            frozenset() if node.is_origin else {embedded}
        )
    if kind == "docx":
        return await _embedded(calls, token, as_user) - {document}
    if kind == "bitable":
        differs = await calls.has_advanced_permissions(token, as_user)
    else:
        differs = kind != "sheet" or await calls.has_protection(token, as_user)
    if differs:
        raise ShowsEachSomethingElse
    return frozenset()


async def _embedded(calls: DocumentCalls, token: str, as_user: str) -> frozenset[Document]:
    documents, count = set[Document](), 0
    async for block in calls.docx_blocks(token, as_user):
        count += 1
        if count > MOST_BLOCKS:
            raise ShowsEachSomethingElse
        if block.get("block_type") not in _OF_THE_DOCUMENT:
            documents.add(_shown_by(block))
    return frozenset(documents)


def _shown_by(block: Mapping[str, Any]) -> Document:
    """The tokens of embedded tables name the table after the document: `base_table`."""
    match block.get("block_type"):
        case 18:
            document = Document("bitable", _before_table(block, "bitable"))
        case 30:
            document = Document("sheet", _before_table(block, "sheet"))
        case 50:
            source = as_dict(block.get("reference_synced"))
            document = Document("docx", as_text(source.get("source_document_id")))
        case _:
            raise ShowsEachSomethingElse
    if not document.token:
        raise ShowsEachSomethingElse
    return document


def _before_table(block: Mapping[str, Any], name: str) -> str:
    return as_text(as_dict(block.get(name)).get("token")).partition("_")[0]
