"""Offers the tools that read and search documents as the person who asks.

In a group they return only documents that everyone there can open
(`bot.documents.turn_documents`)."""

from __future__ import annotations

from collections.abc import Mapping

from bot.agents.tool_types import Tool, ToolFailed, Wording, tool
from bot.agents.tools.deps import ToolDeps
from bot.documents.document import (
    SHORT,
    TEXTS,
    ReadDocument,
    UnreadDocument,
    chosen_section,
    comment_lines,
    cut_text,
    outline,
    refusal_text,
    say,
)
from bot.documents.turn_documents import TurnDocuments
from bot.features.feature import Feature
from bot.features.source_documents import check_sources, documents_of
from bot.feishu.documents import FoundDocument
from memory.text import one_line

MOST_CHARACTERS = 12_000  # of one result
MOST_COMMENT_LINES = 40
WORDING = Wording(TEXTS)


def document_tools() -> list[Tool]:
    return [
        tool(read_document, reads=True, is_kept=False, wording=WORDING),
        tool(search_documents, reads=True, is_kept=False, wording=WORDING),
    ]


async def read_document(deps: ToolDeps, url: str, section: str = "") -> str:
    """Read a Feishu document, wiki page, sheet or Base, as the person who asks.

    Args:
        url: Its link, as somebody wrote it or as search_documents found it.
        section: The number or heading of a section of a long document; its outline lists them.
    """
    documents = _documents(deps)
    document = await documents.read(url)
    if isinstance(document, UnreadDocument):
        raise _tool_failure(document)
    chosen_part = chosen_section(document, section) if section else None
    if chosen_part:
        text = "\n".join(
            [*_heading(document), f"Section: {chosen_part.title}", "", chosen_part.text]
        )
    elif section:
        text = f"{say('why-section', 'en')} Its sections:\n{outline(document)}"
    else:
        text = _document_text(document, deps.prompt.people.names())
    if not await documents.give(document, text):
        raise _tool_failure(UnreadDocument("unavailable"))
    if section and not chosen_part:
        raise ToolFailed(text)
    return text


async def search_documents(deps: ToolDeps, query: str) -> str:
    """Search the documents that the person who asks can open.

    Args:
        query: A few words, at most 50 characters.
    """
    results = await _documents(deps).search(query)
    if isinstance(results, UnreadDocument):
        raise _tool_failure(results)
    return "\n".join(map(_found_line, results)) or "No document was found."


def _tool_failure(refusal: UnreadDocument) -> ToolFailed:
    scopes = ", ".join(refusal.scopes)
    return ToolFailed(refusal_text(refusal, "en"), f"why-{refusal.reason}", scopes=scopes)


def _documents(deps: ToolDeps) -> TurnDocuments:
    documents: TurnDocuments | None = deps.opened.get(DOCUMENTS.name)
    if documents is None:
        raise _tool_failure(UnreadDocument("not_connected"))
    return documents


def _document_text(document: ReadDocument, names: Mapping[str, str]) -> str:
    """All of a short document; of a long one the outline and the first section."""
    lines = _heading(document)
    if document.size <= SHORT:
        for one in document.sections:
            lines += ["", f"{'#' * one.level} {one.title}".strip(), one.text]
    else:
        first = document.sections[0]
        lines += [
            "It is long. Ask for a section by its number or heading.",
            outline(document),
            "",
            f"Section: {first.title or '1'}",
            first.text,
        ]
    safe_names = {open_id: one_line(name) for open_id, name in names.items()}
    comments = comment_lines(document, safe_names)[:MOST_COMMENT_LINES]
    lines += ["", "Comments:", *comments] if comments else []
    return "\n".join(lines)[:MOST_CHARACTERS]


def _heading(document: ReadDocument) -> list[str]:
    cuts = [cut_text(one, "en") for one in document.cuts]
    return [f"Title: {one_line(document.title)}", f"Link: {document.url}", *cuts]


def _found_line(hit: FoundDocument) -> str:
    about = f" by {one_line(hit.owner)}" if hit.owner else ""
    return f"- {hit.title or 'Untitled'}{about}: {one_line(hit.url)}\n  {hit.summary}".rstrip()


DOCUMENTS = Feature(
    name="documents",
    tools=document_tools(),
    gather=documents_of,
    checks={"sources": check_sources},
)
