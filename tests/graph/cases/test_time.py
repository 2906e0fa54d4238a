"""Cases C18 and C19: old lists, resumed threads, forks."""

from typing import Any

import pytest
from langchain_core.tools import tool
from rig import Rig, close, marks, users, write

from wakeloop import answer_of, aupdate_todos, preset, session_of, update_todos
from wakeloop.testing import calls

SHORT = preset("wakeloop").model_copy(update={"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0})
TOPIC = "unrelated:  2+2?\n\t(é, 漢, 🙂) "


def spent(rig: Rig, **options: Any) -> None:
    """Return a thread that has left one item open and has spent its budget."""
    rig.build(write("a", "b"), close(1), "Enough.", "Enough, I said.", settings=SHORT, **options)
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "wake_budget", 1)


def by_hand(rig: Rig, **what: Any) -> None:
    """Edit the thread's list by hand, through the door that fits the saver."""
    if rig.runner is None:
        update_todos(rig.agent, rig.config, **what)
    else:
        rig.wait(aupdate_todos(rig.agent, rig.config, **what))


# -- C18 -------------------------------------------------------------------------------------------------


def test_c18_an_old_list_and_a_new_topic(rig: Rig) -> None:
    spent(rig)
    rig.then("4", "Still 4.")
    out = rig.run(TOPIC)
    rig.model.assert_done()
    if rig.keeps:
        asked, named = rig.model.requests[0][-2:]
        assert asked.content == TOPIC
        assert "Still open from before:" in named.content
    else:  # without a thread, nothing says which items are from before
        assert rig.model.requests[0][-1].content == TOPIC
    assert [(t["id"], t["status"]) for t in out["todos"]] == [(1, "completed"), (2, "pending")]
    if rig.keeps:
        assert rig.ending == ("waiting", "waiting", 1)  # after two silences it is the person's turn
        assert answer_of(out) == "4"
    else:
        assert rig.ending == ("idle", "wake_budget", 1)
    assert users(out["messages"]) == ["go", TOPIC]
    rig.follow_up()


def test_c18_the_list_is_cleared_by_hand(kept: Rig) -> None:
    spent(kept)
    by_hand(kept, clear=True)
    assert kept.todos == []
    assert kept.session["state"] == "dormant"
    kept.then("4")
    kept.run(TOPIC)
    kept.model.assert_done()
    assert kept.ending == ("dormant", "answered", 0)
    kept.then(write("c"), close(3), "Done.")  # no number is used twice
    kept.run("plan again")
    kept.model.assert_done()
    assert [todo["id"] for todo in kept.todos] == [3]


def test_c18_the_list_is_cleared_by_the_input(rig: Rig) -> None:
    spent(rig)
    rig.then("4")
    rig.run({"messages": [("user", TOPIC)], "todos": []})
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)
    assert rig.todos == []


def test_c18_no_budget_at_all_answers_the_new_topic_once(rig: Rig) -> None:
    off = SHORT.model_copy(update={"max_wake_cycles": 0})
    rig.build(write("a"), "Planned.", settings=off)
    rig.run("plan")
    rig.then("4")
    out = rig.run(TOPIC)
    rig.model.assert_done()
    assert answer_of(out) == "4"
    assert rig.ending == ("idle", "disabled", 0)


# -- C19 -------------------------------------------------------------------------------------------------


@tool
def work(step: str) -> str:
    """Do a step."""
    return f"did {step}"


def history(rig: Rig) -> list[Any]:
    if rig.runner is None:
        return list(rig.agent.get_state_history(rig.config))

    async def collected() -> list[Any]:
        return [snapshot async for snapshot in rig.agent.aget_state_history(rig.config)]

    return list(rig.wait(collected()))


def at(rig: Rig, config: dict[str, Any]) -> Any:
    if rig.runner is None:
        return rig.agent.get_state(config)
    return rig.wait(rig.agent.aget_state(config))


