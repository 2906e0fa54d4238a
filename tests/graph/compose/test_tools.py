"""Tools of every kind, as they come from elsewhere."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any
from unittest.mock import ANY

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from rig import close

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}
GO: Any = {"messages": [("user", "go")]}
DOORS = ["invoke", "ainvoke"]


def ran(door: str, agent: Any, config: Any = None, given: Any = GO, **more: Any) -> dict[str, Any]:
    """Run once, through either door."""
    if door == "invoke":
        return dict(agent.invoke(given, config, **more))
    return dict(asyncio.run(agent.ainvoke(given, config, **more)))


def results(out: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in out["messages"] if isinstance(message, ToolMessage)]


# -- what the graph injects into a tool ------------------------------------------------------------------


@tool
def by_channel(todos: Annotated[list[Any], InjectedState("todos")], word: str) -> str:
    """Read one channel."""
    return f"{word}: {[todo['content'] for todo in todos]}"


@tool
def by_state(state: Annotated[dict[str, Any], InjectedState], word: str) -> str:
    """Read the state."""
    return (
        f"{word}: {len(state['messages'])} messages, {len(state['todos'])} items, goal {state['todo_goal']!r}"
    )


@tool
def by_store(store: Annotated[BaseStore, InjectedStore()], word: str) -> str:
    """Keep something in the store."""
    store.put(("words",), word, {"known": True})
    return str(len(store.search(("words",))))


@tool
def by_call(call: Annotated[str, InjectedToolCallId]) -> str:
    """Say which call this is."""
    return call


@tool
def by_runtime(runtime: ToolRuntime, word: str) -> str:
    """Read everything that the runtime offers."""
    assert runtime.store is not None
    thread = runtime.config["configurable"]["thread_id"]
    return f"{word}: {runtime.tool_call_id} {thread} {len(runtime.state['todos'])} {runtime.context}"


@tool
def by_config(config: RunnableConfig, word: str) -> str:
    """Read the configuration."""
    return f"{word}: {config['configurable']['thread_id']}"


@tool
async def by_await(todos: Annotated[list[Any], InjectedState("todos")]) -> str:
    """Read one channel, without a synchronous version."""
    await asyncio.sleep(0)
    return str(len(todos))


INJECTED = {
    "channel": (by_channel, {"word": "w"}, "w: ['a']"),
    "state": (by_state, {"word": "w"}, "w: 4 messages, 1 items, goal 'all'"),
    "store": (by_store, {"word": "w"}, "1"),
    "call id": (by_call, {}, "the-call"),
    "runtime": (by_runtime, {"word": "w"}, "w: the-call thread 1 None"),
    "config": (by_config, {"word": "w"}, "w: thread"),
    "awaited": (by_await, {}, "1"),
}


@pytest.mark.parametrize(("given", "args", "text"), INJECTED.values(), ids=INJECTED)
@pytest.mark.parametrize("door", DOORS)
def test_injected_arguments(door: str, given: Any, args: dict[str, Any], text: str) -> None:
    if given is by_await and door == "invoke":
        pytest.skip("asynchronous only")
    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls((given.name, args, "the-call")), close(1), "ok"
    )
    agent = create_todo_agent(model, [given], checkpointer=InMemorySaver(), store=InMemoryStore())
    out = ran(door, agent, THREAD, {**GO, "todo_goal": "all"})
    model.assert_done()
    assert results(out)[1].content == text
    shown = next(t["function"] for t in model.bound[0] if t["function"]["name"] == given.name)
    assert set(shown["parameters"].get("properties", {})) == set(
        args
    )  # the model never sees injected arguments
    assert wire_faults(model.requests) == []


def test_a_model_cannot_send_an_injected_argument() -> None:
    model = ScriptedModel(calls(("by_channel", {"word": "w", "todos": [{"content": "forged"}]})), "Done.")
    out = create_todo_agent(model, [by_channel]).invoke(GO)
    assert results(out)[0].content == "w: []"


# -- schemas and results of other kinds ------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["path"],
}


def remote(*, awaited: bool) -> Any:
    """Return a tool as langchain-mcp-adapters builds it:

    a JSON schema, content and artifact, asynchronous only.
    """

    async def call(**arguments: Any) -> tuple[list[dict[str, Any]], Any]:
        if arguments["path"] == "bad":
            raise ToolException("the server says no")
        return [{"type": "text", "text": f"listed {arguments['path']}"}], {"raw": arguments}

    def direct(**arguments: Any) -> tuple[list[dict[str, Any]], Any]:
        return asyncio.run(call(**arguments))

    how: Any = {"coroutine": call} if awaited else {"func": direct}
    return StructuredTool(
        name="remote", description="List.", args_schema=SCHEMA, response_format="content_and_artifact", **how
    )


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_of_an_mcp_server(door: str) -> None:
    model = ScriptedModel(calls(("remote", {"path": "x", "depth": 2}), ("remote", {"path": "bad"})), "Done.")
    agent = create_todo_agent(model, [remote(awaited=door == "ainvoke")])
    out = ran(door, agent)
    good, bad = results(out)
    assert good.content == [{"type": "text", "text": "listed x"}]
    assert good.artifact == {"raw": {"path": "x", "depth": 2}}
    assert (bad.status, bad.content) == ("error", "Error: the server says no")
    (shown,) = [t["function"] for t in model.bound[0] if t["function"]["name"] == "remote"]
    assert shown["parameters"]["properties"]["path"]["type"] == "string"
    assert wire_faults(model.requests) == []


HANDLERS: dict[str, tuple[Any, str, str]] = {
    "none": (False, "Error: broken", "error"),
    "yes": (True, "broken", "error"),
    "a string": ("Try another.", "Try another.", "error"),
    "a function": (lambda error: f"handled {error}", "handled broken", "error"),
}


@pytest.mark.parametrize(("handler", "text", "status"), HANDLERS.values(), ids=HANDLERS)
@pytest.mark.parametrize("door", DOORS)
def test_handle_tool_error(door: str, handler: Any, text: str, status: str) -> None:
    def fail() -> str:
        raise ToolException("broken")

    failing = StructuredTool.from_function(fail, name="fail", description="Fail.", handle_tool_error=handler)
    model = ScriptedModel(calls(("fail", {})), "Done.")
    (result,) = results(ran(door, create_todo_agent(model, [failing])))
    assert (result.content, result.status) == (text, status)


GREAT = 10**20  # a checkpoint holds numbers of 64 bits


def make_result(**more: Any) -> ToolMessage:
    return ToolMessage("r", tool_call_id="call1", name="gives", **more)


# a tool's return value; content, artifact and what else is stored
UNKEPT: dict[str, tuple[Any, list[Any]]] = {
    "in a block": (
        [{"type": "text", "text": "r", "n": GREAT}],
        [[{"type": "text", "text": "r", "n": hex(GREAT)}], None, {}],
    ),
    "in an artifact": (make_result(artifact={"n": [GREAT]}), ["r", {"n": [hex(GREAT)]}, {}]),
    "next to it": (make_result(additional_kwargs={"n": -GREAT}), ["r", None, {"n": hex(-GREAT)}]),
    "half a pair": (make_result(artifact={"\ud800": "\ud800"}), ["r", {"\ufffd": "\ufffd"}, {}]),
    "in a command": (Command(update={"messages": [make_result(artifact=GREAT)]}), ["r", hex(GREAT), {}]),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("given", "kept"), UNKEPT.values(), ids=UNKEPT)
def test_a_value_that_no_checkpoint_can_hold_becomes_a_string_in_a_result(
    door: str, given: Any, kept: list[Any]
) -> None:
    done = []

    def gives(x: int) -> Any:
        """Give."""
        done.append(x)
        return given

    model = ScriptedModel(calls(("gives", {"x": 1}, "call1")), "Done.")
    out = ran(door, create_todo_agent(model, tools=[gives], checkpointer=InMemorySaver()), THREAD)
    (result,) = results(out)
    assert [result.content, result.artifact, result.additional_kwargs] == kept
    assert (done, out["todo_session"]["reason"]) == ([1], "answered")


def test_an_artifact_of_any_other_kind_is_left_to_the_tool() -> None:
    own = {1: (GREAT,), "x": {GREAT}}
    model = ScriptedModel(calls(("gives", {}, "call1")), "Done.")

    def gives() -> Any:
        """Give."""
        return make_result(artifact=own)

    (result,) = results(ran("invoke", create_todo_agent(model, tools=[gives])))
    assert result.artifact is own


def test_plain_functions_and_providers_dicts() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    provided = {"type": "web_search_preview"}
    model = ScriptedModel(calls(("double", {"number": 21})), "Done.")
    out = create_todo_agent(model, [double, provided]).invoke(GO)
    assert results(out)[0].content == "42"
    assert provided in model.bound[0]


# -- commands --------------------------------------------------------------------------------------------


@dataclass
class Context:
    """The caller's context."""

    todo_settings: dict[str, Any]
    user: str = "nobody"


