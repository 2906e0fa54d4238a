"""Items that are put to the verifier once more before the end."""

from collections.abc import Sequence

from wakeloop.loop.case import Case
from wakeloop.loop.gates import find_stop
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.ruling import Ruling
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Board, Outcome


def note_accepted(notes: Ledger, before: Board, outcomes: Sequence[Outcome], *, called: bool) -> None:
    """Note the items that a verdict has just completed, unless they had their second look.

    `called`: calls outside the todo tools run in the same round, so they may end after the verdict.
    """
    looks = dict(notes.get("looks", {}))
    board = before
    for outcome in outcomes:
        for key in outcome.touched:
            old, new = board.find(key), outcome.board.find(key)
            was_completed = old is not None and old["status"] == "completed"
            is_new = new is not None and new["status"] == "completed" and not was_completed
            if is_new and looks.get(str(key)) != "had":
                looks[str(key)] = "due" if called else "fresh"
        board = outcome.board
    if looks:
        notes["looks"] = looks


def note_calls(notes: Ledger) -> None:
    """Note that calls outside the todo tools run: a verdict before them may no longer be true."""
    if "fresh" in notes.get("looks", {}).values():
        notes["looks"] = {key: "due" if how == "fresh" else how for key, how in notes["looks"].items()}


def find_due(notes: Ledger, todos: Sequence[Todo]) -> list[Todo]:
    """Return the completed items that the verifier looks at once more."""
    looks = notes.get("looks", {})
    return [todo for todo in todos if todo["status"] == "completed" and looks.get(str(todo["id"])) == "due"]


def precedes_end(case: Case, ruling: Ruling) -> bool:
    """Tell whether the run is about to end as settled or answered, with the steps for one more turn left."""
    if case.asking == "format" or ruling not in ("settled", "answered", "format", "audit"):
        return False
    has_steps = case.steps_left >= case.costs.wake and not case.drained
    return has_steps and find_stop(case) in ("settled", "answered")
