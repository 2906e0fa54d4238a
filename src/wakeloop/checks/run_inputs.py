"""A run's input and config, as they are guessed."""

from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import ensure_config
from langgraph.types import Command, Overwrite
from pydantic import ValidationError

from wakeloop.errors import ArgumentError, InputError
from wakeloop.text.characters import find_lone_surrogate, shorten
from wakeloop.text.wording import describe_type
from wakeloop.todos.changes import Changes, check_changes
from wakeloop.todos.items import OperationRefused

EXAMPLE_CALL = "agent.invoke({'messages': [('user', 'TEXT')]}, {'configurable': {'thread_id': 'NAME'}})"
KEY_HINTS = MappingProxyType(
    {
        **dict.fromkeys(("message", "input", "inputs", "query", "question", "prompt", "text"), "messages"),
        **dict.fromkeys(("content", "user", "human", "user_input", "chat_history"), "messages"),
        **dict.fromkeys(("todo", "todo_list", "items", "plan", "tasks"), "todos"),
        "goal": "todo_goal",
        **dict.fromkeys(("settings", "overrides"), "todo_settings"),
        **dict.fromkeys(("inbox", "events", "event"), "todo_inbox"),
        "session": "todo_session",
    }
)
NAMED_IN_CONFIG = ("thread_id", "checkpoint_id", "checkpoint_ns")
KEY_CUTOFF = 0.85  # `tools`, which chat clients send, is 0.8 of `todos`
THREAD_WORDS = frozenset(("thread", "threadid", "thread-id", "id", "session", "session_id", "sessionid"))
THREAD_KEYS = {"thread_id", "checkpoint_ns", "checkpoint_id"}  # of a thread: LangGraph wants one of them
MAX_DEPTH = 8  # places in each other that a sentence names
LANGGRAPH_PREFIX = "__pregel"  # how LangGraph's own keys begin, in the config of a graph within another


def check_run(given: object, config: object, channels: Collection[str], *, keeps: bool = False) -> None:
    """Refuse an input or a config that LangGraph would leave out in silence. Raises `InputError`.

    Messages that are none are refused here too: LangGraph commits an input before a reducer has seen it.
    `keeps` tells that the graph needs a thread, and that no other place names one.

    A graph within another is given its parent's whole state, so nothing is said there; nor of keys that are
    near none of its own, beside some that are.
    """
    where = config.get("configurable") if isinstance(config, Mapping) else None
    if _is_nested_run(where):
        return
    if config is not None:
        _check_config(config, where, keeps=keeps)
    _check_thread(config, keeps=keeps)
    if isinstance(given, str | int | BaseMessage) or (isinstance(given, list | tuple) and given):
        raise InputError(f"An input is a mapping, not {shorten(repr(given))}: {EXAMPLE_CALL}.")
    if not isinstance(given, Mapping):
        return
    known = any(key in channels for key in given)
    for key in given:
        if key in channels or not isinstance(key, str):
            continue
        if meant := _suggest_key(key, channels, known=known):
            raise InputError(f"An input has no key {key!r}: did you mean {meant!r}? {EXAMPLE_CALL}.")
    if given and not known:
        told = ", ".join(map(repr, list(given)[:5]))
        raise InputError(f"An input of {told} has nothing for this agent; it takes {', '.join(channels)}.")
    if "messages" in given:
        _check_messages(given["messages"])


def _is_nested_run(where: object) -> bool:
    return isinstance(where, Mapping) and any(str(key).startswith(LANGGRAPH_PREFIX) for key in where)


def check_serializable(
    given: object,
    config: object,
    write: Callable[[Any], object],
    channels: Collection[str],
    stored: Collection[str],
    *,
    at_exit: bool,
) -> None:
    """Refuse what a saver cannot write down: LangGraph raises in the run's first step, and names no place.

    `write` is how the saver does it, and raises where it cannot. `stored` are the channels whose values it
    is given: an input is stored whole, unless that is done `at_exit` alone. Raises `InputError`.
    """
    if isinstance(given, Command):
        update: Any = given.update
        if isinstance(update, Mapping) and not at_exit:
            update = {key: update[key] for key in update if key in stored or key not in channels}
        given = {"resume": given.resume, "update": update}
    elif isinstance(given, Mapping) and at_exit:
        given = {key: given[key] for key in given if key in stored}
    if _is_nested_run(config.get("configurable") if isinstance(config, Mapping) else None):
        return
    if (why := find_unserializable(given, write)) is not None:
        raise InputError(
            f"No checkpoint takes what stands in the input ({why}): send it as a text, or leave it out."
        )


def find_unserializable(given: object, write: Callable[[Any], object]) -> str | None:
    """Name the place and the kind of what cannot be written down, and why; None where all of it can."""
    value: Any = given
    where: list[str] = []
    why = _unwritten(value, write)
    while why is not None and len(where) < MAX_DEPTH:
        parts = ((key, part) for key, part in _parts_of(value) if _unwritten(part, write) is not None)
        key, part = next(parts, (None, None))
        if key is None:
            break
        where.append(key)
        value, why = part, _unwritten(part, write)
    return None if why is None else f"{' > '.join(where)}: {describe_type(value)}; {shorten(why, 100)}"


