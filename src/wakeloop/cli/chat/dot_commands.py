"""Chat entries: text, and dot commands."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from wakeloop.cli.agent_spec import YAML_WORDS, parse_value
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.failures import usage_error
from wakeloop.cli.manage_threads import TodoAction, build_changes, parse_action
from wakeloop.cli.run_thread import AUTO_CONTINUE_NOTE
from wakeloop.cli.show import describe_thread, format_todos
from wakeloop.cli.show_config import build_view, format_view
from wakeloop.cli.spec_builder import LIMIT_OPTIONS, require_prices
from wakeloop.cli.store import ThreadRecord
from wakeloop.cli.thread_lookup import find_or_new
from wakeloop.config.files import MODEL_OPTIONS, explain_loki_key
from wakeloop.config.levels import NON_SETTINGS, canonical_key, config_folder, is_thread_setting, list_names
from wakeloop.display.formatting import format_ending, to_json
from wakeloop.display.terminal_output import clean_line
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import ALIASES, AgentFileSettings, LoopSettings, check_setting_name, resolve_aliases
from wakeloop.text.characters import is_blank, pluralize
from wakeloop.text.wording import nearest
from wakeloop.thread.outside import hold_thread
from wakeloop.thread.thread_status import read_session

FENCE = '"""'
COMMAND_PATTERN = re.compile(r"\.([A-Za-z]\w*)(?:\s+(.*))?", re.DOTALL)
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
    heads = {name: f".{name} {takes}".rstrip() for name, (takes, *_) in COMMANDS.items()}
    width = max(map(len, heads.values()))
    return [*(f"{heads[name]:{width}}  {does}" for name, (_, does, _) in COMMANDS.items()), *KEY_HELP]


# -- arguments of commands -------------------------------------------------------------------------------


def refuse_argument(command: Command) -> None:
    """Refuse an argument of a command that takes none."""
    if command.rest:
        raise usage_error(f".{command.name} takes no argument, got {command.rest!r}.")


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


# -- the commands -----------------------------------------------------------------------------------------


DotCommand = Callable[[Conversation, Command], Iterable[str]]


def set_override(talk: Conversation, command: Command) -> Iterable[str]:
    """Override a setting in this thread, or show the current value."""
    own = talk.overrides
    if isinstance(talk.base, AgentFileSettings):
        raise usage_error(
            f"The agent {talk.spec.agent!r} fixes all settings, so a thread cannot override them."
        )
    if not command.rest:
        if not own:
            yield "This thread overrides nothing."
        for key in own:
            yield describe_value(talk.base, own, key)
        return
    key, _, text = command.rest.partition(" ")
    text = text.strip()
    if text:
        own = set_value(talk.base, own, key, text)
        talk.override(own)
    yield describe_value(talk.base, own, key)
    if text and resolve_key(key) == "auto_continue" and talk.depends_on_auto_continue:
        change = "adds" if talk.settings.auto_continue else "removes"
        yield f"Your next message {change} the todo tools."


def remove_override(talk: Conversation, command: Command) -> Iterable[str]:
    """Remove an override."""
    if not command.rest:
        raise usage_error(".unset needs the name of a setting.")
    own = remove_value(talk.overrides, command.rest)
    talk.override(own)
    yield describe_value(talk.base, own, command.rest)


def clear_todos(talk: Conversation, command: Command) -> Iterable[str]:
    """Clear list and goal, and end an unfinished run."""
    if command.rest != "todo":
        raise usage_error(".clear takes one argument: .clear todo clears the list and its goal.")
    if not talk.settings.auto_continue:
        raise usage_error(
            "auto_continue is off, so there are no wakes to end. Remove items with .todo remove."
        )
    if talk.stop():
        yield "Run ended."
    talk.edit({"clear": True})
    yield "List and goal cleared."


def show_info(talk: Conversation, command: Command) -> Iterable[str]:
    """Show the list, the settings, the role or agent, or the thread."""
    what, snapshot = command.rest, talk.snapshot
    if what and what not in TOPICS:
        raise usage_error(f".info shows {', '.join(TOPICS)}, got {what!r}.")
    if what == "config":
        yield from format_view(build_view(talk.stack, talk.overrides, talk.thread))
    elif what == "todo":
        if goal := snapshot.values.get("todo_goal"):
            yield f"goal: {clean_line(goal)}"
        yield from format_todos(snapshot.values.get("todos") or [])
        yield format_ending(read_session(snapshot))
    elif what in LEAVABLE:
        yield from list_available(what, getattr(talk.spec, what))
        yield from describe_choice(what, getattr(talk.spec, what), talk)
    else:
        yield from describe_thread(
            ThreadRecord(talk.thread, talk.spec, talk.request), snapshot, talk.database, live=False
        )


def edit_todos(talk: Conversation, command: Command) -> Iterable[str]:
    """Show or edit the list."""
    changes = parse_todo_edit(command.rest)
    yield from format_todos(talk.edit(changes) if changes else talk.snapshot.values.get("todos") or [])


def switch_role(talk: Conversation, command: Command) -> Iterable[str]:
    """Choose or leave a role."""
    if not command.rest:
        return list_available("role", talk.spec.role)
    talk.reconfigure({"role": command.rest})
    return [*describe_choice("role", talk.spec.role, talk)]


def switch_agent(talk: Conversation, command: Command) -> Iterable[str]:
    """Load or leave an agent file; this clears the list."""
    if not command.rest:
        yield from list_available("agent", talk.spec.agent)
        return
    talk.refuse_unfinished()
    before = talk.snapshot.values
    talk.reconfigure({"agent": command.rest})
    yield from describe_choice("agent", talk.spec.agent, talk)
    if before.get("todos") or before.get("todo_goal"):
        gone = pluralize(len(before.get("todos") or ()), "item")
        talk.edit({"clear": True})
        yield f"Loading or leaving an agent clears the list: {gone} removed."


