"""Cases C01 to C06: what models send to the todo tools."""

from typing import Any

import pytest
from langchain_core.tools import tool
from rig import Rig, close, results, statuses, update, write
from whole import items, whole

from wakeloop import LoopSettings, answer_of
from wakeloop.errors import InputError
from wakeloop.testing import calls, says
from wakeloop.todos.operations import Board, Draft, Replace, Rules
from wakeloop.todos.rounds import play_round


def counting() -> tuple[list[str], Any]:
    """Return a tool and its recorded calls."""
    ran: list[str] = []

    @tool
    def side(what: str = "once") -> str:
        """Do something else."""
        ran.append(what)
        return f"did {what}"

    return ran, side


# -- C01 -------------------------------------------------------------------------------------------------


def test_c01_two_writes_in_one_reply_each_get_an_error(rig: Rig, replacing: LoopSettings) -> None:
    ran, side = counting()
    rig.build(
        whole("a:i b:p", "a:c b:i", others=[("side", {}, "3")]),
        whole("a:c b:c"),
        says("Done."),
        tools=[side],
        settings=replacing,
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert ran == ["once"]
    after_round = rig.model.requests[1]
    errors = [m for m in results(after_round) if m.name == "write_all"]
    assert [m.status for m in errors] == ["error", "error"]
    assert all("more than once" in str(m.content) for m in errors)
    assert [todo["content"] for todo in out["todos"]] == ["a", "b"]
    assert [todo["id"] for todo in out["todos"]] == [1, 2]
    assert statuses(out["todos"]) == ["completed", "completed"]
    assert rig.ending == ("dormant", "settled", 0)


def test_c01_the_walk_of_two_writes(quick: Rig, replacing: LoopSettings) -> None:
    _, side = counting()
    quick.build(
        whole("a:p", "b:p", others=[("side", {}, "3")]),
        whole("a:c"),
        "Done.",
        tools=[side],
        settings=replacing,
    )
    nodes = quick.walk("go")
    assert nodes == [
        "activate",
        "call_model",
        "run_tools",
        "validate_todos",
        "call_model",
        "validate_todos",
        "call_model",
        "finalization_guard",
    ]


def test_c01_the_list_stays_as_it_was_before_the_round(rig: Rig, replacing: LoopSettings) -> None:
    rig.build(whole("a:p b:p"), whole("a:c b:p", "a:c b:c"), whole("b:c"), "Done.", settings=replacing)
    rig.run("go")
    lists = [m for m in results(rig.messages) if "dropped" in str(m.content)]
    assert [str(m.content) for m in lists] == ["Stored 1 items. dropped: ['a']"]  # a was still open
    assert rig.todos == [{"id": 2, "content": "b", "status": "completed"}]


def test_c01_the_rule_alone() -> None:
    before = Board(({"id": 1, "content": "a", "status": "pending"},), next_id=2)
    twice = [Replace((Draft("a", "completed"),)), Replace(())]
    play = play_round(before, twice, Rules(one_write=True))
    with pytest.raises(StopIteration) as done:
        play.send(None)
    after, outcomes = done.value.value
    assert after == before
    assert all("more than once" in outcome.error for outcome in outcomes)


def test_c01_two_appending_writes_both_count(rig: Rig) -> None:
    ran, side = counting()
    first = calls(
        ("todo_write", {"items": ["a", "b"]}),
        ("side", {}),
        ("todo_write", {"items": ["c"]}),
        ("todo_update", {"id": 1, "status": "done"}),
    )
    rig.build(first, close(2, 3), "Done.", tools=[side])
    out = rig.run("go")
    rig.model.assert_done()
    assert ran == ["once"]
    assert [(t["id"], t["content"], t["status"]) for t in out["todos"]] == [
        (1, "a", "completed"),
        (2, "b", "completed"),
        (3, "c", "completed"),
    ]
    assert len(results(rig.messages)) == 6


# -- C02 -------------------------------------------------------------------------------------------------

LISTS = {
    "json": ('["a", "b"]', ["a", "b"]),
    "padded json": ('  ["a"]\n', ["a"]),
    "python repr": ("['a', 'b']", None),
    "not json": ("not json", None),
    "json text": ('"abc"', None),
    "json object": ('{"a": 1}', None),
    "code": ("__import__('os').abort()", None),
    "objects": ([{"content": "a", "status": "pending"}], None),
    "json objects": ('[{"content": "a", "status": "pending"}]', None),
    "numbers": ([1, 2], None),
    "number": (7, None),
}


@pytest.mark.parametrize(("sent", "stored"), LISTS.values(), ids=LISTS)
def test_c02_the_list_as_a_string(rig: Rig, sent: Any, stored: list[str] | None) -> None:
    rig.build(write("old"), calls(("todo_write", {"items": sent})), close(1), "Done.")
    if stored:
        rig.then(
            write("old"),
            calls(("todo_write", {"items": sent})),
            close(1, *range(2, 2 + len(stored))),
            "Done.",
        )
    rig.run("go")
    rig.model.assert_done()
    _, second, *_ = results(rig.messages)
    assert [todo["content"] for todo in rig.todos] == ["old", *(stored or [])]
    if stored is None:
        assert second.status == "error"
        place = "item 1" if isinstance(sent, list) or str(sent).startswith('[{"') else "items"
        assert str(second.content).startswith(f"Error: todo_write: {place}: ")
        assert "list" in str(second.content) or "string" in str(second.content)
        assert len(second.content) <= 1000
    assert rig.ending == ("dormant", "settled", 0)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ('[{"content":"a","status":"pending"}]', ["a"]),
        ("[{'content': 'a', 'status': 'pending'}]", []),
        (["a", "b"], []),
        ('["a", "b"]', []),
        ("not json", []),
    ],
)
def test_c02_the_same_where_objects_are_expected(
    rig: Rig, replacing: LoopSettings, sent: Any, stored: list[str]
) -> None:
    rig.build(
        calls(("write_all", {"todos": sent})),
        "That is all.",
        settings=replacing.model_copy(update={"max_wake_cycles": 0, "guard_retries": 0}),
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert [todo["content"] for todo in out["todos"]] == stored
    (result,) = results(out["messages"])
    assert result.status == ("success" if stored else "error")
    assert rig.ending == (("idle", "disabled", 0) if stored else ("dormant", "answered", 0))


# -- C03 -------------------------------------------------------------------------------------------------


def test_c03_a_status_outside_the_enum_applies_nothing(rig: Rig, replacing: LoopSettings) -> None:
    rig.build(whole("a:p b:failed c:done"), whole("a:c b:c c:c"), "Done.", settings=replacing)
    out = rig.run("go")
    rig.model.assert_done()
    error, accepted = results(out["messages"])
    said = str(error.content)
    assert error.status == "error"
    assert "item 2: status" in said
    assert "'failed'" in said
    assert all(f"'{word}'" in said for word in ("pending", "in_progress", "completed"))
    assert accepted.status == "success"
    assert [event["todos"] for event in rig.events if event["type"] == "todos"] in ([], [out["todos"]])
    assert statuses(out["todos"]) == ["completed"] * 3


@pytest.mark.parametrize("word", ["failed", "completed", "pending", "", None, 3])
def test_c03_the_same_for_one_item(quick: Rig, word: Any) -> None:
    quick.build(write("a", "b"), calls(("todo_update", {"id": 2, "status": word})), close(1, 2), "Done.")
    quick.run("go")
    quick.model.assert_done()
    error = results(quick.messages)[1]
    said = str(error.content)
    assert error.status == "error"
    assert repr(word) in said
    assert all(f"'{known}'" in said for known in ("in_progress", "done", "blocked", "cancelled", "open"))
    assert "Traceback" not in said
    assert quick.ending == ("dormant", "settled", 0)


@pytest.mark.parametrize("given", [99, "x", -1, 0])
def test_c03_an_unknown_id_names_the_known_ones(quick: Rig, given: Any) -> None:
    quick.build(
        write("a", "b"), calls(("todo_update", {"id": given, "status": "done"})), close(1, 2), "Done."
    )
    quick.run("go")
    error = results(quick.messages)[1]
    assert error.status == "error"
    assert repr(given) in str(error.content)
    assert "1, 2" in str(error.content)


def test_c03_blocked_needs_a_reason(rig: Rig) -> None:
    rig.build(
        write("a"),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": "  "})),
        calls(("todo_update", {"id": "1", "status": "blocked", "reason": "no key"})),
        "Blocked.",
    )
    rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(rig.messages)] == ["success", "error", "success"]
    assert rig.todos == [{"id": 1, "content": "a", "status": "blocked", "reason": "no key"}]
    assert rig.ending == ("dormant", "blocked", 0)


