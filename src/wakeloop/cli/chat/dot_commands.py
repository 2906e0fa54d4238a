"""Dot commands of a chat."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, get_args

from wakeloop.cli.agent_spec import YAML_WORDS, parse_value
from wakeloop.cli.chat import parsing
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.parsing import Command
from wakeloop.cli.failures import usage_error
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
from wakeloop.text.characters import pluralize
from wakeloop.thread.outside import hold_thread
from wakeloop.thread.thread_status import read_session

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
    what, snapshot = parsing.parse_topic(command), talk.snapshot
    if what == "config":
        yield from format_view(build_view(talk.stack, talk.overrides, talk.thread))
    elif what == "todo":
        if goal := snapshot.values.get("todo_goal"):
            yield f"goal: {clean_line(goal)}"
        yield from format_todos(snapshot.values.get("todos") or [])
        yield format_ending(read_session(snapshot))
    elif what in parsing.LEAVABLE:
        yield from list_available(what, getattr(talk.spec, what))
        yield from describe_choice(what, getattr(talk.spec, what), talk)
    else:
        yield from describe_thread(
            ThreadRecord(talk.thread, talk.spec, talk.request), snapshot, talk.database, live=False
        )


def edit_todos(talk: Conversation, command: Command) -> Iterable[str]:
    """Show or edit the list."""
    changes = parsing.parse_todo_edit(command.rest)
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
    parsing.refuse_argument(command)
    return ["Run ended." if talk.stop() else "No run to end."]


def hold(talk: Conversation, command: Command) -> Iterable[str]:
    """Park the thread until a message or `.go`."""
    parsing.refuse_argument(command)
    talk.refuse_unfinished()
    talk.remember_spec()
    held = hold_thread(talk.graph, talk.config)
    return ["On hold: your next message or .go moves it." if held else "Already on hold."]


def list_commands(talk: Conversation, command: Command) -> Iterable[str]:  # noqa: ARG001 - same signature as all
    """List the commands."""
    return parsing.help_lines()


DOT_COMMANDS: Mapping[str, DotCommand] = MappingProxyType(
    {
        "set": set_override,
        "unset": remove_override,
        "clear": clear_todos,
        "info": show_info,
        "todo": edit_todos,
        "role": switch_role,
        "agent": switch_agent,
        "session": switch_thread,
        "stop": stop_run,
        "hold": hold,
        "help": list_commands,
    }
)


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
