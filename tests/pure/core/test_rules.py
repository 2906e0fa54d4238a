"""Each rule of the list in its exact words, at its exact boundary."""

from typing import Any

import pytest
from agents import todo
from langgraph.types import Send
from test_todos import board, playing

from wakeloop.loop.case import Case
from wakeloop.loop.extra_requests import find_obstacle
from wakeloop.loop.progress import fingerprint_call
from wakeloop.routes import after_call_model, after_guard
from wakeloop.settings import LoopSettings
from wakeloop.testing import calls
from wakeloop.text.characters import shorten
from wakeloop.todos.changes import check_changes, diff_lists
from wakeloop.todos.items import (
    ID_LIMIT,
    MAX_REFUSAL_LENGTH,
    OperationRefused,
    assign_ids,
    next_free_number,
    read_list,
)
from wakeloop.todos.operations import (
    Add,
    Change,
    ChangeSeveral,
    Draft,
    Operation,
    Replace,
    Reset,
    Rules,
    Show,
)
from wakeloop.todos.rounds import play_round

A = todo(1, "a")
HELD = todo(1, "a", "blocked", reason="no")
EXHAUSTED = {"1": 3}
LIST = Replace((Draft("a", "pending"),))


def unknown(key: Any, *ids: int) -> str:
    return f"there is no item {key!r}; the ids are: {', '.join(map(str, ids))}"


def reply(start: Any, *made: Operation | str, **more: Any) -> str | None:
    """Return the error of the last call of a round, if it is refused."""
    _, outcomes, _ = playing(start, *made, **more)
    return outcomes[-1].error


# -- what refusals say -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "operation", "rules", "sentence"),
    [
        (board(), Add(()), Rules(), "items is empty; send at least one item"),
        (board(), Add(("a", " ")), Rules(), "item 2 is blank; every item needs text"),
        (board(), Add(("a", "\u200b\0 \u3164")), Rules(), "item 2 is blank; every item needs text"),
        (
            board(A),
            Change(1, "blocked", "\ufeff"),
            Rules(),
            "item [1] can be blocked only with a reason; send one",
        ),
        (
            board(HELD, todo(2, "b", "completed"), todo(3, "c", "cancelled")),
            Add(("x", "y")),
            Rules(2),
            (
                "2 more would make 3 items that are not closed; "
                "at most 2 are allowed, so close some or plan larger ones"
            ),
        ),
        (
            board(),
            Change(1, "completed"),
            Rules(),
            "there is no item 1; the list is empty, so add items first",
        ),
        (
            board(*(todo(n, "x") for n in range(1, 61))),
            Change("no", "completed"),
            Rules(),
            unknown("no", *range(1, 51)),
        ),
        (board(A), Change(1, "blocked"), Rules(), "item [1] can be blocked only with a reason; send one"),
        (
            board(HELD, refusals=EXHAUSTED),
            Change(1, "pending"),
            Rules(),
            "item [1] was refused 3 times and stays blocked: no",
        ),
        (
            board(todo(1, "a", "blocked"), refusals=EXHAUSTED),
            Change(1, "completed"),
            Rules(),
            "item [1] was refused 3 times and stays blocked: ",
        ),
        (
            board(),
            Replace((Draft("a", "pending"), Draft(" ", "pending"))),
            Rules(),
            "item 2 is blank; every item needs text",
        ),
        (
            board(),
            Replace((Draft("a", "pending", "k"), Draft("b", "pending", "k"))),
            Rules(),
            "the id 'k' occurs twice; each id must be unique",
        ),
        (
            board(),
            Replace((Draft("a", "pending"),) * 3),
            Rules(2),
            "the list has 3 items; at most 2 are allowed",
        ),
        (
            board(todo(1, "a", "in_progress"), todo(2, "b")),
            Change(2, "in_progress"),
            Rules(in_progress="at_most_one"),
            (
                "only one item may be in progress, but these would be: [1] a and [2] b; "
                "close or reopen one first"
            ),
        ),
        (
            board(),
            LIST,
            Rules(in_progress="exactly_one"),
            "exactly one item must be in progress unless all are completed, but none would be",
        ),
    ],
)
def test_the_words_of_each_refusal(start: Any, operation: Operation, rules: Rules, sentence: str) -> None:
    after, (outcome,), _ = playing(start, operation, rules=rules)
    assert (outcome.error, outcome.operation, outcome.board) == (sentence, operation, start)
    assert after == start


