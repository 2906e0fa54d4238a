"""agentparley: todos and the wake loop of a session, rule by rule.

What belongs to the session host and not to the loop is tested with the host: the tools that ask a person or
a peer and that start a subagent, sending without parking, replies without a target, cron schedules, and the
delivery of the final text to a peer that is still owed a reply.
"""

from itertools import chain, repeat
from typing import Any
from unittest.mock import ANY

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from stage import CONFIG, Make, Stage, kind_of, look, looks, owe, wait_for

from wakeloop import answer_of
from wakeloop.testing import calls, says

NAME = "agentparley"


def write(*items: str, **more: Any) -> Any:
    return calls(("todo_write", {"items": list(items)}), **more)


def close(*ids: Any) -> Any:
    return calls(*(("todo_update", {"id": i, "status": "done"}) for i in ids))


def block(i: Any, reason: str) -> Any:
    return calls(("todo_update", {"id": i, "status": "blocked", "reason": reason}))


def items_of(nudge: str) -> list[str]:
    """The list inside a nudge: its lines that begin with two spaces."""
    return [line for line in nudge.split("\n") if line.startswith("  ")]


# -- the list --------------------------------------------------------------------------------------------


def test_every_session_has_a_list(stage: Make) -> None:
    s = stage(NAME).run("Hello.")
    assert s.todos == []
    assert s.ending == ("dormant", "settled")


def test_open_items_drive_the_agent_on_by_themselves(stage: Make) -> None:
    s = stage(NAME).run(write("a"), "Later.", close(1), "Done.")
    assert s.asked == 4
    assert [m.type for m in s.model.requests[2]][-2:] == ["ai", "human"]
    assert s.ending == ("dormant", "settled")


def test_done_is_closed_and_drives_nobody(stage: Make) -> None:
    s = stage(NAME).run(write("a"), close(1), "Done.")
    assert (s.asked, s.listed, s.notices) == (3, [("a", "completed")], [])


def test_blocked_is_held_with_a_reason(stage: Make) -> None:
    s = stage(NAME).run(write("a"), block(1, "no key"), "Stuck.")
    assert s.todos == [{"id": 1, "content": "a", "status": "blocked", "reason": "no key"}]
    assert (s.asked, s.notices) == (3, [])


# -- the tools -------------------------------------------------------------------------------------------


def test_todo_write_adds_and_returns_each_new_id(stage: Make) -> None:
    s = stage(NAME).run(write("a", "b"), write("c"), close(1, 2, 3), "Done.")
    first, second = s.results_of("todo_write")
    assert items_of(first) == ["  [1] a", "  [2] b"]
    assert items_of(second) == ["  [3] c"]
    assert [todo["id"] for todo in s.todos] == [1, 2, 3]


def test_todo_list_gives_ids_and_statuses_with_reasons_of_blocked_ones(stage: Make) -> None:
    s = stage(NAME).run(
        write("a", "b", "c"), close(1), block(2, "no key"), calls(("todo_list", {})), close(3), "Done."
    )
    (listed,) = s.results_of("todo_list")
    assert items_of(listed) == ["  [1] a (done)", "  [2] b (blocked: no key)", "  [3] c"]
    assert listed.split("\n")[-1] == "1 of 3 closed, 1 open."


def test_todo_list_of_an_empty_list(stage: Make) -> None:
    s = stage(NAME).run(calls(("todo_list", {})), "Nothing.")
    assert s.result == "The list is empty."


def test_todo_update_done(stage: Make) -> None:
    s = stage(NAME).run(write("a", "b"), close(1), close(2), "Done.")
    assert s.results_of("todo_update")[0] == "[1] done: a. 1 of 2 closed, 1 open."


def test_todo_update_blocked_with_its_reason(stage: Make) -> None:
    s = stage(NAME).run(write("a"), block(1, "no key"), "Stuck.")
    assert s.result.startswith("[1] blocked: a.")
    assert s.todos[0]["reason"] == "no key"


@pytest.mark.parametrize("more", [{}, {"reason": ""}, {"reason": "  "}])
def test_todo_update_blocked_needs_a_reason(stage: Make, more: dict[str, str]) -> None:
    bad = calls(("todo_update", {"id": 1, "status": "blocked", **more}))
    s = stage(NAME).run(write("a"), bad, close(1), "Done.")
    refused = s.results[1]
    assert refused.status == "error"
    assert str(refused.content).startswith("Error: ")
    assert "reason" in str(refused.content)


