"""An MCP server without a library: one tool and one answer, both as given, whatever they are."""

import io
import json
import sys
from typing import Any

sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "latin-1")
TOOL, ANSWER = json.loads(sys.argv[1]), json.loads(sys.argv[2])
TIMES = TOOL.pop("again", 1)  # how often the tool is listed
SERVER = {"capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request."""
    if asked["method"] == "initialize":
        return {"result": {**SERVER, "protocolVersion": asked["params"]["protocolVersion"]}}
    return {"result": {"tools": [TOOL] * TIMES}} if asked["method"] == "tools/list" else ANSWER


for line in sys.stdin:
    one = json.loads(line)
    if isinstance(ANSWER, str) and one["method"] == "tools/call":  # an unchanged line, whatever it holds
        print(ANSWER.replace("ID", str(one["id"])), flush=True)
    elif "id" in one:
        print(json.dumps({"jsonrpc": "2.0", "id": one["id"], **answer(one)}), flush=True)
