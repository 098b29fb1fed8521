"""Offers the tool that sends a file with the answer."""

from __future__ import annotations

from bot.agents.tool_types import Tool, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.features.feature import Feature
from bot.files.writing import Kind, Unwritable, file_to_send

MOST_SENT = 3


def file_tools() -> list[Tool]:
    return [tool(send_file, sequential=True, reads=True)]


async def send_file(deps: ToolDeps, name: str, kind: Kind, content: str) -> str:
    """Send a file after your answer, when asked for one or when text is too long for a chat.

    Args:
        name: Such as "report.csv".
        kind: "table" is CSV, "document" Word, "text" txt or md, "qr_code" a picture.
        content: All of it: CSV or a Markdown table, Markdown, text, or what the code holds.
    """
    if deps.reads_only:
        raise ToolFailed("No file can be sent with this answer. Give its content as text.")
    if len(deps.files) >= MOST_SENT:
        raise ToolFailed(f"At most {MOST_SENT} files are sent with an answer; this one is not.")
    try:
        file = file_to_send(name, kind, content)
    except Unwritable as exc:
        raise ToolFailed(f"No file was made. {exc}") from exc
    if any(one["name"] == file["name"] for one in deps.files):
        raise ToolFailed(f'A file "{file["name"]}" is sent already; choose another name.')
    deps.files.append(file)
    return (
        f'The file "{file["name"]}" will be sent after your answer, which names it for you. '
        "Do not repeat its content, and write no link to it."
    )


FILES = Feature(name="files", tools=file_tools())
