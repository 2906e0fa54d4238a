"""What a typed line means: text, or a dot command."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from wakeloop.cli.edit_todos import ACTION_ARGUMENTS, TodoAction
from wakeloop.cli.failures import usage_error

FENCE = '"""'
COMMAND_PATTERN = re.compile(r"\.([A-Za-z]\w*)(?:\s+(.*))?", re.DOTALL)
COMMANDS = MappingProxyType(
    {
        "set": ("KEY VALUE", "override a setting in this thread; null takes the override away"),
        "unset": ("KEY", "take an override away, whatever the setting's values are"),
        "clear": ("todo", "empty list and goal, and end what was going on"),
        "info": ("[todo|config|session|role|agent]", "show the list, every setting, the thread, who answers"),
        "todo": ("[ACTION ...]", "edit the list: " + ", ".join(TodoAction)),
        "role": ("[NAME|null]", "take a role, or leave it"),
        "agent": ("[NAME|null]", "load an agent file, or leave it; the list is cleared"),
        "session": ("[THREAD]", "go to another thread; a new one is begun"),
        "resume": ("", "go on: ask again what was asked, finish a broken run, take up the list"),
        "stop": ("", "end what waits or was broken off; your next text begins anew"),
        "help": ("", "list these commands"),
        "exit": ("[role|agent]", "leave; the thread is kept; or leave a role or an agent"),
    }
)
BARE_COMMANDS = ("exit", "help")  # commands without a dot
TOPICS = ("todo", "config", "session", "role", "agent")
LEAVABLE = ("role", "agent")
LOKI_COMMANDS = MappingProxyType(  # loki's own commands
    {
        **dict.fromkeys(("model", "prompt", "rag", "sources", "starter", "edit", "vault"), (
            "a role, an agent or an option of chat chooses the model and its words; .info config shows them."
        )),
        **dict.fromkeys(("empty", "compress", "save"), "a thread is kept as it is; .session begins another."),
        **dict.fromkeys(("continue", "regenerate"), ".resume goes on."),
        **dict.fromkeys(("file", "macro", "copy", "delete", "update"), "type what you want as a text."),
    }
)  # fmt: skip
KEY_HELP = (
    f"Enter sends, Alt-Enter begins a new line, Tab completes; {FENCE} opens and closes several lines.",
    "Ctrl-C stops a run or clears the line, Ctrl-D leaves. Put a space before a text that begins with a dot.",
    "exit and quit leave, help lists these; a / before a command will do as well.",
)


@dataclass(frozen=True)
class Command:
    """A dot command: its name, and what stands behind it."""

    name: str
    rest: str = ""


def parse_entry(typed: str) -> str | Command:
    """Tell a dot command from text. Raises `CommandError` for a command that there is not."""
    if found := COMMAND_PATTERN.fullmatch(normalize_command(typed.rstrip())):
        name, rest = found[1].lower(), (found[2] or "").strip()
        if name not in COMMANDS:
            raise usage_error(
                f"There is no command .{name}; {LOKI_COMMANDS.get(name) or suggest_command(name)}"
            )
        if name == "exit" and rest in LEAVABLE:
            return Command(rest, "null")
        if name == "exit" and rest:
            raise usage_error(
                f".exit takes role, agent or nothing, not {rest!r}; .session THREAD goes to another."
            )
        return Command(name, rest)
    return strip_fence(typed)


def normalize_command(typed: str) -> str:
    """The dot command that is meant by one as other programs have it; any other text as it is."""
    word, space, rest = typed.partition(" ")
    name = word.lower().removeprefix("/").removeprefix(".")
    if name == "quit":
        name = "exit"
    if (rest and word.startswith("/") and name in COMMANDS) or (
        not rest and name in (*BARE_COMMANDS, *COMMANDS)
    ):
        bare = word[0] not in "./"
        return typed if bare and name not in BARE_COMMANDS else f".{name}{space}{rest}"
    return typed


def suggest_command(name: str) -> str:
    """The command that may have been meant, or where they all are."""
    near = get_close_matches(name, COMMANDS, n=1)
    return f"did you mean .{near[0]}?" if near else ".help lists them."


def is_unclosed(typed: str) -> bool:
    """Whether a text of several lines has been begun and not closed."""
    text = typed.strip()
    return text.startswith(FENCE) and (len(text) < 2 * len(FENCE) or not text.endswith(FENCE))


def strip_fence(typed: str) -> str:
    """A text without the marks around several lines."""
    text = typed.strip()
    if not text.startswith(FENCE):
        return text
    return text.removeprefix(FENCE).removesuffix(FENCE).strip("\n")


def help_lines() -> list[str]:
    """Every command with what it takes and does."""
    heads = {name: f".{name} {takes}".rstrip() for name, (takes, _) in COMMANDS.items()}
    width = max(map(len, heads.values()))
    return [*(f"{heads[name]:{width}}  {does}" for name, (_, does) in COMMANDS.items()), *KEY_HELP]


# -- what stands behind a command ------------------------------------------------------------------------


def split_key_value(rest: str) -> tuple[str, str | None]:
    """Split `KEY VALUE`; None where there is no value."""
    key, *value = rest.split(maxsplit=1)
    return key, value[0].strip() if value else None


def refuse_argument(command: Command) -> None:
    """Refuse what stands behind a command that takes nothing."""
    if command.rest:
        raise usage_error(f".{command.name} takes nothing more, not {command.rest!r}.")


def parse_topic(command: Command) -> str:
    """What `.info` is to show."""
    if command.rest and command.rest not in TOPICS:
        raise usage_error(f".info shows {', '.join(TOPICS)}, not {command.rest!r}.")
    return command.rest


def parse_todo_edit(rest: str) -> dict[str, Any]:
    """The arguments of `update_todos` for `.todo ACTION …`; none where the list is only to be shown."""
    word, *behind = rest.split(maxsplit=1) or ["list"]
    text = behind[0].strip() if behind else ""
    try:
        action = TodoAction(word)
    except ValueError:
        raise usage_error(f"There is no action {word!r}; .todo takes {', '.join(TodoAction)}.") from None
    if action in (TodoAction.LIST, TodoAction.CLEAR):
        if text:
            raise usage_error(f".todo {action} takes nothing more, not {text!r}.")
        return {"clear": True} if action is TodoAction.CLEAR else {}
    if action is TodoAction.ADD:
        words = [line.strip() for line in strip_fence(text).splitlines() if line.strip()]
    elif action in (TodoAction.BLOCK, TodoAction.EDIT):
        words = text.split(maxsplit=1)
    else:
        words = text.split()
    takes, least, arguments = ACTION_ARGUMENTS[action]
    if len(words) < least:
        takes = "a text; a new line begins a new item" if action is TodoAction.ADD else takes
        raise usage_error(f".todo {action} needs {takes}.")
    return {action.value: arguments(words)}