@tool
def plan(call: Annotated[str, InjectedToolCallId], items: list[str]) -> Any:
    """Replace the list."""
    todos = [{"content": item} for item in items]
    return Command(update={"todos": todos, "messages": [ToolMessage("planned", tool_call_id=call)]})


@tool
def picture(number: int, call: Annotated[str, InjectedToolCallId]) -> Any:
    """Return a result and, as some do for images, a user message after it."""
    told, shown = ToolMessage(f"picture {number}", tool_call_id=call), HumanMessage(f"pixels {number}")
    return Command(update={"messages": [told, shown]})


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_writes_the_list(door: str) -> None:
    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls(("plan", {"items": ["b", "c"]})), close(2, 3), "ok"
    )
    agent = create_todo_agent(model, [plan], checkpointer=InMemorySaver())
    events: list[Any] = []
    if door == "invoke":
        events += [e for e in agent.stream(GO, THREAD, stream_mode="custom") if e["type"] == "todos"]
    else:
        ran(door, agent, THREAD)
    model.assert_done()
    todos = agent.get_state(THREAD).values["todos"]
    assert [(t["id"], t["content"], t["status"]) for t in todos] == [
        (2, "b", "completed"),
        (3, "c", "completed"),
    ]
    if events:
        assert [(len(e["todos"]), e["changed"]) for e in events] == [(1, [1]), (2, [2, 3, 1]), (2, [2, 3])]


