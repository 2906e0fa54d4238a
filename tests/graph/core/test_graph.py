"""The picture, the nodes, two supersteps per round, one Send per call."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agents import CONFIG, END, START, TODO, WAKE, Make, done, look, looks, write
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Send

import wakeloop
from wakeloop import (
    LoopSettings,
    build_todo_graph,
    create_todo_agent,
)
from wakeloop.loop.overrides import FIXED_SETTINGS
from wakeloop.nodes import (
    activate,
    call_model,
    finalization_guard,
    nag,
    review_calls,
    run_tools,
    validate_todos,
    wake,
)
from wakeloop.settings import PRESET_SETTINGS
from wakeloop.testing import ScriptedModel, calls, walk
from wakeloop.text.drawing import draw_svg, graph_edges

NODES = ["activate", "call_model", "run_tools", "review_calls", "validate_todos", "nag"]
NODES += ["finalization_guard", "wake"]
PICTURE = Path(__file__).parents[3] / "docs" / "graph.mmd"


def agent_of(*replies: Any, **options: Any) -> Any:
    return create_todo_agent(ScriptedModel(*replies), **options)


# -- the picture -----------------------------------------------------------------------------------------


def test_the_drawing_equals_the_picture_in_the_docs() -> None:
    graph = agent_of([]).get_graph()
    assert graph.draw_mermaid() == PICTURE.read_text()
    assert (
        draw_svg("wakeloop", graph.nodes, graph_edges(graph)) + "\n"
        == PICTURE.with_suffix(".svg").read_text()
    )


@pytest.mark.parametrize("name", ["wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict"])
def test_every_preset_has_the_same_picture(name: str) -> None:
    agent = agent_of(
        [], settings=name, tools=[look], response_format={"title": "x", "type": "object", "properties": {}}
    )
    assert agent.get_graph().draw_mermaid() == PICTURE.read_text()


def test_nodes_files_and_classes_share_their_names() -> None:
    assert list(build_todo_graph(ScriptedModel([])).nodes) == NODES
    modules = [activate, call_model, run_tools, review_calls, validate_todos, nag, finalization_guard, wake]
    for name, module in zip(NODES, modules, strict=True):
        assert module.__name__ == f"wakeloop.nodes.{name}"
        assert hasattr(module, "".join(part.title() for part in name.split("_")))


def test_build_returns_the_same_graph_uncompiled() -> None:
    graph = build_todo_graph(ScriptedModel("hi"))
    assert isinstance(graph, StateGraph)
    assert walk(graph.compile(), "go") == [*START, *END]


def test_the_name_is_the_graphs() -> None:
    assert agent_of([]).name == "wakeloop"
    assert agent_of([], name="other").name == "other"


# -- supersteps and sends --------------------------------------------------------------------------------


def supersteps(agent: Any) -> list[list[str]]:
    steps: dict[int, set[str]] = {}
    for part in agent.stream({"messages": [("user", "go")]}, CONFIG, stream_mode="debug"):
        if part["type"] == "task":
            steps.setdefault(part["step"], set()).add(part["payload"]["name"])
    return [sorted(names) for _, names in sorted(steps.items())]


def test_a_round_is_two_supersteps_however_many_calls_it_has() -> None:
    reply = calls(
        *(("look", {"path": str(n)}) for n in range(5)), ("todo_write", {"items": ["a"]}), ("todo_list", {})
    )
    agent = agent_of(reply, done(1), "bye", tools=[look], checkpointer=InMemorySaver())
    assert supersteps(agent) == [
        ["activate"],
        ["call_model"],
        ["run_tools", "validate_todos"],
        ["call_model"],
        ["validate_todos"],
        ["call_model"],
        ["finalization_guard"],
    ]


class Spy(InMemorySaver):
    """Records every value that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, Any]] = []

    def put_writes(self, config: Any, writes: Any, *args: Any, **more: Any) -> Any:
        self.written += writes
        return super().put_writes(config, writes, *args, **more)


