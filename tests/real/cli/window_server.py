"""A chat server with a small context window: `python window_server.py TOKENS [says]` prints its port.

It counts a token for four characters of a request, and answers 400 to one that is too long. It reads the five
files named in the last user message, one by one, and then says so. With `says`, `GET /props` names the
window, as llama.cpp does. `GET /seen` has the tokens of each request, and its status.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WINDOW, SAYS = int(sys.argv[1]), "says" in sys.argv
FILES = [f"big{number}.txt" for number in range(5)]
SEEN: list[list[int]] = []


def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the next call, or the final words."""
    people = []
    for place, one in enumerate(messages):
        if one["role"] == "user" and not str(one["content"]).startswith("(automatic)"):
            people.append(place)
    done = sum(one["role"] == "assistant" for one in messages[people[-1] :])
    if done >= len(FILES) or "Read" not in str(messages[people[-1]]["content"]):
        return {"role": "assistant", "content": "All read."}
    arguments = json.dumps({"path": FILES[done]})
    call = {
        "id": f"call{len(SEEN):05}",
        "type": "function",
        "function": {"name": "read_file", "arguments": arguments},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Handler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/seen":
            self.answer(200, SEEN)
        elif self.path == "/props" and SAYS:
            self.answer(200, {"default_generation_settings": {"n_ctx": WINDOW}})
        else:
            self.answer(404, {"error": "not found"})

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        tokens = len(text) // 4
        SEEN.append([tokens, 400 if tokens > WINDOW else 200])
        if tokens > WINDOW:
            words = f"request ({tokens} tokens) exceeds the available context size ({WINDOW} tokens)"
            error = {"code": 400, "message": words, "type": "exceed_context_size_error"}
            self.answer(400, {"error": {**error, "n_prompt_tokens": tokens, "n_ctx": WINDOW}})
            return
        body = json.loads(text)
        said = reply(body["messages"])
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        if not body.get("stream"):
            choice = {"index": 0, "message": said, "finish_reason": "stop"}
            self.answer(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        for call in said.get("tool_calls", ()):
            call["index"] = 0
        end = "tool_calls" if said.get("tool_calls") else "stop"
        pieces = [
            {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": usage},
        ]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in pieces:
            whole = {"id": "x", "object": "chat.completion.chunk", "model": "m", **piece}
            self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
