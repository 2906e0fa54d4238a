"""Reducers: deterministic, free of side effects, and the same in one batch as in many."""

import copy
from typing import Any
from unittest.mock import ANY

import pytest
from agents import Make, done, todo, write
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from wakeloop import create_todo_agent
from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.channels.parallel_agents import join_goal, join_session, join_todos
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.todo_list import Todos, merge_todos
from wakeloop.errors import InputError
from wakeloop.testing import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "thread"}}
IDS = st.sampled_from("abcdef")
MESSAGE = st.one_of(
    st.builds(lambda key, text: HumanMessage(text, id=key), IDS, st.sampled_from("xy")),
    st.builds(lambda key, call: ToolMessage("r", id=key, tool_call_id=call), IDS, st.sampled_from("12")),
    st.builds(lambda key: AIMessage("t", id=key), IDS),
    st.builds(lambda key: RemoveMessage(id=key), IDS),
    st.just(RemoveMessage(id=REMOVE_ALL_MESSAGES)),
    st.sampled_from([("user", "x"), ("user", "y"), "z"]),
)
WRITES = st.lists(st.lists(MESSAGE, max_size=4), max_size=6)


def shown(messages: Any) -> list[tuple[Any, ...]]:
    return [(m.id, m.type, m.content, getattr(m, "tool_call_id", None)) for m in messages]


# -- messages --------------------------------------------------------------------------------------------


@given(WRITES, WRITES)
def test_messages_in_one_batch_or_in_many(first: Any, second: Any) -> None:
    start = merge_messages([], first)
    apart = start
    for write_ in second:
        apart = merge_messages(apart, [write_])
    assert shown(merge_messages(start, second)) == shown(apart)
    assert shown(merge_messages(list(start), second)) == shown(apart)  # restored from a checkpoint


@given(WRITES, WRITES, WRITES)
def test_messages_deterministic_and_without_side_effects(first: Any, second: Any, other: Any) -> None:
    start = merge_messages([], first)
    before, given_ = shown(start), copy.deepcopy((first, second))
    once = merge_messages(start, second)
    aside = merge_messages(start, other)  # another task of the same superstep
    assert shown(start) == before
    assert shown(merge_messages(start, second)) == shown(once)
    assert (first, second) == given_
    assert len({m.id for m in once}) == len(once)
    for found in (start, once, aside):
        for place, message in enumerate(found):
            assert found.find(message.id) == place  # type: ignore[attr-defined]
        for key in "12":
            there = any(getattr(m, "tool_call_id", None) == key for m in found)
            assert found.has_result(key) is there  # type: ignore[attr-defined]
        for key in "abcdef":
            assert (found.find(key) is not None) is any(m.id == key for m in found)  # type: ignore[attr-defined]


@given(WRITES)
def test_messages_as_in_a_plain_list(writes: Any) -> None:
    plain: list[Any] = []
    for items in writes:
        for item in items:
            place = next((i for i, m in enumerate(plain) if m.id == getattr(item, "id", None)), None)
            if isinstance(item, RemoveMessage):
                if item.id == REMOVE_ALL_MESSAGES:
                    plain = []
                elif place is not None:
                    del plain[place]
            elif not hasattr(item, "id"):
                plain.append(merge_messages(plain, [[item]])[-1])
            elif place is None:
                plain.append(item)
            else:
                plain[place] = item
    assert shown(merge_messages([], writes)) == shown(plain)


def as_dict(item: Any) -> Any:
    """Return the same item as a server sends it."""
    return {"type": item.type, **item.model_dump()} if isinstance(item, BaseMessage) else item


@given(WRITES)
def test_c80_messages_as_dicts_do_what_the_objects_do(writes: Any) -> None:
    sent = [[as_dict(item) for item in items] for items in writes]
    assert shown(merge_messages([], sent)) == shown(merge_messages([], writes))


