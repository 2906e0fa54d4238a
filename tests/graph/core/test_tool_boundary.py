"""A tool's exception, answer or delay becomes its own result, and nobody else's."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.types import Command

from wakeloop import create_todo_agent
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls
from wakeloop.tools import file_tools, wait_for_work


class Panic(BaseException):
    """An exception of a Rust extension."""


def raising(error: BaseException) -> Callable[[], str]:
    def fail() -> str:
        """Fail."""
        raise error

    return fail


@tool
def look() -> str:
    """Look."""
    return "seen"


def build(layer: bool, model: Any, *tools: BaseTool) -> Any:
    """Build an agent with the loop as its graph, or as middleware in LangChain's agent."""
    if layer:
        return create_agent(model, [*tools], middleware=[WakeLoopMiddleware(settings="wakeloop")])
    return create_todo_agent(model, [*tools])


def run(*tools: BaseTool, asynchronous: bool = False, layer: bool = False) -> dict[str, str]:
    """Call each tool once in one reply, and return each call's result."""
    model = ScriptedModel(calls(*((one.name, {}, one.name) for one in tools)), "Done.")
    agent = build(layer, model, *tools)
    given: Any = {"messages": [HumanMessage("go")]}
    out = asyncio.run(agent.ainvoke(given)) if asynchronous else agent.invoke(given)
    model.assert_done()
    return {m.tool_call_id: str(m.content) for m in out["messages"] if isinstance(m, ToolMessage)}


LAYER = pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
ASYNC = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def is_the_tools_own_result(error: BaseException, *, asynchronous: bool, layer: bool) -> None:
    """Check a synchronous and an asynchronous tool that raise, next to one that works."""
    fail = raising(error)

    async def afail() -> str:
        raise error

    only_sync = StructuredTool.from_function(fail, name="fail")
    both = StructuredTool.from_function(fail, afail, name="both")
    got = run(only_sync, both, look, asynchronous=asynchronous, layer=layer)
    said = f"Error: {type(error).__name__}: bye"
    assert got == {"fail": said, "both": said, "look": "seen"}


@LAYER
@ASYNC
def test_c78_a_cancelled_scope_of_a_tools_own(*, asynchronous: bool, layer: bool) -> None:
    is_the_tools_own_result(asyncio.CancelledError("bye"), asynchronous=asynchronous, layer=layer)


@LAYER
@ASYNC
def test_c81_the_panic_of_a_tool(*, asynchronous: bool, layer: bool) -> None:
    is_the_tools_own_result(Panic("bye"), asynchronous=asynchronous, layer=layer)


@LAYER
@ASYNC
def test_c94_the_exit_of_a_tool(*, asynchronous: bool, layer: bool) -> None:
    is_the_tools_own_result(SystemExit("bye"), asynchronous=asynchronous, layer=layer)


@ASYNC
def test_an_exception_is_a_result_in_the_graph_and_up_to_the_agent_in_the_middleware(
    *, asynchronous: bool
) -> None:
    is_the_tools_own_result(ValueError("bye"), asynchronous=asynchronous, layer=False)
    with pytest.raises(ValueError, match="bye"):
        is_the_tools_own_result(ValueError("bye"), asynchronous=asynchronous, layer=True)


@LAYER
@ASYNC
def test_a_refusal_of_the_packages_own_tool_is_its_result(
    tmp_path: Path, *, asynchronous: bool, layer: bool
) -> None:
    tools = [*file_tools(tmp_path), wait_for_work]
    wrong = {"read_file": {"path": "nope"}, "list_files": {"path": "../x"}, "wait_for_work": {"what": " "}}
    model = ScriptedModel(calls(*wrong.items()), "Done.")
    agent = build(layer, model, *tools)
    given: Any = {"messages": [HumanMessage("go")]}
    out = asyncio.run(agent.ainvoke(given)) if asynchronous else agent.invoke(given)
    results = [message for message in out["messages"] if isinstance(message, ToolMessage)]
    assert [(one.name, one.status, one.text[:7]) for one in results] == [
        (name, "error", "Error: ") for name in wrong
    ]


