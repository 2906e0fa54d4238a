"""How many items may be in progress, and who started them."""

from collections.abc import Sequence
from dataclasses import dataclass

from wakeloop.text.characters import format_id, shorten, to_one_line
from wakeloop.todos.items import Todo, count_open, count_running
from wakeloop.todos.operations import Board, Outcome, Replace, Reset, Rules


def keeps_progress_rule(todos: Sequence[Todo], rules: Rules) -> bool:
    """Tell whether a list keeps the rule about items in progress."""
    running = count_running(todos)
    if rules.in_progress == "any" or running == 1:
        return True
    if running:
        return False
    return rules.in_progress == "at_most_one" or not count_open(todos)  # also what a verifier has blocked


def explain_progress_fault(todos: Sequence[Todo], rules: Rules) -> str | None:
    """Say how a list breaks the rule about items in progress, or return None."""
    if keeps_progress_rule(todos, rules):
        return None
    if count_running(todos):
        running = [todo for todo in todos if todo["status"] == "in_progress"]
        names = " and ".join(
            f"[{format_id(todo['id'])}] {shorten(to_one_line(todo['content']))}" for todo in running
        )
        return f"only one item may be in progress, but these would be: {names}; close or reopen one first"
    return "exactly one item must be in progress unless all are completed, but none would be"


@dataclass(frozen=True, slots=True)
class ProgressLimit:
    """Which calls a fault refuses: these, and from the place `late` on each that does what brought it about.

    That is to start an item; or, where none runs though one must, to change any status at all.
    """

    fault: str
    late: int
    calls: tuple[int, ...]
    starts: bool

    def refuses(self, place: int, before: Board, outcome: Outcome) -> bool:
        """Tell whether a call is refused."""
        return place >= self.late and _changes_progress(before, outcome, starts=self.starts)


def find_progress_limit(before: Board, outcomes: Sequence[Outcome], rules: Rules) -> ProgressLimit | None:
    """Choose the calls to refuse where a round leaves a broken list, the last first; None where none is.

    As if they were refused one by one, with the round played anew after each, but in few plays. A list that
    was put in the place of another is refused alone: what came after it may do other things without it.
    """
    boards = [before, *(outcome.board for outcome in outcomes)]
    fault = explain_progress_fault(boards[-1].todos, rules)
    if fault is None:
        return None
    many = count_running(boards[-1].todos) > 1
    culprits = [i for i, outcome in enumerate(outcomes) if _changes_progress(boards[i], outcome, starts=many)]
    if not culprits:
        return None
    whole = [i for i, outcome in enumerate(outcomes) if outcome.error is None and _replaces_list(outcome)]
    base = whole[-1] if whole else -1
    late = _find_second_start(boards, outcomes, base) if many else _find_last_sound(boards, rules)
    if late <= base:
        late = base + 1 if culprits[-1] > base else len(outcomes)
    return ProgressLimit(fault, late, tuple(i for i in culprits if i >= min(late, culprits[-1])), starts=many)


def _changes_progress(before: Board, outcome: Outcome, *, starts: bool) -> bool:
    """Tell whether a call started an item or, where that is not asked, changed any status at all."""
    if outcome.error is not None:
        return False
    old, new = before.rows, outcome.board.rows
    pairs = [(old.get(key), new.get(key)) for key in outcome.touched]
    statuses = [(was and was["status"], now and now["status"]) for was, now in pairs]
    moved = [now for was, now in statuses if was != now]
    if starts:
        return "in_progress" in moved
    gone = _replaces_list(outcome) and any(new.get(todo["id"]) is None for todo in old)
    return bool(moved) or gone


def _replaces_list(outcome: Outcome) -> bool:
    return isinstance(outcome.operation, Replace | Reset)


def _find_last_sound(boards: Sequence[Board], rules: Rules) -> int:
    """Find the last place where an item ran, or none needed to."""
    lacks = (
        not count_running(board.todos) and not keeps_progress_rule(board.todos, rules)
        for board in reversed(boards)
    )
    return next((len(boards) - 1 - n for n, lack in enumerate(lacks) if not lack), 0)


def _find_second_start(boards: Sequence[Board], outcomes: Sequence[Outcome], base: int) -> int:
    """Find the place where the second of the items that run was started; `base` for all that ran there."""
    started = {todo["id"]: base for todo in boards[base + 1].todos if todo["status"] == "in_progress"}
    for i, outcome in enumerate(outcomes[base + 1 :], base + 1):
        for key in outcome.touched if outcome.error is None else ():
            now = outcome.board.rows.get(key)
            if now is not None and now["status"] == "in_progress":
                started.setdefault(key, i)
            else:
                started.pop(key, None)
    return sorted(started.values())[1]
