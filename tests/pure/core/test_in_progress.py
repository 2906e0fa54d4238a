"""Which calls of a round are refused when it would leave an invalid list, checked against rule 10."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import examples
from test_todos import playing

from wakeloop.todos.in_progress import keeps_progress_rule
from wakeloop.todos.items import count_running
from wakeloop.todos.operations import Add, Board, Change, Draft, Replace, Reset, Rules, Show

ONE, MUST = Rules(in_progress="at_most_one"), Rules(in_progress="exactly_one")
SHORT = {"p": "pending", "i": "in_progress", "c": "completed", "x": "cancelled", "b": "blocked"}


def make_board(statuses: str) -> Board:
    items: Any = [
        {"id": n, "content": f"c{n}", "status": SHORT[status]} for n, status in enumerate(statuses, 1)
    ]
    return Board(tuple(items), next_id=len(items) + 1)


def play(board: Board, calls: Any, rules: Rules, verdict: Any = lambda _: None) -> Any:
    return playing(board, *calls, rules=rules, verify=verdict)[:2]


def to(key: Any, status: str) -> Change:
    return Change(key, SHORT[status], "why")  # type: ignore[arg-type]


def whole(*items: str) -> Replace:
    """Return a whole list: `1i` is item c1, in progress."""
    return Replace(tuple(Draft(f"c{item[:-1]}", SHORT[item[-1]]) for item in items))  # type: ignore[arg-type]


# The rules, the list before, the calls, the list after, and the refused calls.
TABLE: dict[str, tuple[Rules, str, list[Any], str, str]] = {
    "the last of two starts": (ONE, "ppp", [to(1, "i"), to(2, "i")], "ipp", ".r"),
    "all but the first": (ONE, "ppp", [to(3, "i"), to(1, "i"), to(2, "i")], "ppi", ".rr"),
    "every start while one runs": (ONE, "ipp", [to(2, "i"), to(3, "i")], "ipp", "rr"),
    "none where the first is closed": (ONE, "ipp", [to(2, "i"), to(1, "c")], "cip", ".."),
    "a call that starts nothing is kept": (ONE, "ippp", [to(1, "i"), to(3, "x"), to(2, "i")], "ipxp", "..r"),
    "a start that was closed again, too": (ONE, "ipp", [to(2, "i"), to(3, "i"), to(3, "c")], "ipc", "rr."),
    "a list of two that run": (ONE, "p", [whole("1i", "2i")], "p", "r"),
    "only the list, not the start after it": (ONE, "ppp", [whole("1i", "2i"), to(1, "i")], "ipp", "r."),
    "the start after a list": (ONE, "ppp", [whole("1i", "2p"), to(2, "i")], "ip", ".r"),
    "the start before a list": (ONE, "ppp", [to(3, "i"), whole("1i", "2i")], "ppi", ".r"),
    "the last of two lists": (ONE, "", [whole("1i"), whole("1i", "2i")], "i", ".r"),
    "one must run: the last of two starts": (MUST, "ppp", [to(1, "i"), to(2, "i")], "ipp", ".r"),
    "one must run: starts alone": (MUST, "ppp", [to(1, "i"), to(2, "i"), to(3, "x")], "ipx", ".r."),
    "one must run: nor what adds": (MUST, "pp", [to(1, "i"), to(2, "i"), Add(("c3",))], "ipp", ".r."),
    "one must run: the end of the last that ran": (MUST, "ip", [to(1, "c")], "ip", "r"),
    "one must run: an end after a start": (
        MUST, "ppp", [to(1, "i"), to(1, "c"), to(2, "i"), to(3, "i")], "cip", "...r",
    ),
    "one must run: what adds to no list": (MUST, "", [Add(("c1",)), Add(("c2",))], "", "rr"),
    "one must run: the list that ends all, not the start after it": (
        MUST, "ppp", [whole("1p", "2p"), to(3, "i")], "ppi", "r.",
    ),
    "one must run, none did: all that writes": (MUST, "pp", [to(1, "x"), Show()], "pp", "r."),
    "broken before, and no start: nothing": (ONE, "iip", [to(3, "x")], "iix", "."),
    "broken before: a start of one that runs": (ONE, "iip", [to(1, "i")], "iip", "."),
    "broken before: any start": (ONE, "iip", [to(3, "i")], "iip", "r"),
    "broken before, and mended": (ONE, "iip", [to(3, "i"), to(1, "c"), to(2, "c")], "cci", "..."),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_which_calls_are_refused(case: str) -> None:
    rules, statuses, calls, left, refused = TABLE[case]
    after, outcomes = play(make_board(statuses), calls, rules)
    assert "".join("r" if outcome.error else "." for outcome in outcomes) == refused
    assert [todo["status"] for todo in after.todos] == [SHORT[status] for status in left]


def test_each_refused_start_names_all_items_that_would_be_in_progress() -> None:
    _, outcomes = play(make_board("ppp"), [to(n, "i") for n in (1, 2, 3)], ONE)
    told = (
        "only one item may be in progress, but these would be: [1] c1 and [2] c2 and [3] c3; "
        "close or reopen one first"
    )
    assert [outcome.error for outcome in outcomes] == [None, told, told]


def test_a_list_with_two_items_in_progress_names_them() -> None:
    _, outcomes = play(make_board("p"), [whole("1i", "2i"), to(1, "i")], ONE)
    told = (
        "only one item may be in progress, but these would be: [1] c1 and [2] c2; close or reopen one first"
    )
    assert [outcome.error for outcome in outcomes] == [told, None]


# -- a second implementation: one call after another ------------------------------------------------------


def moved(before: Board, outcome: Any, *, starts: bool) -> bool:
    was = {todo["id"]: todo["status"] for todo in before.todos}
    now = {todo["id"]: todo["status"] for todo in outcome.board.todos}
    started = any(status == "in_progress" and was.get(key) != status for key, status in now.items())
    return outcome.error is None and was != now and (started or not starts)


def by_the_book(board: Board, calls: Any, rules: Rules, verdict: Any) -> tuple[Any, list[bool]]:
    """Refuse the last call that started an item, and replay, until the list is valid.

    If none is in progress though one must be, nothing was started; the last call that changed the list
    is refused.
    """
    writes = [i for i, call in enumerate(calls) if isinstance(call, Replace)]
    refused = set(writes) if rules.one_write and len(writes) > 1 else set()
    while True:
        told = ["refused" if i in refused else call for i, call in enumerate(calls)]
        after, outcomes = play(board, told, Rules(rules.max_items), verdict)
        boards = [board, *(outcome.board for outcome in outcomes)]
        many = count_running(after.todos) > 1
        culprits = [i for i, o in enumerate(outcomes) if moved(boards[i], o, starts=many)]
        if keeps_progress_rule(after.todos, rules) or not culprits:
            return after, [outcome.error is not None for outcome in outcomes]
        refused.add(culprits[-1])


KEYS = st.integers(1, 7)
STATUSES = st.sampled_from([*["in_progress"] * 3, "pending", "completed", "cancelled", "blocked"])
TEXTS = st.sampled_from(["c1", "c2", "c3"])
CHANGES: Any = st.builds(Change, KEYS, STATUSES, st.just("why"))
ADDS: Any = st.builds(Add, st.lists(TEXTS, min_size=1, max_size=2).map(tuple))
LISTS: dict[str, Any] = {
    name: st.builds(Replace, st.lists(st.builds(Draft, TEXTS, STATUSES, keys), max_size=4).map(tuple))
    for name, keys in (("with ids", KEYS), ("without ids", st.none()), ("mixed", st.none() | KEYS))
}
SPEAK = {  # what each dialect makes of its calls, and what a custom one may
    "parley": st.one_of(CHANGES, CHANGES, CHANGES, ADDS, st.just(Show())),
    "loki": st.one_of(st.builds(Change, KEYS, st.just("completed")), ADDS, st.just(Reset()), st.just(Show())),
    "checklist": LISTS["with ids"],
    "write_todos": LISTS["without ids"],
    "of one's own": st.one_of(CHANGES, CHANGES, LISTS["mixed"], ADDS, st.just(Reset()), st.just("refused")),
}


@pytest.mark.slow
@pytest.mark.parametrize("one_write", [False, True])
@pytest.mark.parametrize("in_progress", ["at_most_one", "exactly_one"])
@pytest.mark.parametrize("dialect", SPEAK)
@given(data=st.data(), statuses=st.text("ppicb", max_size=5), seed=st.integers())
@examples(100)
def test_the_last_calls_are_refused_as_if_made_one_by_one(
    dialect: str, in_progress: Any, one_write: bool, data: Any, statuses: str, seed: int
) -> None:
    board, rules = make_board(statuses), Rules(in_progress=in_progress, one_write=one_write)
    calls = data.draw(st.lists(SPEAK[dialect], max_size=8))

    def verdict(todo: Any) -> str | None:
        return "no" if random.Random(f"{seed}{todo['id']}").random() < 0.4 else None

    after, outcomes = play(board, calls, rules, verdict)
    expected, errors = by_the_book(board, calls, rules, verdict)
    boards = [board, *(outcome.board for outcome in outcomes)]
    still = [not moved(boards[i], outcome, starts=False) for i, outcome in enumerate(outcomes)]
    assert tuple(after.todos) == tuple(expected.todos)
    assert [outcome.error is not None or none for outcome, none in zip(outcomes, still, strict=True)] == [
        refused or none for refused, none in zip(errors, still, strict=True)
    ]  # a call that changes nothing may stay
    if in_progress == "at_most_one":
        assert [outcome.error is not None for outcome in outcomes] == errors
    assert len({str(todo["id"]) for todo in after.todos}) == len(after.todos)
