"""Results of MCP tools as a model is given them."""

from __future__ import annotations

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

from bot.agents.mcp.results import value_of
from bot.agents.tool_types.tool import ToolFailed


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def result(*content: Any, structured: Any = None, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=list(content), structured_content=structured, is_error=is_error)


@pytest.mark.parametrize(
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
            "https://x.test/a",
        ),
    ],
)
def test_a_result_is_the_value_that_the_tool_returned(given: CallToolResult, value: Any) -> None:
    assert value_of(given) == value


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (result(text("the desk is closed"), is_error=True), "the desk is closed"),
        (result(text("no"), structured={"code": 7}, is_error=True), '{"code": 7}'),
        (result(is_error=True), "does not say why"),
    ],
)
def test_an_error_is_told_in_the_servers_words(given: CallToolResult, says: str) -> None:
    with pytest.raises(ToolFailed, match=says):
        value_of(given)