def test_two_whole_lists_in_one_round_get_the_reason() -> None:
    rules = Rules(one_write=True)
    assert reply(board(), LIST, LIST, rules=rules) == (
        "the list was sent more than once in one reply; send it once, whole"
    )
    assert reply(board(), LIST, Replace((), "its own fault"), rules=rules) == "its own fault"


def test_an_already_refused_list_changes_nothing() -> None:
    start = board(A)
    after, (outcome,), _ = playing(start, Replace((), "no JSON"))
    assert (after, outcome.error) == (start, "no JSON")


def test_a_sentence_in_place_of_a_call_is_the_error_of_no_operation() -> None:
    _, (outcome,), _ = playing(board(A), "no JSON")
    assert (outcome.error, outcome.operation) == ("no JSON", None)


@pytest.mark.parametrize("length", [MAX_REFUSAL_LENGTH, MAX_REFUSAL_LENGTH + 1])
def test_a_refusal_is_cut_at_its_maximum_length(length: int) -> None:
    error = reply(board(), "x" * length)
    assert error == (
        "x" * MAX_REFUSAL_LENGTH if length == MAX_REFUSAL_LENGTH else "x" * (MAX_REFUSAL_LENGTH - 1) + "…"
    )


# -- what an outcome holds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "touched"),
    [
        (Show(), ()),
        (Reset("g"), ()),
        (Add(("b", "c")), (2, 3)),
        (Change(1, "completed"), (1,)),
        (Replace((Draft("a", "pending"), Draft("b", "pending"))), (2,)),
        (Replace((Draft("a", "completed"),)), (1,)),
    ],
)
def test_an_outcome_names_its_operation_and_what_it_wrote(operation: Operation, touched: Any) -> None:
    _, (outcome,), _ = playing(board(A), operation)
    assert (outcome.operation, outcome.touched, outcome.error) == (operation, touched, None)


def test_closed_items_make_room_if_a_call_appends() -> None:
    start = board(todo(1, "a", "completed"), todo(2, "b", "completed"), A | {"id": 3})
    after, (outcome,), _ = playing(start, Add(("x",)), rules=Rules(2))
    assert outcome.error is None
    assert [item["id"] for item in after.todos] == [1, 2, 3, 4]


def test_evidence_is_stored_and_kept_until_there_is_newer() -> None:
    after, _, _ = playing(board(A), Change(1, "completed", evidence="seen"))
    assert after.todos == (todo(1, "a", "completed", evidence="seen"),)
    after, _, _ = playing(after, Change(1, "pending"))
    assert after.todos == (todo(1, "a", evidence="seen"),)
    after, _, _ = playing(after, Change(1, "completed", evidence="seen again"))
    assert after.todos == (todo(1, "a", "completed", evidence="seen again"),)


def test_a_list_keeps_ids_and_drops_reasons() -> None:
    drafts = (Draft("a", "pending", "x"), Draft("b", "blocked", "y", "no key"), Draft("c", "pending"))
    after, _, _ = playing(board(next_id=7), Replace(drafts))
    assert after.todos == (todo("x", "a"), todo("y", "b", "blocked", reason="no key"), todo(7, "c"))
    assert after.next_id == 8


# -- the verifier ----------------------------------------------------------------------------------------


def refuse(_: Any) -> str:
    return "no proof"


