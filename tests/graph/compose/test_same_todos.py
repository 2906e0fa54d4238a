"""The list in a stream of updates is the one that UIs for `TodoListMiddleware` read."""

from typing import Any

import pytest
from laid_over import GO, THREAD, ended, laid, plan, settled
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from wakeloop.middleware import ChangesState
from wakeloop.testing import ScriptedModel, calls, says


def lists(agent: Any, given: Any = GO) -> list[Any]:
    """Return each `todos` of a stream of updates, whichever node wrote it."""
    found = []
    for part in agent.stream(given, THREAD, stream_mode="updates"):
        found += [
            update["todos"] for update in part.values() if isinstance(update, dict) and "todos" in update
        ]
    return found


def item(status: str) -> dict[str, Any]:
    return {"id": 1, "content": "a", "status": status}


def test_the_whole_list_is_in_each_update_that_changes_it() -> None:
    script = [calls(plan("a")), calls(plan("a", "b")), calls(plan("a!", "b!")), says("bye")]
    assert [[todo["status"] for todo in todos] for todos in lists(laid(ScriptedModel(*script)))] == [
        ["pending"],
        ["pending"] * 2,
        ["completed"] * 2,
    ]
    assert lists(laid(ScriptedModel(*settled()))) == [[item("pending")], [item("completed")]]


def test_each_state_of_a_run_has_the_list_as_uis_read_it() -> None:
    """Deep Agents UI and useStream read the values: id, content and one of three statuses."""
    states = list(laid(ScriptedModel(*settled())).stream(GO, THREAD, stream_mode="values"))
    seen = [state["todos"] for state in states if "todos" in state]
    assert all(isinstance(todos, list) for todos in seen)
    assert {tuple(todo) for todos in seen for todo in todos} == {("id", "content", "status")}
    assert (seen[0], seen[-1]) == ([], [item("completed")])


def test_changes_stay_in_the_state_that_stores_changes() -> None:
    agent = laid(ScriptedModel(*settled()), state_schema=ChangesState)
    assert lists(agent) == [{"put": [item(status)], "own": True} for status in ("pending", "completed")]


def test_an_input_list_gets_its_ids_in_the_stream() -> None:
    agent = laid(ScriptedModel(calls(plan("a!")), says("bye")))
    given = {**GO, "todos": [{"content": "a", "status": "pending"}]}
    assert lists(agent, given) == [[item("pending")], [item("completed")]]
    assert ended(agent) == ("dormant", "settled", 2)


def test_the_loops_own_list_is_not_taken_for_somebody_elses() -> None:
    """Nor is a tool's list taken for its own."""

    def edit() -> Any:
        """Edit the list."""
        edited = [item("pending"), {"id": 2, "content": "b", "status": "pending"}]
        return Command(update={"todos": edited, "messages": [ToolMessage("edited", tool_call_id="1")]})

    script = [calls(plan("a")), calls(("edit", {}, "1")), calls(plan("a!", "b!")), says("bye")]
    model = ScriptedModel(*script)
    agent = laid(model, tools=[edit])
    agent.invoke(GO, THREAD)
    assert "Added by" not in "".join(message.text for message in model.requests[1])
    assert "Added by edit:" in model.requests[2][-1].text
    assert ended(agent) == ("dormant", "settled", 4)


@pytest.mark.parametrize("options", [{}, {"state_schema": ChangesState}], ids=["whole", "changes"])
def test_a_thread_continues_with_the_list_that_it_stored(options: Any) -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        first = laid(ScriptedModel(calls(plan("a")), RuntimeError("down")), checkpointer=saver, **options)
        with pytest.raises(RuntimeError, match="down"):
            first.invoke(GO, THREAD)
        again = laid(ScriptedModel(calls(plan("a!")), says("bye")), checkpointer=saver, **options)
        again.invoke(Command(resume={}), THREAD)
        assert again.get_state(THREAD).values["todos"] == [item("completed")]
