"""Wakes that are earned, and whether there was a list."""

from collections.abc import Sequence

from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import count_settled
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo


def note_list(notes: Ledger, todos: Sequence[Todo], settings: LoopSettings, *, begins: bool = False) -> None:
    """Note what gates read of the list: how many items are settled at once, and that there was one.

    With the first the budget is noted. Nothing is where no setting asks for it, and no pair of zeros.
    """
    if settings.earn_wakes:
        now = count_settled(todos)
        began, most = notes.get("settled", [now, now] if begins else [0, 0])
        if now or most:
            notes["settled"] = [began, max(most, now)]
        notes["budget"] = settings.max_wake_cycles + count_earned_wakes(notes, settings)
    if todos and settings.on_no_list == "ask":
        notes["listed"] = True


def count_earned_wakes(notes: Ledger, settings: LoopSettings) -> int:
    """Return the wakes beyond `max_wake_cycles`: one for each item more than at the activation's beginning.

    Where nothing wakes, nothing is earned.
    """
    began, most = notes.get("settled", (0, 0))
    return min(most - began, settings.earn_wakes) if settings.max_wake_cycles else 0