@pytest.mark.parametrize(
    ("statuses", "kept"),
    [
        (["completed"], ["in_progress"]),  # an item that was not accepted is still being worked on
        (["completed", "completed"], ["in_progress", "pending"]),  # one at a time
        (["completed", "in_progress"], ["pending", "in_progress"]),
        (["pending", "completed", "completed"], ["pending", "in_progress", "pending"]),
    ],
)
def test_the_status_of_items_that_were_not_accepted(statuses: Any, kept: list[str]) -> None:
    drafts = tuple(Draft(str(n), status) for n, status in enumerate(statuses))
    after, (outcome,), asked = playing(board(), Replace(drafts), verify=refuse)
    assert list(after.todos) == [todo(n + 1, str(n), status) for n, status in enumerate(kept)]
    refused = [n + 1 for n, status in enumerate(statuses) if status == "completed"]
    assert dict(outcome.denied) == dict.fromkeys(refused, "no proof")
    assert [item["id"] for item in asked] == refused


def test_an_already_completed_item_is_not_asked_about() -> None:
    start = board(todo(1, "a", "completed"), todo(2, "b"))
    new = Replace((Draft("a", "completed"), Draft("b", "completed")))
    _, _, asked = playing(start, new)
    assert asked == [todo(2, "b", "completed")]


def test_two_lists_in_one_round_are_two_questions_if_both_count() -> None:
    new = Replace((Draft("a", "completed"),))
    after, _, asked = playing(board(A), new, new, verify=refuse)
    assert len(asked) == 2
    assert after.refusals == {"1": 2}


@pytest.mark.parametrize(("status", "reason"), [("blocked", "another"), ("cancelled", None)])
def test_an_item_refused_for_good_may_be_held_or_dropped(status: Any, reason: str | None) -> None:
    after, (outcome,), _ = playing(board(HELD, refusals=EXHAUSTED), Change(1, status, reason))
    assert outcome.error is None
    assert after.todos == (todo(1, "a", status, **({"reason": reason} if reason else {})),)


@pytest.mark.parametrize("status", ["pending", "in_progress", "completed", "blocked", "cancelled"])
def test_a_list_cannot_open_an_item_refused_for_good(status: Any) -> None:
    after, _, asked = playing(board(HELD, refusals=EXHAUSTED), Replace((Draft("a", status),)))
    assert after.todos == ((todo(1, "a", "cancelled") if status == "cancelled" else HELD),)
    assert asked == []


@pytest.mark.parametrize("refusals", [{}, {"1": 2}])
def test_an_item_blocked_by_the_model_can_be_opened(refusals: dict[str, int]) -> None:
    after, _, _ = playing(board(HELD, refusals=refusals), Change(1, "pending"))
    assert after.todos == (A,)


# -- lists and updates from outside ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("[]", "todos must be a list of items with content and status, got str"),
        (None, "todos must be a list of items with content and status, got NoneType"),
        ({"a": 1}, "todos must be a list of items with content and status, got dict"),
        ([{"content": 3}], "todos item 1 has no content; every item needs text that is not blank"),
        *(
            (
                [{"content": "a", "status": status}],
                (
                    f"todos item 1 (a) has the status {status!r}; "
                    "allowed: pending, in_progress, completed, cancelled, blocked"
                ),
            )
            for status in ("done", None, ["pending"])
        ),
        ([{"status": "pending"}], "todos item 1 has no content; every item needs text that is not blank"),
        ([A, "b"], "todos item 2 must be an object with content and status, got 'b'"),
        ([{"content": " "}], "todos item 1 has no content; every item needs text that is not blank"),
        ([{"content": "\u2800"}], "todos item 1 has no content; every item needs text that is not blank"),
        ([{"content": "a", "id": 1.5}], "todos item 1 (a) has the id 1.5; an id is an integer or a string"),
        ([{"content": "a", "reason": 1}], "todos item 1 (a) has a reason that is not a string"),
        ([{"content": "a", "evidence": []}], "todos item 1 (a) has a evidence that is not a string"),
        ([A, {"content": "b", "id": "1"}], "todos has the id '1' twice; each id must be unique"),
    ],
)
def test_the_refusal_of_an_invalid_list(value: Any, sentence: str) -> None:
    with pytest.raises(OperationRefused) as refusal:
        read_list(value)
    assert str(refusal.value) == sentence