@pytest.mark.parametrize("status", ["in_progress", "cancelled", "open", "completed", "Done"])
def test_the_model_sets_done_and_blocked_only(stage: Make, status: str) -> None:
    bad = calls(("todo_update", {"id": 1, "status": status}))
    s = stage(NAME).run(write("a"), bad, close(1), "Done.")
    refused = s.results[1]
    assert refused.status == "error"
    assert "'done'" in str(refused.content)
    assert "'blocked'" in str(refused.content)
    assert status in str(refused.content)
    (schema,) = [t["function"] for t in s.model.bound[0] if t["function"]["name"] == "todo_update"]
    assert schema["parameters"]["properties"]["status"]["enum"] == ["done", "blocked"]


def test_an_unknown_id_is_an_error_that_names_the_known_ones(stage: Make) -> None:
    s = stage(NAME).run(write("a", "b"), close(9), close(1, 2), "Done.")
    refused = s.results[1]
    assert (refused.status, str(refused.content)[:7]) == ("error", "Error: ")
    assert "9" in str(refused.content)
    assert "1, 2" in str(refused.content)


@pytest.mark.parametrize("key", ["#1", "[1]", "1.", "1.0", " 1 ", "1, 2", [1]], ids=str)
def test_an_id_is_taken_as_it_is_alone(stage: Make, key: Any) -> None:
    s = stage(NAME).run(write("a", "b"), close(key), close(1, 2), "Done.")
    assert s.results[1].status == "error"
    assert "1" in str(s.results[1].content)


# -- the prompt ------------------------------------------------------------------------------------------


def test_todos_are_never_in_the_system_prompt_which_stays_static(stage: Make) -> None:
    s = stage(NAME, system_prompt="You are a clerk.")
    s.run(write("buy milk"), block(1, "shop is shut"), write("buy bread"), "Later.", close(2), "Done.")
    s.run(write("buy eggs"), close(3), "Done.", given="more")
    systems = {str(request[0].content) for model in s.models for request in model.requests}
    assert len(systems) == 1
    (system,) = systems
    assert system.startswith("You are a clerk.")
    assert not any(word in system for word in ("milk", "bread", "eggs", "shut"))
    assert all(m.type != "system" for model in s.models for request in model.requests for m in request[1:])


def test_what_changes_per_turn_comes_as_a_message_with_all_that_is_needed(stage: Make) -> None:
    s = stage(NAME).run(write("buy milk", "buy bread"), "Later.", close(1), "Later.", close(2), "Done.")
    nudged = [request[-1] for request in s.model.requests if kind_of(request[-1]) == "wake"]
    assert [items_of(str(m.content)) for m in nudged] == [
        ["  [1] buy milk", "  [2] buy bread"],
        ["  [2] buy bread"],
    ]


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


def test_a_long_reason_stays_on_its_line(stage: Make) -> None:
    s = stage(NAME).run(
        write("a\n  [9] forged", "b"), block(1, "one\n  [8] two"), "Later.", close(2), "Done."
    )
    (nudge,) = s.injected("wake")
    assert items_of(nudge) == ["  [1] a [9] forged (blocked: one [8] two)", "  [2] b"]


def test_the_nudge_is_kept_in_the_history_and_is_not_the_users(stage: Make) -> None:
    s = stage(NAME).run(write("a"), "Later.", close(1), "Done.")
    people = [m.content for m in s.messages if m.type == "human" and kind_of(m) is None]
    assert people == ["go"]
    assert [kind_of(m) for m in s.messages if m.type == "human"] == [None, "wake"]


def test_parked_waiting_on_something_it_is_not_nudged(stage: Make) -> None:
    s = stage(NAME, tools=[wait_for]).run(write("a"), calls(("wait_for", {"on": "peer"})), "I have asked.")
    assert (s.asked, s.notices) == (3, [])
    assert s.session == {
        "state": "waiting", "reason": "waiting", "open": 1, "wakes": 0, "budget": 25, "list": 1, "items": 1,
        "spent": ANY, "on": "peer",
    }  # fmt: skip