def test_c80_a_dict_with_the_role_remove_removes() -> None:
    start = merge_messages([], [[HumanMessage("1", id="a"), HumanMessage("2", id="b")]])
    remove = {"role": "remove", "content": "", "id": "a"}
    assert [m.id for m in merge_messages(start, [remove])] == ["b"]
    assert merge_messages(start, [[{**remove, "id": REMOVE_ALL_MESSAGES}]]) == []


def test_removed_and_added_again_a_message_moves_to_the_end() -> None:
    start = merge_messages([], [[HumanMessage("1", id="a"), HumanMessage("2", id="b")]])
    moved = merge_messages(start, [[RemoveMessage(id="a"), HumanMessage("1", id="a")]])
    assert [m.id for m in moved] == ["b", "a"]
    assert [m.id for m in merge_messages(start, [[HumanMessage("new", id="a")]])] == ["a", "b"]


def test_an_unknown_id_to_remove_is_ignored() -> None:
    assert merge_messages([], [[RemoveMessage(id="x")]]) == []


def test_ids_are_derived_only_for_input_without_one_on_a_copy() -> None:
    given_ = HumanMessage("x")
    merged = merge_messages([], [[given_, HumanMessage("x"), HumanMessage("x", id="mine")]])
    assert given_.id is None
    assert len({m.id for m in merged}) == 3
    assert merged[2].id == "mine"
    assert [m.id for m in merge_messages([], [[("user", "x"), {"role": "user", "content": "x"}]])] == [
        m.id for m in merged[:2]
    ]


def test_chunks_become_messages() -> None:
    (message,) = merge_messages([], [[AIMessageChunk(content="x", id="a")]])
    assert type(message) is AIMessage


@pytest.mark.parametrize(
    "write_", [HumanMessage("x", id="a"), "x", ("user", "x"), {"role": "user", "content": "x"}]
)
def test_a_single_message_is_a_write_too(write_: Any) -> None:
    assert [m.content for m in merge_messages([], [write_])] == ["x"]


def test_a_result_that_was_replaced_in_place_is_still_found_by_its_call() -> None:
    start = merge_messages([], [[ToolMessage("r", id="a", tool_call_id="1")]])
    start = merge_messages(
        start, [[ToolMessage("r and a reminder", id="a", tool_call_id="1")], [HumanMessage("x", id="b")]]
    )
    assert isinstance(start, Messages)
    assert start.has_result("1")


def test_a_deep_copy_of_messages_is_independent() -> None:
    start = merge_messages([], [[HumanMessage("x", id="a")]])
    twin = copy.deepcopy(start)
    assert shown(twin) == shown(start)
    assert isinstance(twin, Messages)
    assert twin.find("a") == 0


# -- the list --------------------------------------------------------------------------------------------

ITEM = st.builds(
    todo,
    st.integers(1, 4) | st.sampled_from("xy"),
    st.sampled_from("ab"),
    st.sampled_from(["pending", "completed"]),
)
LISTS = st.lists(ITEM, unique_by=lambda item: str(item["id"]), max_size=4)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "put": st.lists(ITEM, max_size=2),
        "drop": st.lists(st.integers(1, 4), max_size=2),
        "all": LISTS,
    },
)
BAD = st.sampled_from([[{"content": ""}], 3, [{"content": "a", "status": "done"}]])
LIST_WRITES = st.lists(st.none() | LISTS | CHANGES | BAD, max_size=5)


@given(LISTS, LIST_WRITES)
def test_the_list_in_one_batch_or_in_many(start: Any, writes: Any) -> None:
    given_ = copy.deepcopy((start, writes))
    apart: Any = Todos(start)
    for write_ in writes:
        apart = merge_todos(apart, [write_])
    together: Any = merge_todos(Todos(start), writes)
    assert list(together) == list(apart)
    assert (together.before, together.fault) == (apart.before, apart.fault)
    assert (start, writes) == given_
    assert list(merge_todos(start, writes)) == list(apart)


@given(LISTS, LIST_WRITES, LIST_WRITES)
def test_the_list_is_never_changed_in_place(start: Any, writes: Any, other: Any) -> None:
    first = merge_todos(start, writes)
    before = copy.deepcopy(list(first))
    second = list(merge_todos(first, other))
    assert list(first) == before
    assert list(merge_todos(first, other)) == second


