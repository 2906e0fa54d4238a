"""Case C103 over real HTTP: real clients on a server that honours, ignores or refuses a forced call."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from served import DOORS, OPENED, chat_model, through, user

from wakeloop import create_todo_agent

pytestmark = pytest.mark.loopback
CHOOSY = Path(__file__).with_name("choosy_server.py")
MANNERS = ("honour", "ignore", "refuse")
FREE = [None, False]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """A server of each kind, by its address."""
    running, addresses = [], {}
    for manner in MANNERS:
        process = subprocess.Popen([sys.executable, str(CHOOSY), manner], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        addresses[manner] = f"http://127.0.0.1:{int(process.stdout.readline())}"
    yield addresses
    for process in running:
        process.kill()
        process.communicate()


def seen(address: str) -> list[Any]:
    with urllib.request.urlopen(f"{address}/seen") as answer:
        return list(json.load(answer))


def openai(address: str) -> Any:
    return chat_model(f"{address}/v1")


def anthropic(address: str) -> Any:
    from langchain_anthropic import ChatAnthropic

    # langchain-anthropic keeps one client for each address and timeout, and the last test has closed it
    options: dict[str, Any] = {"base_url": address, "timeout": 60.0 + next(NUMBERS)}
    model = ChatAnthropic(model="choosy", api_key="none", max_retries=0, max_tokens=100, **options)
    OPENED.append(_Closing(model))
    return model


class _Closing:
    """Closes its own Anthropic client, as the fixture asks."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def aclose(self) -> None:
        self.model._client.close()
        await self.model._async_client.close()


NUMBERS = count()
CLIENTS = {"openai": (openai, "required"), "anthropic": (anthropic, {"type": "any"})}


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("manner", MANNERS)
async def test_c103_pushes(servers: dict[str, str], manner: str, client: str, door: str) -> None:
    make, forced = CLIENTS[client]
    address = servers[manner]
    before = len(seen(address))
    agent = create_todo_agent(make(address), checkpointer=InMemorySaver())
    out = await through(door, agent, user("go"))
    asked = seen(address)[before:]
    session = out["todo_session"]
    if manner == "honour":
        # the call, the text, a wake in words, a forced one, and the text after its call
        assert asked == [FREE, FREE, FREE, [forced, False], FREE]
        assert (session["reason"], session["wakes"]) == ("settled", 2)
    elif manner == "ignore":
        assert asked == [*[FREE] * 3, *[[forced, False]] * 5]
        assert (session["reason"], session["wakes"]) == ("stalled", 5)
    else:
        assert asked == [*[FREE] * 3, [forced, True], *[FREE] * 5]
        assert (session["reason"], session["wakes"], session["spent"]["requests"]) == ("stalled", 5, 8)