def test_c19_list_counters_and_messages_come_from_one_checkpoint(kept: Rig) -> None:
    kept.build(
        write("a", "b"), "one", calls(("work", {"step": "x"})), close(1), "two", *["no"] * 6, tools=[work]
    )
    kept.run("go")
    kept.model.assert_done()
    assert kept.ending == ("idle", "stalled", 6)
    head = kept.snapshot
    older = [s for s in history(kept) if s.next == ("finalization_guard",)]
    # the turn that closed an item: the second text
    point = next(s for s in older if s.values["messages"][-1].content == "two")
    assert point.values["todo_ledger"]["wake_cycles"] == 1
    assert [t["status"] for t in point.values["todos"]] == ["completed", "pending"]
    assert [m.content for m in point.values["messages"] if m.type == "tool"][1] == "did x"

    branch = {"configurable": dict(point.config["configurable"])}
    kept.then(close(2), "Done.")
    kept.config = {"configurable": {"thread_id": "thread"}}
    kept.run(None, **branch)
    kept.model.assert_done()
    assert kept.ending == ("dormant", "settled", 2)  # one from the checkpoint, one of its own
    assert marks(kept.messages) == ["wake", "wake"]
    ids = [message.id for message in kept.messages]
    assert len(ids) == len(set(ids))
    assert users(kept.messages) == ["go"]

    other = at(kept, head.config)
    assert session_of(other) == session_of(head)
    assert [m.id for m in other.values["messages"]] == [m.id for m in head.values["messages"]]
    assert other.values["todos"] == head.values["todos"]
    assert other.values["todo_ledger"] == head.values["todo_ledger"]
    kept.models = kept.models[-1:]  # the prefix of a branch is that of its own starting point


def test_c19_a_message_from_an_older_checkpoint(kept: Rig) -> None:
    kept.build(write("a", "b"), close(1), "Half.", close(2), "Whole.")
    kept.run("go")
    kept.then("Second.")
    kept.run("more")
    ended = [s for s in history(kept) if not s.next]
    first = ended[-1]
    assert session_of(first)["reason"] == "settled"
    kept.then("A branch.")
    out = kept.run("instead", configurable=dict(first.config["configurable"]))
    kept.model.assert_done()
    assert users(out["messages"]) == ["go", "instead"]
    assert kept.model.requests[0][-1].content == "instead"
    assert users(at(kept, ended[0].config).values["messages"]) == ["go", "more"]
    kept.models = [kept.models[0], kept.models[-1]]


def test_c19_a_fork_from_the_middle_of_a_round_runs_it_again(kept: Rig) -> None:
    kept.build(write("a"), calls(("work", {"step": "x"})), close(1), "Done.", tools=[work])
    kept.run("go")
    before = next(s for s in history(kept) if s.next == ("run_tools",))
    kept.then("Stopped.", close(1), "Done again.")
    out = kept.run(None, configurable=dict(before.config["configurable"]))
    kept.model.assert_done()
    assert [m.content for m in out["messages"] if m.type == "tool"][1] == "did x"
    assert kept.ending == ("dormant", "settled", 1)
    kept.models = kept.models[-1:]


@pytest.mark.parametrize("what", [{"add": ["c"]}, {"done": [2]}, {"goal": "g"}])
def test_c19_a_manual_edit_is_one_checkpoint_on_top(kept: Rig, what: dict[str, Any]) -> None:
    spent(kept)
    count = len(history(kept))
    by_hand(kept, **what)
    snapshots = history(kept)
    assert len(snapshots) == count + 1
    assert snapshots[0].next == ()
    kept.follow_up()


@pytest.mark.parametrize("kick", [{"messages": []}, {}])
def test_c18_an_empty_kick_resumes_an_open_list(kept: Rig, kick: dict[str, Any]) -> None:
    spent(kept)
    kept.then(close(2), "Done.")
    kept.run(kick)
    kept.model.assert_done()
    assert marks(kept.model.requests[0]) == ["wake", "activate"]
    assert "  [2] b" in str(kept.model.requests[0][-1].content)
    assert kept.ending == ("dormant", "settled", 0)  # what it injects is its input and spends nothing
    if kept.door.endswith("stream"):
        assert [e["sources"] for e in kept.events if e["type"] == "activated"] == [["human"], ["kick"]]


def test_c18_an_empty_kick_over_a_settled_list_requests_nothing(kept: Rig) -> None:
    kept.build(write("a"), close(1), "Done.")
    kept.run("go")
    before = len(kept.messages)
    kept.then()
    kept.run({"messages": []})
    assert kept.model.requests == []
    assert len(kept.messages) == before
    assert kept.ending == ("dormant", "settled", 0)  # as in the run before it
    kept.follow_up()