def test_half_a_surrogate_pair_is_replaced_in_every_string_of_a_list() -> None:
    half = dict.fromkeys(("id", "content", "reason", "evidence"), "a\ud800")
    assert read_list([half]) == [{**dict.fromkeys(half, "a\ufffd"), "status": "pending"}]
    with pytest.raises(OperationRefused, match="twice"):
        read_list([{"content": "a", "id": "\ud800"}, {"content": "b", "id": "\ud801"}])


@pytest.mark.parametrize("key", [ID_LIMIT, -ID_LIMIT, True, " ", ""])
def test_what_is_not_an_id(key: Any) -> None:
    with pytest.raises(OperationRefused, match="has the id"):
        read_list([{"content": "a", "id": key}])


@pytest.mark.parametrize("key", [ID_LIMIT - 1, 1 - ID_LIMIT, 0, "x"])
def test_what_is_an_id(key: Any) -> None:
    assert read_list([{"content": "a", "id": key}]) == [todo(key, "a")]


@pytest.mark.parametrize(
    ("difference", "sentence"),
    [
        ({"all": [{"content": "a"}]}, "todos has an item without an id under 'all'"),
        ({"put": [A, {"content": "b"}]}, "todos has an item without an id under 'put'"),
        ({"all": 7}, "todos must be a list of items with content and status, got int"),
        ({"put": "x"}, "todos must be a list of items with content and status, got str"),
        ({"drop": 7}, "todos has 'drop' 7; it must be a list of ids"),
        ({"drop": "ab"}, "todos has 'drop' 'ab'; it must be a list of ids"),
        ({"order": {1: 2}}, "todos has 'order' {1: 2}; it must be a list of ids"),
        ({"order": [1, None]}, "todos has 'order' [1, None]; it must be a list of ids"),
    ],
)
def test_the_refusal_of_an_invalid_update(difference: Any, sentence: str) -> None:
    with pytest.raises(OperationRefused) as refusal:
        check_changes(difference)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("difference", [{}, {"all": [A]}, {"put": [A], "drop": [2, "x"], "order": (1,)}])
def test_a_valid_update(difference: Any) -> None:
    check_changes(difference)


B, C = todo(2, "b"), todo(3, "c")
DONE = todo(1, "a", "completed")


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ([], [], {}),
        ([A, B], [dict(A), B], {}),
        ([A, B], [DONE, B], {"put": [DONE]}),
        ([A, B], [dict(A), todo(2, "bb")], {"put": [todo(2, "bb")]}),
        ([A], [A, B], {"put": [B]}),
        ([A, B], [B], {"drop": [1]}),
        ([A, B], [B, C], {"put": [C], "drop": [1]}),
        ([A, B], [B, DONE], {"put": [DONE], "order": [2, 1]}),
        ([A, B], [B, A], {"order": [2, 1]}),
        ([A], [C, A], {"put": [C], "order": [3, 1]}),
        ([A, B], [], {"drop": [1, 2]}),
    ],
)
def test_an_update_holds_only_what_has_changed(old: Any, new: Any, difference: Any) -> None:
    assert diff_lists(old, new) == difference


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([], 1),
        ([{"content": "a"}], 1),
        ([{"id": "x"}], 1),
        ([{"id": "1" * 15}], int("1" * 15) + 1),
        ([{"id": "1" * 16}], 1),  # too long for a number that the thread could assign
        ([{"id": "²"}], 1),
        ([{"id": 4}, {"id": "9"}], 10),
    ],
)
def test_the_next_number(items: Any, wanted: int) -> None:
    assert next_free_number(items) == wanted


def test_numbers_continue_from_the_threads_own() -> None:
    assert assign_ids([{"content": "a", "status": "pending"}, A | {"id": 3}], 7) == (
        [todo(7, "a"), todo(3, "a")],
        8,
    )


