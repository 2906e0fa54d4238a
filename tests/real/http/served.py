"""Our own servers on the loopback, and the replies that they play."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

STRICT = Path(__file__).with_name("strict_server.py")
OPENED: list[Any] = []
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Server:
    """A strict server in another process, and the model that asks it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def model(self, **options: Any) -> Any:
        return chat_model(f"{self.url}/v1", **options)

    @property
    def seen(self) -> list[dict[str, Any]]:
        """Return the requests, read from the bytes that came in."""
        with urllib.request.urlopen(f"{self.url}/seen") as answer:
            return [json.loads(received) for received in json.load(answer)]

    @property
    def requests(self) -> list[list[dict[str, Any]]]:
        return [body["messages"] for body in self.seen]


Serve = Callable[..., Server]


def chat_model(url: str, **options: Any) -> Any:
    """Return a real client that repeats no request by itself."""
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient

    OPENED.append(own := DefaultAsyncHttpxClient())  # langchain-openai shares one between event loops
    told = {"max_retries": 0, "http_async_client": own, **options}
    return ChatOpenAI(model="strict", base_url=url, api_key="none", **told)


@contextmanager
def strict_servers(folder: Path) -> Iterator[Serve]:
    """Provide as many servers as are asked for; all of them are gone afterwards."""
    running: list[subprocess.Popen[str]] = []

    def start(*replies: dict[str, Any], refuse: tuple[str, ...] = ()) -> Server:
        script = folder / f"script{len(running)}.json"
        script.write_text(json.dumps(replies))
        command = [sys.executable, str(STRICT), str(script), *refuse]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return Server(int(process.stdout.readline()))

    try:
        yield start
    finally:
        for process in running:
            process.kill()
            process.communicate()


# -- replies ---------------------------------------------------------------------------------------------


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": text, **more}


def called(*made: tuple[str, Any], text: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a reply with calls; arguments are an object, or the exact text to send."""
    listed = [
        [name, json.dumps(args) if isinstance(args, dict) else args, f"call_{id(made)}_{i}"]
        for i, (name, args) in enumerate(made)
    ]
    return {"content": text, "tool_calls": listed, **more}


# -- doors -----------------------------------------------------------------------------------------------


def by_invoke(agent: Any, given: Any) -> dict[str, Any]:
    return dict(agent.invoke(given, THREAD))


def by_stream(agent: Any, given: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for mode, chunk in agent.stream(given, THREAD, stream_mode=["messages", "values"]):
        values = chunk if mode == "values" else values
    return values


async def by_ainvoke(agent: Any, given: Any) -> dict[str, Any]:
    return dict(await agent.ainvoke(given, THREAD))


async def by_astream(agent: Any, given: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    async for mode, chunk in agent.astream(given, THREAD, stream_mode=["messages", "values"]):
        values = chunk if mode == "values" else values
    return values


SYNC = {"invoke": by_invoke, "stream": by_stream}
ASYNC = {"ainvoke": by_ainvoke, "astream": by_astream}


DOORS = {**SYNC, **ASYNC}


async def through(door: str, agent: Any, given: Any) -> dict[str, Any]:
    """Run once through a door; the synchronous ones in another thread."""
    if door in SYNC:
        return await asyncio.to_thread(SYNC[door], agent, given)
    return await ASYNC[door](agent, given)


def user(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


# -- reading ---------------------------------------------------------------------------------------------


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def marks(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the kinds of the messages that the graph wrote."""
    return [m.additional_kwargs["wakeloop"]["kind"] for m in messages if "wakeloop" in m.additional_kwargs]


def users(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the user's own words."""
    return [str(m.content) for m in messages if m.type == "human" and "wakeloop" not in m.additional_kwargs]
