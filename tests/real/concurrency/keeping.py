"""Savers of every kind on one database, and two runs on one thread."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from contextvars import Context
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import interrupt

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

SAVERS = ("memory", "sqlite", "asqlite", "postgres", "apostgres")
DURABILITIES = ("sync", "async", "exit")
THREAD: Any = {"configurable": {"thread_id": "t"}}


@contextmanager
def saver_of(kind: str, where: str) -> Iterator[Any]:
    """Open a synchronous saver."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with closing(sqlite3.connect(where, check_same_thread=False)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            yield SqliteSaver(connection)
    else:
        with PostgresSaver.from_conn_string(where) as saver:
            saver.setup()
            yield saver


@asynccontextmanager
async def asaver_of(kind: str, where: str) -> AsyncIterator[Any]:
    """Open an asynchronous saver."""
    if kind == "memory":
        yield InMemorySaver()
        return
    async with AsyncExitStack() as stack:
        if kind == "asqlite":
            yield await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(where))
        else:
            saver = await stack.enter_async_context(AsyncPostgresSaver.from_conn_string(where))
            await saver.setup()
            yield saver


class Stage:
    """One thread of one saver, sync or async: calls are awaited where necessary."""

    def __init__(self, saver: Any, durability: str, door: str) -> None:
        self.saver, self.durability, self.door = saver, durability, door
        self.doing: Callable[[], Any] | None = None

    def tools(self) -> list[StructuredTool]:
        """Tools during which something else happens to the thread, once; one asks a person first."""

        def meet() -> str:
            """Take a while."""
            with suppress(StopIteration):
                Context().run(self.meanwhile().send, None)  # as from another process
            return "met"

        async def ameet() -> str:
            """Take a while."""
            await asyncio.create_task(self.meanwhile(), context=Context())  # as from another process
            return "met"

        def ask() -> str:
            """Ask."""
            return str(interrupt("?")) and meet()

        async def aask() -> str:
            """Ask."""
            return str(interrupt("?")) and await ameet()

        if self.door == "sync":
            return [StructuredTool.from_function(meet), StructuredTool.from_function(ask)]
        return [
            StructuredTool.from_function(coroutine=ameet, name="meet"),
            StructuredTool.from_function(coroutine=aask, name="ask"),
        ]

    async def meanwhile(self) -> None:
        """Set what happens in the middle of a tool."""
        doing, self.doing = self.doing, None
        if doing is not None:
            await doing()

    def agent(self, *replies: Any, **options: Any) -> Any:
        """An agent whose long runs may repeat themselves."""
        options = {"settings": {"max_idle_rounds": 0}, **options}
        return create_todo_agent(
            ScriptedModel(list(replies)), self.tools(), checkpointer=self.saver, **options
        )

    def run(self, agent: Any, given: Any = "go", config: Any = THREAD, **more: Any) -> Any:
        """Run the agent; async returns an awaitable."""
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        more = {"durability": self.durability, **more}
        return (agent.invoke if self.door == "sync" else agent.ainvoke)(given, config, **more)

    def state(self, agent: Any, config: Any = THREAD) -> Any:
        return (agent.get_state if self.door == "sync" else agent.aget_state)(config)

    def edit(self, agent: Any, config: Any, values: Any, as_node: str = "nag") -> Any:
        return (agent.update_state if self.door == "sync" else agent.aupdate_state)(config, values, as_node)


def long(text: str, rounds: int = 1) -> list[Any]:
    """A script of several rounds; something else happens during the first."""
    return [calls(("meet", {})), *[calls(("todo_list", {}))] * (rounds - 1), says(text)]


def played(kind: str, where: Path | str, durability: str, script: Callable[[Stage], Any]) -> None:
    """Run a test body (a coroutine) with one saver, with plain values or awaitables."""

    async def through(stage: Stage) -> None:
        await script(stage)

    if kind in ("memory", "sqlite", "postgres"):
        with saver_of(kind, str(where)) as saver:
            step = script(Plain(saver, durability, "sync"))
            try:
                step.send(None)
            except StopIteration:
                return
            raise AssertionError("the synchronous door waits for nothing")

    async def main() -> None:
        async with asaver_of(kind, str(where)) as saver:
            await through(Stage(saver, durability, "async"))

    asyncio.run(main())


class Ready:
    """A value that can be awaited."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Any:
        return self.value
        yield


class Plain(Stage):
    """The synchronous methods with the asynchronous interface."""

    def run(self, *given: Any, **more: Any) -> Any:
        return Ready(super().run(*given, **more))

    def state(self, *given: Any, **more: Any) -> Any:
        return Ready(super().state(*given, **more))

    def edit(self, *given: Any, **more: Any) -> Any:
        return Ready(super().edit(*given, **more))
