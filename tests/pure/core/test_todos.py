"""The list and its rules, without a graph."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import todo
from hypothesis import given
from hypothesis import strategies as st

from wakeloop.todos.changes import changed_ids, diff_lists
from wakeloop.todos.in_progress import explain_progress_fault
from wakeloop.todos.items import (
    OperationRefused,
    assign_ids,
    clip_item,
    clip_text,
    count_open,
    is_closed,
    is_open,
    next_free_number,
    open_items,
    read_list,
    select_for_nudge,
)
from wakeloop.todos.operations import (
    Add,
    Board,
    Change,
    Draft,
    Operation,
    Outcome,
    Question,
    Replace,
    Reset,
    Rules,
    Show,
)
from wakeloop.todos.rounds import play_round

STATUSES = ["pending", "in_progress", "completed", "cancelled", "blocked"]
OPEN = {"pending", "in_progress"}


def board(*items: dict[str, Any], **more: Any) -> Board:
    return Board(tuple(items), next_id=more.pop("next_id", next_free_number(items)), **more)  # type: ignore[arg-type]


def playing(
    start: Board,
    *calls: Operation | str,
    rules: Rules | None = None,
    verify: Callable[[dict[str, Any]], str | None] | None = None,
) -> tuple[Board, list[Outcome], list[Any]]:
    """Play a round, and also return the items that the verifier was asked about."""
    play, asked = play_round(start, calls, rules or Rules()), []
    answer: str | None = None
    try:
        while True:
            question = play.send(answer)
            assert isinstance(question, Question)
            asked.append(question.todo)
            answer = verify(dict(question.todo)) if verify else None
    except StopIteration as ended:
        return *ended.value, asked


def errors(outcomes: Sequence[Outcome]) -> list[str | None]:
    return [outcome.error for outcome in outcomes]


# -- reading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", STATUSES)
def test_open_is_pending_or_in_progress(status: str) -> None:
    item = todo(1, "a", status)
    assert is_open(item) is (status in OPEN)
    assert is_closed(item) is (status in {"completed", "cancelled"})
    assert open_items([item]) == ([item] if status in OPEN else [])
    assert count_open([item]) == (1 if status in OPEN else 0)


def test_worth_showing_is_open_and_blocked_up_to_the_limit() -> None:
    items = [todo(n, "x", STATUSES[n]) for n in range(5)]
    assert select_for_nudge(items, 3) == ([items[0], items[1], items[4]], 0)
    assert select_for_nudge(items, 2) == ([items[0], items[1]], 1)
    assert select_for_nudge(items, 1) == ([items[0]], 2)


def test_beyond_the_limit_only_open_items_are_shown() -> None:
    items = [todo(1, "x", "blocked"), todo(2, "x", "blocked"), todo(3, "x")]
    assert select_for_nudge(items, 2) == ([items[2]], 2)


def test_a_list_from_outside_keeps_known_keys_and_its_ids() -> None:
    given_ = [
        {"content": "a", "status": "blocked", "reason": "r", "colour": "red", "id": 7, "evidence": None},
        {"content": "b"},
    ]
    assert read_list(given_) == [todo(7, "a", "blocked", reason="r"), {"content": "b", "status": "pending"}]
    assert read_list(()) == []


def test_a_refused_list_gets_a_short_sentence() -> None:
    with pytest.raises(OperationRefused) as refused:
        read_list([{"content": "x" * 5000, "status": "y" * 5000}])
    assert len(str(refused.value)) < 300


def test_missing_ids_are_assigned_in_order() -> None:
    numbered, next_id = assign_ids(
        [{"content": "a", "status": "pending"}, todo(5, "b"), {"content": "c", "status": "pending"}], 2
    )  # type: ignore[list-item]
    assert [(item["id"], item["content"]) for item in numbered] == [(6, "a"), (5, "b"), (7, "c")]
    assert next_id == 8


# -- adding ----------------------------------------------------------------------------------------------


def test_adding_appends_pending_items_with_new_numbers() -> None:
    after, outcomes, _ = playing(board(todo(1, "a")), Add((" b ", "a")))
    assert list(after.todos) == [todo(1, "a"), todo(2, "b"), todo(3, "a")]  # duplicates are stored
    assert outcomes[0].touched == (2, 3)
    assert after.next_id == 4


# -- changing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", STATUSES)
@pytest.mark.parametrize("new", STATUSES)
def test_every_status_leads_to_every_other(old: Any, new: Any) -> None:
    start = board(todo(1, "a", old, **({"reason": "r"} if old == "blocked" else {})))
    after, outcomes, asked = playing(start, Change(1, new, "why" if new == "blocked" else None))
    assert errors(outcomes) == [None]
    assert list(after.todos) == [todo(1, "a", new, **({"reason": "why"} if new == "blocked" else {}))]
    assert len(asked) == (new == "completed" and old != "completed")


def test_a_refusal_is_short_whatever_the_model_sent() -> None:
    start = board(*(todo(f"{n:0200}", "a" * 900) for n in range(60)))
    rules = Rules(in_progress="at_most_one")
    outcomes = playing(
        start,
        Change("9" * 5000, "completed"),
        Replace((Draft("a", "pending", "b" * 5000),) * 2),
        *(Change(f"{n:0200}", "in_progress") for n in range(20)),
        rules=rules,
    )[1]
    assert all(len(outcome.error or "") < 2_000 for outcome in outcomes)


def test_a_number_and_its_string_are_one_id() -> None:
    after, _, _ = playing(
        board(todo(1, "a"), todo("2", "b")), Change("1", "completed"), Change(2, "completed")
    )
    assert count_open(after.todos) == 0


def test_a_reason_is_dropped_with_the_status_that_it_explains() -> None:
    after, _, _ = playing(board(todo(1, "a", "blocked", reason="r")), Change(1, "pending"))
    assert list(after.todos) == [todo(1, "a")]


def test_calls_apply_in_order_and_a_refused_one_leaves_the_others() -> None:
    after, outcomes, _ = playing(
        board(), Add(("a", "b")), Change(7, "completed"), "refused already", Change(2, "completed"), Show()
    )
    assert list(after.todos) == [todo(1, "a"), todo(2, "b", "completed")]
    assert [error is None for error in errors(outcomes)] == [True, False, False, True, True]
    assert outcomes[2].error == "refused already"
    assert [len(outcome.board.todos) for outcome in outcomes] == [2] * 5


def test_reset_clears_list_and_goal_and_restarts_numbering() -> None:
    after, _, _ = playing(board(todo(4, "a"), goal="old", refusals={"4": 2}), Reset("new"), Add(("b",)))
    assert list(after.todos) == [todo(1, "b")]
    assert (after.goal, after.refusals) == ("new", {})


# -- in progress -----------------------------------------------------------------------------------------

ONE = Rules(in_progress="at_most_one")


@pytest.mark.parametrize(
    ("statuses", "at_most", "exactly"),
    [
        ([], True, True),
        (["pending"], True, False),
        (["in_progress"], True, True),
        (["in_progress", "pending", "completed"], True, True),
        (["in_progress", "in_progress"], False, False),
        (["completed", "completed"], True, True),
        (["completed", "cancelled"], True, True),
        # an item that a verifier has blocked does not stop a list from ending
        (["completed", "blocked"], True, True),
        (["pending", "blocked"], True, False),
    ],
)
def test_rules_about_items_in_progress(statuses: list[str], at_most: bool, exactly: bool) -> None:
    items: Any = [todo(n, "x", status) for n, status in enumerate(statuses, 1)]
    assert explain_progress_fault(items, Rules(in_progress="any")) is None
    assert (explain_progress_fault(items, ONE) is None) is at_most
    assert (explain_progress_fault(items, Rules(in_progress="exactly_one")) is None) is exactly


def test_the_verifier_is_asked_once_even_if_the_round_is_replayed() -> None:
    start = board(todo(1, "a", "in_progress"), todo(2, "b"), todo(3, "c"))
    _, outcomes, asked = playing(
        start, Change(3, "completed"), Change(2, "in_progress"), rules=ONE, verify=lambda _: "no"
    )
    assert [item["id"] for item in asked] == [3]
    assert outcomes[0].denied == {3: "no"}
    assert outcomes[1].error
    assert outcomes[-1].board.refusals == {"3": 1}


# -- replacing -------------------------------------------------------------------------------------------


def test_an_item_without_id_takes_that_of_the_first_free_item_with_equal_content() -> None:
    start = board(todo(1, "a"), todo(2, "b"), todo(3, "a"), next_id=8)
    drafts = tuple(Draft(content, "pending") for content in ("a", "new", "a", "a"))
    after, outcomes, _ = playing(start, Replace(drafts))
    assert [(item["id"], item["content"]) for item in after.todos] == [
        (1, "a"),
        (8, "new"),
        (3, "a"),
        (9, "a"),
    ]
    assert after.next_id == 10
    assert outcomes[0].dropped == (todo(2, "b"),)
    assert outcomes[0].touched == (8, 9)


def test_an_item_without_id_takes_none_that_another_of_the_list_names() -> None:
    start = board(todo(1, "a"), todo("4", "b"), next_id=2)
    drafts = (
        Draft("a", "pending"),
        Draft("x", "pending", 1),
        Draft("y", "pending", "7"),
        Draft("b", "pending"),
    )
    after, _, _ = playing(start, Replace(drafts))
    assert [item["id"] for item in after.todos] == [8, 1, "7", "4"]
    assert after.next_id == 9


def test_a_number_that_returns_as_a_string_is_the_same_id() -> None:
    after, outcomes, _ = playing(board(todo(1, "a"), next_id=2), Replace((Draft("b", "pending", "1"),)))
    assert list(after.todos) == [todo(1, "b")]
    assert outcomes[0].dropped == ()


@pytest.mark.parametrize("items", [("x",), ("x", "y", "z")])
def test_an_added_item_takes_no_number_that_the_model_chose(items: tuple[str, ...]) -> None:
    write = Replace((Draft("a", "pending", "1"), Draft("b", "pending", "3")))
    after, _, _ = playing(board(next_id=1), write, Add(items))
    assert [item["id"] for item in after.todos[2:]] == [4, 5, 6][: len(items)]


def test_only_open_items_left_out_are_dropped() -> None:
    start = board(todo(1, "a", "completed"), todo(2, "b", "blocked", reason="r"), todo(3, "c"))
    assert playing(start, Replace(()))[1][0].dropped == (todo(3, "c"),)


def test_max_items_bounds_the_list_where_it_replaces() -> None:
    start = board(todo(1, "a"))
    drafts = tuple(Draft(str(n), "completed") for n in range(3))
    assert errors(playing(start, Replace(drafts), rules=Rules(max_items=3))[1]) == [None]
    after, outcomes, _ = playing(start, Replace(drafts), rules=Rules(max_items=2))
    assert after == start
    assert "2" in (outcomes[0].error or "")


# -- the verifier (rule 12) ------------------------------------------------------------------------------


def test_the_verifier_is_asked_only_before_an_item_becomes_completed() -> None:
    start = board(todo(1, "a"), todo(2, "b", "completed"))
    calls = (Change(2, "completed"), Change(1, "in_progress"), Change(1, "completed"), Change(2, "pending"))
    _, _, asked = playing(start, *calls)
    assert asked == [todo(1, "a", "completed")]


def test_a_refusal_holds_back_only_that_item() -> None:
    start = board(todo(1, "a"), todo(2, "b"))
    after, outcomes, _ = playing(
        start,
        Change(1, "completed"),
        Change(2, "completed"),
        verify=lambda item: "no" if item["id"] == 1 else None,
    )
    assert list(after.todos) == [todo(1, "a"), todo(2, "b", "completed")]
    assert [dict(outcome.denied) for outcome in outcomes] == [{1: "no"}, {}]


def test_three_refusals_in_one_round_block_too() -> None:
    state, _, asked = playing(board(todo(1, "a")), *[Change(1, "completed")] * 4, verify=lambda _: "no")
    assert state.todos == (todo(1, "a", "blocked", reason="no"),)
    assert len(asked) == 3


# -- updates ---------------------------------------------------------------------------------------------

ITEMS = st.lists(
    st.tuples(st.integers(1, 6) | st.sampled_from("xyz"), st.sampled_from("ab"), st.sampled_from(STATUSES)),
    unique_by=lambda row: row[0],
    max_size=6,
).map(lambda rows: [todo(*row) for row in rows])


@given(ITEMS, ITEMS)
def test_an_update_leads_from_one_list_to_the_other(old: Any, new: Any) -> None:
    from wakeloop.channels.todo_list import merge_todos

    difference = diff_lists(old, new)
    assert merge_todos(old, [difference]) == new
    assert (difference == {}) is (old == new)
    touched = {item["id"] for item in new if item not in old} | {i["id"] for i in old} - {
        i["id"] for i in new
    }
    assert set(changed_ids(difference)) == touched


OPERATIONS = st.lists(
    st.builds(Add, st.lists(st.sampled_from(["a", "b", " "]), max_size=3).map(tuple))
    | st.builds(Change, st.integers(1, 5), st.sampled_from(STATUSES), st.sampled_from([None, "r"]))
    | st.just(Show()),
    max_size=8,
)


@given(ITEMS, OPERATIONS, st.sampled_from(["any", "at_most_one"]), st.sampled_from([None, 4]))
def test_a_round_loses_nothing_and_keeps_the_rules(
    items: Any, operations: Any, in_progress: Any, most: int | None
) -> None:
    start, rules = board(*items), Rules(most, in_progress)
    after, outcomes, _ = playing(start, *operations, rules=rules)
    assert len(outcomes) == len(operations)
    assert {i["id"] for i in after.todos} >= {i["id"] for i in items}
    assert len({str(i["id"]) for i in after.todos}) == len(after.todos)
    if explain_progress_fault(start.todos, rules) is None:
        assert explain_progress_fault(after.todos, rules) is None
    accepted = [op for op, outcome in zip(operations, outcomes, strict=True) if outcome.error is None]
    assert playing(start, *accepted, rules=rules)[0] == after  # a refused call leaves no trace
    for item in after.todos:
        assert (item["status"] != "blocked") or item.get("reason") or item in items


# -- shortening of what is shown ---------------------------------------------------------------------------


def test_a_long_string_is_cut_with_a_count_of_the_rest() -> None:
    assert clip_text("a" * 300) == "a" * 300
    assert clip_text("a" * 301) == "a" * 268 + "… (+33 characters)"
    assert clip_text("a\n" * 5_000) == "a " * 133 + "a… (+9,732 characters)"
    assert clip_text("a" * 267 + " " + "b" * 40) == "a" * 267 + "… (+41 characters)"
    assert clip_text("a" * 267 + "   " + "b" * 40) == "a" * 267 + "… (+41 characters)"
    assert clip_text(" a  b ") == "a b"
    assert clip_text("a" * 151, 150) == "a" * 118 + "… (+33 characters)"


def test_an_item_is_abridged_if_something_is_too_long() -> None:
    fits = todo("k" * 50, "a" * 300, "blocked", reason="r" * 150, evidence="e" * 1_000)
    spaced = todo(1, "a" + " " * 400 + "b", "blocked", reason="r" + " " * 200 + "s")
    assert clip_item(fits) is fits  # type: ignore[arg-type, comparison-overlap]
    edge = todo(1, "a" * 150 + "  " + "b" * 149)  # 300 on one line
    assert clip_item(edge) is edge  # type: ignore[arg-type, comparison-overlap]
    assert clip_item(spaced) is spaced  # type: ignore[arg-type, comparison-overlap]
    assert clip_item(todo("k" * 51, "a")) == todo("k" * 49 + "…", "a")  # type: ignore[arg-type]
    assert clip_item(todo(1, "a" * 301)) == todo(1, "a" * 268 + "… (+33 characters)")  # type: ignore[arg-type]
    for text in ("a", "a" * 301):
        held = todo(1, text, "blocked", reason="r" * 151)
        cut = todo(1, clip_text(text), "blocked", reason="r" * 118 + "… (+33 characters)")
        assert clip_item(held) == cut  # type: ignore[arg-type]


def replaced(start: Board, *drafts: Draft) -> list[tuple[Any, str, str]]:
    after, _, _ = playing(start, Replace(drafts), rules=Rules(in_progress="any"))
    return [(item["id"], item["content"], item["status"]) for item in after.todos]


def test_content_sent_back_as_cut_keeps_its_original() -> None:
    """By its id if it has one, else in list order; each original once."""
    first, other, shown = "a" * 300 + "first", "a" * 300 + "other", clip_text("a" * 305)
    start = board(todo(1, first), todo(2, other))
    by_id = replaced(start, Draft(shown, "completed", 2), Draft(shown, "pending", 1))
    assert by_id == [(2, other, "completed"), (1, first, "pending")]
    assert replaced(start, Draft(shown, "completed", "2"))[0][1] == other
    in_order = replaced(start, Draft(f" {shown} ", "completed"), Draft(shown, "pending"))
    assert in_order == [(1, first, "completed"), (2, other, "pending")]
    unknown = replaced(
        start, Draft(shown, "pending", 9), Draft(shown, "pending", 2), Draft(shown, "pending", 3)
    )
    assert unknown == [(9, first, "pending"), (2, other, "pending"), (3, shown, "pending")]
    even = "a\n" + "b" * 298  # shown whole: a line with the same words is other content
    assert replaced(board(todo(1, even)), Draft("a " + "b" * 298, "pending", 1))[0][1] == "a " + "b" * 298


def test_an_id_sent_back_as_cut_is_the_whole_one() -> None:
    whole, shown = "k" * 60, "k" * 49 + "…"
    start = board(todo(whole, "a"), todo(7, "b"))
    assert replaced(start, Draft("a", "completed", shown), Draft("b", "pending", 7)) == [
        (whole, "a", "completed"),
        (7, "b", "pending"),
    ]
    both = replaced(start, Draft("a", "pending", whole), Draft("c", "pending", shown))
    assert [key for key, _, _ in both] == [whole, shown]
    named = board(todo(whole, "a"), todo(shown, "b"))  # an id that exists is itself
    assert replaced(named, Draft("b", "pending", shown))[0] == (shown, "b", "pending")
    beside = replaced(named, Draft("b", "pending", shown), Draft("c", "pending", "new"))
    assert [key for key, _, _ in beside] == [shown, "new"]
