"""Earned wakes, and whether there ever was a list."""

from collections.abc import Sequence

from wakeloop.loop.ledger import Ledger
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo, count_open


def note_list(notes: Ledger, todos: Sequence[Todo], settings: LoopSettings, *, begins: bool = False) -> None:
    """Note what gates need to know of the list: how many items are settled, and that there was a list.

    The first comes with the budget. Nothing is noted that no setting asks for.
    """
    if settings.earn_wakes:
        now = len(todos) - count_open(todos)
        began, most = notes.get("settled", [now, now] if begins else [0, 0])
        if now or most:
            notes["settled"] = [began, max(most, now)]
        notes["budget"] = settings.max_wake_cycles + count_earned_wakes(notes, settings)
    if todos and settings.on_no_list == "ask":
        notes["listed"] = True


def count_earned_wakes(notes: Ledger, settings: LoopSettings) -> int:
    """Return the wakes beyond `max_wake_cycles`: one per item settled since the beginning.

    The most that were settled at once counts, so that adding and closing items forever earns nothing.
    Without wakes, nothing is earned.
    """
    began, most = notes.get("settled", (0, 0))
    return min(most - began, settings.earn_wakes) if settings.max_wake_cycles else 0
