"""A server of OpenAI's chat completions that makes files: a program.

It stops at every third reply. What it says follows from the request alone: the same run gets the same
replies, in whatever order it is asked.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from chat_server import Reply, Server

DELAY = 0.04  # seconds a reply: time to be killed in


def answer(_number: int, asked: dict[str, Any]) -> Reply:
    messages = asked["messages"]
    tools = {tool["function"]["name"] for tool in asked.get("tools", ())}
    names = re.findall(r"\w+-\d+", next(m["content"] for m in messages if m["role"] == "user"))
    called = [call["function"] for m in messages for call in m.get("tool_calls") or ()]
    if "todo_write" in tools and not called:
        return Reply(calls=[("todo_write", {"items": names})], delay=DELAY)
    made = sum(call["name"] == "write_file" for call in called)
    spoken = sum(m["role"] == "assistant" for m in messages)
    if made == len(names) or spoken % 3 == 2:
        return Reply("All done.", delay=DELAY)
    name = names[made]
    work: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": f"notes/{name}.txt", "content": f"Note {name}."})
    ]
    close = [("todo_update", {"id": made + 1, "status": "done"})] if "todo_write" in tools else []
    return Reply(calls=[*work, *close], delay=DELAY)


if __name__ == "__main__":
    print(Server(answer).url, flush=True)
    sys.stdin.read()  # until the test is over
