"""What servers answer when they are asked for a model's window."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest

from wakeloop.cli.agent import ask_server_window, note_server_window
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.model.context_window import read_profile_window
from wakeloop.testing import ScriptedModel

pytestmark = pytest.mark.loopback

LLAMA = {"default_generation_settings": {"n_ctx": 4096}}
ANSWERS: dict[str, tuple[dict[str, Any], int | None]] = {  # a server's answers by path, and the window
    "llama.cpp": ({"/props": LLAMA, "/v1/models": {"data": [{"id": "m"}]}}, 4096),
    "vLLM": (
        {"/v1/models": {"data": [{"id": "x", "max_model_len": 1}, {"id": "m", "max_model_len": 8192}]}},
        8192,
    ),
    "OpenRouter": ({"/v1/models": {"data": [{"id": "m", "context_length": 163840}]}}, 163840),
    "LM Studio": (
        {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 9, "loaded_context_length": 8}]}},
        8,
    ),
    "Ollama": (
        {
            "/api/ps": {"models": []},
            "POST /api/show": {
                "parameters": "num_ctx      2048\nstop x",
                "model_info": {"a.context_length": 131072},
            },
        },
        2048,
    ),
    "Ollama, loaded": (
        {
            "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]},
            "POST /api/show": {"model_info": {"a.context_length": 131072}},
        },
        4096,
    ),
    "none": ({}, None),
    "nonsense": ({"/props": [], "/v1/models": {"data": [{"id": "m", "max_model_len": "many"}]}}, None),
}


@pytest.fixture
def serve() -> Iterator[Any]:
    """Serve some paths on the loopback; `seen` has the requests."""
    servers: list[ThreadingHTTPServer] = []

    def start(paths: dict[str, Any], seen: list[str], wait: float = 0) -> str:
        class Handler(BaseHTTPRequestHandler):
            def answer(self, key: str) -> None:
                seen.append(key)
                if wait:
                    waiting.wait(wait)
                self.send_response(200 if key in paths else 404)
                self.end_headers()
                self.wfile.write(json.dumps(paths.get(key, {})).encode())

            def do_GET(self) -> None:
                self.answer(self.path)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(f"POST {self.path}")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        waiting = Event()
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("server", ANSWERS)
def test_the_window_of_each_server(serve: Any, server: str) -> None:
    paths, window = ANSWERS[server]
    seen: list[str] = []
    url = serve(paths, seen)
    model = ScriptedModel()
    note_server_window(model, AgentSpec(model="openai:m", base_url=url))
    assert read_profile_window(model) == window
    before = len(seen)
    assert ask_server_window(url, "m", "") == window
    assert len(seen) == before  # asked once per process
    assert ("POST /api/show" in seen) == server.startswith("Ollama")


def test_a_silent_server_costs_at_most_a_second(serve: Any) -> None:
    began = monotonic()
    assert ask_server_window(serve({"/props": LLAMA}, [], wait=3), "m", "") is None
    assert monotonic() - began < 2.5
