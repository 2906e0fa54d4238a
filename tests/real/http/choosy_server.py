"""A server that honours, ignores or refuses a choice that forces a call, in OpenAI's and Anthropic's form.

`python choosy_server.py honour|ignore|refuse` prints its port. The model behind it writes one item, and then
answers in words, forever; only a forced call closes the item. `GET /seen` returns the choice of each request,
and whether it was refused.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from strict_server import completion, events

FORCED = ("required", {"type": "any"})
PLAN = ["todo_write", '{"items": ["a"]}', "call_plan1"]
CLOSE = ["todo_update", '{"id": 1, "status": "done"}', "call_done1"]


class Choosy(BaseHTTPRequestHandler):
    """Answers according to the choice of a request."""

    protocol_version = "HTTP/1.1"
    manner = "honour"
    seen: list[Any]

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Return the choices so far."""
        self.send(200, json.dumps(self.seen), "application/json")

    def do_POST(self) -> None:
        """Refuse a request, or play the reply for its choice and its history."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        choice = body.get("tool_choice")
        refused = choice in FORCED and self.manner == "refuse"
        self.seen.append([choice, refused])
        blocks = self.path.endswith("/messages")
        if refused:
            told = "Thinking may not be enabled when tool_choice forces tool use."
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": told}}
            return self.send(400, json.dumps(error), "application/json")
        reply = self.reply_to(str(body["messages"]), forced=choice in FORCED)
        if not body.get("stream"):
            whole = message(reply) if blocks else completion(reply)
            return self.send(200, json.dumps(whole), "application/json")
        pieces = parts(reply) if blocks else events(reply)
        return self.send(200, "".join(pieces), "text/event-stream")

    def reply_to(self, history: str, *, forced: bool) -> dict[str, Any]:
        """Return the next reply of the model."""
        if "call_plan1" not in history:
            return {"tool_calls": [PLAN]}
        if forced and self.manner == "honour":
            return {"tool_calls": [CLOSE]}
        return {"content": "All done."}

    def send(self, status: int, text: str, kind: str) -> None:
        """Send one answer."""
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def message(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a whole reply in Anthropic's form."""
    content: list[dict[str, Any]] = []
    if reply.get("content"):
        content.append({"type": "text", "text": reply["content"]})
    for name, arguments, key in reply.get("tool_calls", ()):
        content.append({"type": "tool_use", "id": key, "name": name, "input": json.loads(arguments)})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "choosy",
        "content": content,
        "stop_reason": "tool_use" if reply.get("tool_calls") else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def parts(reply: dict[str, Any]) -> Iterator[str]:
    """Return the same in pieces."""
    whole = message(reply)
    yield part({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            arguments = json.dumps(block["input"])
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}
        yield part({"type": "content_block_start", "index": index, "content_block": empty})
        yield part({"type": "content_block_delta", "index": index, "delta": delta})
        yield part({"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield part({"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}})
    yield part({"type": "message_stop"})


def part(event: dict[str, Any]) -> str:
    """Return one event of a stream."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def main() -> None:
    """Serve until killed."""
    Choosy.manner, Choosy.seen = sys.argv[1], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Choosy)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
