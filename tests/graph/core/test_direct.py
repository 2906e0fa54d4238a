"""A plain tool's function is called as LangChain would call it, but directly."""

import asyncio
import threading
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel, Field, ValidationError

from wakeloop import create_todo_agent
from wakeloop.platform.direct_calls import DirectTool
from wakeloop.testing import ScriptedModel, calls, says


@tool
def give(what: str, times: int = 2, *, loud: bool = False) -> str:
    """Give something."""
    return f"{what} x{times}{'!' if loud else ''}"


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": "c", "type": "tool_call"}


def returning(value: Any) -> StructuredTool:
    def work() -> Any:
        """Return it."""
        return value

    return StructuredTool.from_function(work)


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        None,
        True,
        3,
        1.5,
        {"a": "ä"},
        [],
        ["a", "b"],
        ("a", "b"),
        [1, 2],
        [{"type": "text", "text": "t"}],
        [{"type": "unheard of"}],
        {1, 2},
        object,
        float("nan"),
    ],
    ids=repr,
)
def test_a_functions_return_value_reads_as_langchain_renders_it(value: Any) -> None:
    made = returning(value)
    way = DirectTool.from_tool(made)
    assert way is not None
    ours, theirs = way(call("work")), made.invoke(call("work"))
    assert (ours.content, ours.name, ours.tool_call_id, ours.status) == (
        theirs.content,
        theirs.name,
        theirs.tool_call_id,
        theirs.status,
    )
    assert ours.id


@pytest.mark.parametrize(
    "args", [{"what": "tea"}, {"what": "tea", "times": "3"}, {"what": "a", "loud": True}]
)
def test_arguments_are_checked_and_defaults_filled(args: dict[str, Any]) -> None:
    way = DirectTool.from_tool(give)
    assert way is not None
    assert way(call("give", **args)).content == give.invoke(call("give", **args)).content


def test_invalid_arguments_raise_as_in_langchain() -> None:
    way = DirectTool.from_tool(give)
    assert way is not None
    for attempt in (way, give.invoke):
        with pytest.raises(ValidationError):
            attempt(call("give", times="often"))


@pytest.mark.parametrize(
    "value", [ToolMessage("own", tool_call_id="c"), Command(update={"x": 1})], ids=["message", "command"]
)
def test_messages_and_commands_pass_through(value: Any) -> None:
    way = DirectTool.from_tool(returning(value))
    assert way is not None
    assert way(call("work")) is value


def test_several_of_them_pass_through() -> None:
    value = [ToolMessage("own", tool_call_id="c"), Command(update={"x": 1})]
    way = DirectTool.from_tool(returning(value))
    assert way is not None
    assert way(call("work")) is value


@tool
def with_config(x: int, config: RunnableConfig) -> str:
    """Take a config."""
    return "x"


@tool
def with_state(x: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Take the state."""
    return "x"


@tool
def with_runtime(x: int, runtime: ToolRuntime) -> str:
    """Take the runtime."""
    return "x"


@tool
def with_id(x: int, key: Annotated[str, InjectedToolCallId]) -> str:
    """Take the id of the call."""
    return "x"


@tool
async def waiting(x: int) -> str:
    """Wait."""
    return "x"


@tool(response_format="content_and_artifact")
def with_artifact(x: int) -> tuple[str, int]:
    """Return an artifact."""
    return "x", x


class Aliased(BaseModel):
    x: int = Field(alias="y")


SPECIAL = [
    with_config,
    waiting,
    with_artifact,
    StructuredTool.from_function(
        lambda **kw: "x", name="kw", description="d", args_schema={"type": "object"}
    ),
    StructuredTool.from_function(lambda x: "x", name="aliased", description="d", args_schema=Aliased),
    StructuredTool.from_function(lambda x: "x", name="handled", description="d", handle_tool_error=True),
    StructuredTool.from_function(
        lambda x: "x", name="checked", description="d", handle_validation_error=True
    ),
    StructuredTool.from_function(
        lambda x: "x", name="heard", description="d", callbacks=[BaseCallbackHandler()]
    ),
]


@pytest.mark.parametrize("special", SPECIAL, ids=lambda t: t.name)
def test_a_tool_that_langchain_adds_something_to_is_not_called_directly(special: StructuredTool) -> None:
    assert DirectTool.from_tool(special) is None


def test_tools_with_injected_arguments_run_through_a_tool_node() -> None:
    agent = create_todo_agent(ScriptedModel([]), [give, with_state, with_runtime, with_id])
    node = agent.nodes["run_tools"].bound
    assert sorted(node.injected) == ["with_id", "with_runtime", "with_state"]
    assert sorted(node.direct) == ["give"]


class Heard(BaseCallbackHandler):
    def __init__(self) -> None:
        self.began: list[str] = []

    def on_tool_start(self, serialized: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self.began.append(serialized["name"])


@pytest.mark.parametrize("listens", [False, True])
def test_under_ainvoke_a_function_runs_off_the_event_loop(
    listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[threading.Thread] = []
    by_langchain: list[str] = []
    ainvoke = StructuredTool.ainvoke

    async def noted(self: StructuredTool, *args: Any, **kwargs: Any) -> Any:
        by_langchain.append(self.name)
        return await ainvoke(self, *args, **kwargs)

    @tool
    def where() -> str:
        """Return the thread's name."""
        ran.append(threading.current_thread())
        return "there"

    monkeypatch.setattr(StructuredTool, "ainvoke", noted)
    agent = create_todo_agent(ScriptedModel([calls(("where", {})), says("ok")]), [where])
    config: Any = {"callbacks": [Heard()]} if listens else {}
    result = asyncio.run(agent.ainvoke({"messages": [("user", "go")]}, config))
    assert result["messages"][2].content == "there"
    assert by_langchain == (["where"] if listens else [])
    assert len(ran) == 1
    assert ran[0] is not threading.current_thread()


@pytest.mark.parametrize(("door", "name"), [("invoke", "StopIteration"), ("ainvoke", "RuntimeError")])
def test_a_function_may_raise_what_no_future_can_hold(door: str, name: str) -> None:
    @tool
    def exhausted() -> str:
        """Advance an exhausted iterator."""
        return next(iter(()))

    agent = create_todo_agent(ScriptedModel([calls(("exhausted", {})), says("ok")]), [exhausted])
    given: Any = {"messages": [("user", "go")]}
    result = agent.invoke(given) if door == "invoke" else asyncio.run(agent.ainvoke(given))
    assert result["messages"][2].status == "error"
    assert result["messages"][2].content == f"Error: {name}: {name}"