def test_an_invalid_list_from_a_tool_is_refused() -> None:
    model = ScriptedModel(calls(("plan", {"items": ["b", " "]}, "bad")), "Done.")
    out = create_todo_agent(model, [plan]).invoke(GO)
    (result,) = results(out)
    assert result.status == "error"
    assert "item 2" in str(result.content)
    assert out["todos"] == []


@pytest.mark.parametrize("limit", range(6, 16))
def test_a_list_that_a_tool_wrote_last_has_ids(limit: int) -> None:
    """Even if the steps end the run before the model is asked again."""
    script = [
        calls(("todo_write", {"items": ["a"]})),
        "stop",
        *(calls(("plan", {"items": ["b", "c"]})) for _ in range(9)),
    ]
    agent = create_todo_agent(ScriptedModel(script), [plan], checkpointer=InMemorySaver())
    out = agent.invoke(GO, {**THREAD, "recursion_limit": limit})
    assert out["todo_session"]["reason"] == "step_limit"
    ids = [todo["id"] for todo in out["todos"]]
    assert len(set(ids)) == len(ids)
    assert agent.get_state(THREAD).values["todos"] == out["todos"]
    again = create_todo_agent(ScriptedModel(close(*ids), "Done."), [plan], checkpointer=agent.checkpointer)
    assert again.invoke(GO, THREAD)["todo_session"]["reason"] == "settled"


