"""update_todos: manual edits of a thread's list."""

import asyncio
from typing import Any

import pytest
from agents import CONFIG, END, START, TODO, WAKE, Make, done, session, todo, write
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from wakeloop import EditError, aupdate_todos, create_todo_agent, session_of, update_todos
from wakeloop.testing import ScriptedModel, calls, says

QUIET = {"max_wake_cycles": 0, "guard_retries": 0}


def edit(agent: Any, **edits: Any) -> list[Any]:
    """Edit through the door of the thread."""
    if agent.door == "sync":
        return update_todos(agent.graph, agent.at(), **edits)
    return asyncio.run(aupdate_todos(agent.graph, agent.at(), **edits))


def with_items(thread: Make, *items: str, more: Any = ()) -> Any:
    agent = thread(write(*items), ".", *more, change=QUIET)
    agent.run("go")
    return agent


EDITS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "add": ({"add": [" c ", "a"]}, [todo(1, "a"), todo(2, "b"), todo(3, "c"), todo(4, "a")]),
    "done": ({"done": [1, "2"]}, [todo(1, "a", "completed"), todo(2, "b", "completed")]),
    "start": ({"start": [1, 2]}, [todo(1, "a", "in_progress"), todo(2, "b", "in_progress")]),
    "block": ({"block": {2: "no key"}}, [todo(1, "a"), todo(2, "b", "blocked", reason="no key")]),
    "cancel": ({"cancel": [1]}, [todo(1, "a", "cancelled"), todo(2, "b")]),
    "remove": ({"remove": [1]}, [todo(2, "b")]),
    "edit": ({"edit": {1: " A "}}, [todo(1, "A"), todo(2, "b")]),
    "clear": ({"clear": True}, []),
    "clear and add": ({"clear": True, "add": ["c"]}, [todo(3, "c")]),
    "several": (
        {"add": ["c"], "done": [1], "remove": [2], "edit": {3: "C"}},
        [todo(1, "a", "completed"), todo(3, "C")],
    ),
    "nothing": ({}, [todo(1, "a"), todo(2, "b")]),
}


@pytest.mark.parametrize("name", EDITS)
def test_every_edit(name: str, thread: Make) -> None:
    edits, wanted = EDITS[name]
    agent = with_items(thread, "a", "b")
    assert edit(agent, **edits) == wanted
    assert agent.todos == wanted
    left = sum(item["status"] in ("pending", "in_progress") for item in wanted)
    assert agent.session["open"] == agent.values["todo_session"]["open"] == left
    assert agent.session["state"] == ("idle" if left else "dormant")
    assert agent.snapshot.next == ()


def test_reopen(thread: Make) -> None:
    agent = with_items(thread, "a")
    edit(agent, block={1: "why"})
    assert edit(agent, reopen=[1]) == [todo(1, "a")]


@pytest.mark.parametrize(
    "edits",
    [
        {"done": [9]},
        {"start": ["x"]},
        {"block": {9: "why"}},
        {"cancel": [9]},
        {"reopen": [9]},
        {"remove": [9]},
        {"edit": {9: "x"}},
        {"edit": {1: " "}},
        {"add": [" "]},
        {"add": ["ok", ""]},
        {"block": {1: " "}},
        {"add": ["ok"], "done": [1, 9]},
        {"clear": True, "done": [1]},
    ],
)
def test_a_bad_edit_changes_nothing(edits: dict[str, Any], thread: Make) -> None:
    agent = with_items(thread, "a")
    before = agent.snapshot
    with pytest.raises(EditError) as raised:
        edit(agent, **edits)
    assert str(raised.value).startswith("Nothing was changed: ")
    assert agent.snapshot.config == before.config
    assert agent.todos == [todo(1, "a")]


def test_the_goal(thread: Make) -> None:
    agent = with_items(thread, "a")
    edit(agent, goal="tidy up")
    assert agent.values["todo_goal"] == "tidy up"
    assert agent.session == session("idle", "disabled", 1, 0, 0)
    edit(agent, clear=True)
    assert agent.values["todo_goal"] == ""


