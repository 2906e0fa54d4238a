"""llmock in another process, scripted and read over HTTP."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from served import chat_model

PATIENCE = 60  # seconds until the server answers: a shared machine is slow


class Mock:
    """What llmock should do, and what it received."""

    def __init__(self, url: str) -> None:
        self.url = url

    def model(self, **options: Any) -> Any:
        return chat_model(f"{self.url}/v1", **options)

    def then(self, *behaviors: dict[str, Any]) -> None:
        """Queue what the next requests meet; of each type the first that fits is taken."""
        self._ask("POST", "scenario", {"behaviors": list(behaviors)})

    def reset(self) -> None:
        self._ask("POST", "reset")

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return every request as it was received, and how it was answered."""
        return list(self._ask("GET", "requests")["requests"])

    @property
    def requests(self) -> list[list[dict[str, Any]]]:
        return [record["body"]["messages"] for record in self.records]

    @property
    def pending(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "scenario")["pending"])

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_llmock/{path}", data, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


@contextmanager
def mock_server(folder: Path) -> Iterator[Mock]:
    """Start llmock on a free port, wait until it answers, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = "from llmock.cli import app; app()"
    command = [sys.executable, "-c", serve, "serve", "--port", str(port), "--log-level", "warning"]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        mock = Mock(f"http://127.0.0.1:{port}")
        _wait_for(mock, process, log)
        yield mock
    finally:
        process.kill()
        process.wait()


def _wait_for(mock: Mock, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            mock.reset()
        except urllib.error.URLError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"llmock does not answer: {log.read_text()}")


# -- behaviors -------------------------------------------------------------------------------------------


def says(text: str) -> dict[str, Any]:
    return {"type": "reply", "text": text}


def calls(*made: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    listed = [{"name": name, "arguments": arguments} for name, arguments in made]
    return {"type": "reply", "tool_calls": listed, **more}


def fails(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, **more}


def breaks(kind: str, after_chunks: int = 2, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, **more}
