"""Rule 15, and errors that a caller sees: what a tool, a model or an input raises."""

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from agents import (
    END,
    START,
    TODO,
    WAKE,
    WORK,
    Make,
    WordlessError,
    done,
    look,
    looks,
    session,
    todo,
    write,
)
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command, Send

from wakeloop import (
    EditError,
    InputError,
    ModelSetupError,
    SettingsError,
    TodoState,
    ToolError,
    ToolNameError,
    WakeloopError,
    build_todo_graph,
    create_todo_agent,
    join_todos,
    merge_messages,
    update_todos,
)
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults

# -- at build --------------------------------------------------------------------------------------------


def todo_write(items: list[str]) -> str:
    """Clash."""
    return ""


def fails(error: type[WakeloopError], *words: str, **options: Any) -> None:
    options.setdefault("model", ScriptedModel([]))
    with pytest.raises(error) as raised:
        build_todo_graph(**options)
    said = str(raised.value)
    assert isinstance(raised.value, WakeloopError)
    assert said.rstrip()[-1] in ".?)"
    for word in words:
        assert word in said


def test_what_is_refused_at_build() -> None:
    fails(ToolNameError, "'todo_write'", tools=[todo_write])
    fails(ToolNameError, "'todo_list'", tools=[{"type": "web_search", "name": "todo_list"}])
    fails(ToolNameError, "'todo_list'", tools=[{"type": "function", "function": {"name": "todo_list"}}])
    fails(ToolError, "got an int.", tools=[3])
    fails(ModelSetupError, "ScriptedModel", "tools", model=ScriptedModel([], tools=False))
    fails(SettingsError, "TodoState", state_schema=dict)


def test_only_a_clash_with_the_dialect_in_use_counts() -> None:
    build_todo_graph(ScriptedModel([]), [todo_write], settings="cubepi")
    fails(ToolNameError, "'todo_write'", tools=[todo_write], settings="agentparley")


# -- tools -----------------------------------------------------------------------------------------------


def boom(path: str) -> str:
    """Raise."""
    raise ValueError(f"no such file: {path}")


def soft(path: str) -> str:
    """Raise softly."""
    raise ToolException("please ask again")


def test_a_tools_exception_becomes_an_error_result(thread: Make) -> None:
    agent = thread(
        calls(("boom", {"path": "x"}), ("look", {"path": "y"}), ("soft", {"path": "z"})),
        "hi",
        tools=[boom, look, soft],
    )
    assert agent.walk("go") == [*START, *WORK, *END]
    assert agent.results() == [
        ("error", "Error: ValueError: no such file: x"),
        ("success", "saw y"),
        ("error", "Error: please ask again"),
    ]


def wordless(path: str) -> str:
    """Fail without a word."""
    raise WordlessError


def test_an_exception_without_a_readable_message_is_an_error_result_too(thread: Make) -> None:
    agent = thread(calls(("wordless", {"path": "a"})), "Done.", tools=[wordless])
    assert agent.walk("go") == [*START, *WORK, *END]
    assert agent.results() == [("error", "Error: WordlessError: WordlessError")]


def test_an_interruption_is_never_answered_with_another_request(thread: Make) -> None:
    def stop(path: str) -> str:
        """Stop."""
        raise KeyboardInterrupt

    agent = thread(calls(("stop", {"path": "x"})), "hi", tools=[stop])
    with pytest.raises(KeyboardInterrupt):
        agent.run("go")
    assert agent.asked == 1
    assert agent.walk("more") == [*START, *END]


