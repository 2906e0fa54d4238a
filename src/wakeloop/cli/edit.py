"""Edits a thread's list by hand."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from wakeloop.cli.failures import usage
from wakeloop.cli.lookup import looked_up
from wakeloop.cli.recipe import refuse_halves
from wakeloop.cli.show import listing
from wakeloop.cli.store import Place, reading, writing
from wakeloop.cli.stored import stored


class Action(StrEnum):
    """What `wakeloop todo THREAD` can do."""

    ADD = "add"
    DONE = "done"
    START = "start"
    BLOCK = "block"
    CANCEL = "cancel"
    REOPEN = "reopen"
    REMOVE = "remove"
    EDIT = "edit"
    CLEAR = "clear"
    LIST = "list"


def edited(place: Place, typed: Sequence[str]) -> list[str]:
    """Edit a thread's list, and return it as lines."""
    which, asked, words = read(typed)
    action = named(asked)
    refuse_halves(*words)
    wanted = changes(action, words)
    known = looked_up(place, which)
    thread = known.id
    if action is Action.LIST:
        with reading(place) as store:
            return listing(stored(store.saver, thread, rest=True).values.get("todos") or [])
    from wakeloop.cli.reader import reader
    from wakeloop.thread.editing import update_todos

    with writing(place) as store, store.held(thread):
        graph = reader(store.saver, known.recipe)
        return listing(update_todos(graph, {"configurable": {"thread_id": thread}}, **wanted))


def read(typed: Sequence[str]) -> tuple[str | None, str, Sequence[str]]:
    """The thread, None for the last where an action comes first; the action, and its words."""
    first, *rest = typed or [Action.LIST]
    if first in [*Action] and not (rest and rest[0] in [*Action]):
        return None, first, rest
    asked, *words = rest or [Action.LIST]
    return first, asked, words


def named(word: str) -> Action:
    """The action of this name."""
    try:
        return Action(word)
    except ValueError:
        raise usage(f"There is no action {word!r}; there are {', '.join(Action)}.") from None


def changes(action: Action, words: Sequence[str]) -> dict[str, Any]:
    """The arguments of `update_todos` for a command line."""
    if action in (Action.CLEAR, Action.LIST):
        if words:
            raise usage(f"wakeloop todo THREAD {action} takes nothing more, not {words[0]!r}.")
        return {"clear": True} if action is Action.CLEAR else {}
    takes, least, read = SHAPES[action]
    if len(words) < least:
        raise usage(f"wakeloop todo THREAD {action} needs {takes}.")
    return {action.value: read(words)}


def id_and_text(words: Sequence[str]) -> dict[str, str]:
    """An id, and all that follows it as one text."""
    return {words[0]: " ".join(words[1:])}


SHAPES: dict[Action, tuple[str, int, Callable[[Sequence[str]], Any]]] = {
    Action.ADD: ("a text for each item, in quotes", 1, list),
    Action.BLOCK: ("an id and a reason", 2, id_and_text),
    Action.EDIT: ("an id and a text", 2, id_and_text),
    **dict.fromkeys(
        (Action.DONE, Action.START, Action.CANCEL, Action.REOPEN, Action.REMOVE),
        ("the id of an item, or several", 1, list),
    ),
}
