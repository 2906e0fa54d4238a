"""Checks of a run's input and config."""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import ensure_config
from langgraph.types import Command, Overwrite
from pydantic import ValidationError

from wakeloop.errors import ArgumentError, InputError, SettingsError
from wakeloop.platform.command_updates import read_update
from wakeloop.settings import LoopSettings, resolve_aliases
from wakeloop.text.characters import find_lone_surrogate, shorten
from wakeloop.text.wording import describe_type, nearest
from wakeloop.todos.changes import Changes, check_changes
from wakeloop.todos.items import OperationRefused, read_list

EXAMPLE_CALL = "agent.invoke({'messages': [('user', 'TEXT')]}, {'configurable': {'thread_id': 'NAME'}})"
# Words of chains and other agents for the keys of an input, too far from them in spelling.
KEY_HINTS = MappingProxyType(
    {
        **dict.fromkeys(("input", "inputs", "query", "question", "prompt", "text"), "messages"),
        **dict.fromkeys(("content", "user", "chat_history"), "messages"),
        **dict.fromkeys(("todo", "todo_list", "items", "plan", "tasks"), "todos"),
        "goal": "todo_goal",
        "settings": "todo_settings",
        **dict.fromkeys(("inbox", "events", "event"), "todo_inbox"),
        "session": "todo_session",
    }
)
KEY_CUTOFF = 0.85  # chat clients send `tools`, which is 0.8 like `todos`
THREAD_WORDS = frozenset(("thread", "threadid", "thread-id", "id", "session", "session_id", "sessionid"))
THREAD_KEYS = ("thread_id", "checkpoint_id", "checkpoint_ns")
MAX_DEPTH = 8  # nested keys that a message names
LANGGRAPH_PREFIX = "__pregel"  # of LangGraph's own keys, which mark the run of a nested graph


def check_run(given: object, config: object, channels: Collection[str], *, keeps: bool = False) -> None:
    """Refuse an input or config that LangGraph would silently ignore. Raises `InputError`.

    With `keeps`, the config must name a thread: the graph has a checkpointer, and no binding names one.
    """
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if is_nested_run(config):
        return  # a nested graph is given its parent's whole state: unknown keys are normal there
    if config is not None:
        _check_config(config, configurable, keeps=keeps)
    _check_thread(config, keeps=keeps)
    if isinstance(given, str | int | list | tuple | BaseMessage):
        raise InputError(f"The input must be a mapping, got {shorten(repr(given))}. Example: {EXAMPLE_CALL}.")
    if isinstance(given, Command) and given.resume is None and not given.update and not given.goto:
        # LangGraph raises UnboundLocalError.
        raise InputError("Command(resume=None) answers nothing. Pass the answer, or False for a no.")
    if isinstance(given, Mapping):
        _check_keys(given, channels)
    update: Any = read_update(given.update) if isinstance(given, Command) else given
    if isinstance(update, Mapping) and "messages" in update:
        # LangGraph commits an input before a reducer has seen it: a bad message would stay in the thread.
        _check_messages(update["messages"])
    if isinstance(given, Command):  # another input is checked where a run begins
        if update.get("todos") is not None:
            _check_todos(update["todos"])
        if isinstance(update.get("todo_settings"), Mapping):
            _check_settings(update["todo_settings"])


def _check_keys(given: Mapping[Any, Any], channels: Collection[str]) -> None:
    # Chat clients send keys of their own (`tools`, `context`). Next to a known key, an unknown one is only
    # refused if it looks like a misspelling.
    has_known = any(key in channels for key in given)
    in_node = is_nested_run(ensure_config())  # it may pass its whole state, with keys of any name
    for key in given:
        if key in channels or not isinstance(key, str):
            continue
        meant = nearest(key.lower(), channels, KEY_CUTOFF)
        if meant is None and not has_known and KEY_HINTS.get(key) in channels:
            meant = KEY_HINTS[key]
        if meant is None and not in_node and _is_all_settings(given[key]):
            meant = "todo_settings"
        if meant is not None:
            raise InputError(f"Unknown input key {key!r}. Did you mean {meant!r}? Example: {EXAMPLE_CALL}.")
        if not in_node:
            _refuse_setting(key, "input key")
    if given and not has_known:
        names = ", ".join(map(repr, list(given)[:5]))
        raise InputError(f"The agent knows none of the input keys {names}. Available: {', '.join(channels)}.")


