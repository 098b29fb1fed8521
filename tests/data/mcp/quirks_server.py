"""An MCP server over stdio, made without a library, whose tools are what others would refuse.

    python quirks_server.py TOOLS [ANSWERS]    (a JSON list, as tools/list has it)

Each tool answers with its own name, or as ANSWERS says: result or error, by name.
"""

import json
import sys

TOOLS = json.loads(sys.argv[1])
ANSWERS = json.loads(sys.argv[2]) if sys.argv[2:] else {}


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


def answer_to(asked: dict) -> dict:
    params = asked.get("params") or {}
    if asked["method"] == "tools/call" and params["name"] in ANSWERS:
        return ANSWERS[params["name"]]
    return {"result": answered(asked["method"], params)}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer_to(asked)}), flush=True)