def test_a_tool_may_return_a_command_that_updates(thread: Make) -> None:
    class More(TodoState):
        colour: str

    @tool
    def paint(key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Paint."""
        return Command(update={"colour": "red", "messages": [ToolMessage("painted", tool_call_id=key)]})

    @tool
    def paint_silently() -> Command[Any]:
        """Paint."""
        return Command(update={"colour": "red"})

    agent = thread(
        calls(("paint", {})),
        calls(("paint_silently", {})),
        "hi",
        tools=[paint, paint_silently],
        state_schema=More,
    )
    output = agent.run("go")
    assert output["colour"] == "red"
    assert [status for status, _ in agent.results()] == ["success", "success"]


# -- handing over to a parent ----------------------------------------------------------------------------


class Parent(TypedDict):
    """The state that a parent shares with its agent."""

    messages: Annotated[list[Any], lambda left, right: list(merge_messages(left or [], [right]))]
    todos: Annotated[list[Any], join_todos]
    todo_session: Any


@pytest.mark.parametrize("send", [False, True])
def test_a_goto_to_the_parent_ends_the_run_and_keeps_siblings_and_history(send: bool) -> None:
    @tool
    def transfer(key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        told = ToolMessage("over to you", tool_call_id=key)
        goto: Any = [Send("other", {"messages": []})] if send else "other"
        return Command(goto=goto, graph=Command.PARENT, update={"messages": [told]})

    model = ScriptedModel(write("a"), calls(("look", {"path": "x"}), ("transfer", {}), text="bye"))
    agent = create_todo_agent(model, [look, transfer])
    seen: list[Any] = []

    def other(state: Parent) -> dict[str, Any]:
        seen.append(state)
        return {}

    graph = (
        StateGraph(Parent)
        .add_node("agent", agent, destinations=("other",))
        .add_node("other", other)
        .set_entry_point("agent")
    )
    compiled = graph.compile(checkpointer=InMemorySaver())
    output = compiled.invoke({"messages": [HumanMessage("go", id="u")]}, {"configurable": {"thread_id": "1"}})
    assert len(seen) == 1
    assert len(model.requests) == 2
    assert [m.type for m in output["messages"]] == ["human", "ai", "tool", "ai", "tool", "tool"]
    assert {m.text for m in output["messages"][-2:]} == {"saw x", "Handed over." if send else "over to you"}
    assert output["todos"] == [todo(1, "a")]
    assert output["todo_session"] == session("idle", "handed_over", 1)


# -- models ----------------------------------------------------------------------------------------------


async def test_a_cancellation_is_never_answered_with_another_request() -> None:
    reached = asyncio.Event()

    async def hang(request: Any) -> str:
        reached.set()
        await asyncio.sleep(60)
        return "never"

    model = ScriptedModel(write("a"), hang, done(1), "bye")
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    run = asyncio.create_task(agent.ainvoke({"messages": [("user", "go")]}, config))
    await reached.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(model.requests) == 2
    output = await agent.ainvoke({"messages": [("user", "more")]}, config)
    assert output["todo_session"] == session("dormant", "settled", 0, budget=26)
    assert len(model.requests) == 4
    assert wire_faults(model.requests) == prompt_faults(model.requests) == []


# -- refused input ---------------------------------------------------------------------------------------

BAD: dict[str, dict[str, Any]] = {
    "status": {"todos": [{"content": "x", "status": "done"}]},
    "blank": {"todos": [{"content": ""}]},
    "no list": {"todos": "x"},
    "a dict": {"todos": {"content": "x"}},
    "twice": {"todos": [{"id": 1, "content": "x"}, {"id": 1, "content": "y"}]},
    "setting": {"todo_settings": {"max_wake_cycle": 3}},
    "value": {"todo_settings": {"max_wake_cycles": "many"}},
    "no mapping": {"todo_settings": 3},
    "fixed": {"todo_settings": {"dialect": "parley"}},
    "fixed words": {"todo_settings": {"prompts": {"instructions": "x"}}},
    "good list, bad settings": {"todos": [{"content": "new"}], "todo_settings": {"nope": 1}},
    "bad list, good settings": {"todos": [{"content": " "}], "todo_settings": {"max_wake_cycles": 7}},
}


def readings(agent: Any) -> dict[str, Any]:
    values = agent.values
    read = {key: values.get(key) for key in ("todos", "todo_goal", "todo_settings", "todo_session")}
    return {**read, "session_of": agent.session}


def refused(before: dict[str, Any], sentence: str) -> dict[str, Any]:
    """Add the reason why the last input was refused, where a client reads it."""
    return {**before, "session_of": {**before["session_of"], "error": sentence}}


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"messages": [("user", "bad")]}, {}], ids=["with words", "without"])
@pytest.mark.parametrize("name", BAD)
def test_a_refused_input_leaves_list_goal_settings_and_session_as_they_were(
    name: str, given: dict[str, Any], thread: Make
) -> None:
    agent = thread(write("a"), ".", ".", done(1), "bye", change={"guard_retries": 0})
    agent.run(
        {"messages": [("user", "go")], "todo_goal": "old goal", "todo_settings": {"max_wake_cycles": 1}}
    )
    before, asked = readings(agent), agent.asked
    assert before["todos"] == [todo(1, "a")]
    assert before["todo_settings"] == {"max_wake_cycles": 1}
    with pytest.raises(InputError) as raised:
        agent.run({**given, **BAD[name], "todo_goal": "new goal"})
    sentence = str(raised.value)
    assert sentence.endswith((".", "?"))
    assert readings(agent) == refused(before, sentence)
    for _ in range(2):
        with pytest.raises(InputError) as again:
            agent.run(None)
        assert str(again.value) == sentence
        assert readings(agent) == refused(before, sentence)
    with pytest.raises(EditError, match="message"):
        update_todos(agent.graph, agent.at(), add=["b"])
    assert agent.asked == asked
    assert agent.walk("good") == [*START, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 0, 2)
    users = [m.text for m in agent.messages if m.type == "human" and "wakeloop" not in m.additional_kwargs]
    assert users == ["go", *(["bad"] if given else []), "good"]


@pytest.mark.parametrize("name", BAD)
def test_a_refused_first_input_leaves_an_empty_thread(name: str, thread: Make) -> None:
    agent = thread("hi")
    with pytest.raises(InputError):
        agent.run({"messages": [("user", "bad")], **BAD[name], "todo_goal": "new"})
    values = agent.values
    assert (values["todos"], values["todo_goal"], values["todo_settings"], values.get("todo_session")) == (
        [],
        "",
        {},
        None,
    )
    assert agent.walk("good") == [*START, *END]


@pytest.mark.parametrize("name", BAD)
def test_without_a_saver_a_bad_input_raises_before_the_first_request(name: str, thread: Make) -> None:
    agent = thread(left=True)
    agent.graph = create_todo_agent(agent.model)
    with pytest.raises(InputError):
        agent.run({"messages": [("user", "bad")], **BAD[name]})
    assert agent.asked == 0


def test_a_bad_context_is_refused_too(thread: Make) -> None:
    class Context(TypedDict, total=False):
        todo_settings: dict[str, Any]

    agent = thread("hi", context_schema=Context)
    with pytest.raises(InputError, match="max_wake_cycle"):
        agent.run("bad", context={"todo_settings": {"max_wake_cycle": 1}})
    assert agent.walk("good") == [*START, *END]


def test_after_a_refused_input_a_subagents_result_continues(thread: Make) -> None:
    agent = thread(write("a"), ".", ".", done(1), "bye", change={"max_idle_wakes": 1, "guard_retries": 0})
    agent.run("go")
    with pytest.raises(InputError):
        agent.run({"todos": 3})
    agent.run({"todo_inbox": [{"kind": "subagent_done", "id": "s", "text": "r"}]})
    assert agent.session == session("dormant", "settled", 0, 2, 26)


def test_a_refused_input_on_an_interrupted_thread(thread: Make) -> None:
    agent = thread(write("a"), looks("x"), OSError("no network"), done(1), "bye", tools=[look])
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    before = readings(agent)
    with pytest.raises(InputError) as raised:
        agent.run({"messages": [("user", "bad")], "todos": 3})
    assert readings(agent) == refused(before, str(raised.value))
    assert agent.walk("good") == [*START, *TODO, *END]


# -- a tool that adds a user message after its result -----------------------------------------------------


@tool
def show(path: str, key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Show a picture: its result, and a user message after it."""
    shown = [ToolMessage(f"shown {path}", tool_call_id=key), HumanMessage(f"picture of {path}")]
    return Command(update={"messages": shown})


def shows(path: str) -> Any:
    """Return a reply that calls `show`."""
    return calls(("show", {"path": path}))


def test_its_work_is_progress_too(thread: Make) -> None:
    replies = [write("a"), ".", shows("x"), ".", shows("y"), ".", shows("y"), "."]
    agent = thread(*replies, tools=[show], change={"max_idle_wakes": 1, "guard_retries": 0})
    assert agent.walk("go") == [*START, *TODO, *[*WAKE, *WORK] * 3, *END]
    assert agent.session == session("idle", "stalled", 1, 3)


def test_a_reminder_is_put_into_the_last_result_before_it(thread: Make) -> None:
    agent = thread(write("a"), shows("x"), done(1), "bye", tools=[show], change={"nag_after": 1})
    assert agent.walk("go") == [*START, *TODO, "run_tools", "nag", "call_model", *TODO, *END]
    assert agent.kinds[:6] == ["human", "ai", "tool", "ai", "nag", "human"]
    assert agent.messages[4].text.startswith("shown x\n\n[Reminder")