def test_one_send_per_external_call_carries_only_that_call() -> None:
    saver = Spy()
    reply = calls(
        ("look", {"path": "x"}, "1"),
        ("todo_write", {"items": ["a"]}, "2"),
        ("peer", {"y": 1}, "3"),
        ("look", {"path": "z"}, "4"),
    )
    agent = agent_of(reply, done(1), "bye", tools=[look], checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    sends = [value for _, value in saver.written if isinstance(value, Send)]
    assert [(s.node, s.arg["id"]) for s in sends] == [
        ("run_tools", "1"),
        ("run_tools", "3"),
        ("run_tools", "4"),
    ]
    assert sends[0].arg == {"name": "look", "args": {"path": "x"}, "id": "1", "type": "tool_call"}
    assert sends[1].arg.keys() == {"name", "args", "id", "type", "fault"}


def test_run_tools_never_writes_the_ledger() -> None:
    agent = agent_of(write("a"), looks("x"), done(1), "bye", tools=[look])
    for part in agent.stream({"messages": [("user", "go")]}, stream_mode="updates"):
        assert "run_tools" not in part or set(part["run_tools"]) == {"messages"}


# -- in a parent -----------------------------------------------------------------------------------------


def test_every_public_name_is_there() -> None:
    assert set(wakeloop.__all__) <= set(dir(wakeloop))
    for name in wakeloop.__all__:
        assert getattr(wakeloop, name).__doc__ or name in ("Event", "Verify")
    with pytest.raises(AttributeError, match="nonsense"):
        wakeloop.nonsense  # noqa: B018 - looking is the test


def test_walks_follow_the_edges_of_the_picture(thread: Make) -> None:
    edges = {(edge.source, edge.target) for edge in agent_of([]).get_graph().edges}
    agent = thread(write("a"), ".", looks("x"), done(1), "bye", tools=[look], change={"nag_after": 1})
    walked = agent.walk("go")
    assert walked == [*START, *TODO, *WAKE, "run_tools", "nag", "call_model", *TODO, *END]
    assert set(pairwise(["__start__", *walked, "__end__"])) <= edges


def test_interfaces_can_read_input_and_output_types() -> None:
    agent = create_todo_agent(ScriptedModel([]))
    given, gives = agent.get_input_jsonschema(), agent.get_output_jsonschema()
    fields = [*given["properties"].values(), *gives["properties"].values()]
    assert [field for field in fields if not field.get("description", "").endswith(".")] == []
    assert list(given["properties"]) == [
        "messages", "todos", "todo_goal", "todo_session", "todo_inbox", "todo_settings"
    ]  # fmt: skip
    assert given.get("required", []) == []
    assert list(gives["properties"]) == [
        "messages",
        "todos",
        "structured_response",
        "todo_goal",
        "todo_session",
    ]
    item = given["$defs"]["Todo"]
    assert item["properties"]["status"]["enum"] == [
        "pending",
        "in_progress",
        "completed",
        "cancelled",
        "blocked",
    ]


def test_the_context_form_lists_the_settings_that_a_user_would_change() -> None:
    agent = create_todo_agent(ScriptedModel([]), settings={"preset": "loki", "max_wake_cycles": 7})
    schema = agent.get_context_jsonschema()
    assert schema is not None
    assert list(schema["properties"]) == ["todo_settings"]
    form = schema["$defs"]["TodoSettings"]["properties"]
    left_out = FIXED_SETTINGS | PRESET_SETTINGS
    assert list(form) == [name for name in LoopSettings.model_fields if name not in left_out]
    assert form["max_wake_cycles"] == {
        "description": "How often one activation may wake the model. 0 never wakes it. This agent's: 7.",
        "maximum": 2**53,
        "minimum": 0,
        "title": "Max Wake Cycles",
        "type": "integer",
    }
    assert form["on_budget"]["enum"] == ["report", "stop"]
    assert form["prompts"]["type"] == "object"


def test_the_callers_own_context_stays_as_it_is(thread: Make) -> None:
    @dataclass
    class Own:
        user: str

    agent = create_todo_agent(ScriptedModel([]), context_schema=Own)
    schema = agent.get_context_jsonschema()
    assert schema is not None
    assert list(schema["properties"]) == ["user"]

    @tool
    def who(runtime: ToolRuntime[Any, Any]) -> str:
        """The user who asks."""
        return str(runtime.context)

    unnamed = thread(calls(("who", {})), "bye", tools=[who])
    unnamed.run("go", context={"user": "ada", "max_tokens": 1})
    assert unnamed.messages[-2].text == "{'user': 'ada', 'max_tokens': 1}"