@LAYER
def test_a_keyboard_interrupt_passes(*, layer: bool) -> None:
    for error in (KeyboardInterrupt(), BaseExceptionGroup("tasks", [KeyboardInterrupt()])):
        with pytest.raises(KeyboardInterrupt):
            run(StructuredTool.from_function(raising(error), name="fail"), layer=layer)


@LAYER
def test_c81_the_one_error_of_a_task_group_is_named(*, layer: bool) -> None:
    error = BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [Panic("bye")])])
    got = run(StructuredTool.from_function(raising(error), name="fail"), layer=layer)
    assert got == {"fail": "Error: Panic: bye"}


@LAYER
def test_c94_the_exit_of_a_signal_handler_passes(*, layer: bool) -> None:
    def end(*_: object) -> None:
        sys.exit(7)

    @tool
    def fail() -> str:
        """Get a signal."""
        signal.raise_signal(signal.SIGTERM)
        return "still there"

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit):
            run(fail, layer=layer)
    finally:
        signal.signal(signal.SIGTERM, before)


@LAYER
def test_c78_a_task_that_is_cancelled_ends(*, layer: bool) -> None:
    begun = asyncio.Event()

    @tool
    async def fail() -> str:
        """Take long."""
        begun.set()
        await asyncio.sleep(60)
        return "never"

    async def cancel() -> None:
        agent = build(layer, ScriptedModel(calls(("fail", {}, "1")), "never"), fail)
        task = asyncio.create_task(agent.ainvoke({"messages": [HumanMessage("go")]}))
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


@LAYER
@ASYNC
def test_a_tool_with_a_time_limit_ends_in_time(*, asynchronous: bool, layer: bool) -> None:
    late = Event()

    def fail() -> str:
        """Take long."""
        late.wait(60)
        return "never"

    async def afail() -> str:
        await asyncio.sleep(60)
        return "never"

    limit = {"timeout": 0.1}
    with ThreadPoolExecutor(1) as pool:
        slow = StructuredTool.from_function(fail, afail, name="fail", metadata=limit)
        quick = StructuredTool.from_function(lambda: "quick", name="quick", description="q", metadata=limit)
        began = time.monotonic()
        got = pool.submit(run, slow, quick, asynchronous=asynchronous, layer=layer).result()
        assert time.monotonic() - began < 30
        late.set()
    said = "Error: did not finish within 0.1 s; the call may or may not have taken effect"
    assert got == {"fail": said, "quick": "quick"}


def test_c77_a_result_is_bound_to_its_own_call() -> None:
    @tool
    def one() -> ToolMessage:
        """Answer somebody else's call."""
        return ToolMessage("one", tool_call_id="look")

    @tool
    def two() -> Command[Any]:
        """Answer somebody else's call by a command."""
        return Command(update={"messages": [ToolMessage("two", tool_call_id="look")]})

    @tool
    def three() -> list[ToolMessage]:
        """Answer two calls."""
        return [ToolMessage("a", tool_call_id="look"), ToolMessage("b", tool_call_id="three")]

    got = run(look, one, two, three)
    refused = "Error: the tool answered the call 'look', which is not its own"
    assert got == {"look": "seen", "one": "one", "two": "two", "three": refused}
    assert run(look, one, layer=True) == {"look": "seen", "one": "one"}


def test_a_command_may_replace_an_older_result_by_its_id() -> None:
    @tool
    def shorten() -> Command[Any]:
        """Shorten what was seen."""
        old = ToolMessage("short", tool_call_id="1", id="old")
        return Command(update={"messages": [old, ToolMessage("Shortened.", tool_call_id="2")]})

    model = ScriptedModel(calls(("shorten", {}, "2")), "Done.")
    history = [
        HumanMessage("go"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage("long", tool_call_id="1", id="old"),
        HumanMessage("on"),
    ]
    out = create_todo_agent(model, [look, shorten]).invoke({"messages": history})
    results = {m.tool_call_id: m.content for m in out["messages"] if isinstance(m, ToolMessage)}
    assert results == {"1": "short", "2": "Shortened."}
