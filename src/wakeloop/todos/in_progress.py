"""The rule about items in progress, and which calls break it."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from wakeloop.text.characters import format_id, shorten, to_one_line
from wakeloop.todos.items import Todo, count_open, count_running
from wakeloop.todos.operations import Board, Outcome, Replace, Reset, Rules


def keeps_progress_rule(todos: Sequence[Todo], rules: Rules) -> bool:
    """Return whether a list keeps the rule about items in progress."""
    running = count_running(todos)
    if rules.in_progress == "any" or running == 1:
        return True
    if running:
        return False
    # A list without open items needs none in progress, also if the verifier has blocked some of them.
    return rules.in_progress == "at_most_one" or not count_open(todos)


def explain_progress_fault(todos: Sequence[Todo], rules: Rules) -> str | None:
    """Return how a list breaks the rule about items in progress, or None."""
    if keeps_progress_rule(todos, rules):
        return None
    running = [todo for todo in todos if todo["status"] == "in_progress"]
    names = [f"[{format_id(todo['id'])}] {shorten(to_one_line(todo['content']))}" for todo in running]
    if names:
        would = " and ".join(names)
        return f"only one item may be in progress, but these would be: {would}; close or reopen one first"
    return "exactly one item must be in progress unless all are completed, but none would be"


@dataclass(frozen=True, slots=True)
class ProgressLimit:
    """The calls to refuse because of a `fault`.

    `calls` are refused by their places. From the place `start` on, a call is also refused if it starts an
    item or, unless `only_starts`, changes any status: it may do so only once the others are refused.
    """

    fault: str
    start: int
    calls: tuple[int, ...]
    only_starts: bool

    def refuses(self, place: int, before: Board, outcome: Outcome) -> bool:
        """Return whether a call is refused."""
        return place >= self.start and _changes_progress(before, outcome, only_starts=self.only_starts)


def find_progress_limit(before: Board, outcomes: Sequence[Outcome], rules: Rules) -> ProgressLimit | None:
    """Choose the calls to refuse if a round leaves a list that breaks the rule; None if it does not.

    The result is that of refusing the last such call, replaying the round and so on, but takes few replays.
    A call that replaces the whole list is refused by itself: without it, later calls may do other things.
    """
    after = outcomes[-1].board if outcomes else before
    fault = explain_progress_fault(after.todos, rules)
    if fault is None:
        return None
    boards = [before, *[outcome.board for outcome in outcomes]]
    too_many = count_running(boards[-1].todos) > 1
    last_replaced = -1
    culprits: list[int] = []
    for place, outcome in enumerate(outcomes):
        if outcome.error is None and _replaces_list(outcome):
            last_replaced = place
        if _changes_progress(boards[place], outcome, only_starts=too_many):
            culprits.append(place)
    if not culprits:
        return None
    start = (
        _find_second_start(boards, outcomes, last_replaced) if too_many else _find_last_sound(boards, rules)
    )
    if start <= last_replaced:
        start = last_replaced + 1 if culprits[-1] > last_replaced else len(outcomes)
    refused = culprits[bisect_left(culprits, min(start, culprits[-1])) :]
    return ProgressLimit(fault, start, tuple(refused), only_starts=too_many)


def _changes_progress(before: Board, outcome: Outcome, *, only_starts: bool) -> bool:
    """Return whether a call started an item or, unless `only_starts`, changed any status at all."""
    if outcome.error is not None:
        return False
    for key in outcome.touched:
        status = _find_status(outcome.board, key)
        if status != _find_status(before, key) and (status == "in_progress" or not only_starts):
            return True
    if only_starts or not _replaces_list(outcome):
        return False
    # The item in progress may have been left out of the new list.
    return any(outcome.board.find(todo["id"]) is None for todo in before.todos)


def _find_status(board: Board, key: int | str) -> str | None:
    todo = board.find(key)
    return None if todo is None else todo["status"]


def _replaces_list(outcome: Outcome) -> bool:
    return isinstance(outcome.operation, Replace | Reset)


def _find_last_sound(boards: Sequence[Board], rules: Rules) -> int:
    """Find the last place at which an item was in progress, or none had to be."""
    for place in range(len(boards) - 1, 0, -1):
        todos = boards[place].todos
        if count_running(todos) or keeps_progress_rule(todos, rules):
            return place
    return 0


def _find_second_start(boards: Sequence[Board], outcomes: Sequence[Outcome], base: int) -> int:
    """Find where the second item in progress was started; those of board `base + 1` started at `base`."""
    started = {todo["id"]: base for todo in boards[base + 1].todos if todo["status"] == "in_progress"}
    for place in range(base + 1, len(outcomes)):
        outcome = outcomes[place]
        if outcome.error is not None:
            continue
        for key in outcome.touched:
            if _find_status(outcome.board, key) == "in_progress":
                started.setdefault(key, place)
            else:
                started.pop(key, None)
    return sorted(started.values())[1]