def check_context(given: object, keys: Collection[str]) -> None:
    """Refuse a context of settings alone, which would silently have no effect. Raises `InputError`.

    Next to a key of the user's own, a key may have the name of a setting by chance.
    """
    if not isinstance(given, Mapping) or "todo_settings" not in keys:
        return
    for key in given:
        if key not in keys and isinstance(key, str) and nearest(key.lower(), ["todo_settings"], KEY_CUTOFF):
            raise InputError(f"Unknown context key {key!r}. Did you mean 'todo_settings'?")
    if _is_all_settings(given):
        _refuse_setting(next(iter(given)), "context key")


def _is_all_settings(given: object) -> bool:
    return isinstance(given, Mapping) and bool(given) and given.keys() <= LoopSettings.model_fields.keys()


def _refuse_setting(key: str, what: str) -> None:
    if key in LoopSettings.model_fields:
        right = f"{{'todo_settings': {{{key!r}: …}}}}"
        raise InputError(f"Unknown {what} {key!r}. It is a setting: {right}.")


def is_nested_run(config: object) -> bool:
    """Tell whether a config is that of a run inside another graph's."""
    where = config.get("configurable") if isinstance(config, Mapping) else None
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
    """Refuse an input that the checkpointer cannot serialize. Raises `InputError`.

    LangGraph raises only in the first step of the run, and does not say where the value is. `write` is the
    serializer's function, `stored` the channels that are stored. The whole input is stored, unless
    checkpoints are only written `at_exit`.
    """
    if isinstance(given, Command):
        update: Any = given.update
        if isinstance(update, Mapping) and not at_exit:
            update = {key: update[key] for key in update if key in stored or key not in channels}
        given = {"resume": given.resume, "update": update}
    elif isinstance(given, Mapping) and at_exit:
        given = {key: given[key] for key in given if key in stored}
    if is_nested_run(config):
        return
    fault = find_unserializable(given, write)
    if fault is not None:
        raise InputError(
            f"A checkpoint cannot store this input: {fault}. Pass it as a string or leave it out."
        )


def find_unserializable(given: object, write: Callable[[Any], object]) -> str | None:
    """Return the place and type of a value that cannot be serialized, and why, or None."""
    value: Any = given
    path: list[str] = []
    reason = _serialization_error(value, write)
    while reason is not None and len(path) < MAX_DEPTH:
        for key, part in _parts_of(value):
            inner = _serialization_error(part, write)
            if inner is not None:
                path.append(key)
                value, reason = part, inner
                break
        else:
            break
    if reason is None:
        return None
    return f"{' > '.join(path)}: {describe_type(value)}; {shorten(reason, 100)}"


def _serialization_error(value: object, write: Callable[[Any], object]) -> str | None:
    try:
        write(value)
    except Exception as error:  # noqa: BLE001 - whatever a serializer raises
        return " ".join(f"{error}".split()) or type(error).__name__
    return None


