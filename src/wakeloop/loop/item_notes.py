"""What became of items: given up, verified, looked at again."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from wakeloop.loop.case import Case
from wakeloop.loop.gates import find_stop
from wakeloop.loop.ledger import GivenUp, Ledger, Look
from wakeloop.loop.progress import find_last_round
from wakeloop.loop.replies import find_external_calls
from wakeloop.loop.ruling import Ruling
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo, open_items
from wakeloop.todos.operations import Board, Outcome, Replace, Reset


def note_completed(notes: Ledger, before: Sequence[Todo], after: Sequence[Todo]) -> None:
    """Note what a round completed, until it is known which of its other calls succeeded."""
    was = _completed_ids(before)
    if new := [key for key in _completed_ids(after) if key not in was]:
        notes["completed"] = new


def note_work(messages: Sequence[AnyMessage], notes: Ledger) -> None:
    """Count the last round: its successful calls outside the todo tools, against the items it completed.

    Calls may come before the round that completes their item, or in the same round. Those beyond what a round
    needs may be the work of the next item, unless they are older than this round.
    """
    if "nag" not in notes:
        return
    made = count_successes(messages, notes)
    completed = notes.pop("completed", [])
    available = notes.get("unclaimed", 0) + made
    left = min(made, max(0, available - len(completed))) if completed else available
    if len(completed) > available:
        notes["suspects"] = list(dict.fromkeys([*notes.get("suspects", []), *completed]))
    notes.pop("unclaimed", None)
    if left:
        notes["unclaimed"] = left


def find_suspects(notes: Ledger, todos: Sequence[Todo], settings: LoopSettings) -> list[Todo]:
    """Return the suspects that are still completed; none once the activation was asked about them."""
    if settings.audit == "off" or notes.get("audited"):
        return []
    suspects = notes.get("suspects", [])
    return [todo for todo in todos if todo["id"] in suspects and todo["status"] == "completed"]


def _completed_ids(todos: Sequence[Todo]) -> list[int | str]:
    return [todo["id"] for todo in todos if todo["status"] == "completed"]


def count_successes(messages: Sequence[AnyMessage], notes: Ledger) -> int:
    """Count the successful calls outside the todo tools in the last round."""
    others = {*notes.get("todo_calls", ()), *notes.get("faults", ())}
    made = find_last_round(reversed(messages))
    return sum(call["id"] not in others and result.status != "error" for call, result in made)


MOST_CHECKED = 20  # items a round: a verifier may run a test suite for each


def may_check_round(notes: Ledger, settings: LoopSettings, todos: Sequence[Todo], reply: Any) -> bool:
    """Tell whether open items are put to the verifier after the round of this reply.

    The routers of the round's branches read this, so it depends on nothing that a branch brings.
    """
    if settings.verify_when != "round" or "nag" not in notes or not reply.tool_calls:
        return False
    runs = [call for call in find_external_calls(notes, reply.tool_calls) if "fault" not in call]
    adds_items = bool(notes.get("todo_calls"))
    return bool(runs) and (adds_items or bool(open_items(todos)))


def choose_items(notes: Ledger, todos: Sequence[Todo]) -> list[Todo]:
    """Return the open items to put to the verifier, and note where the next round goes on.

    Those in progress come first, then the others from where the last round stopped.
    """
    running = [todo for todo in todos if todo["status"] == "in_progress"]
    rest = [todo for todo in todos if todo["status"] == "pending"]
    last = notes.pop("checked", None)
    for place, todo in enumerate(rest):
        if str(todo["id"]) == last:
            rest = [*rest[place + 1 :], *rest[: place + 1]]
            break
    room = max(MOST_CHECKED - len(running), 0)
    if 0 < room < len(rest):
        notes["checked"] = str(rest[room - 1]["id"])
    return [*running, *rest[:room]][:MOST_CHECKED]


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


def note_writes(
    notes: Ledger, before: Board, outcomes: Sequence[Outcome], *, verified: bool, called: bool = False
) -> None:
    """Note what a round's calls came to. `verified`: items were completed only with a verifier's consent.

    `called`: calls outside the todo tools run in the same round, so they may end after a verdict. An ordinary
    activation has one note of this, that a write was accepted.
    """
    board = before
    for outcome in outcomes:
        if outcome.error is not None:
            continue
        if outcome.wrote:
            notes["wrote"] = True
        _note_given_up(notes, board, outcome)
        if verified:
            _note_verified(notes, board, outcome, called=called)
        board = outcome.board


def _note_given_up(notes: Ledger, before: Board, outcome: Outcome) -> None:
    """Note the items that a call, or the verifier's third refusal, blocked; and refused ones that it left."""
    given_up: dict[str, GivenUp] = {}
    after = outcome.board
    for key in outcome.touched:
        new = after.find(key)
        status = None if new is None else new["status"]
        if status == "blocked" or (status == "cancelled" and str(key) in after.refusals):
            old = before.find(key)
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
    found = map(board.find, board.refusals)
    return [str(todo["id"]) for todo in found if todo and todo["status"] not in ("completed", "cancelled")]


def _note_verified(notes: Ledger, before: Board, outcome: Outcome, *, called: bool) -> None:
    """Note the items that are completed with the verifier's consent, and forget those that no longer are.

    Those that a verdict has just completed are due for a second look, unless they had it.
    """
    accepted = []
    for key in outcome.touched:
        if _is_completed(outcome.board, key) and not _is_completed(before, key):
            accepted.append(key)
    passed = [key for key in notes.pop("passed", []) if _is_completed(outcome.board, key)]
    if passed or accepted:
        notes["passed"] = list(dict.fromkeys([*passed, *accepted]))
    looks = notes.get("looks", {})
    new: dict[str, Look] = {}
    for key in map(str, accepted):
        if looks.get(key) != "had":
            new[key] = "due" if called else "fresh"
    if new:
        notes["looks"] = {**looks, **new}


def _is_completed(board: Board, key: int | str) -> bool:
    todo = board.find(key)
    return todo is not None and todo["status"] == "completed"


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