# -- C04 -------------------------------------------------------------------------------------------------

NO_LIST: dict[str, dict[str, Any]] = {
    "nothing": {},
    "null": {"items": None},
    "an object": {"items": {"content": "a"}},
    "another name": {"todos": ["a"]},
    "nested null": {"items": [None]},
}


@pytest.mark.parametrize("args", NO_LIST.values(), ids=NO_LIST)
def test_c04_no_list_at_all(rig: Rig, args: dict[str, Any]) -> None:
    rig.build(calls(("todo_write", args)), "I gave up.")
    out = rig.run("go")
    rig.model.assert_done()
    (error,) = results(out["messages"])
    assert error.status == "error"
    place = "item 1" if args == NO_LIST["nested null"] else "items"
    assert str(error.content).startswith(f"Error: todo_write: {place}: ")
    assert out["todos"] == []
    assert rig.ending == ("dormant", "answered", 0)
    rig.follow_up()


@pytest.mark.parametrize("args", NO_LIST.values(), ids=NO_LIST)
def test_c04_endless_calls_without_a_list_are_bounded(quick: Rig, args: dict[str, Any]) -> None:
    quick.build(write("a"), *(calls(("todo_write", args)) for _ in range(11)))
    quick.run("go")
    quick.model.assert_done()
    assert quick.ending == ("idle", "malformed_calls", 5)
    assert [m.status for m in results(quick.messages)] == ["success", *["error"] * 11]
    quick.follow_up()


