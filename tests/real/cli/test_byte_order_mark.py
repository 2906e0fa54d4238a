"""A byte order mark at the beginning of what is read is not part of it."""

from __future__ import annotations

import io
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from wakeloop.cli.agent import stoppable_client
from wakeloop.cli.agent_spec import read_option_file
from wakeloop.cli.chat.input import PipeInput
from wakeloop.cli.launch import read_stdin
from wakeloop.config.files import read_markdown, read_yaml
from wakeloop.model.byte_order_mark import astrip_mark_hook, strip_mark, strip_mark_hook
from wakeloop.model.chat_models import create_openai_model

MARK = "\ufeff"


def test_stdin_is_read_after_it() -> None:
    assert read_stdin(io.StringIO(f"{MARK}Count to three.")) == "Count to three."


def test_the_first_line_of_a_chat_is_still_a_command() -> None:
    pipe = PipeInput(io.StringIO(f"{MARK}.info todo\n{MARK}hello\n"))
    assert [pipe.read_entry(""), pipe.read_entry("")] == [".info todo\n", f"{MARK}hello\n"]
    with pytest.raises(EOFError):
        PipeInput(io.StringIO(MARK)).read_entry("")


def test_files_are_read_after_it(tmp_path: Path) -> None:
    role, levels, system = (tmp_path / name for name in ("role.md", "levels.yaml", "system.txt"))
    role.write_text(f"{MARK}---\nmodel: m\n---\nBe brief.", encoding="utf-8")
    levels.write_text(f"{MARK}model: m\n", encoding="utf-8")
    system.write_text(f"{MARK}Be brief.", encoding="utf-8")
    assert (read_markdown(role).values, read_markdown(role).body) == ({"model": "m"}, "Be brief.")
    assert read_yaml(levels).values == {"model": "m"}
    assert read_option_file(system, "--system") == "Be brief."


def event(text: str) -> bytes:
    """One piece of a streamed reply."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    told = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(told)}\n\n".encode()


class Answer(BaseHTTPRequestHandler):
    """Answers any request with the server's body, in pieces of equal length."""

    def do_POST(self) -> None:
        body, size = self.server.told  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for start in range(0, len(body), size):
            self.wfile.write(body[start : start + size])
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.loopback
@pytest.mark.parametrize("size", [3, 10_000])
def test_a_streamed_reply_keeps_its_first_event(size: int) -> None:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.told = (MARK.encode() + event("Hello ") + event("world") + b"data: [DONE]\n\n", size)  # type: ignore[attr-defined]
        Thread(target=server.handle_request).start()
        url, own = f"http://127.0.0.1:{server.server_port}/v1", stoppable_client(Event())
        model = create_openai_model("m", api_key="none", base_url=url, streaming=True, **own)
        assert model.invoke("hello").content == "Hello world"


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize("size", [3, 10_000])
async def test_a_callers_own_client_keeps_it_with_the_hooks(size: int) -> None:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.told = (MARK.encode() + event("Hello ") + event("world") + b"data: [DONE]\n\n", size)  # type: ignore[attr-defined]
        Thread(target=lambda: [server.handle_request() for _ in range(3)]).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        more: Any = {"model": "m", "api_key": "none", "base_url": url, "streaming": True}
        async with DefaultAsyncHttpxClient(event_hooks={"response": [astrip_mark_hook]}) as waiting:
            with DefaultHttpxClient(event_hooks={"response": [strip_mark_hook]}) as client:
                model = ChatOpenAI(**more, http_client=client, http_async_client=waiting)
                assert model.invoke("hello").content == "Hello world"
                assert (await model.ainvoke("hello")).content == "Hello world"
                assert ChatOpenAI(**more).invoke("hello").content == "world"  # the same without hooks


@pytest.mark.parametrize("size", [3, 4, 9])
@pytest.mark.parametrize(
    "text", ["", "a", "data: x", "\ufeff", "\ufeffdata: \ufeff", "\ufe00x", "\ufeff\ufeff"]
)
def test_the_mark_is_removed_however_the_bytes_arrive(size: int, text: str) -> None:
    body = text.encode()
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    assert b"".join(strip_mark(parts)) == text.removeprefix(MARK).encode()