def list_available(kind: str, now: str) -> list[str]:
    """Return the current role or agent, and the available ones."""
    there = ", ".join(list_names(config_folder(), f"{kind}s")) or f"none in {config_folder() / kind}s"
    return [f"{kind}: {now or 'none'}; available: {there}"]


def describe_choice(kind: str, now: str, talk: Conversation) -> Iterable[str]:
    """Say which role or agent and which model answer from now on."""
    yield f"{kind}: {now or 'none'}; model: {clean_line(talk.spec.model_title)}"
    if talk.spec.switched_on:
        yield AUTO_CONTINUE_NOTE
    picture = build_view(talk.stack, talk.overrides, talk.thread)
    if picture.ignored:
        yield f"The agent fixes all settings; ignored levels: {', '.join(picture.ignored)}."


def switch_thread(talk: Conversation, command: Command) -> Iterable[str]:
    """Switch to another thread."""
    if not command.rest:
        return [f"thread: {talk.thread}"]
    name, _ = find_or_new(talk.store, command.rest)
    known = talk.switch_to(name)
    return [
        f"{'Continuing thread' if known else 'Thread'} {talk.thread} ({clean_line(talk.spec.model_title)})"
    ]


def stop_run(talk: Conversation, command: Command) -> Iterable[str]:
    """End a run that waits or was interrupted."""
    refuse_argument(command)
    return ["Run ended." if talk.stop() else "No run to end."]


def hold(talk: Conversation, command: Command) -> Iterable[str]:
    """Park the thread until a message or `.go`."""
    refuse_argument(command)
    talk.refuse_unfinished()
    talk.remember_spec()
    held = hold_thread(talk.graph, talk.config)
    return ["On hold: your next message or .go moves it." if held else "Already on hold."]


def list_commands(talk: Conversation, command: Command) -> Iterable[str]:  # noqa: ARG001 - same signature as all
    """List the commands."""
    return help_lines()


# -- settings of one thread, as `.set` changes them ------------------------------------------------------


NULL_WORDS = ("null", *(word for word, value in YAML_WORDS.items() if value is None))


def set_value(base: LoopSettings, own: Mapping[str, Any], given: str, text: str) -> dict[str, Any]:
    """Return the thread's overrides with a new value; null removes the override.

    If null is a valid value of the setting (`continuation_prompt`), it is set instead. Raises `SettingsError`
    or `CommandError` for a key or a value that a thread cannot override.
    """
    key = resolve_key(given)
    annotation = LoopSettings.model_fields[key].annotation
    if text in NULL_WORDS and type(None) not in get_args(annotation):
        return remove_value(own, given)
    value = None if text in NULL_WORDS else parse_value(text)
    if annotation == str | None and not isinstance(value, str | None):
        value = text  # it takes any words, as they were typed
    new = {**resolve_aliases(own), key: value}
    check_overrides(base, new)
    if key in LIMIT_OPTIONS:
        require_prices(base.model_copy(update=new))
    read = getattr(base.model_copy(update={key: value}), key)
    return {**new, key: list(read) if isinstance(read, tuple) else read}


def remove_value(own: Mapping[str, Any], given: str) -> dict[str, Any]:
    """Return the thread's overrides without one of them."""
    key = resolve_key(given)
    return {name: value for name, value in resolve_aliases(own).items() if name != key}


def resolve_key(given: str) -> str:
    """Return the name of a setting or alias; refuse one that a thread cannot override."""
    if canonical_key(given) in NON_SETTINGS or given in MODEL_OPTIONS:
        raise usage_error(
            f"{given!r} cannot be set in a thread. Choose it with a role, an agent or a chat option."
        )
    if way := explain_loki_key(given):
        raise usage_error(way)
    key = ALIASES.get(given, given)
    check_setting_name(key)
    if not is_thread_setting(key):
        raise usage_error(f"{given!r} is fixed in a thread. Set it in a role, an agent or a chat option.")
    return key


def describe_value(base: LoopSettings, own: Mapping[str, Any], given: str) -> str:
    """Return a sentence with the current value of a setting."""
    key = resolve_key(given)
    if key in own:
        return f"{key} is {to_json(own[key])} in this thread (default: {to_json(getattr(base, key))})."
    return f"{key} is {to_json(getattr(base, key))}; this thread does not override it."


COMMANDS: Mapping[str, tuple[str, str, DotCommand | None]] = {
    "set": ("KEY VALUE", "override a setting in this thread; null removes the override", set_override),
    "unset": ("KEY", "remove an override", remove_override),
    "clear": ("todo", "empty list and goal, and end an unfinished run", clear_todos),
    "info": (
        f"[{'|'.join(TOPICS)}]",
        "show the list, the settings, the thread, the role or agent",
        show_info,
    ),
    "todo": ("[ACTION ...]", "edit the list: " + ", ".join(TodoAction), edit_todos),
    "role": ("[NAME|none]", "choose a role; 'none' disables it", switch_role),
    "agent": ("[NAME|none]", "load an agent file and clear the list; 'none' disables it", switch_agent),
    "session": ("[THREAD]", "switch to another thread, or start a new one", switch_thread),
    "resume": ("", "repeat a question, finish an interrupted run, or continue the list", None),
    "stop": ("", "end a run that waits or was interrupted; your next message starts fresh", stop_run),
    "hold": ("", "park the thread: no kick, clock or peer moves it", hold),
    "go": ("", "release a thread on hold, and continue its list", None),
    "help": ("", "list these commands", list_commands),
    "exit": ("[role|agent]", "leave the chat, or only a role or an agent", None),
}
"""For each command its arguments, what it does, and the function; the chat itself does the others."""
