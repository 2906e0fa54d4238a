"""The face for people who guess: each guess works, or gets one sentence with the right spelling."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest
from guessing import AT, BUILD, GO, UPDATE, hi
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from wakeloop import (
    ArgumentError,
    EditError,
    InputError,
    LoopSettings,
    ModelError,
    SettingsError,
    TodoState,
    ToolError,
    WakeloopError,
    answer_of,
    aupdate_todos,
    build_todo_graph,
    create_todo_agent,
    session_of,
    update_todos,
)
from wakeloop.checks.argument_names import AGENT_HINTS, EDIT_HINTS
from wakeloop.testing import ScriptedModel, calls, says


def write(*items: str) -> Any:
    return calls(("todo_write", {"items": list(items)}))


@tool
def look() -> str:
    """Look."""
    return "seen"


class Answer(BaseModel):
    """An answer."""

    number: int


# -- names of arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("prompt", "system_prompt=…"),
        ("instructions", "system_prompt=…"),
        ("middleware", "pre_model_hook"),
        ("llm", "model=…"),
        ("preset", "settings='NAME'"),
        ("max_wake_cycles", "settings={'max_wake_cycles': …}"),
        ("max_auto_continues", "settings={'max_auto_continues': …}"),
        ("memory", "checkpointer=…"),
        ("output_schema", "response_format=…"),
        ("todos", "'todos': […]"),
        ("recursion_limit", "config={'recursion_limit': N}"),
        ("checkpointr", "'checkpointer'"),
        ("zzz", "there are model, tools"),
    ],
)
def test_an_argument_that_there_is_not(name: str, right: str) -> None:
    with pytest.raises(ArgumentError, match=f"create_todo_agent has no argument {name!r}: ") as told:
        BUILD(ScriptedModel(), **{name: "x"})
    assert right in str(told.value)
    assert isinstance(told.value, TypeError)
    assert isinstance(told.value, WakeloopError)


def test_every_guess_is_a_sentence_and_none_is_an_argument() -> None:
    for name in AGENT_HINTS:
        with pytest.raises(ArgumentError, match=r"^create_todo_agent has no argument .+[.?]$"):
            BUILD(ScriptedModel(), **{name: 1})
    for name in EDIT_HINTS:
        with pytest.raises(ArgumentError, match=r"^update_todos has no argument .+[.?]$"):
            UPDATE(None, AT, **{name: 1})
    with pytest.raises(ArgumentError, match=r"compile\(…\)"):
        build_todo_graph(ScriptedModel(), checkpointer=None)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"aupdate_todos has no argument 'complete': .+done="):
        aupdate_todos(None, AT, complete=1)  # type: ignore[call-arg, arg-type]


# -- their values ----------------------------------------------------------------------------------------


def test_settings_as_a_mapping() -> None:
    agent = hi(write("a"), ".", ".", settings={"max_wake_cycles": 1, "guard_retries": 0})
    assert agent.invoke(GO, AT)["todo_session"]["budget"] == 1
    on = hi(calls(("todo__add", {"task": "a"})), ".", ".", settings={"preset": "loki", "auto_continue": True})
    assert on.invoke(GO, AT)["todo_session"]["reason"] == "repeated_reply"
    with pytest.raises(SettingsError, match="did you mean 'max_wake_cycles'"):
        hi(settings={"max_wake_cycle": 1})
    for wrong in (5, ["a"], LoopSettings):
        with pytest.raises(SettingsError, match="settings takes"):
            hi(settings=wrong)
    with pytest.raises(SettingsError, match=r"preset\('loki'\)"):
        LoopSettings(preset="loki")  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match="argument of create_todo_agent"):
        LoopSettings(system_prompt="x")  # type: ignore[call-arg]


def test_tools_alone_and_none() -> None:
    for tools in (look, [look], (look,), iter([look])):
        assert "look" in str(hi(tools=tools).builder.nodes["run_tools"].runnable.tools)
    assert hi(tools=None).invoke(GO, AT)["todo_session"]["reason"] == "settled"
    with pytest.raises(ToolError, match=r"system_prompt="):
        BUILD(ScriptedModel(), "You are kind.")
    with pytest.raises(ToolError, match="takes a list of tools"):
        hi(tools=5)


async def test_tools_that_are_still_awaited() -> None:
    async def get_tools() -> list[Any]:
        return []

    with pytest.raises(ToolError, match="await it"):
        hi(tools=get_tools())


def test_a_format_in_a_strategy() -> None:
    structured = pytest.importorskip("langchain.agents.structured_output")
    for kind in (structured.ToolStrategy, structured.ProviderStrategy):
        with pytest.raises(ArgumentError, match=f"pass Answer, without {kind.__name__}"):
            hi(response_format=kind(Answer))


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "google_genai:gemini-2.5-pro"),
        ("mistral-large-latest", "mistralai:mistral-large-latest"),
        ("anthropic/claude-3", "anthropic:claude-3"),
        ("openai/gpt-5", "openai:gpt-5"),
        ("deepseek-chat", "deepseek:deepseek-chat"),
        ("llama3:8b", "ollama:llama3:8b"),
        ("anthropic.claude-3-haiku-v1:0", "bedrock_converse:anthropic.claude-3-haiku-v1:0"),
    ],
)
def test_a_name_that_is_plainly_another_providers(
    name: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelError, match=f"write '{right}'"):
        BUILD(name)
    BUILD("gpt-5-mini")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    if not name.startswith(("llama3:", "anthropic.")):
        BUILD(name)  # a server of one's own may have any name


def test_other_values_of_another_kind() -> None:
    for more, right in (
        ({"checkpointer": InMemorySaver}, "make one, InMemorySaver"),
        ({"checkpointer": "threads.db"}, "SqliteSaver"),
        ({"verify": True}, "verify takes a function"),
        ({"pre_model_hook": "trim"}, "pre_model_hook takes a function"),
        ({"system_prompt": ["a"]}, "system_prompt takes a text"),
        ({"system_prompt": HumanMessage("a")}, "system_prompt takes a text"),
    ):
        with pytest.raises(ArgumentError, match=right):
            BUILD(ScriptedModel(), **more)
    with pytest.raises(ModelError, match=r"the class ScriptedModel itself; make one"):
        BUILD(ScriptedModel)
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with pytest.raises(ArgumentError, match="open it first, as in: with"):
        BUILD(ScriptedModel(), checkpointer=sqlite.SqliteSaver.from_conn_string(":memory:"))


# -- a run's input and config ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"mesages": [("user", "go")]}, "did you mean 'messages'"),
        ({"message": "go"}, "did you mean 'messages'"),
        ({"input": "go"}, "did you mean 'messages'"),
        ({**GO, "todo": []}, "did you mean 'todos'"),
        ({**GO, "todo_setings": {}}, "did you mean 'todo_settings'"),
        ({"settings": {}}, "did you mean 'todo_settings'"),
        ({"zzz": 1}, "has nothing for this agent; it takes messages, todos"),
        ("go", "An input is a mapping"),
        ([("user", "go")], "An input is a mapping"),
    ],
)
async def test_an_input_with_a_mistyped_key(given: Any, right: str) -> None:
    agent = hi("a", "b")
    with pytest.raises(InputError, match=right):
        agent.invoke(given, AT)
    with pytest.raises(InputError, match=right):
        await agent.ainvoke(given, AT)
    with pytest.raises(InputError, match=right):
        list(agent.stream(given, AT))
    assert agent.get_state(AT).values.get("messages", []) == []


def test_what_others_send_beside_ours_is_left_alone() -> None:
    out = hi().invoke({**GO, "copilotkit": {}, "tools": [], "context": []}, AT)
    assert out["todo_session"]["reason"] == "settled"

    class Parent(TodoState):
        todo: str
        message: str

    graph = (
        StateGraph(Parent).add_node("agent", create_todo_agent(ScriptedModel("Hi."))).add_edge(START, "agent")
    )
    assert answer_of(graph.compile().invoke({**GO, "todo": "x", "message": "y"})) == "Hi."


@pytest.mark.parametrize(
    ("config", "right"),
    [
        ({"thread_id": "1"}, r"\{'configurable': \{'thread_id': '1'\}\}"),
        ({"configurable": {"thread_id": "1", "recursion_limit": 9}}, "stands beside 'configurable'"),
    ],
)
def test_a_config_that_says_it_elsewhere(config: Any, right: str) -> None:
    with pytest.raises(InputError, match=right):
        hi().invoke(GO, config)


# -- edits by hand ---------------------------------------------------------------------------------------


def test_one_text_is_one_item_and_one_id_is_one() -> None:
    agent = hi()
    assert [one["content"] for one in update_todos(agent, AT, add="buymilk")] == ["buymilk"]
    todos = update_todos(agent, AT, add=["b", "c"])
    assert [one["status"] for one in update_todos(agent, AT, done=1)] == ["completed", "pending", "pending"]
    update_todos(agent, AT, add=[str(n) for n in range(4, 13)])
    assert [one["id"] for one in update_todos(agent, AT, start="12") if one["status"] == "in_progress"] == [
        12
    ]
    done = UPDATE(agent, AT, done=todos[1:], add={"content": "z"})
    assert [one["id"] for one in done if one["status"] == "completed"] == [1, 2, 3]
    assert done[-1]["content"] == "z"


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"add": 5}, "add takes a text or texts"),
        ({"add": [5]}, "add takes a text or texts"),
        ({"done": True}, "done takes an id or ids"),
        ({"done": [None]}, "done takes an id or ids"),
        ({"block": 1}, "block maps an id to its reason"),
        ({"block": (1, "why")}, "block maps an id to its reason"),
        ({"edit": {1: 5}}, "edit maps an id to its text"),
    ],
)
def test_an_edit_of_another_kind_is_one_sentence(changes: Any, right: str) -> None:
    agent = hi()
    update_todos(agent, AT, add="a")
    with pytest.raises(EditError, match=f"Nothing was changed: {right}"):
        UPDATE(agent, AT, **changes)


@pytest.mark.parametrize("config", [{}, None, "1", {"thread_id": "1"}, {"configurable": {}}])
def test_an_edit_without_a_thread(config: Any) -> None:
    with pytest.raises(ArgumentError, match=r"\{'configurable': \{'thread_id': '(1|NAME)'\}\}"):
        UPDATE(hi(), config, add="a")


def test_an_edit_by_another_graph() -> None:
    with pytest.raises(ArgumentError, match="compiled graph"):
        UPDATE(build_todo_graph(ScriptedModel()), AT, add="a")
    with pytest.raises(EditError, match="keeps no threads"):
        UPDATE(create_todo_agent(ScriptedModel()), AT, add="a")


# -- parents ---------------------------------------------------------------------------------------------


def ask() -> str:
    """Ask."""
    return str(interrupt("?"))


def parent_of(agent: Any, state: Any = TodoState) -> Any:
    graph = StateGraph(state).add_node("agent", agent).add_edge(START, "agent")
    return graph.compile(checkpointer=InMemorySaver())


def test_an_edit_on_a_parent_that_shares_the_list() -> None:
    model = ScriptedModel(write("a"), ".", calls(("todo_list", {})), ".")
    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    parent = parent_of(create_todo_agent(model, settings=quiet, checkpointer=True))
    parent.invoke(GO, AT)
    update_todos(parent, AT, add="b", done=1, goal="g")
    values = parent.get_state(AT).values
    assert [one["content"] for one in values["todos"]] == ["a", "b"]
    assert (values["todo_goal"], values["todo_session"]["list"]) == ("g", 2)
    parent.invoke(GO, AT)
    assert "[2] b" in model.requests[-1][-1].text  # the agent reads it, though it keeps its own thread
    assert update_todos(parent, AT, clear=True) == []


def test_an_edit_on_a_subgraph_that_keeps_its_thread() -> None:
    class Talk(BaseModel):
        messages: list[Any] = []

    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    agent = create_todo_agent(ScriptedModel(write("a"), "."), settings=quiet, checkpointer=True)
    parent = parent_of(agent, Talk)
    parent.invoke(GO, AT)
    below: Any = {"configurable": {**AT["configurable"], "checkpoint_ns": "agent"}}
    assert [one["content"] for one in update_todos(parent, below, add="b")] == ["a", "b"]
    assert session_of(parent.get_state(below)) == {
        "state": "idle", "reason": "disabled", "open": 2, "wakes": 0, "budget": 0, "list": 2, "items": 2,
        "spent": ANY,
    }  # fmt: skip
    with pytest.raises(EditError, match=r"'checkpoint_ns': 'agent'"):
        update_todos(parent, AT, add="b")
    with pytest.raises(EditError, match=r"Pass the parent graph, with .+checkpoint_ns"):
        update_todos(agent, AT, add="b")
    with pytest.raises(EditError, match="Its agents: 'agent'"):
        UPDATE(parent, {"configurable": {"thread_id": "1", "checkpoint_ns": "agnt"}}, add="b")


def test_the_truth_of_an_agent_in_a_parents_snapshot() -> None:
    class Talk(BaseModel):
        messages: list[Any] = []

    model = ScriptedModel(write("a", "b"), "thinking", calls(("ask", {})))
    parent = parent_of(create_todo_agent(model, [ask]), Talk)
    result = parent.invoke(GO, AT)
    truth = {
        "state": "waiting", "reason": "interrupted", "open": 2, "wakes": 1, "budget": 25, "list": 1,
        "items": 2, "on": "human", "spent": ANY,
    }  # fmt: skip
    assert session_of(parent.get_state(AT, subgraphs=True)) == truth
    assert answer_of(parent.get_state(AT, subgraphs=True)) == "thinking"
    mere = session_of(parent.get_state(AT))  # which does not hold it: no numbers that are none
    assert mere == {"state": "waiting", "reason": "interrupted", "on": "human"}
    assert session_of(result) == mere
    ended = parent_of(create_todo_agent(ScriptedModel(write("a"), *["said"] * 8)), Talk)
    told = ended.invoke(GO, AT)
    for given in (told, ended.get_state(AT)):  # one item is open there, and nothing here tells of it
        assert session_of(given) == {"state": "dormant", "reason": None}
        assert answer_of(given) == "said"


# -- readings --------------------------------------------------------------------------------------------


def test_readings_of_a_result_a_state_a_snapshot_and_the_sdks_dict() -> None:
    agent = hi(write("a"), "said", settings={"max_wake_cycles": 0, "guard_retries": 0})
    result = agent.invoke(GO, AT)
    snapshot = agent.get_state(AT)
    plain = [{"type": m.type, "content": m.content, "id": m.id} for m in result["messages"]]
    plain[2]["tool_call_id"] = result["messages"][2].tool_call_id
    sdk = {"values": {**snapshot.values, "messages": plain}, "next": [], "tasks": [], "metadata": {}}
    thread = {"thread_id": "1", "status": "idle", "values": sdk["values"]}
    for given in (result, snapshot.values, snapshot, sdk, thread):
        assert session_of(given) == snapshot.values["todo_session"]
        assert answer_of(given) == "said"
    assert answer_of(result["messages"]) == "said"
    for wrong in (None, agent, "1", 5):
        for read in (session_of, answer_of):
            with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
                read(wrong)


def test_a_run_that_ends_at_an_interrupt_says_nothing_that_misleads() -> None:
    agent = hi(write("a"), calls(("ask", {})), tools=[ask])
    result = agent.invoke(GO, AT)
    assert result["todo_session"] == {"state": "running", "reason": None}
    assert session_of(result) == {"state": "waiting", "reason": "interrupted", "open": 1, "on": "human"}
    whole = {**session_of(result), "wakes": 0, "budget": 25, "list": 1, "items": 1, "spent": ANY}
    assert session_of(agent.get_state(AT)) == whole
    asked = [{"value": "?", "id": "1"}]
    state = agent.get_state(AT)
    tasks = [{"id": "t", "name": "run_tools", "interrupts": asked}]
    assert session_of({"values": state.values, "next": ["run_tools"], "tasks": tasks}) == whole


# -- a thread that is not named ---------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"recursion_limit": 9}])
def test_an_agent_that_keeps_threads_wants_one(config: Any) -> None:
    model = ScriptedModel([])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    with pytest.raises(InputError) as caught:
        agent.invoke(GO, config)
    assert str(caught.value) == (
        "This agent has a checkpointer, so each run is of a thread: name it, as in "
        "config={'configurable': {'thread_id': 'notes'}}."
    )
    assert model.requests == []


def test_the_thread_of_whoever_calls_is_one() -> None:
    agent = create_todo_agent(ScriptedModel([says("hi")]), checkpointer=InMemorySaver())
    caller = RunnableLambda(agent.invoke)  # without a config of its own
    assert answer_of(caller.invoke(GO, AT)) == "hi"
    assert answer_of(agent.get_state(AT)) == "hi"