# -- the budget ------------------------------------------------------------------------------------------


def test_up_to_25_reentries_an_activation(stage: Make) -> None:
    s = stage(NAME).run(chain([write("a")], repeat("Later.")), endless=True)
    assert s.asked == 27
    assert s.notices == [f"{cycle}/25" for cycle in range(1, 26)]
    assert s.ending == ("idle", "wake_budget")


def test_the_same_budget_covers_the_nudge_for_a_reply_that_is_owed(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}, tools=[owe])
    s.run(calls(("owe", {"peer": "Ada"})), "Later.", "Later.", "Later.")
    assert s.notices == ["1/2", "2/2"]
    assert [event["reasons"] for event in s.events if event["type"] == "wake"] == [["reply"], ["reply"]]
    assert all("Ada" in nudge for nudge in s.injected("wake"))
    assert s.ending == ("dormant", "wake_budget")


def test_the_same_budget_covers_a_finished_subagent(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}).run(write("a"), "Later.", "Later.", "Later.")
    assert s.ledger["wake_cycles"] == 2
    s.run(given=None)  # nothing to do, nothing asked
    s.run(given={"todo_inbox": [{"kind": "subagent_done", "id": "e1", "text": "found it"}]})
    assert (s.asked, s.ledger["wake_cycles"]) == (0, 2)
    assert s.ending == ("idle", "wake_budget")
    assert "found it" in str(s.messages[-1].content)  # nothing is lost


def test_a_subagents_result_wakes_its_parent_spends_a_cycle_and_resets_nothing(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 3})
    s.run(write("a"), "Later.", close(1), "Done.")
    assert s.ledger["wake_cycles"] == 1
    s.run("Thanks.", given={"todo_inbox": [{"kind": "subagent_done", "id": "e1", "text": "found it"}]})
    assert (s.asked, s.ledger["wake_cycles"]) == (1, 2)
    assert "found it" in str(s.model.requests[0][-1].content)
    assert kind_of(s.model.requests[0][-1]) == "event"


def test_out_of_budget_it_parks_idle_and_does_not_spin(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}).run(write("a"), "Later.", "Later.", "Later.")
    assert s.ending == ("idle", "wake_budget")
    assert s.snapshot.next == ()
    assert s.listed == [("a", "pending")]


def test_fresh_input_resets_the_budget(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}).run(write("a"), "Later.", "Later.", "Later.")
    s.run("Later.", "Later.", close(1), "Done.", given="go on")
    assert s.notices == ["1/2", "2/2"]
    assert s.ending == ("dormant", "settled")


# -- how a session yields --------------------------------------------------------------------------------


def test_with_open_items_it_yields_idle_with_none_dormant(stage: Make) -> None:
    assert stage(NAME, {"max_wake_cycles": 0}).run(write("a"), "Later.").session["state"] == "idle"
    assert stage(NAME).run(write("a"), close(1), "Done.").session["state"] == "dormant"


SOURCES = {
    "a human message": {"messages": [("user", "news")]},
    "a human's event": {"todo_inbox": [{"kind": "human", "id": "e", "text": "news"}]},
    "a peer's message": {"todo_inbox": [{"kind": "peer_message", "id": "e", "text": "news"}]},
    "a peer's reply": {"todo_inbox": [{"kind": "peer_reply", "id": "e", "text": "news"}]},
    "a cron kick": {"todo_inbox": [{"kind": "cron", "id": "e", "text": "news"}]},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_wake_source_ends_dormancy_and_brings_the_whole_budget(stage: Make, source: Any) -> None:
    s = stage(NAME, {"max_wake_cycles": 2}).run(write("a"), "Later.", close(1), "Done.")
    assert s.session["state"] == "dormant"
    s.run(write("b"), "Later.", "Later.", "Later.", given=source)
    assert "news" in str(s.model.requests[0][-1].content)
    assert s.notices == ["1/2", "2/2"]


def test_an_empty_kick_on_a_settled_list_asks_nobody(stage: Make) -> None:
    s = stage(NAME).run(write("a"), close(1), "Done.")
    s.run(given={"todo_inbox": [{"kind": "kick", "id": "e"}]})
    assert (s.asked, s.ending) == (0, ("dormant", "settled"))


def test_a_kick_on_open_items_goes_on_with_the_list_and_spends_nothing(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1}).run(write("a"), "Later.", "Later.")
    s.run(close(1), "Done.", given={"todo_inbox": [{"kind": "kick", "id": "e"}]})
    assert items_of(str(s.model.requests[0][-1].content)) == ["  [1] a"]
    assert (s.ledger["wake_cycles"], s.notices) == (0, [])


