"""The model of the chaos: a server whose answers depend only on each request.

`python chaos_model.py PORT LOG` serves OpenAI's chat completions, streamed, until it is killed. It records in
`LOG-shown` when a result was first shown to it, and what is illegal in a request. `LOG-mode` says what it
does instead of an answer, and until when: `refuse` with 429, or send `half` of the stream.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

OK, REFUSED = 200, 429
ASKED, SPAWNED, TICKS = 1_000_000, 2_000_000, 9_000_000  # are added to the number of an event
WORK = re.compile(r"event (\d+): (\w+)(?: (main:\d))?")
DONE = re.compile(r"event (\d+) is done by (\d+)")
TICK = re.compile(r"^\[cron\] tick$", re.MULTILINE)


def append(path: str, line: str) -> None:
    """Append a line that is on the disk when this returns."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{line}\n".encode())
    os.fsync(file)
    os.close(file)


def choose_calls(messages: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that the words in a history ask for and that are not in it."""
    made: set[tuple[str, int]] = set()
    wanted: list[tuple[str, int, dict[str, Any]]] = []
    ticks, items = 0, dict[int, int]()
    for message in messages:
        text = str(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            made.add(key_call(call["function"]["name"], json.loads(call["function"]["arguments"])))
        if message["role"] == "tool":  # the list with its ids
            items |= {int(key): int(number) for key, number in re.findall(r"\[(\d+)\] part (\d+)", text)}
        if message["role"] != "user":
            continue
        for _ in TICK.findall(text):
            wanted.append(("note", TICKS + ticks, {"number": TICKS + ticks}))
            ticks += 1
        for word, verb, peer in WORK.findall(text):
            wanted += plan_work(int(word), verb, peer)
    wanted += [("todo_update", key, {"id": key, "status": "done"}) for key in items]
    calls = {(name, key): (name, arguments) for name, key, arguments in wanted if (name, key) not in made}
    chosen = list(calls.values())[:3]
    # one word of a person decides all calls of a reply
    paid = [call for call in chosen if call[0] == "pay"]
    return [call for call in chosen if call not in paid[1:]]


def plan_work(number: int, verb: str, peer: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the calls for an event: the tool, the number that identifies it, the arguments."""
    if verb == "ask":
        words = f"event {number + ASKED}: note"
        yield "talk_to_agent", number + ASKED, {"agent": peer, "message": words}
    elif verb == "spawn":
        yield "spawn_subagent", number + SPAWNED, {"task": f"event {number + SPAWNED}: note"}
    elif verb == "plan":
        yield "todo_write", number, {"items": [f"part {number}"]}
    elif verb == "wait":
        yield "wait_for_work", number, {"what": f"build {number}", "seconds": 2}
    yield (verb if verb in ("pay", "panic") else "note"), number, {"number": number}


def key_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, int]:
    """Return the tool and the number of a call."""
    return name, int(re.findall(r"\d+", str({**arguments, "agent": ""}))[0])


class ModelServer(BaseHTTPRequestHandler):
    """OpenAI's chat completions, streamed. A file says how long it refuses or breaks off."""

    log = ""
    shown: ClassVar[set[str]] = set()
    lock = threading.Lock()

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a request, or fail as the file says."""
        from wakeloop.testing import wire_faults

        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.take_notes(asked["messages"], wire_faults([asked["messages"]]))
        mode, until = "", "0"
        with suppress(FileNotFoundError, ValueError):
            mode, until = Path(f"{self.log}-mode").read_text().split()
        mode = mode if time.time() < float(until) else ""
        if mode == "refuse":
            return self.send(REFUSED, b'{"error": {"message": "Slow down."}}', {"Retry-After": "2"})
        body = "".join(self.make_events(asked["messages"])).encode()
        if mode == "half":  # with the whole length announced, or not
            length = {"Content-Length": str(len(body))} if len(body) % 2 else {}
            return self.send(OK, body[: len(body) // 2], length)
        return self.send(OK, body, {})

    def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send an answer; closing the connection ends it."""
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if status == OK else "application/json")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def make_events(self, messages: list[dict[str, Any]]) -> Iterator[str]:
        """Yield a reply's pieces."""
        calls = [
            {
                "index": index,
                "id": "-".join(map(str, key_call(name, arguments))),
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(choose_calls(messages))
        ]
        delta = {"role": "assistant", "content": None if calls else "That is all."}
        for part, end in (
            ({**delta, "tool_calls": calls} if calls else delta, None),
            ({}, "tool_calls" if calls else "stop"),
        ):
            choice = {"index": 0, "delta": part, "finish_reason": end}
            piece = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            yield f"data: {json.dumps({**piece, 'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    def take_notes(self, messages: list[dict[str, Any]], faults: list[str]) -> None:
        """Record when a result was shown first, and what is illegal in a request."""
        with self.lock:
            for message in messages:
                for number, process in DONE.findall(str(message.get("content"))):
                    if message["role"] == "tool" and number not in self.shown:
                        self.shown.add(number)
                        append(f"{self.log}-shown", f"shown {number} {process} {time.time()}")
            for fault in faults:
                append(f"{self.log}-shown", f"illegal {fault}")


def serve_model(port: str, log: str) -> None:
    """Serve as the model until killed."""
    ModelServer.log = log
    ThreadingHTTPServer(("127.0.0.1", int(port)), ModelServer).serve_forever()


if __name__ == "__main__":
    serve_model(*sys.argv[1:])
