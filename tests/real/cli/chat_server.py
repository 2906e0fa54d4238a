"""A server of OpenAI's chat completions on loopback that plays a script; also a program of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import Loopback


@dataclass
class Reply:
    """One answer: text and calls, or an error status with its words, after `delay` seconds."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    status: int = 200
    finish: str | None = None
    delay: float = 0
    words: str = "the server says no"
    more: dict[str, Any] = field(default_factory=dict)  # further fields of the message
    pieces: Sequence[dict[str, Any]] = ()  # the same in a stream, if they come in pieces there
    empty: bool = False  # an answer without a body
    headers: dict[str, str] = field(default_factory=dict)  # of an error

    @property
    def reason(self) -> str:
        return self.finish if self.finish is not None else ("tool_calls" if self.calls else "stop")

    def tool_calls(self, number: int) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{number}_{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for i, (name, args) in enumerate(self.calls)
        ]


# Apart from `/v1` it has nothing: a page at `/page/…`, 404 at any other address.
MODEL = "loopback:1b"  # the only one that it lists
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
Script = Callable[[int, dict[str, Any]], Reply]


@dataclass
class Server:
    """Plays `script` (a list whose last reply repeats forever, or a function) and records the requests."""

    script: Sequence[Reply] | Script
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)  # of those who asked for the models

    def __post_init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                return

            def do_GET(self) -> None:
                outer.keys.append(self.headers["Authorization"])
                told = json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode()
                self.send_response(200 if self.path == "/v1/models" else 404)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path.startswith("/v1/"):
                    outer.answer(self, asked)
                    return
                page = b"<!DOCTYPE html><html><h1>Welcome</h1></html>"
                self.send_response(200 if self.path.startswith("/page/") else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

        self.http = Loopback(Handler)

    @property
    def url(self) -> str:
        return self.http.url

    def close(self) -> None:
        self.http.close()

    def answer(self, handler: BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        self.requests.append(asked)
        number = len(self.requests)
        script = self.script
        reply = script(number, asked) if callable(script) else script[min(number, len(script)) - 1]
        time.sleep(reply.delay)
        if reply.empty:
            handler.send_response(200)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        elif reply.status != 200:
            refusal = {"error": {"message": reply.words, "type": "x", "code": None}}
            self.send(handler, reply.status, refusal, reply.headers)
        elif asked.get("stream"):
            self.stream(handler, reply, number)
        else:
            message = {
                "role": "assistant",
                "content": reply.text,
                "tool_calls": reply.tool_calls(number) or None,
                **reply.more,
            }
            choice = {"index": 0, "message": message, "finish_reason": reply.reason}
            self.send(
                handler,
                200,
                {
                    "id": f"c{number}",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m",
                    "choices": [choice],
                    "usage": USAGE,
                },
            )

    def send(
        self, handler: BaseHTTPRequestHandler, status: int, body: dict[str, Any], headers: Any = None
    ) -> None:
        data = json.dumps(body).encode()
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def stream(self, handler: BaseHTTPRequestHandler, reply: Reply, number: int) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for chunk in self.chunks(reply, number):
            handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            handler.wfile.flush()
        handler.wfile.write(b"data: [DONE]\n\n")

    def chunks(self, reply: Reply, number: int) -> Iterator[dict[str, Any]]:
        head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        first, *rest = reply.pieces or [reply.more]
        yield chunk({"role": "assistant", "content": "", **first})
        yield from map(chunk, rest)
        for start in range(0, len(reply.text), 7):
            yield chunk({"content": reply.text[start : start + 7]})
        for index, call in enumerate(reply.tool_calls(number)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, reply.reason)
        yield {**head, "choices": [], "usage": USAGE}
