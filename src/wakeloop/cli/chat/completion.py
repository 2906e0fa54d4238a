"""What Tab offers behind what was typed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
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
    """What there is to name: roles, agents, threads, ids of items."""

    roles: Sequence[str] = ()
    agents: Sequence[str] = ()
    threads: Sequence[str] = ()
    ids: Sequence[str] = ()


def complete(before: str, names: Callable[[], Names]) -> list[str]:
    """The words that may stand where the cursor is; `before` is the line up to there."""
    if not before.startswith("."):
        return []
    words = before.split(" ")
    return sorted(word for word in candidates(words, names) if word.startswith(words[-1]))


def candidates(words: Sequence[str], names: Callable[[], Names]) -> Iterable[str]:
    """Every word that may stand in the last one's place."""
    match words[:-1]:
        case []:
            return [f".{name}" for name in COMMANDS]
        case [".set", key]:
            return setting_values(key)
        case [".todo", action, *more] if takes_id(action, len(more)):
            return names().ids
        case [command]:
            return FIRST_ARGUMENTS.get(command, no_candidates)(names)
    return []


def takes_id(action: str, before: int) -> bool:
    """Whether an action takes an id behind so many words."""
    if action in (TodoAction.BLOCK, TodoAction.EDIT):
        return before == 0
    return action in (
        TodoAction.DONE,
        TodoAction.START,
        TodoAction.CANCEL,
        TodoAction.REOPEN,
        TodoAction.REMOVE,
    )


def no_candidates(names: Callable[[], Names]) -> Iterable[str]:  # noqa: ARG001 - as all of FIRST
    """Nothing to offer."""
    return ()


FIRST_ARGUMENTS: Mapping[str, Callable[[Callable[[], Names]], Iterable[str]]] = MappingProxyType(
    {
        ".set": lambda names: KEYS,  # noqa: ARG005 - as all of them
        ".unset": lambda names: KEYS,  # noqa: ARG005
        ".clear": lambda names: ("todo",),  # noqa: ARG005
        ".exit": lambda names: LEAVABLE,  # noqa: ARG005
        ".info": lambda names: TOPICS,  # noqa: ARG005
        ".todo": lambda names: list(TodoAction),  # noqa: ARG005
        ".role": lambda names: (*names().roles, "null"),
        ".agent": lambda names: (*names().agents, "null"),
        ".session": lambda names: names().threads,
    }
)


def setting_values(given: str) -> list[str]:
    """The values of a setting that has but a few."""
    field = LoopSettings.model_fields.get(ALIASES.get(given, given))
    if field is None:
        return []
    if field.annotation is bool:
        return ["true", "false", "null"]
    return [*(word for word in get_args(field.annotation) if isinstance(word, str)), "null"]


class ChatCompleter(Completer):
    """The same for prompt_toolkit."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self.names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the interface's
        """Offer words, each in the place of the one at the cursor."""
        before = document.text_before_cursor
        last = before.split(" ")[-1]
        return [Completion(word, -len(last)) for word in complete(before, self.names)]
