"""An MCP server over stdio, made without a library, whose tools are what others would refuse.

    python quirks_server.py TOOLS    (a JSON list, as tools/list has it)

Each tool answers with its own name.
"""

import json
import sys

TOOLS = json.loads(sys.argv[1])


def answered(method: str, params: dict) -> dict:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "quirks", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"did {params['name']}"}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answered(asked["method"], asked.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
