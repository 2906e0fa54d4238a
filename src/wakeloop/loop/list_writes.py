"""Writes of the list: accepted, given up, verified."""

from collections.abc import Sequence

from wakeloop.loop.ledger import GivenUp, Ledger
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Board, Outcome, Replace, Reset


def note_writes(notes: Ledger, before: Board, outcomes: Sequence[Outcome], *, verified: bool) -> None:
    """Note what a round's calls came to. `verified`: items were completed only with a verifier's consent.

    An ordinary activation has one note of this, that a write was accepted.
    """
    board = before
    for outcome in outcomes:
        if outcome.error is not None:
            continue
        if outcome.wrote:
            notes["wrote"] = True
        _note_given_up(notes, board, outcome)
        if verified:
            _note_passed(notes, board, outcome)
        board = outcome.board


def _note_given_up(notes: Ledger, before: Board, outcome: Outcome) -> None:
    """Note the items that a call, or the verifier's third refusal, blocked; and refused ones that it left."""
    given_up: dict[str, GivenUp] = {}
    after = outcome.board
    for key in outcome.touched:
        new = after.rows.find(key)
        status = None if new is None else new["status"]
        if status == "blocked" or (status == "cancelled" and str(key) in after.refusals):
            old = before.rows.find(key)
            if old is None or old["status"] != status:
                given_up[str(key)] = status
    if isinstance(outcome.operation, Replace):
        for key in _find_refused(before):
            if after.find(key) is None:
                given_up[key] = "dropped"
    if isinstance(outcome.operation, Reset):  # numbers start again, so another item may have this id
        given_up = dict.fromkeys(_find_refused(before), "reset")
    if given_up:
        known = notes.get("given_up", {})
        resets = {key: how for key, how in known.items() if how == "reset"}
        notes["given_up"] = {**known, **given_up, **resets}


def _find_refused(board: Board) -> list[str]:
    """Return the ids of the items that the verifier has refused, and that are neither done nor given up."""
    found: list[str] = []
    for key in board.refusals:
        todo = board.find(key)
        if todo is not None and todo["status"] not in ("completed", "cancelled"):
            found.append(key)
    return found


def _note_passed(notes: Ledger, before: Board, outcome: Outcome) -> None:
    """Note the items that are completed with the verifier's consent, and forget those that no longer are."""
    passed: list[int | str] = []
    for key in notes.get("passed", ()):
        todo = outcome.board.find(key)
        if todo is not None and todo["status"] == "completed":
            passed.append(key)
    for key in outcome.touched:
        old, new = before.find(key), outcome.board.find(key)
        was_completed = old is not None and old["status"] == "completed"
        if new is not None and new["status"] == "completed" and not was_completed:
            passed.append(new["id"])
    if passed:
        notes["passed"] = list(dict.fromkeys(passed))
    else:
        notes.pop("passed", None)


def has_given_up(notes: Ledger, todos: Sequence[Todo]) -> bool:
    """Tell whether the model gave something up in this activation, and has not taken it up again since.

    What a person blocked or cancelled does not count, nor what was so when the activation began.
    """
    given_up = notes.get("given_up")
    if not given_up:
        return False
    statuses = {str(todo["id"]): todo["status"] for todo in todos}
    return any(how in ("reset", statuses.get(key, "dropped")) for key, how in given_up.items())


def has_verified_item(notes: Ledger, todos: Sequence[Todo]) -> bool:
    """Tell whether an item that is completed now passed the verifier."""
    passed = set(notes.get("passed", ()))
    return any(todo["status"] == "completed" and todo["id"] in passed for todo in todos)
