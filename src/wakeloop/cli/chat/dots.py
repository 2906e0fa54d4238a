"""What each dot command does to a conversation, and says."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from wakeloop.cli.chat import lines, values
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.lines import Command
from wakeloop.cli.failures import usage_error
from wakeloop.cli.play import SWITCHED_ON
from wakeloop.cli.show import listing, portrait
from wakeloop.cli.show_config import build_view, format_view
from wakeloop.cli.store import Known
from wakeloop.cli.thread_lookup import find_or_new
from wakeloop.config.levels import config_folder, list_names
from wakeloop.display.clean import one_line
from wakeloop.display.words import ending
from wakeloop.text.characters import pluralize
from wakeloop.thread.standing import counted

Dot = Callable[[Conversation, Command], Iterable[str]]


def set_(talk: Conversation, command: Command) -> Iterable[str]:
    """Override a setting in this thread, or tell what holds."""
    own = talk.own
    if talk.whole:
        raise usage_error(
            f"The agent {talk.recipe.agent!r} overrides all settings: its values hold, not a thread's."
        )
    if not command.rest:
        yield from [values.told(talk.base, own, key) for key in own] or ["This thread overrides nothing."]
        return
    key, text = lines.key_and_value(command.rest)
    if text is not None:
        own = values.changed(talk.base, own, key, text)
        talk.override(own)
    yield values.told(talk.base, own, key)
    if text is not None and values.key_of(key) == "auto_continue" and talk.depends_on_auto_continue:
        yield "The todo tools " + ("come" if talk.settings.auto_continue else "go") + " with your next text."


def unset(talk: Conversation, command: Command) -> Iterable[str]:
    """Take an override away."""
    if not command.rest:
        raise usage_error(".unset needs the key of a setting.")
    own = values.without(talk.own, command.rest)
    talk.override(own)
    yield values.told(talk.base, own, command.rest)


def clear(talk: Conversation, command: Command) -> Iterable[str]:
    """Empty list and goal, and end the run that was not over."""
    if command.rest != "todo":
        raise usage_error(".clear takes todo: .clear todo empties the list and its goal.")
    if not talk.settings.auto_continue:
        raise usage_error(
            "auto_continue is off, so that there is no chain to end; .todo remove takes items away."
        )
    if talk.stop():
        yield "The run is ended."
    talk.edit({"clear": True})
    yield "List and goal are empty."


def info(talk: Conversation, command: Command) -> Iterable[str]:
    """Show the list, every setting, or the thread."""
    what, snapshot = lines.topic(command), talk.snapshot
    if what == "config":
        yield from format_view(build_view(talk.stack, talk.own, talk.thread))
    elif what == "todo":
        if goal := snapshot.values.get("todo_goal"):
            yield f"goal: {one_line(goal)}"
        yield from listing(snapshot.values.get("todos") or [])
        yield ending(counted(snapshot))
    elif what in lines.LEAVES:
        yield from named(what, getattr(talk.recipe, what))
        yield from who(what, getattr(talk.recipe, what), talk)
    else:
        yield from portrait(Known(talk.thread, talk.recipe, talk.request), snapshot, talk.place, live=False)


def todo(talk: Conversation, command: Command) -> Iterable[str]:
    """Show or edit the list."""
    changes = lines.todo_edit(command.rest)
    yield from listing(talk.edit(changes) if changes else talk.snapshot.values.get("todos") or [])


def role(talk: Conversation, command: Command) -> Iterable[str]:
    """Take a role, or leave it."""
    if not command.rest:
        return named("role", talk.recipe.role)
    talk.reconfigure({"role": command.rest})
    return [*who("role", talk.recipe.role, talk)]


def agent(talk: Conversation, command: Command) -> Iterable[str]:
    """Load an agent file, or leave it; the list is cleared."""
    if not command.rest:
        yield from named("agent", talk.recipe.agent)
        return
    talk.refuse_unfinished()
    before = talk.snapshot.values
    talk.reconfigure({"agent": command.rest})
    yield from who("agent", talk.recipe.agent, talk)
    if before.get("todos") or before.get("todo_goal"):
        gone = pluralize(len(before.get("todos") or ()), "item")
        talk.edit({"clear": True})
        yield f"Loading or leaving an agent clears the list: {gone} gone."


def named(kind: str, now: str) -> list[str]:
    """Which role or agent there is now, and which there are."""
    there = ", ".join(list_names(config_folder(), f"{kind}s")) or f"none in {config_folder() / kind}s"
    return [f"{kind}: {now or 'none'}; there are: {there}"]


def who(kind: str, now: str, talk: Conversation) -> Iterable[str]:
    """Who answers from now on."""
    yield f"{kind}: {now or 'none'}; model: {one_line(talk.recipe.title)}"
    if talk.recipe.switched_on:
        yield SWITCHED_ON
    picture = build_view(talk.stack, talk.own, talk.thread)
    if picture.ignored:
        yield f"The agent overrides all settings; not counted: {', '.join(picture.ignored)}."


def session(talk: Conversation, command: Command) -> Iterable[str]:
    """Go to another thread."""
    if not command.rest:
        return [f"thread: {talk.thread}"]
    name, _ = find_or_new(talk.store, command.rest)
    known = talk.visit(name)
    return [f"{'Continuing thread' if known else 'Thread'} {talk.thread} ({one_line(talk.recipe.title)})"]


def stop(talk: Conversation, command: Command) -> Iterable[str]:
    """End a run that waits or was broken off."""
    lines.nothing(command)
    return ["The run is ended." if talk.stop() else "Nothing waits, and nothing was broken off."]


def help_(talk: Conversation, command: Command) -> Iterable[str]:  # noqa: ARG001 - as all of them
    """List the commands."""
    return lines.help_lines()


DOTS: Mapping[str, Dot] = MappingProxyType(
    {
        "set": set_,
        "unset": unset,
        "clear": clear,
        "info": info,
        "todo": todo,
        "role": role,
        "agent": agent,
        "session": session,
        "stop": stop,
        "help": help_,
    }
)
