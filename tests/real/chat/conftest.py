from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Script, Server
from processes import Shell


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server with a script; it is closed afterwards."""
    servers: list[Server] = []

    def start(*replies: Reply, script: Script | None = None) -> Server:
        servers.append(Server(script or list(replies)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configuration."""
    folder: Any = tmp_path / "config"
    for name in ("roles", "agents"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setenv("WAKELOOP_CONFIG", str(folder))
    return folder


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Shell(folder, tmp_path / "threads.sqlite")
