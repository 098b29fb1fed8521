"""Results of MCP tools as a model is given them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from bot.agents.mcp.translation import repair_result, result_value
from bot.agents.tool_types import ToolFailed
from tests.support.rows import every_row


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def result(*content: Any, structured: Any = None, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=list(content), structured_content=structured, is_error=is_error)


@every_row(
    ("given", "value"),
    [
        (result(text("5"), structured={"result": 5}), 5),
        (result(text("{}"), structured={"a": 1, "result": 2}), {"a": 1, "result": 2}),
        (result(text('{"a": [1]}')), {"a": [1]}),
        (result(text("[not json")), "[not json"),
        (result(text("a"), text('[{"b": 1}]')), ["a", [{"b": 1}]]),
        (result(), []),
        (
            result(ImageContent(type="image", data="aGk=", mime_type="image/png")),
            "[image: image/png]",
        ),
        (
            result(
                EmbeddedResource(
                    type="resource",
                    resource=TextResourceContents(uri="file:///a.txt", text="words"),
                )
            ),
            "words",
        ),
        (
            result(ResourceLink(type="resource_link", uri="https://x.test/a", name="a")),
            "a (https://x.test/a)",
        ),
        (result(text("Ask the desk."), structured={"count": 2}), [{"count": 2}, "Ask the desk."]),
        (
            result(
                ImageContent(type="image", data="aGk=", mime_type="image/png"),
                text("the plan"),
                structured={"room": "OAK"},
            ),
            [{"room": "OAK"}, "[image: image/png]", "the plan"],
        ),
        (result(structured={"room": "ELM"}), {"room": "ELM"}),
        (result(text(""), structured={"room": "ELM"}), {"room": "ELM"}),
        (result(text('{"room": "ELM"}'), structured={"room": "ELM"}), {"room": "ELM"}),
        (
            result(text('{"result": "OAK", "next": "page-2"}'), structured={"result": "OAK"}),
            {"result": "OAK", "next": "page-2"},
        ),
        (result(text("OAK"), structured={"result": "OAK"}), "OAK"),
        (result(text("[1]"), structured={"result": [1]}), [1]),
        (result(text("one"), text("two"), structured={"result": 7}), [7, "one", "two"]),
        (result(text("false"), structured={"result": False}), False),
    ],
)
def test_a_result_is_the_value_that_the_tool_returned(given: CallToolResult, value: Any) -> None:
    assert result_value(given) == value


@every_row(
    ("given", "says"),
    [
        (result(text("the desk is closed"), is_error=True), "the desk is closed"),
        (result(text("no"), structured={"code": 7}, is_error=True), '{"code": 7}\nno'),
        (result(text("ask Lin"), structured={"code": 7}, is_error=True), "ask Lin"),
        (result(is_error=True), "does not say why"),
    ],
)
def test_an_error_is_told_in_the_servers_words(given: CallToolResult, says: str) -> None:
    with pytest.raises(ToolFailed, match=says):
        result_value(given)


def blob(words: bytes, kind: str) -> dict[str, Any]:
    data = base64.b64encode(words).decode()
    return {"type": "resource", "resource": {"uri": "f://a", "mimeType": kind, "blob": data}}


@every_row(
    ("sent", "value"),
    [
        ({"structuredContent": {"room": "OAK"}}, {"room": "OAK"}),
        ({"content": None, "structuredContent": ["OAK"]}, ["OAK"]),
        ({"toolResult": "OAK"}, "OAK"),
        (
            {"content": "OAK", "nextCursor": "p2", "total": 9, "_meta": {}},
            ["OAK", {"nextCursor": "p2", "total": 9}],
        ),
        ({"content": "OAK"}, "OAK"),
        ({"content": {"type": "text", "text": "OAK"}, "_meta": 7}, "OAK"),
        ({"content": ["OAK", 7, None]}, ["OAK", "7", ""]),
        ({"content": [{"type": "text", "text": 7, "annotations": "x"}]}, "7"),
        (
            {"content": [{"type": "video", "uri": "https://x.test/v"}], "isError": "false"},
            {"type": "video", "uri": "https://x.test/v"},
        ),
        ({"content": [{"type": "image", "data": "aGk="}]}, "[image: unknown]"),
        ({"content": [{"type": "resource_link", "uri": "a b", "size": "x"}]}, "a b (a b)"),
        ({"content": [{"type": "resource", "resource": {"text": "OAK"}}]}, "OAK"),
        ({"content": [{"type": "resource"}]}, {"type": "resource"}),
        ({"content": [blob("房间".encode(), "text/csv; charset=utf-8")]}, "房间"),
        ({"content": [blob(b'{"a": 1}', "application/json")]}, '{"a": 1}'),
        ({"content": [blob(b"\xff", "text/plain")]}, "[text/plain at f://a]"),
        ({"content": [blob(b"%PDF", "application/pdf")]}, "[application/pdf at f://a]"),
    ],
)
def test_a_result_of_an_odd_form_is_read(sent: dict[str, Any], value: Any) -> None:
    repair_result(sent)
    assert result_value(CallToolResult.model_validate(sent)) == value
