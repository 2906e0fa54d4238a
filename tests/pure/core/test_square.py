"""Costs grow linearly: operations are counted here; times are measured only in benchmarks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from test_todos import playing

from wakeloop.dialects import get_dialect
from wakeloop.loop.progress import count_idle_rounds, has_progressed
from wakeloop.presets import preset
from wakeloop.testing import calls
from wakeloop.todos import operations
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Add, Board, Change, Draft, Outcome, Replace, Rules

ONE = Rules(in_progress="at_most_one")


def items(count: int, status: Any = "pending") -> list[Any]:
    return [{"id": n, "content": f"item {n}", "status": status} for n in range(1, count + 1)]


def play(
    board: Board, calls: Any, rules: Rules, verdict: Callable[[Any], str | None] = lambda _: None
) -> Any:
    """Return a round's board, its outcomes, and the items the verifier was asked about."""
    return playing(board, *calls, rules=rules, verify=verdict)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the lines of Python that run in the package."""
    ran = [0]

    def line(frame: Any, event: str, _: Any) -> Any:
        ran[0] += event == "line"
        return line

    def call(frame: Any, event: str, _: Any) -> Any:
        return line if "wakeloop" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield ran
    finally:
        sys.settrace(before)


def growth(job: Callable[[int], Callable[[], Any]], few: int, many: int) -> float:
    """Return how many times as many lines run for `many / few` times the input."""
    counts = []
    for number in (few, many):
        run = job(number)
        with counted() as ran:
            run()
        counts.append(ran[0])
    return counts[1] / counts[0]


def round_of(calls: Callable[[int], Any], listed: Callable[[int], Any], rules: Rules) -> Any:
    def job(number: int) -> Callable[[], Any]:
        board, told = Board(tuple(listed(number)), next_id=number + 1), calls(number)
        return lambda: play(board, told, rules, lambda _: "no")

    return job


JOBS: dict[str, Any] = {
    "starts that are refused": round_of(
        lambda n: [Change(i, "in_progress") for i in range(1, n + 1)], items, ONE
    ),
    "starts that are refused, backwards": round_of(
        lambda n: [Change(i, "in_progress") for i in range(n, 0, -1)], items, ONE
    ),
    "starts where one must run": round_of(
        lambda n: [Change(i, "in_progress") for i in range(1, n + 1)], items, Rules(in_progress="exactly_one")
    ),
    "items that are closed": round_of(
        lambda n: [Change(i, "completed") for i in range(1, n + 1)], items, Rules()
    ),
    "items that are not there": round_of(
        lambda n: [Change(f"x{i}", "completed") for i in range(n)], items, ONE
    ),
    "items that are added": round_of(
        lambda n: [Add((f"t{i}",)) for i in range(n)], lambda _: [], Rules(10**6)
    ),
    "items added at once": round_of(lambda n: [Add(tuple(map(str, range(n))))], lambda _: [], ONE),
    "a list in the place of one": round_of(
        lambda n: [Replace(tuple(Draft(f"item {i}", "pending") for i in range(1, n + 1)))], items, ONE
    ),
    "a list of one text": round_of(
        lambda n: [Replace(tuple(Draft("same", "pending") for _ in range(n)))],
        lambda n: [{**todo, "content": "same"} for todo in items(n)],
        ONE,
    ),
    "a list of one long text, by its ids": round_of(
        lambda n: [Replace(tuple(Draft("y" * 400, "pending", i) for i in range(n, 0, -1)))],
        lambda n: [{**todo, "content": "y" * 400} for todo in items(n)],
        ONE,
    ),
    "a list with ids": round_of(
        lambda n: [Replace(tuple(Draft("t", "pending", f"i{k}") for k in range(n)))], lambda _: [], ONE
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_rounds_steps_grow_with_its_calls_and_items(name: str) -> None:
    assert growth(JOBS[name], 100, 800) < 8 * 1.5


@pytest.mark.parametrize("name", ["parley", "loki", "checklist", "write_todos"])
def test_a_results_steps_grow_with_the_items_it_shows(name: str) -> None:
    dialect = get_dialect(name)

    def job(number: int) -> Callable[[], Any]:
        adds = Add(tuple(map(str, range(number))))
        write = Replace(tuple(Draft(f"t{i}", "pending") for i in range(number)))
        _, (outcome,), _ = play(Board(), [write if dialect.replaces else adds], Rules())
        return lambda: (dialect.render_result(outcome), dialect.shows_open_items(outcome))

    if name != "loki":  # adds one item per call, and says its number
        assert growth(job, 100, 800) < 8 * 1.5


def test_a_round_is_counted_in_as_many_comparisons_as_it_has_calls() -> None:
    class Counted(dict[str, Any]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    def reply(first: int, count: int) -> list[Any]:
        made = calls(*(("look", {"n": n}) for n in range(first, first + count)))
        for call in made.tool_calls:
            call["args"] = Counted(call["args"])
        return [made, *(ToolMessage("saw", tool_call_id=call["id"]) for call in made.tool_calls)]

    messages = [HumanMessage("go"), *reply(0, 10), *reply(10, 500)]
    notes: Any = {"nag": False}
    assert count_idle_rounds(messages, [], notes, preset("wakeloop"), frozenset()) == 0
    assert Counted.compared == 10 * 500  # with each of the last ones before it


def test_judging_progress_takes_as_many_steps_as_there_are_items() -> None:
    class Counted(list[int]):
        looked = 0

        def __contains__(self, key: object) -> bool:
            Counted.looked += 1
            return super().__contains__(key)

    before = Counted(range(2000, 4000))
    assert has_progressed(items(1000, "completed"), before, 0, worked=False) is False
    assert Counted.looked == 0  # a list is searched from its beginning, each time


def test_boards_of_a_round_share_their_items() -> None:
    board = Board(tuple(items(3000)))
    then = board.with_item({"id": 500, "content": "item 500", "status": "completed"})
    was, now = board.rows.blocks, then.rows.blocks
    assert [a is b for a, b in zip(was, now, strict=True)].count(False) == 1
    assert (board.find(500) or {}).get("status") == "pending"
    assert (then.find("500") or {}).get("status") == "completed"


def test_rows_behave_like_a_tuple() -> None:
    listed = items(200)
    given = operations.Rows(listed)
    assert given == tuple(listed)
    assert given == listed
    assert given != listed[:-1]
    assert (given[0], given[-1], given[3:5]) == (listed[0], listed[-1], tuple(listed[3:5]))
    assert list(reversed(given)) == listed[::-1]
    assert repr(given) == repr(tuple(listed))
    with pytest.raises(IndexError):
        given[200]


def test_two_boards_that_diverge_find_their_own_items() -> None:
    base = operations.Rows(items(10))
    one, other = base.with_appended([_todo(11)]), base.with_appended([_todo("x"), _todo(11)])
    assert (base.find(11), one.find(11)) == (None, _todo(11))
    assert (other.locate(11), other.locate("x")) == (11, 10)
    assert one.locate("x") is base.locate("x") is None
    assert one.tally == {"pending": 11}
    assert one.with_item({**_todo(3), "status": "completed"}).tally == {"pending": 10, "completed": 1}
    assert one.with_item(_todo("nobody")) is one


def _todo(key: Any) -> Todo:
    return {"id": key, "content": "c", "status": "pending"}


# -- contents ------------------------------------------------------------------------------------------------


FULL_RESULTS = {"parley": "agentparley", "write_todos": "cubepi"}


@pytest.mark.parametrize("name", ["parley", "checklist", "write_todos"])
def test_the_result_of_a_write_shows_each_text_cut_and_every_id(name: str) -> None:
    """In our own presets the result of a long plan only counts: the call has the contents."""
    dialect = get_dialect(name).for_settings(preset(FULL_RESULTS.get(name, "wakeloop")))
    texts = [f"{n:03} " + "x" * 10_000 for n in range(200)]
    keys = [f"k{n}" for n in range(200)] if name == "checklist" else [None] * 200
    write = Replace(tuple(Draft(t, "pending", k) for t, k in zip(texts, keys, strict=True)))
    board, (outcome,), _ = play(Board(), [write if dialect.replaces else Add(tuple(texts))], Rules())
    told = dialect.render_result(outcome)
    assert len(told) < 200 * 350
    assert all(text[:200] in told for text in texts)
    assert told.count("characters)") == 200
    assert told.count("cut only here") == 1
    if name != "write_todos":
        assert all(f"{todo['id']}" in told for todo in board.todos)
    assert [todo["content"] for todo in board.todos] == texts


@pytest.mark.parametrize("name", ["parley", "checklist", "write_todos"])
def test_contents_of_up_to_300_characters_are_shown_whole(name: str) -> None:
    dialect, text = get_dialect(name), "y" * 300
    write = Replace((Draft(text, "pending"),)) if dialect.replaces else Add((text,))
    _, (outcome,), _ = play(Board(), [write], Rules())
    assert text in dialect.render_result(outcome)
    assert "cut" not in dialect.render_result(outcome)


def test_a_changed_item_with_long_content_is_shown_cut() -> None:
    board = Board(({"id": 1, "content": "x" * 10_000, "status": "pending"},))
    _, (outcome,), _ = play(board, [Change(1, "completed")], Rules())
    assert len(get_dialect("parley").render_result(outcome)) < 400


def test_the_whole_content_is_shown_if_the_list_is_asked_for() -> None:
    board = Board(({"id": 1, "content": "x" * 10_000, "status": "pending"},))
    shown = get_dialect("parley").render_result(Outcome(operations.Show(), board))
    assert "x" * 10_000 in shown


def test_a_duplicate_id_is_found_among_many() -> None:
    drafts = tuple(Draft("t", "pending", f"i{n}") for n in (*range(50), 7))
    _, (outcome,), _ = play(Board(), [Replace(drafts)], Rules())
    assert outcome.error == "the id 'i7' occurs twice; each id must be unique"
