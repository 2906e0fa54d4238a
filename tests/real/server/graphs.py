"""The agents of the test server, which only look at the last message."""

from __future__ import annotations

import asyncio
import os
import time
from functools import cache
from typing import Any

from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError, ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.types import interrupt
from typing_extensions import TypedDict

from wakeloop import create_todo_agent
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.sessions import session_tools
from wakeloop.sessions.langgraph_server import ServerHost
from wakeloop.testing import calls, says
from wakeloop.tools import wait_for_work


class Parrot(BaseChatModel):
    """`plan` writes an item and closes it, `leave` leaves one open; the other words call a tool."""

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Parrot:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if (told := tell_on(messages)) is not None:
            return told
        person = last.type == "human"
        if person and last.text in ("plan", "leave"):
            return calls(("todo_write", {"items": ["one"]}))
        if last.text == ("ask" if person else "again"):
            return calls(("ask", {}))
        if person and last.text == "fail":
            raise ValueError("this model fails")
        if person and (call := called(last.text)):
            return calls(call)
        if last.type == "tool" and last.text.startswith("Stored") and "leave" not in messages[-3].text:
            return calls(("todo_update", {"id": 1, "status": "done"}))
        return says(f"read: {last.text.splitlines()[0]}")


PLAN, CLOSE = ("todo_write", {"items": ["one"]}), ("todo_update", {"id": 1, "status": "done"})
BOOK, TOO_LONG = ("read_book", {}), ContextOverflowError("prompt is too long: 16,000 tokens > 15,000 maximum")
STORIES: dict[str, list[Any]] = {  # the replies to a person's message, in order
    "wonder": [calls(PLAN), says("Shall I delete them?"), says("I am waiting.")],
    "yes": [calls(CLOSE), says("Deleted.")],
    "limit": [ModelRateLimitError("Please try again in 10ms."), says("Hello.")],
    "work": [
        calls(("wait_for_work", {"what": "the build", "seconds": 1})),
        says("I wait."),
        says("Without it."),
    ],
    "doze": [calls(PLAN), says("I stop here. "), calls(CLOSE), says("Done.")],
    "read": [*[calls(BOOK)] * 8, TOO_LONG, says("All read.")],
    "read on": [calls(BOOK), *[TOO_LONG] * 3],
    "delegate": [
        calls(PLAN, ("spawn_subagent", {"task": "slow"})),
        says("Soon."),
        says("Soon."),
        calls(CLOSE),
        says("Here it is."),
    ],
}
TOLD: dict[str | None, int] = {}  # how many requests came after a message


def tell_on(messages: list[BaseMessage]) -> AIMessage | None:
    """Return the next reply of the story that a person has begun, if it is one; an error is raised."""
    begun = next((m for m in reversed(messages) if m.type == "human" and m.text in STORIES), None)
    if begun is None:
        return None
    number = TOLD[begun.id] = TOLD.get(begun.id, 0) + 1
    told = STORIES[begun.text][number - 1]
    if isinstance(told, Exception):
        raise told
    return told.model_copy(deep=True)


def called(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return the call that a person asks for."""
    if text.startswith("peer "):
        return "talk_to_agent", {"agent": text.removeprefix("peer "), "message": "hello"}
    if text in LEAVES:
        return "leave", {"how": text}
    tool = {"slow": "wait", "look": "look"}.get(text)
    return (tool, {}) if tool else None


def ask() -> str:
    """Ask a person."""
    return str(interrupt("which?"))


def wait() -> str:
    """Take a second."""
    time.sleep(1)
    return "waited"


def read_book() -> str:
    """Return 2,000 tokens."""
    return f"{time.monotonic_ns()}: {'word ' * 1_600}"


class Panic(BaseException):
    """An exception of a Rust extension."""


LEAVES = {"exit": SystemExit, "panic": Panic, "cancel": asyncio.CancelledError}


async def leave(how: str) -> str:
    """Raise what no tool should."""
    raise LEAVES[how]("bye")


async def look() -> str:
    """Look, asynchronously only."""
    await asyncio.sleep(0)
    return "seen"


async def verify(todo: Any, state: Any) -> str | None:
    """Ask somebody who takes a moment."""
    await asyncio.sleep(0)
    return None


class Context(TypedDict, total=False):
    todo_settings: dict[str, Any]


@cache
def sessions() -> ServerHost:
    """The host for tools that run on the server itself."""
    return ServerHost(os.environ["SESSIONS_OF"], {"main": "main"})


NAMES = ["talk_to_agent", "spawn_subagent"]


def main() -> Any:
    ends = StructuredTool.from_function(coroutine=leave, name="leave")
    tools = [ask, wait, read_book, ends, wait_for_work, *session_tools(sessions, NAMES)]
    return create_todo_agent(Parrot(), tools=tools, context_schema=Context)


def waiting() -> Any:
    """An agent whose tool and verifier are asynchronous only."""
    only = StructuredTool.from_function(coroutine=look, name="look")
    return create_todo_agent(Parrot(), tools=[only], verify=verify)


def layered() -> Any:
    """An agent of `create_agent`, with the settings as a form."""
    wake_loop = WakeLoopMiddleware(settings="wakeloop")
    return create_agent(Parrot(), [ask], middleware=[wake_loop], context_schema=wake_loop.context_schema)