def _unwritten(value: object, write: Callable[[Any], object]) -> str | None:
    try:
        write(value)
    except Exception as error:  # noqa: BLE001 - whatever a saver's serializer says of it
        return " ".join(f"{error}".split()) or type(error).__name__
    return None


def _parts_of(value: Any) -> Iterable[tuple[str, Any]]:
    """Return what a value is made of, each part with its name or its place, counted from 1."""
    if isinstance(value, BaseMessage):
        return vars(value).items()
    if isinstance(value, Mapping):
        return ((shorten(str(key)), part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return ((str(place), part) for place, part in enumerate(value, 1))
    return ()


def drop_list_changes(given: Any) -> Any:
    """Leave out a write of the list in the list's place: a client that saw it in mid-run sends it back."""
    todos = given.get("todos") if isinstance(given, Mapping) else None
    if not (isinstance(todos, dict) and todos and Changes.__annotations__.keys() >= todos.keys()):
        return given
    try:
        check_changes(todos)
    except OperationRefused:
        return given  # the reducer sets it aside, with the sentence
    return {key: value for key, value in given.items() if key != "todos"}


def _check_messages(given: Any) -> None:
    """Refuse what no message can be made of; in `Overwrite`, which no reducer sees, what is none yet."""
    if isinstance(given, Overwrite):
        if isinstance(given.value, list) and all(isinstance(one, BaseMessage) for one in given.value):
            return
        raise InputError("Overwrite takes a list of messages as they are: [HumanMessage('TEXT')].")
    if not isinstance(given, list | tuple | str | Mapping | BaseMessage):
        raise InputError(
            f"'messages' takes a message or a list of them, not {shorten(repr(given))}: {EXAMPLE_CALL}."
        )
    for place, one in enumerate(given if isinstance(given, list) else [given], 1):
        if isinstance(one, BaseMessage):
            _check_named(one, place)
            continue
        try:
            convert_to_messages([one])
        except ValidationError as error:
            why = str(error.errors(include_url=False, include_context=False)[0]["msg"])
        except Exception as error:  # noqa: BLE001 - whatever langchain says of it
            why = " ".join(f"{type(error).__name__}: {error}".partition("For troubleshooting")[0].split())
        else:
            continue
        raise InputError(f"The input's message {place} is none ({shorten(why, 200)}): {EXAMPLE_CALL}.")


def _check_named(message: BaseMessage, place: int) -> None:
    for name in ("id", "name"):
        if not isinstance(told := getattr(message, name), str | None):
            raise InputError(
                f"The {name} of the input's message {place} is {describe_type(told)}: it has to be a text, or None."
            )


def _suggest_key(key: str, channels: Collection[str], *, known: bool) -> str | None:
    """Return the key that was meant; what others send beside ours is left alone."""
    near = get_close_matches(key.lower(), channels, n=1, cutoff=KEY_CUTOFF)
    if near:
        return near[0]
    meant = KEY_HINTS.get(key)
    return None if known or meant not in channels else meant


def check_thread_name(config: object) -> None:
    """Refuse a thread or a checkpoint whose name no saver can write down. Raises `InputError`."""
    where = config.get("configurable") if isinstance(config, Mapping) else None
    told = where if isinstance(where, Mapping) else {}
    for name in NAMED_IN_CONFIG:
        if isinstance(told.get(name), str) and (half := find_lone_surrogate(told[name])):
            raise InputError(
                f"The {name} is refused: half a pair of characters ({half}) is in it, "
                "which UTF-8 cannot hold."
            )


def _check_thread(config: Any, *, keeps: bool) -> None:
    if (
        keeps and not THREAD_KEYS & (ensure_config(config).get("configurable") or {}).keys()
    ):  # also a caller's own
        raise InputError(
            "This agent has a checkpointer, so each run is of a thread: name it, as in "
            "config={'configurable': {'thread_id': 'notes'}}."
        )


def _check_config(config: Any, where: Any, *, keeps: bool) -> None:
    check_thread_name(config)
    named: Any = None
    if not isinstance(config, Mapping):
        named = config
    elif where is not None and not isinstance(where, Mapping):
        named = where
    elif "thread_id" not in (where or {}):
        named = config.get("thread_id")
        if named is None and keeps:
            named = next(
                (value for key, value in (where or {}).items() if str(key).lower() in THREAD_WORDS), None
            )
    if named is not None:
        raise InputError(
            "The config names its thread under 'configurable': {'configurable': {'thread_id': "
            f"{shorten(repr(named))}}}}}."
        )
    if isinstance(where, Mapping) and "recursion_limit" in where:
        raise InputError(
            "recursion_limit stands beside 'configurable', not in it: "
            f"{{'recursion_limit': {where['recursion_limit']!r}, 'configurable': {{…}}}}."
        )


def require_thread(config: object) -> Mapping[str, Any]:
    """Return what a config says of its thread. Raises `ArgumentError` with the right spelling."""
    where = config.get("configurable") if isinstance(config, Mapping) else None
    if isinstance(where, Mapping) and where.get("thread_id"):
        return where
    name = config.get("thread_id") if isinstance(config, Mapping) else config
    told = repr(name) if isinstance(name, str | int) and name else "'NAME'"
    raise ArgumentError(f"A thread is named by {{'configurable': {{'thread_id': {told}}}}}.")