def test_a_bad_list_is_set_aside_and_the_old_one_stays() -> None:
    old = [todo(1, "a")]
    merged = merge_todos(old, [[{"content": " "}]])
    assert merged == old
    assert isinstance(merged, Todos)
    assert merged.fault


@pytest.mark.parametrize(
    "bad",
    [
        {"put": [5]},
        {"put": 5},
        {"put": [{"id": 1}], "own": True},
        {"put": [todo(1, "b", "done")]},
        {"put": [{"content": "b", "status": "pending"}]},
        {"all": 5},
        {"all": [{"x": 1}]},
        {"drop": 5},
        {"drop": [[1]]},
        {"order": [{}]},
        {"order": "ab", "drop": [1]},
    ],
)
def test_bad_changes_from_outside_are_set_aside(bad: dict[str, Any]) -> None:
    merged: Any = merge_todos([todo(1, "a")], [bad])
    assert merged == [todo(1, "a")]
    assert merged.fault
    agent = create_todo_agent(ScriptedModel(write("a"), done(1), "ok", "ok"), checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    before = agent.get_state(THREAD).values["todos"]
    with pytest.raises(InputError, match="todos"):
        agent.invoke({"messages": [("user", "go")], "todos": bad}, THREAD)
    assert agent.get_state(THREAD).values["todos"] == before
    assert agent.invoke({"messages": [("user", "keep going")]}, THREAD)["todos"] == before


def test_the_list_before_is_that_before_the_first_write() -> None:
    merged: Any = merge_todos([todo(1, "a")], [[{"content": "b"}], [{"content": "c"}]])
    assert [item["content"] for item in merged] == ["c"]
    assert merged.before == [todo(1, "a")]


# -- other channels --------------------------------------------------------------------------------------


def test_the_newest_goal_counts_and_none_changes_nothing() -> None:
    assert merge_goal("old", "new") == "new"
    assert merge_goal("old", None) == "old"
    assert merge_goal("old", "") == ""
    assert merge_goal(merge_goal("old", "b"), "c").before == "old"  # type: ignore[attr-defined]


def test_settings_are_replaced() -> None:
    assert merge_settings({"a": 1}, {"b": 2}) == {"b": 2}
    assert merge_settings({"a": 1}, {}) == {}
    assert merge_settings({"a": 1}, None) == {"a": 1}


def test_entries_are_added_once_dropped_by_id_and_cleared() -> None:
    entries = merge_entries([], [{"id": "1"}, "2", {"id": "1"}])
    assert merge_entries(entries, ["2", {"id": "3"}]) == [{"id": "1"}, "2", {"id": "3"}]
    assert merge_entries(["1", {"id": "2"}], {"drop": ["2", "9"]}) == ["1"]
    two = [{"id": "1", "sender": "a"}, {"id": "1", "sender": "b"}]
    assert merge_entries(two[:1], two) == two  # two peers who ask may have the same id
    assert merge_entries(two, {"drop": [{"id": "1", "sender": "a"}]}) == two[1:]
    assert merge_entries(two, {"drop": ["1"]}) == []
    assert merge_entries(["1"], {"clear": True}) == []
    assert merge_entries(["1"], None) == ["1"]


def test_entries_in_one_write_count_once() -> None:
    assert merge_entries([], [{"id": "1"}, "2", {"id": "1", "more": 1}]) == [{"id": "1"}, "2"]


@given(LISTS, LISTS)
def test_joined_lists_lose_no_item_and_no_completion(left: Any, right: Any) -> None:
    joined = join_todos(left, right)
    assert len({item["id"] for item in joined}) == len(joined)
    for item in (*left, *right):
        same = [other for other in joined if other["content"] == item["content"]]
        assert same
        if item["status"] == "completed":
            assert any(other["status"] == "completed" for other in same)
    assert join_todos(left, left) == left
    assert join_todos(None, left) == join_todos(left, None) == left


def test_two_different_items_under_one_number_are_both_kept() -> None:
    assert join_todos([todo(1, "a")], [todo(1, "b"), todo(2, "c")]) == [
        todo(1, "a"),
        todo(3, "b"),
        todo(2, "c"),
    ]


def test_a_parents_items_get_their_ids_where_they_are_joined() -> None:
    """As in an agent's input; an item with the same content is the same item."""
    given_ = [{"content": "a"}, {"content": "b", "status": "completed"}]
    assert join_todos(None, given_) == [todo(1, "a"), todo(2, "b", "completed")]
    assert join_todos([todo(4, "b")], given_) == [todo(4, "b", "completed"), todo(5, "a")]
    assert join_todos([{"content": "a", "status": "pending"}], [todo(1, "b")]) == [todo(1, "a"), todo(2, "b")]
    two = [todo(4, "b"), {"id": 4, "content": "c"}]
    assert join_todos([todo(4, "b")], two) == [todo(4, "b"), todo(5, "c")]


def test_joined_goals_and_sessions() -> None:
    assert join_goal("a", "b") == "b"
    assert join_goal("a", "") == "a"
    assert join_goal(None, None) == ""
    assert join_session(None, None) is None
    assert join_session({"state": "idle"}, None) == {"state": "idle"}


# -- input and output ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["owed_replies", "waiting_on", "todo_ledger", "structured_response"])
def test_forbidden_input_is_ignored(name: str, thread: Make) -> None:
    agent = thread("hi")
    output = agent.run({"messages": [("user", "go")], name: [{"id": "x"}]})
    assert output["todo_session"] == {
        "state": "dormant",
        "reason": "answered",
        "open": 0,
        "wakes": 0,
        "budget": 25,
        "list": 0,
        "items": 0,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }


def test_input_without_ids_in_every_shape(thread: Make) -> None:
    agent = thread("hi")
    agent.run({"messages": ["a", ("user", "a"), {"role": "user", "content": "a"}, HumanMessage("a")]})
    assert [m.text for m in agent.messages] == ["a", "a", "a", "a", "hi"]
    assert len({m.id for m in agent.messages}) == 5


# -- the list as input -----------------------------------------------------------------------------------


def test_a_list_as_input_replaces_and_gets_ids_that_were_never_used(thread: Make) -> None:
    agent = thread(write("a", "b", "c"), done(1, 2, 3), "bye", done(10, 9), "bye")
    agent.run("go")
    agent.run(
        {"messages": [("user", "new")], "todos": [{"content": "d"}, {"id": 9, "content": "e", "extra": 1}]}
    )
    assert agent.todos == [todo(10, "d", "completed"), todo(9, "e", "completed")]


def test_none_as_a_list_changes_nothing(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", "hi")
    agent.run("go")
    agent.run({"messages": [("user", "more")], "todos": None})
    assert agent.todos == [todo(1, "a", "completed")]


def test_numbers_as_strings_do_not_clash_as_ids(thread: Make) -> None:
    agent = thread(write("b"), done("1", "2"), "bye")
    agent.run({"messages": [("user", "go")], "todos": [{"id": "1", "content": "a"}]})
    assert agent.todos == [todo("1", "a", "completed"), todo(2, "b", "completed")]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_long_thread_reads_back_whole(durability: str, thread: Make) -> None:
    items = [f"item {number}" for number in range(1, 61)]
    agent = thread(write(*items), *(done(number) for number in range(1, 61)), "bye", "hi")
    output = agent.run("go", durability=durability)  # beyond the snapshots of the list
    closed = [todo(number, f"item {number}", "completed") for number in range(1, 61)]
    assert output["todos"] == agent.todos == closed
    assert [m.id for m in agent.messages] == [m.id for m in output["messages"]]
    assert len(agent.messages) == 1 + 2 * 61 + 1
    agent.run("more", durability=durability)
    assert agent.todos == closed
    assert len(agent.model.requests[-1]) == 1 + 124 + 1
