"""How many items may be in progress, and who started them."""

from collections.abc import Sequence

from wakeloop.text.characters import name_of, one_line, shorten
from wakeloop.todos.items import Todo, count_open, count_running
from wakeloop.todos.operations import Board, Outcome, Replace, Reset, Rules


def is_sound(todos: Sequence[Todo], rules: Rules) -> bool:
    """Tell whether a list keeps the rule about items in progress."""
    running = count_running(todos)
    if rules.in_progress == "any" or running == 1:
        return True
    if running:
        return False
    return rules.in_progress == "at_most_one" or not count_open(todos)  # also what a verifier has blocked


def progress_fault(todos: Sequence[Todo], rules: Rules) -> str | None:
    """Say how a list breaks the rule about items in progress, or return None."""
    if is_sound(todos, rules):
        return None
    if count_running(todos):
        running = [todo for todo in todos if todo["status"] == "in_progress"]
        names = " and ".join(
            f"[{name_of(todo['id'])}] {shorten(one_line(todo['content']))}" for todo in running
        )
        return f"only one item may be in progress, and these would be: {names}; close or reopen one first"
    return "exactly one item must be in progress unless all are completed, and none would be"


def starts(before: Board, outcome: Outcome, rules: Rules) -> bool:
    """Tell whether a call started an item or, where one must run, changed what runs at all."""
    old, new = before.rows, outcome.board.rows
    moves = [(old.at(key), new.at(key)) for key in outcome.touched]
    statuses = [(was and was["status"], now and now["status"]) for was, now in moves]
    moved = [now for was, now in statuses if was != now]
    if rules.in_progress != "exactly_one":
        return "in_progress" in moved
    gone = isinstance(outcome.operation, Replace | Reset) and any(new.at(todo["id"]) is None for todo in old)
    return bool(moved) or gone


def too_late(before: Board, outcomes: Sequence[Outcome], rules: Rules, late: int) -> int:
    """Find the place from which on starting calls are to be refused: the last that leaves a sound list.

    What an item that runs at the end is started by alone decides: where at most one may, the second of those
    calls is too late; where one must, the list is to be as it was at the last place where it was sound.
    """
    if rules.in_progress == "exactly_one":
        boards = [before, *(outcome.board for outcome in outcomes)]
        sound = (i for i in reversed(range(late)) if is_sound(boards[i].todos, rules))
        return next(sound, 0)
    started = {todo["id"]: -1 for todo in before.todos if todo["status"] == "in_progress"}
    for i, outcome in enumerate(outcomes):
        if outcome.error is not None:
            continue
        rows = outcome.board.rows
        if isinstance(outcome.operation, Replace | Reset):
            running = [todo["id"] for todo in rows if todo["status"] == "in_progress"]
            started = {key: started.get(key, i) for key in running}
            continue
        for key in outcome.touched:
            now = rows.at(key)
            if now is not None and now["status"] == "in_progress":
                started.setdefault(key, i)
            else:
                started.pop(key, None)
    return max(sorted(started.values())[1], 0)