def test_a_string_is_cut_at_sixty_unless_another_length_is_given() -> None:
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 59 + "…"


# -- gates and routers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drained", "left", "hindrance"),
    [(False, 4, None), (False, 3, "step_limit"), (True, 4, "drained"), (True, 3, "drained")],
)
def test_what_prevents_one_more_request(drained: bool, left: int, hindrance: str | None) -> None:
    assert find_obstacle(Case(1, LoopSettings(), drained=drained, steps_left=left), 4) == hindrance


def test_a_call_with_arguments_beyond_json_has_a_fingerprint_too() -> None:
    assert fingerprint_call("a", {"x": 1j}) != fingerprint_call("a", {"x": 2j})


@pytest.mark.parametrize("state", [{}, {"todo_ledger": None}, {"todo_ledger": {}}])
def test_a_thread_that_was_only_edited_by_hand_ends_at_the_guard(state: Any) -> None:
    assert after_guard(state) == "stop"


def test_without_a_note_of_todo_calls_all_are_external() -> None:
    state: Any = {"todo_ledger": {"nag": False}, "messages": [calls(("a", {}, "1"))]}
    (sent,) = after_call_model(state)
    assert isinstance(sent, Send)
    assert (sent.node, sent.arg["id"]) == ("run_tools", "1")


# -- several at once, ids as shown, repeats, replays ------------------------------------------------------


def statuses(after: Any) -> list[str]:
    return [item["status"] for item in after.todos]


def test_several_changes_are_one_call() -> None:
    both = ChangeSeveral((Change(1, "completed"), Change("2", "blocked", "no"), Change(1, "completed")))
    after, [outcome], asked = playing(board(A, todo(2, "b")), both)
    assert statuses(after) == ["completed", "blocked"]
    assert (outcome.operation, outcome.error, outcome.touched, outcome.denied) == (both, None, (1, 2), {})
    assert [item["id"] for item in asked] == [1]


def test_several_changes_apply_together_or_not_at_all_and_nobody_is_asked() -> None:
    start = board(A, todo(2, "b"))
    both = ChangeSeveral((Change(1, "completed"), Change(7, "completed")))
    after, [outcome], asked = playing(start, both)
    assert (after, outcome.operation, outcome.error) == (
        start,
        both,
        unknown(7, 1, 2),
    )
    assert asked == []


def test_each_of_several_changes_is_verified() -> None:
    all_three = ChangeSeveral(tuple(Change(key, "completed") for key in (1, 2, 3)))
    after, [outcome], asked = playing(
        board(A, todo(2, "b"), todo(3, "c")),
        all_three,
        verify=lambda item: None if item["id"] == 3 else f"not {item['id']}",
    )
    assert statuses(after) == ["pending", "pending", "completed"]
    assert (outcome.touched, outcome.denied) == ((1, 2, 3), {1: "not 1", 2: "not 2"})
    assert [item["id"] for item in asked] == [1, 2, 3]
    assert after.refusals == {"1": 1, "2": 1}


def test_the_verifiers_refusal_in_a_call_that_is_refused_itself_does_not_count() -> None:
    both = ChangeSeveral((Change(1, "in_progress"), Change(2, "in_progress")))
    more = ChangeSeveral((Change(1, "completed"), Change(2, "in_progress")))
    rules = Rules(in_progress="at_most_one")
    after, outcomes, _ = playing(board(A, todo(2, "b")), both, more, rules=rules, verify=refuse)
    assert all("only one item may be in progress" in (outcome.error or "") for outcome in outcomes)
    assert after.refusals == {}


def test_another_call_asks_the_verifier_again() -> None:
    once = ChangeSeveral((Change(1, "completed"),))
    after, _, asked = playing(board(A), once, once, verify=lambda item: "no")
    assert ([item["id"] for item in asked], after.refusals) == ([1, 1], {"1": 2})


