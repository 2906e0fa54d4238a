"""Edit a thread's todo list by hand."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from wakeloop.cli.agent_spec import refuse_non_utf8
from wakeloop.cli.failures import usage_error
from wakeloop.cli.show import format_todos
from wakeloop.cli.store import DatabaseFile, open_to_read, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.cli.thread_lookup import find_thread


class TodoAction(StrEnum):
    """The actions of `wakeloop todo THREAD`."""

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


def edit_todos(database: DatabaseFile, typed: Sequence[str]) -> list[str]:
    """Edit a thread's list, and return the list as lines."""
    which, word, words = parse_words(typed)
    action = parse_action(word, which)
    refuse_non_utf8(*words)
    changes = build_changes(action, words, "wakeloop todo THREAD")
    hint = f" Actions: {', '.join(TodoAction)}." if len(typed) == 1 else ""
    known = find_thread(database, which, hint)
    thread = known.id
    if action is TodoAction.LIST:
        with open_to_read(database) as store:
            return format_todos(read_state(store.saver, thread, partly=True).values.get("todos") or [])
    from wakeloop.cli.offline_graph import build_offline_graph
    from wakeloop.thread.edits import update_todos

    with open_to_write(database) as store, store.hold(thread):
        graph = build_offline_graph(store.saver, known.spec)
        return format_todos(update_todos(graph, {"configurable": {"thread_id": thread}}, **changes))


def parse_words(typed: Sequence[str]) -> tuple[str | None, str, Sequence[str]]:
    """Split the words into thread, action and arguments; without a thread (None) the last one is meant."""
    first, *rest = typed or [TodoAction.LIST]
    actions = list(TodoAction)
    if first in actions and not (rest and rest[0] in actions):
        return None, first, rest
    action, *words = rest or [TodoAction.LIST]
    return first, action, words


def parse_action(word: str, thread: str | None = None) -> TodoAction:
    """Return the action of this name. The error also names the `thread` typed before it."""
    try:
        return TodoAction(word)
    except ValueError:
        what = f"Neither {thread!r} nor {word!r} is an action" if thread else f"Unknown action {word!r}"
        raise usage_error(f"{what}. Available: {', '.join(TodoAction)}.") from None


def build_changes(action: TodoAction, words: Sequence[str], command: str) -> dict[str, Any]:
    """Return the arguments of `update_todos`; {} to show the list. `command` is what takes the action."""
    if action in (TodoAction.CLEAR, TodoAction.LIST):
        if words:
            raise usage_error(f"{command} {action} takes no arguments, got {words[0]!r}.")
        return {"clear": True} if action is TodoAction.CLEAR else {}
    takes, least, parse = ACTION_ARGUMENTS[action]
    if len(words) < least:
        raise usage_error(f"{command} {action} needs {takes}.")
    return {action.value: parse(words)}


def parse_id_and_text(words: Sequence[str]) -> dict[str, str]:
    """Return {id: text}, where the text is everything after the id."""
    return {words[0]: " ".join(words[1:])}


ACTION_ARGUMENTS: dict[TodoAction, tuple[str, int, Callable[[Sequence[str]], Any]]] = {
    TodoAction.ADD: ("the text of each item", 1, list),
    TodoAction.BLOCK: ("an id and a reason", 2, parse_id_and_text),
    TodoAction.EDIT: ("an id and the new text", 2, parse_id_and_text),
    **dict.fromkeys(
        (TodoAction.DONE, TodoAction.START, TodoAction.CANCEL, TodoAction.REOPEN, TodoAction.REMOVE),
        ("the id of an item, or several", 1, list),
    ),
}
"""What each action needs, the least number of words, and how they become its argument."""