def test_a_fresh_thread_may_be_edited_and_then_kicked(thread: Make) -> None:
    agent = thread(done(1), "bye")
    assert edit(agent, add=["a"]) == [todo(1, "a")]
    assert agent.session == session("idle", None, 1, 0, 0)
    assert agent.walk({}) == [*START, *TODO, *END]


def test_an_edited_thread_continues_with_the_edited_list(thread: Make) -> None:
    agent = with_items(thread, "a", more=[done(2), "bye"])
    edit(agent, done=[1], add=["b"])
    assert agent.walk({}) == [*START, *TODO, *END]
    assert "  [2] b" in agent.messages[4].text
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]


def test_closing_all_by_hand_settles_the_thread_and_adding_reopens_it(thread: Make) -> None:
    agent = with_items(thread, "a")
    edit(agent, done=[1])
    assert agent.session == session("dormant", "settled", 0, 0, 0)
    edit(agent, add=["b"])
    assert agent.session == session("idle", None, 1, 0, 0)


def test_an_edit_that_closes_nothing_leaves_the_reason(thread: Make) -> None:
    agent = thread([""] * 5)
    agent.run("go")
    edit(agent, goal="x")
    assert agent.session == session("dormant", "empty_reply", 0)


def test_a_number_is_never_used_again(thread: Make) -> None:
    agent = with_items(thread, "a", "b", more=[write("d"), "."])
    edit(agent, remove=[2])
    edit(agent, add=["c"])
    agent.run("more")
    assert [item["id"] for item in agent.todos] == [1, 3, 4]


def test_a_thread_at_an_interrupt_is_refused(thread: Make) -> None:
    def ask(question: str) -> str:
        """Ask."""
        return str(interrupt(question))

    agent = thread(write("a"), calls(("ask", {"question": "?"})), tools=[ask])
    agent.run("go")
    with pytest.raises(EditError, match="Resume"):
        edit(agent, done=[1])
    assert agent.session["reason"] == "interrupted"


def test_a_thread_that_has_not_finished_is_refused(thread: Make) -> None:
    agent = thread(write("a"), OSError("no network"), done(1), "bye")
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    with pytest.raises(EditError, match="Resume"):
        edit(agent, done=[1])
    assert agent.walk(None) == ["call_model", *TODO, *END]


def test_an_edit_spends_and_resets_nothing(thread: Make) -> None:
    agent = thread(write("a", "b"), ".", ".", change={"max_wake_cycles": 1, "guard_retries": 0})
    assert agent.walk("go") == [*START, *TODO, *WAKE, *END]
    ledger = agent.ledger
    edit(agent, done=[1])
    unseen = {"items": [[1, todo(1, "a"), "a person"]]}
    assert agent.ledger == {**ledger, "next_id": 3, "writes": ledger["writes"] + 1, "unseen": unseen}


class DiesBetweenSteps(InMemorySaver):
    """Loses the fourth checkpoint: the writes of its superstep are stored, but not the step after it."""

    left = 4

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().put(*args, **kwargs)


def test_a_run_killed_between_two_supersteps_is_unfinished_although_next_is_empty() -> None:
    model = ScriptedModel(calls(("todo_write", {"items": ["a"]})), *[says("x")] * 7)
    agent = create_todo_agent(model, checkpointer=DiesBetweenSteps())
    config: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(KeyboardInterrupt):
        agent.invoke({"messages": [("user", "go")]}, config, durability="sync")
    snapshot = agent.get_state(config)
    assert (snapshot.next, [task.name for task in snapshot.tasks]) == ((), ["call_model"])
    assert session_of(snapshot) == {"state": "running", "reason": None}
    with pytest.raises(EditError, match=r"has not finished its run\. Resume it first"):
        update_todos(agent, config, add=["by hand"])
    assert agent.invoke(None, config)["todo_session"]["reason"] == "stalled"


def test_items_written_by_hand_without_ids_keep_those_that_an_edit_assigns() -> None:
    agent = create_todo_agent(ScriptedModel(says("bye")), checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    agent.update_state(
        CONFIG, {"todos": [{"content": "b", "status": "pending"}]}, as_node="finalization_guard"
    )
    first = update_todos(agent, CONFIG, add=["c"])
    assert [todo["id"] for todo in first] == [1, 2]
    assert update_todos(agent, CONFIG, add=["d"])[:2] == first
