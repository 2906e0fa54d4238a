"""C48: a thread continues in a build with other tools, in another dialect, or after an edit in mid-run."""

from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from levels import examples

from wakeloop import InputError, create_todo_agent, preset, session_of, update_todos
from wakeloop.dialects import get_dialect
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

CONFIG: Any = {"configurable": {"thread_id": "1"}}
NODES = ("activate", "call_model", "run_tools", "validate_todos", "nag", "finalization_guard", "wake")
PRESETS = ("wakeloop", "loki", "lesson", "cubepi")
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "wakeloop": ("todo_write", {"items": ["a", "b"]}),
    "loki": ("todo__add", {"task": "a"}),
    "lesson": ("todo", {"items": [{"id": "1", "text": "a"}]}),
    "cubepi": ("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}),
}
DONE: dict[str, tuple[str, dict[str, Any]]] = {
    "wakeloop": ("todo_update", {"id": 1, "status": "done"}),
    "loki": ("todo__done", {"id": 1}),
    "lesson": ("todo", {"items": [{"id": "1", "text": "a", "status": "completed"}]}),
    "cubepi": ("write_todos", {"todos": [{"content": "a", "status": "completed"}]}),
}


def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def ask(what: str) -> str:
    """Ask a person."""
    return f"told {interrupt(what)}"


def asking(todo: Any, state: Any) -> str | None:
    """A verifier that asks a person."""
    return interrupt(f"is {todo['content']} done?")


def of(name: str) -> Any:
    return preset(name).model_copy(update={"auto_continue": True})


def built(saver: Any, *replies: Any, name: str = "wakeloop", tools: Any = (look,), **more: Any) -> Any:
    model = ScriptedModel(*replies)
    return create_todo_agent(model, list(tools), settings=of(name), checkpointer=saver, **more), model


def results(agent: Any) -> list[tuple[str, str]]:
    messages = agent.get_state(CONFIG).values["messages"]
    return [(m.status, m.text) for m in messages if isinstance(m, ToolMessage)]


# -- a tool or a dialect that is gone -------------------------------------------------------------------


@pytest.mark.parametrize("what", [Command(resume="yes"), None], ids=["answer", "none"])
@pytest.mark.parametrize("door", ["sync", "async"])
async def test_c48_a_question_of_a_tool_that_is_gone_is_answered_with_an_error(what: Any, door: str) -> None:
    saver = InMemorySaver()
    first, _ = built(saver, calls(("ask", {"what": "?"}), ("look", {"path": "x"})), tools=(look, ask))
    first.invoke({"messages": [("user", "go")]}, CONFIG)
    then, model = built(saver, says("bye"))
    _ = then.invoke(what, CONFIG) if door == "sync" else await then.ainvoke(what, CONFIG)
    gone = "Error: tool 'ask' no longer exists. Available: look, todo_list, todo_update, todo_write."
    assert sorted(results(then)) == [("error", gone), ("success", "saw x")]
    assert session_of(then.get_state(CONFIG))["reason"] == "answered"
    assert wire_faults(model.requests) == []
    model.assert_done()


def test_without_other_tools_the_lists_own_are_named() -> None:
    saver = InMemorySaver()
    first, _ = built(saver, calls(("ask", {"what": "?"})), tools=(ask,))
    first.invoke({"messages": [("user", "go")]}, CONFIG)
    then, _ = built(saver, says("bye"), name="lesson", tools=())
    then.invoke(Command(resume="yes"), CONFIG)
    assert results(then) == [("error", "Error: tool 'ask' no longer exists. Available: todo.")]


def test_a_malformed_call_of_a_waiting_round_keeps_its_own_sentence() -> None:
    saver = InMemorySaver()
    first, _ = built(saver, calls(("ask", {"what": "?"}), ("nobody", {})), tools=(look, ask))
    first.invoke({"messages": [("user", "go")]}, CONFIG)
    then, _ = built(saver, says("bye"))
    then.invoke(Command(resume="yes"), CONFIG)
    assert [text.partition(". ")[0] for _, text in results(then)] == [
        "Error: tool 'ask' no longer exists",
        "Error: unknown tool 'nobody'",
    ]


@pytest.mark.parametrize(("name", "other"), list(permutations(PRESETS, 2)))
def test_c48_a_waiting_todo_call_is_answered_under_another_dialect(name: str, other: str) -> None:
    saver = InMemorySaver()
    first, _ = built(saver, calls(PLANS[name]), calls(DONE[name]), name=name, verify=asking)
    first.invoke({"messages": [("user", "go")]}, CONFIG)
    assert first.get_state(CONFIG).interrupts
    listed = first.get_state(CONFIG).values["todos"]
    then, model = built(saver, *[says(str(n)) for n in range(40)], name=other)
    then.invoke(Command(resume="yes"), CONFIG)
    (status, text), tools = results(then)[-1], ", ".join(sorted(get_dialect(of(other).dialect).tool_names))
    assert status == "error"
    assert f"tool '{DONE[name][0]}' no longer exists. Available: {tools}." in text
    assert then.get_state(CONFIG).values["todos"] == listed
    assert wire_faults(model.requests) == []


