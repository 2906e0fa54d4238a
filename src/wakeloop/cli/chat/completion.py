"""Tab completion in a chat."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from wakeloop.cli.chat.parsing import COMMANDS, LEAVABLE, TOPICS
from wakeloop.cli.edit_todos import TodoAction
from wakeloop.config.levels import is_thread_setting
from wakeloop.settings import ALIASES, LoopSettings

KEYS = sorted(key for key in (*LoopSettings.model_fields, *ALIASES) if is_thread_setting(key))


@dataclass(frozen=True)
class Names:
    """Names to complete: roles, agents, threads, item ids."""

    roles: Sequence[str] = ()
    agents: Sequence[str] = ()
    threads: Sequence[str] = ()
    ids: Sequence[str] = ()


def complete(before: str, names: Callable[[], Names]) -> list[str]:
    """Return the completions at the cursor; `before` is the line up to it."""
    if not before.startswith("."):
        return []
    words = before.split(" ")
    return sorted(word for word in candidates(words, names) if word.startswith(words[-1]))


def candidates(words: Sequence[str], names: Callable[[], Names]) -> Iterable[str]:
    """Return all words that fit in the position of the last one."""
    match words[:-1]:
        case []:
            return [f".{name}" for name in COMMANDS]
        case [".set", key]:
            return setting_values(key)
        case [".todo", action, *more] if takes_id(action, len(more)):
            return names().ids
        case [command]:
            return first_arguments(names()).get(command, ())
    return []


def takes_id(action: str, before: int) -> bool:
    """Whether an action takes an item id after this many words."""
    if action in (TodoAction.BLOCK, TodoAction.EDIT):
        return before == 0
    return action in (
        TodoAction.DONE,
        TodoAction.START,
        TodoAction.CANCEL,
        TodoAction.REOPEN,
        TodoAction.REMOVE,
    )


def first_arguments(names: Names) -> Mapping[str, Iterable[str]]:
    """Return the first arguments of each command that takes words of a list."""
    return {
        ".set": KEYS,
        ".unset": KEYS,
        ".clear": ("todo",),
        ".exit": LEAVABLE,
        ".info": TOPICS,
        ".todo": list(TodoAction),
        ".role": (*names.roles, "none"),
        ".agent": (*names.agents, "none"),
        ".session": names.threads,
    }


def setting_values(given: str) -> list[str]:
    """Return the values of a setting that has only a few."""
    field = LoopSettings.model_fields.get(ALIASES.get(given, given))
    if field is None:
        return []
    if field.annotation is bool:
        return ["true", "false", "null"]
    return [*(word for word in get_args(field.annotation) if isinstance(word, str)), "null"]


class ChatCompleter(Completer):
    """Completer for prompt_toolkit."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self.names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the interface's
        """Offer words, each as a replacement for the word at the cursor."""
        before = document.text_before_cursor
        last = before.split(" ")[-1]
        return [Completion(word, -len(last)) for word in complete(before, self.names)]
