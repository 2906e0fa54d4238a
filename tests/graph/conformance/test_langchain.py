"""Lists of LangChain's kind: what other interfaces read, and threads that other graphs began.

LangChain's `TodoListMiddleware` and deepagents keep a channel `todos`, a plain list of `{content, status}`
next to `messages` with `add_messages`, and a tool `write_todos(todos)`. Their interfaces read that channel.
"""

import pytest
from langchain_core.messages import AIMessage
from stage import CONFIG, Make, injected
from theirs import DONE, ROWS, begin, plain

from wakeloop import session_of
from wakeloop.testing import calls


def test_every_streamed_state_holds_it_too(stage: Make) -> None:
    s = stage("cubepi", {"guard_retries": 0})
    s.build(calls(("write_todos", {"todos": ROWS})), "Stopping.")
    lists = [
        plain(state["todos"])
        for state in s.agent.stream({"messages": [("user", "go")]}, CONFIG, stream_mode="values")
    ]
    assert lists[0] == []
    assert lists[-1] == ROWS


def test_a_thread_started_there_can_be_read(stage: Make) -> None:
    s = stage("cubepi")
    begin(s.options["checkpointer"], ROWS)
    snapshot = s.snapshot
    assert plain(snapshot.values["todos"]) == ROWS
    assert [m.type for m in snapshot.values["messages"]] == ["human", "ai", "tool", "ai"]
    assert session_of(snapshot)["open"] == 1


def test_a_thread_started_there_can_be_continued(stage: Make) -> None:
    s = stage("cubepi")
    begin(s.options["checkpointer"], ROWS)
    s.run("Done!", calls(("write_todos", {"todos": DONE})), "Now it is.", given="keep going")
    assert [m.type for m in s.model.requests[0]] == ["system", "human", "ai", "tool", "ai", "human"]
    assert len(s.injected("guard")) == 1
    assert "  - [in_progress] b" in s.injected("guard")[0]
    assert s.todos == [{"id": 1, **DONE[0]}, {"id": 2, **DONE[1]}]
    assert s.ending == ("dormant", "settled")


@pytest.mark.parametrize("name", ["wakeloop", "agentparley", "loki"])
def test_it_can_be_continued_under_the_other_presets(stage: Make, name: str) -> None:
    s = stage(name, {"auto_continue": True})
    begin(s.options["checkpointer"], ROWS)
    close = {"loki": ("todo__done", {"id": 2})}.get(name, ("todo_update", {"id": 2, "status": "done"}))
    s.run("Soon.", calls(close), "Done.", given="keep going")
    assert s.notices[0].startswith("1/")
    assert s.todos == [{"id": 1, **DONE[0]}, {"id": 2, **DONE[1]}]


def test_a_kick_continues_the_existing_list(stage: Make) -> None:
    s = stage("cubepi")
    begin(s.options["checkpointer"], ROWS)
    s.run(calls(("write_todos", {"todos": DONE})), "Done.", given={"messages": []})
    (kick,) = injected(s.messages, "activate")
    assert "  - [in_progress] b" in kick
    assert s.ending == ("dormant", "settled")


def test_a_call_left_open_there_is_answered(stage: Make) -> None:
    call = {"name": "look", "args": {"path": "x"}, "id": "call_open", "type": "tool_call"}
    s = stage("cubepi")
    begin(s.options["checkpointer"], ROWS, AIMessage("", tool_calls=[call]))
    s.run(calls(("write_todos", {"todos": DONE})), "Done.", given="keep going")
    answered = [m.tool_call_id for m in s.results]
    assert answered[:2] == ["call_theirs", "call_open"]


def test_their_graph_can_read_the_thread_after_ours(stage: Make) -> None:
    s = stage("cubepi")
    theirs = begin(s.options["checkpointer"], ROWS)
    s.run(calls(("write_todos", {"todos": DONE})), "Done.", given="keep going")
    rows = s.agent.get_state(CONFIG).values["todos"]
    assert plain(rows) == DONE
    assert theirs.get_state(CONFIG).created_at


# -- items that are completed individually ----------------------------------------------------------------

SIX = [{"content": text} for text in "abcdef"]


def send(**args: object) -> AIMessage:
    return calls(("write_todos", args))


def test_items_are_completed_by_their_contents_alone(stage: Make) -> None:
    s = stage("langchain")
    s.run(send(todos=SIX), send(completed=["a", " c "]), send(completed=list("bdef")), "Done.")
    assert [result.text for result in s.results] == [
        '{"open": 6}',
        '{"open": 4, "next": "b"}',
        '{"open": 0, "note": "All items are completed. Check the results once more before you answer."}',
    ]
    assert [todo["status"] for todo in s.todos] == ["completed"] * 6
    assert s.ending == ("dormant", "settled")


def test_among_equal_items_the_first_open_one_is_meant_and_an_unknown_one_changes_nothing(
    stage: Make,
) -> None:
    s = stage("langchain", {"max_wake_cycles": 0, "guard_retries": 0})
    twins = [{"content": "a"}, {"content": "a"}]
    s.run(send(todos=twins), send(completed=["a"]), send(completed=["a", "x"]), "Stopping.")
    assert [todo["status"] for todo in s.todos] == ["completed", "pending"]
    assert "there is no item 'x'; send the text of an item as it is in the list" in s.results[-1].text


def test_a_list_may_complete_some_items_as_it_is_sent(stage: Make) -> None:
    s = stage("langchain", {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(send(todos=[{"content": "a"}, {"content": "b"}], completed=["a"]), send(), "Stopping.")
    assert [todo["status"] for todo in s.todos] == ["completed", "pending"]
    assert "send todos, or the texts of completed items" in s.results[-1].text


def test_a_verifier_is_asked_about_each(stage: Make) -> None:
    s = stage("langchain", {"max_wake_cycles": 0, "guard_retries": 0}, verify=refuses_b)
    s.run(send(todos=SIX), send(completed=["a", "b"]), "Stopping.")
    assert [todo["status"] for todo in s.todos][:2] == ["completed", "pending"]
    assert '"not_accepted": {"b": "not yet"}' in s.results[-1].text


def refuses_b(todo: dict[str, str], state: object) -> str | None:
    return "not yet" if todo["content"] == "b" else None


def test_its_nudge_is_short_if_the_list_was_sent(stage: Make) -> None:
    s = stage("langchain", {"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0})
    s.run(send(todos=SIX), send(completed=["a"]), "So far.", "Later.")
    assert s.injected("wake") == [
        "(automatic) 5 of 6 items unfinished. Continue, using tools:\n\n  - [pending] b\n… 4 more."
    ]


def test_if_one_item_must_be_in_progress_the_whole_list_is_sent(stage: Make) -> None:
    s = stage("cubepi", {"guard_retries": 0})
    s.run(send(completed=["a"]), "Stopping.")
    assert "todos: field required" in s.results[-1].text
