"""The picture, the nodes, two supersteps a round, one Send a call."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from agents import CONFIG, END, START, TODO, WAKE, Make, done, look, looks, session, todo, update, write
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt

import wakeloop
from wakeloop import (
    LoopSettings,
    TodoState,
    build_todo_graph,
    create_todo_agent,
    join_todos,
    merge_messages,
    preset,
)
from wakeloop.loop.overrides import FIXED_SETTINGS
from wakeloop.nodes import activate, call_model, finalization_guard, nag, run_tools, validate_todos, wake
from wakeloop.settings import PRESET_SETTINGS
from wakeloop.testing import ScriptedModel, calls, walk

NODES = ["activate", "call_model", "run_tools", "validate_todos", "nag", "finalization_guard", "wake"]
PICTURE = Path(__file__).parents[3] / "docs" / "graph.mmd"


def agent_of(*replies: Any, **options: Any) -> Any:
    return create_todo_agent(ScriptedModel(*replies), **options)


# -- the picture -----------------------------------------------------------------------------------------


def test_the_drawing_equals_the_picture_in_the_docs() -> None:
    assert agent_of([]).get_graph().draw_mermaid() == PICTURE.read_text()


@pytest.mark.parametrize("name", ["wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict"])
def test_every_preset_has_the_same_picture(name: str) -> None:
    agent = agent_of(
        [], settings=name, tools=[look], response_format={"title": "x", "type": "object", "properties": {}}
    )
    assert agent.get_graph().draw_mermaid() == PICTURE.read_text()


def test_the_edges_and_the_words_on_them() -> None:
    edges = {(edge.source, edge.target, edge.data) for edge in agent_of([]).get_graph().edges}
    ways = {"reminder due": "nag", "continue": "call_model", "run ends": "finalization_guard"}
    rounds = {
        (source, target, word) for source in ("run_tools", "validate_todos") for word, target in ways.items()
    }
    assert edges == rounds | {
        ("validate_todos", "validate_todos", "plan needs approval"),
        ("validate_todos", "run_tools", "plan approved"),
        ("__start__", "activate", None),
        ("activate", "call_model", "something to answer"),
        ("activate", "finalization_guard", "nothing to answer"),
        ("call_model", "run_tools", None),
        ("call_model", "validate_todos", None),
        ("call_model", "finalization_guard", None),
        ("nag", "call_model", None),
        ("wake", "call_model", None),
        ("finalization_guard", "wake", "open, within budget"),
        ("finalization_guard", "call_model", "ask again"),
        ("finalization_guard", "__end__", "stop"),
    }


def test_nodes_files_and_classes_share_their_names() -> None:
    assert list(build_todo_graph(ScriptedModel([])).nodes) == NODES
    modules = [activate, call_model, run_tools, validate_todos, nag, finalization_guard, wake]
    for name, module in zip(NODES, modules, strict=True):
        assert module.__name__ == f"wakeloop.nodes.{name}"
        assert hasattr(module, "".join(part.title() for part in name.split("_")))


def test_build_returns_the_same_graph_not_compiled() -> None:
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
    """Remembers every value that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, Any]] = []

    def put_writes(self, config: Any, writes: Any, *args: Any, **more: Any) -> Any:
        self.written += writes
        return super().put_writes(config, writes, *args, **more)


def test_one_send_for_each_external_call_carries_the_call_alone() -> None:
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


def test_what_is_written_grows_with_the_work_not_with_its_square() -> None:
    def size(rounds: int) -> int:
        saver = Spy()
        agent = agent_of(
            write("a"),
            *(looks(str(n)) for n in range(rounds)),
            done(1),
            "bye",
            tools=[look],
            checkpointer=saver,
        )
        agent.invoke({"messages": [("user", "go")]}, CONFIG)
        return sum(len(saver.serde.dumps_typed(value)[1]) for _, value in saver.written)

    first, second, third = size(80), size(110), size(140)  # beyond what is remembered of calls
    assert abs((third - second) - (second - first)) < 0.05 * (second - first)


