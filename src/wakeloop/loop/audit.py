"""Items that were completed without the work being seen."""

from collections.abc import Collection, Sequence

from langchain_core.messages import AnyMessage

from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import find_last_round
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo


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
    made = _count_successes(messages, notes.get("todo_calls", ()), notes.get("faults", {}))
    completed = notes.pop("completed", [])
    available = notes.get("unclaimed", 0) + made
    if not completed:
        left = available
    else:
        left = min(made, max(0, available - len(completed)))
        if len(completed) > available:
            known = notes.get("suspects", [])
            notes["suspects"] = [*known, *(key for key in completed if key not in known)]
    if left:
        notes["unclaimed"] = left
    else:
        notes.pop("unclaimed", None)


def find_suspects(notes: Ledger, todos: Sequence[Todo], settings: LoopSettings) -> list[Todo]:
    """Return the suspects that are still completed; none once the activation was asked about them."""
    if settings.audit == "off" or notes.get("audited"):
        return []
    suspects = notes.get("suspects", [])
    return [todo for todo in todos if todo["id"] in suspects and todo["status"] == "completed"]


def _completed_ids(todos: Sequence[Todo]) -> list[int | str]:
    return [todo["id"] for todo in todos if todo["status"] == "completed"]


def _count_successes(
    messages: Sequence[AnyMessage], todo_calls: Collection[str], faults: Collection[str]
) -> int:
    made = 0
    for call, result in find_last_round(reversed(messages)):
        if call["id"] not in todo_calls and call["id"] not in faults and result.status != "error":
            made += 1
    return made