def _parts_of(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the parts of a value with their names or places, counted from 1."""
    if isinstance(value, BaseMessage):
        return vars(value).items()
    if isinstance(value, Mapping):
        return ((shorten(str(key)), part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return ((str(place), part) for place, part in enumerate(value, 1))
    return ()


def drop_list_changes(given: Any) -> Any:
    """Return the input without `todos` that are `Changes`, which a client saw in a run and sent back."""
    todos = given.get("todos") if isinstance(given, Mapping) else None
    if not _are_changes(todos):
        return given
    try:
        check_changes(todos)
    except OperationRefused:
        return given  # the reducer refuses it and says why
    return {key: value for key, value in given.items() if key != "todos"}


def _are_changes(todos: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(todos, dict) and bool(todos) and Changes.__annotations__.keys() >= todos.keys()


def _check_todos(given: Any) -> None:
    try:
        if _are_changes(given):
            check_changes(given)
        else:
            read_list(given.value if isinstance(given, Overwrite) else given)
    except OperationRefused as refusal:
        raise InputError(f"The input is refused: {refusal}.") from None


def _check_settings(given: Mapping[Any, Any]) -> None:
    try:
        LoopSettings.model_validate(resolve_aliases(given))
    except SettingsError as error:
        raise InputError(str(error)) from None


def _check_messages(given: Any) -> None:
    if isinstance(given, Overwrite):  # no reducer runs, so nothing would turn tuples into messages
        if isinstance(given.value, list) and all(isinstance(one, BaseMessage) for one in given.value):
            return
        raise InputError("Overwrite of 'messages' must be a list of messages, as in [HumanMessage('TEXT')].")
    if not isinstance(given, list | tuple | str | Mapping | BaseMessage):
        got = shorten(repr(given))
        raise InputError(
            f"'messages' must be a message or a list of them, got {got}. Example: {EXAMPLE_CALL}."
        )
    for place, one in enumerate(given if isinstance(given, list) else [given], 1):
        if isinstance(one, BaseMessage):
            _check_message_names(one, place)
            continue
        reason = _conversion_error(one)
        if reason is not None:
            why = shorten(reason, 200)
            raise InputError(f"Item {place} of 'messages' is not a message ({why}). Example: {EXAMPLE_CALL}.")


def _conversion_error(message: object) -> str | None:
    try:
        convert_to_messages([message])  # type: ignore[list-item]
    except ValidationError as error:
        return str(error.errors(include_url=False, include_context=False)[0]["msg"])
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises
        return " ".join(f"{type(error).__name__}: {error}".partition("For troubleshooting")[0].split())
    return None


def _check_message_names(message: BaseMessage, place: int) -> None:
    for name in ("id", "name"):
        value = getattr(message, name)
        if not isinstance(value, str | None):
            got = describe_type(value)
            raise InputError(f"The {name} of item {place} of 'messages' must be a string or None, got {got}.")


def check_thread_name(config: object) -> None:
    """Refuse a thread or checkpoint id that no checkpointer can store. Raises `InputError`."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(configurable, Mapping):
        return
    for name in THREAD_KEYS:
        value = configurable.get(name)
        half = find_lone_surrogate(value) if isinstance(value, str) else None
        if half:
            raise InputError(f"{name} has half a surrogate pair ({half}), which UTF-8 cannot hold.")


def check_state_config(config: object, *, keeps: bool) -> None:
    """Refuse the config of a thread to read or edit if it names none. Raises `InputError`."""
    if is_nested_run(config):
        return
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    _check_config(config, configurable, keeps=keeps)
    _check_thread(config, keeps=keeps)


def check_fork(config: Any, supersteps: Iterable[Iterable[Any]]) -> None:
    """Refuse an invalid list that `update_state` writes into a fork. Raises `InputError`.

    LangGraph stores the channels of a fork whole, so the next run could not tell that it was refused.
    """
    configurable = ensure_config(config).get("configurable") or {}
    if "checkpoint_id" not in configurable:
        return
    for updates in supersteps:
        for update in updates:
            todos = update.values.get("todos") if isinstance(update.values, Mapping) else None
            if todos is not None:
                _check_todos(todos)


def _check_thread(config: Any, *, keeps: bool) -> None:
    if not keeps:
        return
    configurable = ensure_config(config).get("configurable") or {}  # includes the config of a surrounding run
    if all(configurable.get(key) is None for key in THREAD_KEYS):
        raise InputError(
            "An agent with a checkpointer needs a thread: "
            "pass config={'configurable': {'thread_id': 'NAME'}}."
        )


def _check_config(config: Any, configurable: Any, *, keeps: bool) -> None:
    check_thread_name(config)
    thread = _find_misplaced_thread(config, configurable, keeps=keeps)
    if thread is not None:
        raise InputError(
            "The thread belongs under 'configurable': "
            f"{{'configurable': {{'thread_id': {shorten(repr(thread))}}}}}."
        )
    if isinstance(configurable, Mapping) and "recursion_limit" in configurable:
        limit = configurable["recursion_limit"]
        raise InputError(
            "recursion_limit belongs next to 'configurable', not inside it: "
            f"{{'recursion_limit': {limit!r}, 'configurable': {{…}}}}."
        )


def _find_misplaced_thread(config: Any, configurable: Any, *, keeps: bool) -> Any:
    if not isinstance(config, Mapping):
        return config
    if configurable is not None and not isinstance(configurable, Mapping):
        return configurable
    if "thread_id" in (configurable or {}):
        return None
    if config.get("thread_id") is not None or not keeps:
        return config.get("thread_id")
    for key, value in (configurable or {}).items():
        if str(key).lower() in THREAD_WORDS:
            return value
    return None


def require_thread(config: object) -> Mapping[str, Any]:
    """Return the `configurable` of a config that names a thread. Raises `ArgumentError`."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if isinstance(configurable, Mapping) and configurable.get("thread_id"):
        return configurable
    given = config.get("thread_id") if isinstance(config, Mapping) else config
    name = repr(given) if isinstance(given, str | int) and given else "'NAME'"
    raise ArgumentError(f"No thread is named. Pass {{'configurable': {{'thread_id': {name}}}}}.")