BAD_INPUTS: dict[str, Any] = {
    "an object": {"content": "a"},
    "an empty object": {},
    "a string": "a",
    "a number": 7,
    "a blank item": [{"content": " "}],
    "a wrong status": [{"content": "a", "status": "done"}],
    "one id twice": [{"id": 1, "content": "a"}, {"id": "1", "content": "b"}],
    "texts": ["a"],
}


@pytest.mark.parametrize("todos", BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_c04_no_list_in_the_input(kept: Rig, todos: Any) -> None:
    kept.build(write("old"), update(1, "blocked", "later"), "Done.")
    kept.run("go")
    before = kept.todos, kept.session
    kept.then()
    for given in ({"messages": [("user", "again")], "todos": todos}, None):
        with pytest.raises(InputError, match="todos") as raised:
            kept.run(given)
        assert (kept.todos, kept.session) == (before[0], {**before[1], "error": str(raised.value)})
    assert kept.model.requests == []
    kept.follow_up()


# -- C05 -------------------------------------------------------------------------------------------------


def test_c05_a_blank_item_is_named_and_nothing_stored(rig: Rig) -> None:
    rig.build(write("x", "x", "  "), write("x", "x"), close(1, 2), "Done.")
    rig.run("go")
    rig.model.assert_done()
    error, stored, *_ = results(rig.messages)
    assert error.status == "error"
    assert "item 3 is blank" in str(error.content)
    assert stored.text.split("\n")[:3] == ["Stored 2 items:", "  [1] x", "  [2] x"]
    assert [(t["id"], t["content"]) for t in rig.todos] == [(1, "x"), (2, "x")]


def test_c05_duplicates_keep_their_ids_if_the_list_is_replaced(rig: Rig, replacing: LoopSettings) -> None:
    rig.build(whole("x:p y:p x:p"), whole("x:c x:p y:p"), whole("x:c x:c y:c"), "Done.", settings=replacing)
    rig.run("go")
    rig.model.assert_done()
    assert [(t["id"], t["content"]) for t in rig.todos] == [(1, "x"), (3, "x"), (2, "y")]
    assert len(rig.todos) == len(items("x:c x:c y:c"))


def test_c05_an_empty_write_is_refused(rig: Rig) -> None:
    rig.build(write(), "Nothing to plan.")
    out = rig.run("go")
    (error,) = results(out["messages"])
    assert error.status == "error"
    assert out["todos"] == []


# -- C06 -------------------------------------------------------------------------------------------------


def test_c06_the_answer_next_to_the_last_write(rig: Rig) -> None:
    rig.build(write("a"), close(1, text="The answer is 42."), says(""))
    out = rig.run("go")
    rig.model.assert_done()
    assert answer_of(out) == "The answer is 42."
    last = str(results(out["messages"])[-1].content)
    assert last == "[1] done, 0 open."
    assert not any(word in last.lower() for word in ("finished", "complete", "all done"))
    assert rig.ending == ("dormant", "settled", 0)
    rig.follow_up()


def test_c06_a_question_next_to_a_write_does_not_end_the_run(rig: Rig) -> None:
    rig.build(write("a", text="Plan: a, then b. OK?"), close(1), "Done.")
    out = rig.run("go")
    rig.model.assert_done()
    assert answer_of(out) == "Done."


def test_c06_an_empty_close_over_an_open_list_wakes(rig: Rig) -> None:
    rig.build(write("a", text="Here is the plan."), says(""), says(""), close(1), "Done.")
    out = rig.run("go")
    rig.model.assert_done()
    assert answer_of(out) == "Done."
    assert rig.ending == ("dormant", "settled", 1)
