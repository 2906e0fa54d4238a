"""A `langgraph dev` for all tests of a run, and hosts on it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wakeloop.sessions.langgraph_server import ServerHost


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server process in its own folder."""
    folder = tmp_path_factory.mktemp("server")
    graphs = {
        name: f"{Path(__file__).parent / 'graphs.py'}:{name}" for name in ("main", "waiting", "layered")
    }
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = [
        "--no-browser",
        "--no-reload",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--n-jobs-per-worker",
        "4",
    ]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    environment = {**os.environ, **quiet, "SESSIONS_OF": address}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [str(Path(sys.executable).parent / "langgraph"), "dev", *options],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        ) as server,
    ):
        try:
            for _ in range(240):
                assert server.poll() is None, (folder / "log").read_text()
                if answers(f"{address}/ok"):
                    break
                time.sleep(0.25)
            yield address
            check_that_every_reader_sees_one_conversation(address)
        finally:
            server.kill()


def check_that_every_reader_sees_one_conversation(address: str) -> None:
    """Check all tests' threads: a run's values, the state and its history have the same messages."""
    from langgraph_sdk import get_sync_client

    apart = []
    with get_sync_client(url=address) as client:
        for thread in client.threads.search(status="idle", limit=1000):
            kept = [message["id"] for message in (thread["values"] or {}).get("messages", ())]
            views = [client.threads.get_state(thread["thread_id"])]
            views += client.threads.get_history(thread["thread_id"], limit=1)
            for view in (snapshot["values"] for snapshot in views):
                if [message["id"] for message in view.get("messages", ())] != kept:
                    apart.append((thread["metadata"], kept, view))
    assert not apart


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture
def host(url: str) -> Iterator[ServerHost]:
    with ServerHost(url, {"main": "main", "waiting": "waiting"}) as host:
        yield host


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"main:{request.node.name}"


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    from langgraph_sdk import get_sync_client

    with get_sync_client(url=url) as client:
        yield client


@pytest.fixture
def thread(client: Any) -> str:
    return str(client.threads.create()["thread_id"])
