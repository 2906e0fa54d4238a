"""Servers on the loopback: our own strict one, and llmock."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from mocked import Mock, mock_server
from served import OPENED, Serve, strict_servers


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(autouse=True)
async def clients_are_closed() -> AsyncIterator[None]:
    yield
    while OPENED:
        await OPENED.pop().aclose()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Strict servers, each with a script."""
    with strict_servers(tmp_path) as start:
        yield start


@pytest.fixture(scope="session")
def mock_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    """One llmock for all tests of a process."""
    with mock_server(tmp_path_factory.mktemp("llmock")) as mock:
        yield mock


@pytest.fixture
def mock(mock_process: Mock) -> Mock:
    """The same, with nothing in it."""
    mock_process.reset()
    return mock_process
