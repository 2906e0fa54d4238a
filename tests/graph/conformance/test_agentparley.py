"""agentparley: todos and the wake loop of a session, rule by rule.

What belongs to the session host rather than the loop is tested with the host: the tools that ask a person or
a peer and that start a subagent, sending without parking, replies without a target, cron schedules, and the
delivery of the final text to a peer that is still owed a reply.
"""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from stage import Make, kind_of, owe, wait_for

from wakeloop.testing import calls

NAME = "agentparley"


def write(*items: str, **more: Any) -> Any:
    return calls(("todo_write", {"items": list(items)}), **more)


def close(*ids: Any) -> Any:
    return calls(*(("todo_update", {"id": i, "status": "done"}) for i in ids))


def block(i: Any, reason: str) -> Any:
    return calls(("todo_update", {"id": i, "status": "blocked", "reason": reason}))


def items_of(nudge: str) -> list[str]:
    """Return the list inside a nudge: its lines that begin with two spaces."""
    return [line for line in nudge.split("\n") if line.startswith("  ")]


# -- the list --------------------------------------------------------------------------------------------


def test_blocked_is_held_with_a_reason(stage: Make) -> None:
    s = stage(NAME).run(write("a"), block(1, "no key"), "Stuck.")
    assert s.result.startswith("[1] blocked: a.")
    assert s.todos == [{"id": 1, "content": "a", "status": "blocked", "reason": "no key"}]
    assert (s.asked, s.notices, s.ending) == (3, [], ("dormant", "blocked"))


# -- the tools -------------------------------------------------------------------------------------------


def test_todo_write_adds_and_returns_each_new_id(stage: Make) -> None:
    s = stage(NAME).run(write("a", "b"), write("c"), close(1, 2, 3), "Done.")
    first, second = s.results_of("todo_write")
    assert items_of(first) == ["  [1] a", "  [2] b"]
    assert items_of(second) == ["  [3] c"]
    assert [todo["id"] for todo in s.todos] == [1, 2, 3]


def test_todo_list_of_an_empty_list(stage: Make) -> None:
    s = stage(NAME).run(calls(("todo_list", {})), "Nothing.")
    assert s.result == "The list is empty."


def test_todo_update_done(stage: Make) -> None:
    s = stage(NAME).run(write("a", "b"), close(1), close(2), "Done.")
    assert s.results_of("todo_update")[0] == "[1] done: a. 1 of 2 closed, 1 open."


@pytest.mark.parametrize("status", ["in_progress", "cancelled", "open", "completed", "Done"])
def test_the_model_sets_only_done_and_blocked(stage: Make, status: str) -> None:
    bad = calls(("todo_update", {"id": 1, "status": status}))
    s = stage(NAME).run(write("a"), bad, close(1), "Done.")
    refused = s.results[1]
    assert refused.status == "error"
    assert "'done'" in str(refused.content)
    assert "'blocked'" in str(refused.content)
    assert status in str(refused.content)
    (schema,) = [t["function"] for t in s.model.bound[0] if t["function"]["name"] == "todo_update"]
    assert schema["parameters"]["properties"]["status"]["enum"] == ["done", "blocked"]


@pytest.mark.parametrize("key", ["#1", "[1]", "1.", "1.0", " 1 ", "1, 2", [1]], ids=str)
def test_only_the_exact_id_is_accepted(stage: Make, key: Any) -> None:
    s = stage(NAME).run(write("a", "b"), close(key), close(1, 2), "Done.")
    assert s.results[1].status == "error"
    assert "1" in str(s.results[1].content)


# -- the nudge -------------------------------------------------------------------------------------------


def test_the_nudge_is_a_user_message_with_the_live_list_inline(stage: Make) -> None:
    s = stage(NAME).run(
        write("read", "ask", "write"), calls(("todo_update", {"id": 1, "status": "done"})),
        block(2, "nobody answers"), "Later.", close(3), "Done."
    )  # fmt: skip
    (nudge,) = s.injected("wake")
    paragraphs = nudge.split("\n\n")
    assert len(paragraphs) == 3
    instruction, listed, more = paragraphs
    assert "\n" not in instruction
    assert '`todo_update(id, "done")`' in instruction
    assert listed == "  [2] ask (blocked: nobody answers)\n  [3] write"
    assert "\n" not in more
    assert "`todo_list`" in more
    message = next(m for m in s.messages if kind_of(m) == "wake")
    assert isinstance(message, HumanMessage)


# -- how a session yields --------------------------------------------------------------------------------


SOURCES = {
    "a human message": {"messages": [("user", "news")]},
    "a human's event": {"todo_inbox": [{"kind": "human", "id": "e", "text": "news"}]},
    "a peer's message": {"todo_inbox": [{"kind": "peer_message", "id": "e", "text": "news"}]},
    "a peer's reply": {"todo_inbox": [{"kind": "peer_reply", "id": "e", "text": "news"}]},
    "a cron kick": {"todo_inbox": [{"kind": "cron", "id": "e", "text": "news"}]},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_wake_source_ends_dormancy_and_restores_the_whole_budget(stage: Make, source: Any) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}).run(write("a"), "Later.", close(1), "Done.")
    assert s.session["state"] == "dormant"
    s.run(write("b"), "Later.", "Later.", "Later.", given=source)
    assert "news" in str(s.model.requests[0][-1].content)
    assert s.notices == ["1/2", "2/2"]


def test_a_kick_on_open_items_continues_the_list_and_spends_nothing(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1}).run(write("a"), "Later.", "Later.")
    s.run(close(1), "Done.", given={"todo_inbox": [{"kind": "kick", "id": "e"}]})
    assert items_of(str(s.model.requests[0][-1].content)) == ["  [1] a"]
    assert (s.ledger["wake_cycles"], s.notices) == (0, [])


# -- the states of the product ---------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["human", "peer", "approval"])
def test_awaiting_states_are_waiting_and_say_on_what(stage: Make, on: str) -> None:
    s = stage(NAME, tools=[wait_for]).run(calls(("wait_for", {"on": on})), "I have asked.")
    assert (s.session["state"], s.session["on"]) == ("waiting", on)


# -- interpretations where it is silent ------------------------------------------------------------------


def test_several_nudges_are_one_message_and_one_cycle_reply_before_todos(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1}, tools=[owe])
    s.run(calls(("owe", {"peer": "Ada"})), write("a"), "Later.", "Later.")
    (nudge,) = s.injected("wake")
    assert (s.notices, s.ledger["wake_cycles"]) == (["1/1"], 1)
    assert nudge.index("Ada") < nudge.index("  [1] a")
    assert [event["reasons"] for event in s.events if event["type"] == "wake"] == [["reply", "todos"]]
