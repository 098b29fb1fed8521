"""A small MCP server: `desk_server.py stdio BOARD` or `desk_server.py http BOARD PORT`.

`publish` appends to the file BOARD, so that a test can count what was really done.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("desk")
board = Path(sys.argv[2])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def publish(text: str) -> str:
    """Publishes a text on the board."""
    with board.open("a", encoding="utf-8") as out:
        out.write(text + "\n")
    return f'published (ID: post_{len(text)}) {{"id": "row-1"}}'


@server.tool()
def refuse() -> str:
    """Always fails."""
    raise ToolError("the desk is closed")


@server.tool()
async def hang() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return "never"


@server.tool()
def learn() -> str:
    """Adds a tool named `learned`."""
    server.add_tool(lambda: "I know", name="learned", description="What was learned.")
    return "learned"


@server.tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    os._exit(3)


if sys.argv[1] == "http":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
else:
    server.run(transport="stdio")