@pytest.mark.parametrize("others", ["todo_write", "todo_update"])
def test_a_list_written_next_to_a_todo_call_is_kept_whole(others: str) -> None:
    """The remaining items have ids and can be closed."""
    args = {"items": ["z"]} if others == "todo_write" else {"id": 1, "status": "done"}
    saver = InMemorySaver()
    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls(("plan", {"items": ["b"]}), (others, args)), KeyError
    )
    with pytest.raises(KeyError):
        create_todo_agent(model, [plan], checkpointer=saver).invoke(GO, THREAD)
    agent = create_todo_agent(ScriptedModel(*"xyzwvut"), [plan], checkpointer=saver)
    out = agent.invoke(GO, THREAD)
    assert all(isinstance(todo["id"], int) for todo in out["todos"])
    assert "b" in [todo["content"] for todo in out["todos"]]


@pytest.mark.parametrize("private", ["todo_ledger", "todo_session", "todo_handoff", "todo_inbox"])
def test_a_tool_may_not_write_the_graphs_own_channels(private: str) -> None:
    @tool
    def meddle() -> Any:
        """Write what is not the tool's."""
        return Command(update={private: {"wake_cycles": 0}})

    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls(("meddle", {}), ("meddle", {})), close(1), "ok"
    )
    out = create_todo_agent(model, [meddle]).invoke(GO)
    model.assert_done()
    assert [m.status for m in results(out)] == ["success", "error", "error", "success"]
    assert private in str(results(out)[1].content)
    assert out["todo_session"]["reason"] == "settled"


def test_a_goto_inside_is_refused() -> None:
    @tool
    def jump() -> Any:
        """Go to a node of this graph."""
        return Command(goto="wake")

    model = ScriptedModel(calls(("jump", {})), "Done.")
    (result,) = results(create_todo_agent(model, [jump]).invoke(GO))
    assert result.status == "error"
    assert "parent" in str(result.content)


# -- context, callbacks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("shape", [Context, dict])
def test_a_context_carries_settings(door: str, shape: Any) -> None:
    model = ScriptedModel(calls(("todo_write", {"items": ["a"]})), "one", "two", "three")
    agent = create_todo_agent(model, context_schema=shape)
    out = ran(door, agent, None, context=shape(todo_settings={"max_wake_cycles": 1, "max_idle_wakes": 0}))
    model.assert_done()
    assert out["todo_session"] == {
        "state": "idle",
        "reason": "wake_budget",
        "open": 1,
        "wakes": 1,
        "budget": 1,
        "list": 1,
        "items": 1,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }


class Listener(BaseCallbackHandler):
    """Records what a tracer would see."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **more: Any) -> None:
        self.seen.append("model")

    def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
        self.seen.append(f"start {more['inputs']}")

    def on_tool_end(self, output: Any, **more: Any) -> None:
        self.seen.append(f"end {output.content}")

    def on_tool_error(self, error: BaseException, **more: Any) -> None:
        self.seen.append(f"error {error}")


@pytest.mark.parametrize("door", DOORS)
def test_callbacks_see_models_and_tools(door: str) -> None:
    @tool
    def double(number: int) -> int:
        """Double a number."""
        if number < 0:
            raise ValueError("negative")
        return 2 * number

    listener = Listener()
    model = ScriptedModel(calls(("double", {"number": 2})), calls(("double", {"number": -1})), "Done.")
    out = ran(door, create_todo_agent(model, [double]), {"callbacks": [listener]})
    assert listener.seen == [
        "model",
        "start {'number': 2}",
        "end 4",
        "model",
        "start {'number': -1}",
        "error negative",
        "model",
    ]
    assert [m.status for m in results(out)] == ["success", "error"]
