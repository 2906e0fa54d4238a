"""Open items that are put to the verifier after a round."""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import find_last_round
from wakeloop.loop.replies import find_external_calls
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo, open_items

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


def has_external_success(messages: Sequence[AnyMessage], todo_calls: Collection[str]) -> bool:
    """Tell whether a call outside the todo tools succeeded in the last round."""
    for call, result in find_last_round(reversed(messages)):
        if call["id"] not in todo_calls and result.status != "error":
            return True
    return False


def choose_items(notes: Ledger, todos: Sequence[Todo]) -> list[Todo]:
    """Return the open items to put to the verifier, and note where the next round goes on.

    Those in progress come first, then the others from where the last round stopped.
    """
    running: list[Todo] = []
    rest: list[Todo] = []
    for todo in open_items(todos):
        (running if todo["status"] == "in_progress" else rest).append(todo)
    last = notes.pop("checked", None)
    for place, todo in enumerate(rest):
        if str(todo["id"]) == last:
            rest = [*rest[place + 1 :], *rest[: place + 1]]
            break
    room = max(MOST_CHECKED - len(running), 0)
    if 0 < room < len(rest):
        notes["checked"] = str(rest[room - 1]["id"])
    return [*running, *rest[:room]][:MOST_CHECKED]
