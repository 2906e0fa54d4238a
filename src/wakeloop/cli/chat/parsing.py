"""Parse chat entries: text and dot commands."""

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wakeloop.cli.failures import usage_error
from wakeloop.cli.manage_threads import TodoAction, build_changes, parse_action
from wakeloop.text.characters import is_blank
from wakeloop.text.wording import nearest

FENCE = '"""'
COMMAND_PATTERN = re.compile(r"\.([A-Za-z]\w*)(?:\s+(.*))?", re.DOTALL)
COMMANDS = MappingProxyType(
    {
        "set": ("KEY VALUE", "override a setting in this thread; null removes the override"),
        "unset": ("KEY", "remove an override"),
        "clear": ("todo", "empty list and goal, and end an unfinished run"),
        "info": (
            "[todo|config|session|role|agent]",
            "show the list, the settings, the thread, the role or agent",
        ),
        "todo": ("[ACTION ...]", "edit the list: " + ", ".join(TodoAction)),
        "role": ("[NAME|none]", "choose a role; 'none' disables it"),
        "agent": ("[NAME|none]", "load an agent file and clear the list; 'none' disables it"),
        "session": ("[THREAD]", "switch to another thread, or start a new one"),
        "resume": ("", "repeat a question, finish an interrupted run, or continue the list"),
        "stop": ("", "end a run that waits or was interrupted; your next message starts fresh"),
        "hold": ("", "park the thread: no kick, clock or peer moves it"),
        "go": ("", "release a thread on hold, and continue its list"),
        "help": ("", "list these commands"),
        "exit": ("[role|agent]", "leave the chat, or only a role or an agent"),
    }
)
BARE_COMMANDS = ("exit", "help")  # commands that also work without a dot
TOPICS = ("todo", "config", "session", "role", "agent")
LEAVABLE = ("role", "agent")
KEY_HELP = (
    f"Enter sends, Alt-Enter starts a new line, Tab completes; {FENCE} opens and closes several lines.",
    "Ctrl-C stops a run or clears the line, Ctrl-D leaves. Put a space before text that starts with a dot.",
    "exit and quit leave, help lists these commands. A / works in place of the dot.",
)


@dataclass(frozen=True)
class Command:
    """A dot command: its name and its argument."""

    name: str
    rest: str = ""


def parse_entry(typed: str) -> str | Command:
    """Parse an entry into a dot command or text. Raises `CommandError` for an unknown command."""
    if found := COMMAND_PATTERN.fullmatch(normalize_command(typed.rstrip())):
        name, rest = found[1].lower(), (found[2] or "").strip()
        if name not in COMMANDS:
            near = nearest(name, COMMANDS)
            raise usage_error(
                f"Unknown command .{name}. {f'Did you mean .{near}?' if near else 'See .help.'}"
            )
        if name == "exit" and rest in LEAVABLE:
            return Command(rest, "null")
        if name == "exit" and rest:
            raise usage_error(
                f".exit takes role, agent or nothing, got {rest!r}. Use .session THREAD to switch threads."
            )
        return Command(name, rest)
    return strip_fence(typed)


def is_message(typed: str) -> bool:
    """Whether a line is words for the model: not a command, and not part of several lines."""
    is_command = COMMAND_PATTERN.fullmatch(normalize_command(typed.rstrip()))
    return not is_blank(typed) and FENCE not in typed and is_command is None


def normalize_command(typed: str) -> str:
    """Rewrite `/name`, `exit`, `quit` and `help` as dot commands; return other text unchanged."""
    word, space, rest = typed.partition(" ")
    name = word.lower().removeprefix("/").removeprefix(".")
    if name == "quit":
        name = "exit"
    if word.startswith("/"):
        is_command = name in COMMANDS
    elif word.startswith("."):
        is_command = name in COMMANDS and not rest  # with an argument, it is left as it was typed
    else:
        is_command = name in BARE_COMMANDS and not rest  # "exit now" is a message
    return f".{name}{space}{rest}" if is_command else typed


def is_unclosed(typed: str) -> bool:
    """Whether several lines are opened but not closed."""
    text = typed.strip()
    return text.startswith(FENCE) and (len(text) < 2 * len(FENCE) or not text.endswith(FENCE))


def strip_fence(typed: str) -> str:
    """Return text without the fence around several lines."""
    text = typed.strip()
    if not text.startswith(FENCE):
        return text
    return text.removeprefix(FENCE).removesuffix(FENCE).strip("\n")


def help_lines() -> list[str]:
    """Return the help: every command with its arguments and what it does."""
    heads = {name: f".{name} {takes}".rstrip() for name, (takes, _) in COMMANDS.items()}
    width = max(map(len, heads.values()))
    return [*(f"{heads[name]:{width}}  {does}" for name, (_, does) in COMMANDS.items()), *KEY_HELP]


# -- arguments of commands -------------------------------------------------------------------------------


def refuse_argument(command: Command) -> None:
    """Refuse an argument of a command that takes none."""
    if command.rest:
        raise usage_error(f".{command.name} takes no argument, got {command.rest!r}.")


def parse_topic(command: Command) -> str:
    """Return the topic that `.info` shows."""
    if command.rest and command.rest not in TOPICS:
        raise usage_error(f".info shows {', '.join(TOPICS)}, got {command.rest!r}.")
    return command.rest


def parse_todo_edit(rest: str) -> dict[str, Any]:
    """Return the arguments of `update_todos` for `.todo ACTION …`; {} if it only shows the list."""
    word, *others = rest.split(maxsplit=1) or ["list"]
    text = others[0].strip() if others else ""
    action = parse_action(word)
    if action is TodoAction.ADD:
        words = [line.strip() for line in strip_fence(text).splitlines() if line.strip()]
    elif action in (TodoAction.BLOCK, TodoAction.EDIT):
        words = text.split(maxsplit=1)
    else:
        words = text.split()
    return build_changes(action, words, ".todo")
