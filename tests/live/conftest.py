"""A model server: the one that OPENAI_BASE_URL names, or llama.cpp's own with a small model."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from relay import Relay

BASE_URL = os.environ.get("OPENAI_BASE_URL")  # read before a test's environment is emptied
API_KEY = os.environ.get("OPENAI_API_KEY", "none")
MODEL = os.environ.get("WAKELOOP_MODEL", "smollm2").removeprefix("openai:")
REPLY = 48

own_server = pytest.mark.skipif(BASE_URL is not None, reason="for the server that is started here")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a server that is up."""
    if BASE_URL is not None:
        yield BASE_URL
        return
    folder = tmp_path_factory.mktemp("llama")
    address, log = folder / "address", folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("llama.py")), str(address)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
        )
        try:
            deadline = time.monotonic() + 90
            while not healthy(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"The server did not come up:\n{log.read_text(errors='replace')[-2_000:]}")
                time.sleep(0.1)
            yield f"{address.read_text()}/v1"
            assert process.poll() is None, log.read_text(errors="replace")[-2_000:]
        finally:
            process.kill()
            process.wait()
            process.stdin.close()


def healthy(address: Path) -> bool:
    """Return whether the server has written its address and reports that it is well."""
    if not address.exists() or not address.read_text():
        return False
    try:
        return urllib.request.urlopen(f"{address.read_text()}/health", timeout=5).status == 200
    except urllib.error.URLError:
        return False


@pytest.fixture
def relay(server: str) -> Iterator[Relay]:
    """A relay to the server, with the requests of this test only."""
    relay = Relay(server)
    yield relay
    relay.shut()


class Required(ChatOpenAI):
    """Every request says that it has to call a tool."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return super().bind_tools(tools, tool_choice="required", **more)


@pytest.fixture
def model(relay: Relay) -> Any:
    """Makes a model of the server: `required` has to call tools, `bare` sees no example of a call."""

    def make(*, required: bool = False, bare: bool = False) -> ChatOpenAI:
        more: dict[str, Any] = {"extra_body": {"chat_template_kwargs": {"bare": True}}} if bare else {}
        kind = Required if required else ChatOpenAI
        return kind(
            model=MODEL,
            base_url=relay.url,
            api_key=API_KEY,
            max_completion_tokens=REPLY,
            max_retries=0,
            timeout=100,
            **more,
        )

    return make
