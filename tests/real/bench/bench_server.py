"""A server of OpenAI's chat completions that makes files: a program.

It stops at every third reply. Its replies depend only on the request: the same run gets the same replies, in
whatever order it asks. From the request numbered in its first argument on, it answers none while the file of
the second argument exists, into which it writes that it has got there; without a second it dies there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from chat_server import Reply, Server

FROM = int(sys.argv[1]) if sys.argv[1:] else sys.maxsize
SILENT = sys.argv[2:]
DELAY = 0.04  # seconds per reply: time to be killed in


def answer(number: int, asked: dict[str, Any]) -> Reply:
    if number >= FROM and not SILENT:
        os.kill(os.getpid(), signal.SIGKILL)
    while number >= FROM and (silent := Path(SILENT[0])).exists():
        silent.write_text("reached")
        time.sleep(0.1)
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
