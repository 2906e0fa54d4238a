"""A strict server that speaks OpenAI's chat format, for the loopback.

`python strict_server.py SCRIPT [null] [empty]` prints its port. SCRIPT is a file of replies in JSON, played
in order:

- `{"content": …, "tool_calls": [["name", "arguments", "id"], …], "finish_reason": …, "usage": …}`, whole or
  streamed as the request asks; with `finish_reason` None a stream just ends; keys of `extra` go into the
  message;
- `{"status": 503, "error": "words", "headers": {…}}` for a refusal;
- `{"body": "text", "type": "text/html", "status": 200}` for exactly these bytes, whatever was asked;
- the last one with `"forever": true` for everything after it;
- any of them with `"wait": 30`: the second half of the answer comes after this many seconds;
- any of them with `"hang_up": true`: the answer ends in its middle, and so does the connection.

Every wrong order of roles, forbidden key, and (depending on the switches) null or empty content is answered
by 400 with a sentence. `GET /seen` returns the bodies of the requests as they came in, as strings.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NEVER_SENT = ("parallel_tool_calls",)
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def breach(body: dict[str, Any], refused: frozenset[str]) -> str | None:
    """Return a request's first breach of the rules, as a server would word it."""
    for key in NEVER_SENT:
        if key in body:
            return f"Unknown parameter: {key}"
    messages = body["messages"]
    faults = [*order(messages), *contents(messages, refused)]
    return faults[0] if faults else None


def order(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Check the order of roles: nothing that Mistral, Anthropic behind a proxy or vLLM's templates refuse."""
    before, waiting = "", []
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "system" and place:
            yield f"messages[{place}]: a system message must be the first and only one"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"messages[{place}]: a tool result for no call before it"
            waiting = [key for key in waiting if key != message.get("tool_call_id")]
        elif waiting:
            yield f"messages[{place}]: calls without a result: {waiting}"
            waiting = []
        if role == "user" and before == "tool":
            yield f"messages[{place}]: unexpected role user after role tool"
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or []]
            yield from (f"messages[{place}]: {fault}" for fault in assistant(message, before))
        before = role
    if before == "assistant":
        yield "the last message must not be the assistant's"
    if waiting:
        yield f"calls without a result: {waiting}"


def assistant(message: dict[str, Any], before: str) -> Iterator[str]:
    """Check one assistant message: not next to another, not empty, its calls valid."""
    if before == "assistant":
        yield "two assistant messages in a row"
    made = message.get("tool_calls") or []
    if not made and not str(message.get("content") or "").strip():
        yield "an assistant message must have content or tool calls"
    ids = [call["id"] for call in made]
    if len(set(ids)) < len(ids) or not all(ids):
        yield f"call ids must be there and differ: {ids}"
    for call in made:
        if not is_object(call["function"]["arguments"]):
            yield f"the arguments of {call['function']['name']} are no JSON object"


def contents(messages: list[dict[str, Any]], refused: frozenset[str]) -> Iterator[str]:
    """Check for contents that are null, or empty."""
    for place, message in enumerate(messages):
        content = message.get("content")
        if "null" in refused and content is None:
            yield f"messages[{place}].content: expected a string, got null"
        if "empty" in refused and content == "":
            yield f"messages[{place}].content: must not be empty"


def is_object(text: str) -> bool:
    """Return whether a string is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class Strict(BaseHTTPRequestHandler):
    """Answers from the script, or with 400."""

    protocol_version = "HTTP/1.1"
    script: Iterator[dict[str, Any]]
    refused: frozenset[str]
    seen: list[str]
    wait = 0.0
    hang_up = False

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Return the requests so far."""
        self.send(200, json.dumps(self.seen), "application/json")

    def do_POST(self) -> None:
        """Check a request and play the next reply."""
        received = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append(received)
        body = json.loads(received)
        if fault := breach(body, self.refused):
            return self.refuse(400, fault)
        reply = next(self.script, {"status": 400, "error": "the script is over"})
        self.hang_up, self.wait = reply.get("hang_up", False), reply.get("wait", 0)
        if "body" in reply:
            kind = reply.get("type", "application/json")
            return self.send(reply.get("status", 200), reply["body"], kind)
        if "status" in reply:
            return self.refuse(reply["status"], reply.get("error", "no"), reply.get("headers", {}))
        if body.get("stream"):
            return self.send(200, "".join(events(reply)), "text/event-stream")
        return self.send(200, json.dumps(completion(reply)), "application/json")

    def refuse(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        """Answer with an error in OpenAI's format."""
        error = {"error": {"message": sentence, "type": "invalid_request_error", "code": None}}
        self.send(status, json.dumps(error), "application/json", headers)

    def send(self, status: int, text: str, kind: str, headers: dict[str, str] | None = None) -> None:
        """Send one answer: whole, with a pause, or half of the announced length."""
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        time.sleep(self.wait)
        if not self.hang_up:
            self.wfile.write(data[len(data) // 2 :])
        self.close_connection = self.close_connection or self.hang_up


def build_calls(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a reply."""
    return [
        {"index": i, "id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments, key) in enumerate(reply.get("tool_calls", ()))
    ]


def reason(reply: dict[str, Any]) -> str | None:
    """Return why a reply ended; None if the script has it break off."""
    return reply.get("finish_reason", "tool_calls" if reply.get("tool_calls") else "stop")


def completion(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a whole reply."""
    message = {"role": "assistant", "content": reply.get("content"), **reply.get("extra", {})}
    if reply.get("tool_calls"):
        message["tool_calls"] = build_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": reason(reply)}
    return {**frame("chat.completion"), "choices": [choice], "usage": reply.get("usage", USAGE)}


def events(reply: dict[str, Any]) -> Iterator[str]:
    """Return the same in pieces: text word by word, arguments in halves."""
    yield event({"role": "assistant", "content": "", **reply.get("extra", {})})
    for word in re.findall(r"\s*\S+\s*|\s+", reply.get("content") or ""):
        yield event({"content": word})
    for call in build_calls(reply):
        text = call["function"]["arguments"]
        if not isinstance(text, str):
            yield event({"tool_calls": [call]})
            continue
        half = len(text) // 2
        yield event({"tool_calls": [{**call, "function": {**call["function"], "arguments": text[:half]}}]})
        yield event({"tool_calls": [{"index": call["index"], "function": {"arguments": text[half:]}}]})
    if reason(reply) is None:
        return  # the connection just ends
    yield event({}, finish_reason=reason(reply))
    told = {**frame("chat.completion.chunk"), "choices": [], "usage": reply.get("usage", USAGE)}
    yield f"data: {json.dumps(told)}\n\n"
    yield "data: [DONE]\n\n"


def event(delta: dict[str, Any], **more: Any) -> str:
    """Return one piece of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    return f"data: {json.dumps({**frame('chat.completion.chunk'), 'choices': [choice]})}\n\n"


def frame(kind: str) -> dict[str, Any]:
    """Return what every answer carries."""
    return {"id": "chatcmpl-1", "object": kind, "created": int(time.time()), "model": "strict"}


def play_script(replies: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the replies in order, and repeat the last one if it is marked as lasting forever."""
    yield from replies
    while replies and replies[-1].get("forever"):
        yield replies[-1]


def main() -> None:
    """Serve a script until killed."""
    Strict.script = play_script(json.loads(Path(sys.argv[1]).read_text()))
    Strict.refused, Strict.seen = frozenset(sys.argv[2:]), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Strict)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