def test_run_tools_never_writes_the_ledger() -> None:
    agent = agent_of(write("a"), looks("x"), done(1), "bye", tools=[look])
    for part in agent.stream({"messages": [("user", "go")]}, stream_mode="updates"):
        assert "run_tools" not in part or set(part["run_tools"]) == {"messages"}


def test_a_todo_tool_is_a_schema_and_no_code_of_it_runs() -> None:
    agent = agent_of(write("a"), calls(("todo_list", {})), done(1), "bye")
    assert "run_tools" not in walk(agent, "go")


def test_finished_siblings_of_an_interrupt_do_not_run_again() -> None:
    ran: list[str] = []

    def note(path: str) -> str:
        """Note."""
        ran.append(path)
        return path

    def ask(question: str) -> str:
        """Ask."""
        return str(interrupt(question))

    agent = agent_of(
        calls(
            ("note", {"path": "a"}),
            ("ask", {"question": "?"}),
            ("todo_write", {"items": ["x"]}),
            ("note", {"path": "b"}),
        ),
        done(1),
        "bye",
        tools=[note, ask],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    agent.invoke(Command(resume="y"), CONFIG)
    assert sorted(ran) == ["a", "b"]
    assert agent.get_state(CONFIG).values["todos"] == [todo(1, "x", "completed")]


# -- tools with what the graph gives ---------------------------------------------------------------------


def test_injected_state_store_and_id(thread: Make) -> None:
    @tool
    def both(
        x: str,
        state: Annotated[dict[str, Any], InjectedState],
        store: Annotated[BaseStore, InjectedStore()],
        key: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Use what the graph gives."""
        store.put(("n",), "k", {"v": 1})
        return f"{x} {len(state['messages'])} {[item['content'] for item in state['todos']]} {key}"

    agent = thread(
        write("a"), calls(("both", {"x": "y"}, "id-1")), done(1), "bye", tools=[both], store=InMemoryStore()
    )
    agent.run("go")
    assert agent.results()[1] == ("success", "y 4 ['a'] id-1")


def test_a_providers_own_tool_is_passed_on() -> None:
    model = ScriptedModel("hi")
    create_todo_agent(model, [{"type": "web_search"}]).invoke({"messages": [("user", "go")]})
    assert {"type": "web_search"} in model.bound[0]


# -- in a parent -----------------------------------------------------------------------------------------


class Parent(TypedDict):
    """A parent that shares the conversation and the list."""

    messages: Annotated[list[Any], lambda left, right: list(merge_messages(left or [], [right]))]
    todos: Annotated[list[Any], join_todos]
    todo_session: Any


@pytest.mark.parametrize(("saver", "child"), [(False, None), (True, None), (True, True)])
def test_as_a_node_of_a_parent(saver: bool, child: Any) -> None:
    model = ScriptedModel(write("a"), ".", done(1), "bye")
    agent = create_todo_agent(model, checkpointer=child)
    graph = (
        StateGraph(Parent)
        .add_node("agent", agent)
        .set_entry_point("agent")
        .compile(checkpointer=InMemorySaver() if saver else None)
    )
    output = graph.invoke({"messages": [HumanMessage("go", id="1")]}, CONFIG)
    assert output["todos"] == [todo(1, "a", "completed")]
    assert output["todo_session"] == session("dormant", "settled", 0, 1, 26)
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "ai", "human", "ai", "tool", "ai"]


def test_two_agents_in_a_row_share_one_list() -> None:
    first = create_todo_agent(
        ScriptedModel(write("a", "b"), done(1), "over"),
        settings=preset("wakeloop").model_copy(update={"max_wake_cycles": 0, "guard_retries": 0}),
    )
    model = ScriptedModel(done(2), "bye")
    second = create_todo_agent(model, name="second")
    graph = (
        StateGraph(Parent)
        .add_node("first", first)
        .add_node("second", second)
        .set_entry_point("first")
        .add_edge("first", "second")
        .compile()
    )
    output = graph.invoke({"messages": [HumanMessage("go", id="1")]})
    assert output["todos"] == [todo(1, "a", "completed"), todo(2, "b", "completed")]
    assert "  [2] b" in model.requests[0][-1].text


def test_batch_keeps_threads_apart() -> None:
    def reply(request: Any) -> Any:
        texts = [m.text for m in request if m.type == "human"]
        if request[-1].type == "human":
            return write(texts[0])
        return done(1) if "Stored" in request[-1].text else f"bye {texts[0]}"

    agent = create_todo_agent(ScriptedModel([reply] * 12), checkpointer=InMemorySaver())
    inputs = [{"messages": [("user", name)]} for name in "abcd"]
    outputs = agent.batch(inputs, [{"configurable": {"thread_id": name}} for name in "abcd"])
    assert [o["messages"][-1].text for o in outputs] == [f"bye {name}" for name in "abcd"]
    assert [[item["content"] for item in o["todos"]] for o in outputs] == [["a"], ["b"], ["c"], ["d"]]


def test_more_channels_of_the_callers(thread: Make) -> None:
    class More(TodoState):
        colour: str

    agent = thread("hi", state_schema=More)
    assert agent.run({"messages": [("user", "go")], "colour": "red"})["colour"] == "red"


def test_without_a_saver_the_whole_history_may_be_sent_again() -> None:
    model = ScriptedModel(write("a"), ".", done(1), "bye", "again")
    agent = create_todo_agent(model)
    output = agent.invoke({"messages": [("user", "go")]})
    output = agent.invoke({"messages": [*output["messages"], ("user", "more")], "todos": output["todos"]})
    assert output["messages"][-1].text == "again"
    assert len(output["messages"]) == 10
    assert len(model.requests[-1]) == 10


def test_every_public_name_is_there() -> None:
    assert set(wakeloop.__all__) <= set(dir(wakeloop))
    for name in wakeloop.__all__:
        assert getattr(wakeloop, name).__doc__ or name in ("Event", "Verify")
    with pytest.raises(AttributeError, match="nonsense"):
        wakeloop.nonsense  # noqa: B018 - looking is the test


def test_walks_are_of_neighbours_in_the_picture(thread: Make) -> None:
    edges = {(edge.source, edge.target) for edge in agent_of([]).get_graph().edges}
    agent = thread(write("a"), ".", looks("x"), done(1), "bye", tools=[look], change={"nag_after": 1})
    walked = agent.walk("go")
    assert walked == [*START, *TODO, *WAKE, "run_tools", "nag", "call_model", *TODO, *END]
    assert set(pairwise(["__start__", *walked, "__end__"])) <= edges


def test_results_of_one_superstep_are_behind_their_call_in_every_request(thread: Make) -> None:
    agent = thread(
        calls(("look", {"path": "x"}), ("todo_write", {"items": ["a"]}), ("peer", {})),
        update(1, "done"),
        "bye",
        tools=[look],
    )
    agent.run("go")
    assert [isinstance(m, ToolMessage) for m in agent.model.requests[1][-3:]] == [True] * 3


def test_interfaces_can_read_what_goes_in_and_comes_out() -> None:
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


def test_a_context_of_ones_own_stays_what_it_is(thread: Make) -> None:
    @dataclass
    class Own:
        user: str

    agent = create_todo_agent(ScriptedModel([]), context_schema=Own)
    schema = agent.get_context_jsonschema()
    assert schema is not None
    assert list(schema["properties"]) == ["user"]

    @tool
    def who(runtime: ToolRuntime[Any, Any]) -> str:
        """Who asks."""
        return str(runtime.context)

    unnamed = thread(calls(("who", {})), "bye", tools=[who])
    unnamed.run("go", context={"user": "ada", "max_tokens": 1})
    assert unnamed.messages[-2].text == "{'user': 'ada', 'max_tokens': 1}"