MORE: dict[str, tuple[str, dict[str, Any]]] = {  # one more item
    "wakeloop": ("todo_write", {"items": ["n"]}),
    "loki": ("todo__add", {"task": "n"}),
    "lesson": ("todo", {"items": [{"id": "1", "text": "a"}, {"id": "2", "text": "n"}]}),
    "cubepi": (
        "write_todos",
        {"todos": [{"content": "a", "status": "in_progress"}, {"content": "n", "status": "pending"}]},
    ),
}


@pytest.mark.parametrize(("name", "other"), list(permutations(PRESETS, 2)))
def test_another_item_under_another_dialect_has_its_own_id(name: str, other: str) -> None:
    saver = InMemorySaver()
    first, _ = built(saver, calls(PLANS[name]), *[says(str(n)) for n in range(40)], name=name)
    first.invoke({"messages": [("user", "go")]}, CONFIG)
    [kept, *_] = first.get_state(CONFIG).values["todos"]
    then, _ = built(saver, calls(MORE[other]), *[says(str(n)) for n in range(40)], name=other)
    then.invoke({"messages": [("user", "one more")]}, CONFIG)
    todos = then.get_state(CONFIG).values["todos"]
    assert todos[0]["id"] == kept["id"]
    assert [todo["content"] for todo in todos].count("n") == 1
    assert len({str(todo["id"]) for todo in todos}) == len(todos)


# -- edits in mid-run --------------------------------------------------------------------------------------


def copied(saver: InMemorySaver) -> InMemorySaver:
    """Return an independent saver with the same threads."""
    new = InMemorySaver()
    for thread, spaces in saver.storage.items():
        for space, rows in spaces.items():
            new.storage[thread][space] = dict(rows)
    for key, writes in saver.writes.items():
        new.writes[key] = dict(writes)
    new.blobs = dict(saver.blobs)
    return new


@cache
def story(name: str) -> tuple[InMemorySaver, tuple[Any, ...]]:
    """Play a thread that has everything, and return it with its checkpoints:

    rounds, a wake, a question, an end.
    """
    saver = InMemorySaver()
    rounds = [
        calls(PLANS[name], ("look", {"path": "x"})),
        says("stop"),
        calls(("ask", {"what": "?"}), ("look", {"path": "z"}), PLANS[name]),
    ]
    agent, _ = built(saver, *rounds, *[says(str(n)) for n in range(60)], name=name, tools=(look, ask))
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    if agent.get_state(CONFIG).interrupts:  # in some presets the run has ended before the question
        agent.invoke(Command(resume="yes"), CONFIG)
    agent.invoke({"messages": [("user", "more")]}, CONFIG)
    return saver, tuple(row.config for row in agent.get_state_history(CONFIG))


WRITES: dict[str, Any] = {
    "nothing": None,
    "a user": {"messages": [HumanMessage("hm")]},
    "an answer": {"messages": [AIMessage("hm")]},
    "calls": {"messages": [calls(PLANS["wakeloop"], ("look", {"path": "q"}), ("gone", {}))]},
    "a list": {"todos": [{"content": "n"}, {"content": "m", "status": "completed"}]},
    "a list, a goal": {"todos": [{"content": "n"}], "messages": [HumanMessage("x")], "todo_goal": "g"},
    "no notes": {"todo_ledger": {}},
}


def check_continuation(name: str, at: int, node: str, write: str, other: str, *, asks: bool) -> None:
    """Edit as a node at a checkpoint, continue in another build, and check what every run promises."""
    saver, rows = story(name)
    saver = copied(saver)
    agent, model = built(
        saver, *[says(str(n)) for n in range(90)], name=other, tools=(look, ask) if asks else (look,)
    )
    here = agent.update_state(rows[at % len(rows)], WRITES[write], as_node=node)
    agent.invoke(None, here)
    now = agent.get_state(CONFIG)
    session = session_of(now)
    if not model.requests and node == "finalization_guard":  # such an edit ends a run where it is
        agent.invoke({"messages": [("user", "again")]}, CONFIG)
        now = agent.get_state(CONFIG)
        session = session_of(now)
    assert session["state"] in ("idle", "dormant") or now.interrupts or session["on"] == "human", session
    if session.get("on") == "human":  # after two silences a person has to speak, only in our own presets
        assert {name, other} & {"wakeloop", "langchain"}
    assert all("id" in todo for todo in now.values["todos"])
    assert wire_faults(model.requests) == []
    if not now.interrupts:
        update_todos(agent, CONFIG, add=["by hand"])


@given(
    st.sampled_from(PRESETS),
    st.integers(0, 60),
    st.sampled_from(NODES),
    st.sampled_from(list(WRITES)),
    st.sampled_from(PRESETS),
    st.booleans(),
)
@examples(60)
def test_an_edit_as_any_node_at_any_checkpoint_continues_in_any_build(
    name: str, at: int, node: str, write: str, other: str, asks: bool
) -> None:
    check_continuation(name, at, node, write, other, asks=asks)


# -- a resume at an older checkpoint -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("what", [Command(resume="y"), None], ids=["resume", "none"])
def test_a_resume_at_an_older_checkpoint_has_nothing_to_answer(what: Any) -> None:
    saver, rows = story("wakeloop")
    for row in rows:
        agent, _ = built(copied(saver), *[says(str(n)) for n in range(90)], tools=(look, ask))
        if what is None or agent.get_state(row).next:
            agent.invoke(what, row)
        else:
            with pytest.raises(InputError, match="waits at none"):
                agent.invoke(what, row)
