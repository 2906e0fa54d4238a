"""Refuses a stored state that no run of the graph has left."""

from collections.abc import Mapping
from typing import Any

from wakeloop.errors import DamagedError
from wakeloop.todos.items import STATUSES, shorten

MOST = 2**53  # of any number that is counted
NEXT = frozenset(("call_model", "finalization_guard", "round", "wake", "__end__"))
AFTER = frozenset(("nag", "call_model", "finalization_guard"))
_NUMBERS = frozenset(("wake_cycles", "idle_wakes", "todo_stale_iterations", "bad_replies", "peak", "next_id"))
_TEXTS = frozenset(
    ("next", "after", "again", "asking", "called_by", "seen", "last_wake", "shown", "tail", "refused", "end")
)
_FLAGS = frozenset(("todo_guard_suppressed", "waking", "worked", "spoke"))
_LISTS = frozenset(("todo_calls", "open_at_wake", "injected", "events", "summaries"))
_MAPPINGS = frozenset(("todo_guard_retries", "faults", "refusals", "settings", "todo_guard_blocked"))
_KINDS: Mapping[str, type] = {
    **dict.fromkeys(_NUMBERS, int),
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys(_LISTS, list),
    **dict.fromkeys(_MAPPINGS, dict),
}
_OPTIONAL = frozenset(("todo_guard_blocked", "end", "todo_finalization_correction"))


def check_ledger(ledger: object) -> None:
    """Refuse notes of the graph that it cannot have written itself. Raises `DamagedError`."""
    if type(ledger) is not dict:
        raise DamagedError(f"todo_ledger is {shorten(repr(ledger))}, where a mapping is due")
    for key, value in ledger.items():
        kind = _KINDS.get(key)
        if kind is not None and type(value) is not kind and not (value is None and key in _OPTIONAL):
            raise DamagedError(f"todo_ledger has {shorten(repr(value))} under {key!r}")
        if kind is int and not 0 <= value < MOST:
            raise DamagedError(f"todo_ledger has {shorten(repr(value))} under {key!r}")
    if ledger.get("next", "round") not in NEXT or ledger.get("after", "nag") not in AFTER:
        raise DamagedError("todo_ledger names a step that there is not")


def check_channels(values: Mapping[str, Any]) -> None:
    """Refuse channels of another shape; what a reducer has made is known to be sound."""
    for name, kind in (
        ("todo_session", dict),
        ("todo_settings", dict),
        ("todo_goal", str),
        ("messages", list),
    ):
        value = values.get(name)
        if value is not None and not isinstance(value, kind):
            raise DamagedError(f"{name} is {shorten(repr(value))}")
    check_todos(values.get("todos"))


def sound_todos(todos: Any) -> list[Any]:
    """Return a list that was stored, checked."""
    check_todos(list(todos) if isinstance(todos, tuple) else todos)
    return todos  # type: ignore[no-any-return]


def check_todos(todos: object) -> None:
    """Refuse a list that is none. Only a plain one is looked at: what a reducer has made is another type."""
    if todos is None or (type(todos) is not list and isinstance(todos, list)):
        return
    if not isinstance(todos, list):
        raise DamagedError(f"todos is {shorten(repr(todos))}, where a list is due")
    for todo in todos:
        if (
            type(todo) is not dict
            or type(todo.get("content")) is not str
            or todo.get("status") not in STATUSES
        ):
            raise DamagedError(f"todos holds {shorten(repr(todo))}, which is no item")