@pytest.mark.parametrize("shown", ["[1]", "#1", "1.", "1.0", " [1] ", "#1.00", 1.0])
def test_an_id_as_shown_is_accepted_if_the_dialect_says_so(shown: Any) -> None:
    after, _, _ = playing(board(A), Change(shown, "cancelled", as_shown=True))
    assert statuses(after) == ["cancelled"]


@pytest.mark.parametrize("shown", ["[1]", "#1", "1."])
def test_an_id_as_shown_is_refused_elsewhere(shown: str) -> None:
    assert reply(board(A), Change(shown, "cancelled")) == unknown(shown, 1)


@pytest.mark.parametrize("shown", ["[7]", "1x", "x1", "1]0"])
def test_only_marks_are_removed_from_an_id(shown: str) -> None:
    assert reply(board(A), Change(shown, "cancelled", as_shown=True)) == unknown(shown, 1)


def test_an_id_that_matches_exactly_wins_over_its_marks() -> None:
    after, _, _ = playing(board(A, todo("#1", "b")), Change("#1", "cancelled", as_shown=True))
    assert statuses(after) == ["pending", "cancelled"]


def test_an_open_item_that_is_added_again_is_named() -> None:
    start = board(A, todo(2, "b"), todo(3, "c", "completed"))
    after, [outcome], _ = playing(start, Add((" a ", "c", "d", "b", "a")), rules=Rules(repeats="name"))
    assert [item["content"] for item in after.todos] == ["a", "b", "c", "c", "d"]
    assert (outcome.touched, outcome.repeated) == ((4, 5), (1, 2))
    after, [outcome], _ = playing(start, Add(("a",)), rules=Rules(repeats="store"))
    assert (outcome.touched, outcome.repeated) == ((4,), ())


def test_a_new_item_never_takes_an_id_that_exists() -> None:
    write = Replace((Draft("a", "pending", 1), Draft("b", "pending", 6)))
    after = playing(board(A, next_id=5), write, Add(("c",)), Add(("d",)))[0]
    assert [item["id"] for item in after.todos] == [1, 6, 7, 8]


def test_a_replay_asks_nobody_again_and_leaves_out_what_the_person_rejected() -> None:
    made = [Change(1, "completed"), Add(("b",))]
    verdicts: Any = {}
    play = play_round(board(A), made, Rules(), verdicts)
    next(play)
    with pytest.raises(StopIteration):
        play.send(None)
    assert len(verdicts) == 1
    with pytest.raises(StopIteration) as ended:
        next(play_round(board(A), made, Rules(), verdicts, rejected=(1,)))
    after, outcomes = ended.value.value
    assert (statuses(after), [outcome.error for outcome in outcomes]) == (["completed"], [None, "rejected"])


def test_a_repeated_forbidden_start_is_refused_in_the_same_words() -> None:
    fault = "only one item may be in progress, but these would be: [1] a and [2] b; close or reopen one first"
    _, outcomes, _ = playing(
        board(A, todo(2, "b")),
        *(Change(key, "in_progress") for key in (1, 2, 2)),
        rules=Rules(in_progress="at_most_one"),
    )
    assert [outcome.error for outcome in outcomes] == [None, fault, fault]


def test_a_call_refused_in_one_replay_stays_refused_in_the_next() -> None:
    two = Replace((Draft("a", "in_progress", 1), Draft("b", "pending", 2), Draft("c", "in_progress", 3)))
    start_b = Change(2, "in_progress")
    after, outcomes, _ = playing(
        board(todo(1, "a", "completed"), todo(2, "b"), todo(3, "c")),
        *(two, two, start_b, start_b),
        rules=Rules(in_progress="at_most_one"),
    )
    assert statuses(after) == ["completed", "pending", "pending"]
    faults = []
    for names in (
        "[1] a and [3] c",
        "[1] a and [3] c",
        "[1] a and [2] b and [3] c",
        "[1] a and [2] b and [3] c",
    ):
        faults.append(
            f"only one item may be in progress, but these would be: {names}; close or reopen one first"
        )
    assert [outcome.error for outcome in outcomes] == faults
