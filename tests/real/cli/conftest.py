from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Shell(folder, tmp_path / "threads.sqlite")


@pytest.fixture
def files() -> Callable[[Path, int], None]:
    """Fill a folder with small files for the demo."""

    def fill(folder: Path, count: int) -> None:
        for number in range(count):
            (folder / f"part{number}.py").write_text(f"def part{number}():\n    return {number}\n")

    return fill