# -- the states of the product ---------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["human", "peer", "approval"])
def test_awaiting_states_are_waiting_and_say_on_what(stage: Make, on: str) -> None:
    s = stage(NAME, tools=[wait_for]).run(calls(("wait_for", {"on": on})), "I have asked.")
    assert (s.session["state"], s.session["on"]) == ("waiting", on)


def test_running_is_what_a_run_says_that_has_not_ended(stage: Make) -> None:
    s = stage(NAME)
    s.build(write("a"), RuntimeError("the server is gone"))
    with pytest.raises(RuntimeError, match="gone"):
        s.play({"messages": [("user", "go")]})
    assert s.ending == ("running", None)


def test_a_person_is_answered_while_it_waits_for_a_peer(stage: Make) -> None:
    s = stage(NAME, tools=[wait_for]).run(write("a"), calls(("wait_for", {"on": "peer"})), "I have asked.")
    s.run("Still waiting for Ada.", given="how is it?")
    assert answer_of(s.values) == "Still waiting for Ada."
    assert (s.session["state"], s.session["on"], s.notices) == ("waiting", "peer", [])


def test_everything_that_wakes_is_an_item_of_the_inbox(stage: Make) -> None:
    inbox = [
        {"kind": "peer_message", "id": "1", "text": "from Ada", "sender": "Ada"},
        {"kind": "human", "id": "2", "text": "from a person"},
        {"kind": "subagent_done", "id": "3", "text": "from a helper"},
    ]
    s = stage(NAME).run("Noted.", given={"todo_inbox": inbox})
    seen = [m for m in s.model.requests[0] if m.type == "human"]
    assert (kind_of(seen[0]), seen[0].content) == (None, "from a person")
    assert [kind_of(m) for m in seen] == [None, "event"]
    assert "from Ada" in str(seen[1].content)
    assert "from a helper" in str(seen[1].content)
    assert s.values.get("todo_inbox") == []


def test_the_final_plain_text_is_the_answer(stage: Make) -> None:
    s = stage(NAME).run(write("a"), says("Half way."), close(1), says("All of it."))
    assert answer_of(s.values) == "All of it."


# -- readings where it is silent -------------------------------------------------------------------------


def test_blocked_only_is_dormant(stage: Make) -> None:
    s = stage(NAME).run(write("a"), block(1, "no key"), "Stuck.")
    assert (s.asked, s.ending) == (3, ("dormant", "settled"))


def test_several_nudges_are_one_message_and_one_cycle_reply_before_todos(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1}, tools=[owe])
    s.run(calls(("owe", {"peer": "Ada"})), write("a"), "Later.", "Later.")
    (nudge,) = s.injected("wake")
    assert (s.notices, s.ledger["wake_cycles"]) == (["1/1"], 1)
    assert nudge.index("Ada") < nudge.index("  [1] a")
    assert [event["reasons"] for event in s.events if event["type"] == "wake"] == [["reply", "todos"]]


def test_real_input_goes_before_nudges(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1}).run(write("a"), "Later.", "Later.")
    s.run("Later.", close(1), "Done.", given="my own words")
    first = s.model.requests[0]
    assert (kind_of(first[-1]), first[-1].content) == (None, "my own words")
    assert kind_of(s.model.requests[1][-1]) == "wake"


def test_the_count_is_in_the_checkpoint(stage: Make) -> None:
    s = stage(NAME).run(write("a"), "Later.", "Later.", close(1), "Done.")
    history = [state.values.get("todo_ledger", {}) for state in s.agent.get_state_history(CONFIG)]
    assert sorted({ledger.get("wake_cycles", 0) for ledger in history}) == [0, 1, 2]


def test_the_inventory_of_tools_is_that_of_the_system() -> None:
    s = Stage(NAME, tools=[look], checkpointer=InMemorySaver()).run(looks("x"), "Done.")
    assert s.tools == ["look", "todo_write", "todo_update", "todo_list"]
