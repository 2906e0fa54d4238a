"""Checks of a run's input and config."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeGuard

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import ensure_config
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.errors import EmptyInputError
from langgraph.types import Command, Overwrite, StateSnapshot
from pydantic import ValidationError

from wakeloop.errors import ArgumentError, InputError, SettingsError
from wakeloop.platform.command_updates import read_update
from wakeloop.settings import LoopSettings, resolve_aliases
from wakeloop.text.characters import shorten
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
THREAD_KEYS = ("thread_id", "checkpoint_id", "checkpoint_ns")
MAX_DEPTH = 8  # nested keys that a message names
LANGGRAPH_PREFIX = "__pregel"  # of LangGraph's own keys, which mark the run of a nested graph


def check_run(given: object, config: object, channels: Collection[str], *, keeps: bool = False) -> None:
    """Refuse an input or config that LangGraph would silently ignore. Raises `InputError`.

    With `keeps`, the config must name a thread: the graph has a checkpointer, and no binding names one.
    """
    check_thread(config, keeps=keeps)
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
        if meant is None and not has_known:
            meant = KEY_HINTS.get(key)
        if meant is None and not in_node and _are_settings(given[key]):
            meant = "todo_settings"
        if meant in channels:
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
        if key not in keys and nearest(str(key).lower(), ["todo_settings"], KEY_CUTOFF):
            raise InputError(f"Unknown context key {key!r}. Did you mean 'todo_settings'?")
    if _are_settings(given):
        _refuse_setting(next(iter(given)), "context key")


def _are_settings(given: object) -> bool:
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
    given: object, write: Callable[[Any], object], stored: Collection[str], *, at_exit: bool
) -> None:
    """Refuse an input that the checkpointer cannot serialize. Raises `InputError`.

    LangGraph raises only in the first step of the run, and does not say where the value is. `write` is the
    serializer's function, `stored` the channels that are stored. An input is stored whole, unless checkpoints
    are only written `at_exit`; of the update of a command, only these channels are.
    """
    if isinstance(given, Command):
        update: Any = given.update
        if isinstance(update, Mapping):
            update = {key: update[key] for key in update if key in stored}
        given = {"resume": given.resume, "update": update}
    elif isinstance(given, Mapping) and at_exit:
        given = {key: given[key] for key in given if key in stored}
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
    is_whole = isinstance(given, Overwrite)
    value = given.value if is_whole else given
    for place, one in enumerate(value if isinstance(value, list) else [value], 1):
        if isinstance(one, BaseMessage) and (isinstance(value, list) or not is_whole):
            continue
        why = _conversion_error(one)
        if is_whole:  # no reducer runs, so nothing would turn it into a list of messages
            why = "Overwrite takes a list of messages, as in [HumanMessage('TEXT')]"
        if why is not None:
            why = shorten(why, 200)
            raise InputError(f"Item {place} of 'messages' is not a message ({why}). Example: {EXAMPLE_CALL}.")


def _conversion_error(message: object) -> str | None:
    try:
        convert_to_messages([message])  # type: ignore[list-item]
    except ValidationError as error:
        return str(error.errors(include_url=False, include_context=False)[0]["msg"])
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises
        return " ".join(f"{type(error).__name__}: {error}".partition("For troubleshooting")[0].split())
    return None


def check_thread(config: Any, *, keeps: bool) -> None:
    """Refuse a config that names no thread if the graph `keeps` threads. Raises `InputError`."""
    if not keeps or is_nested_run(config):
        return
    given = config.get("configurable") if isinstance(config, Mapping) else None
    surrounding = ensure_config().get("configurable") or {}
    configurable = {**surrounding, **(given if isinstance(given, Mapping) else {})}
    if all(configurable.get(key) is None for key in THREAD_KEYS):
        raise InputError(
            "An agent with a checkpointer needs a thread: "
            "pass config={'configurable': {'thread_id': 'NAME'}}."
        )


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


def require_thread(config: object) -> Mapping[str, Any]:
    """Return the `configurable` of a config that names a thread. Raises `ArgumentError`."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if isinstance(configurable, Mapping) and configurable.get("thread_id"):
        return configurable
    raise ArgumentError("No thread is named. Pass {'configurable': {'thread_id': 'NAME'}}.")


# -- of a thread that waits for an answer -----------------------------------------------------------------


def is_package_request(value: object) -> bool:
    """Tell whether the value of an interrupt is a question of the package, not of somebody's own tool."""
    if not isinstance(value, Mapping) or value.get("on") not in ("approval", "human"):
        return False
    actions = value.get("action_requests", [value] if value.get("type") == "tool_approval" else None)
    return isinstance(actions, list) and all(isinstance(one, Mapping) and "name" in one for one in actions)


def refuse_dropping(asked: Sequence[tuple[str, Any]]) -> None:
    """Refuse an input while a question of the package waits; `asked` has id and value of each interrupt.

    LangGraph would drop the question, and the results of the calls next to it. Raises `InputError`.
    """
    for key, value in asked:
        if not is_package_request(value):
            continue
        names = [str(one["name"]) for one in value.get("action_requests", [value])]
        answers: list[Any] = ["yes", _build_refusal(value)]
        if len(asked) > 1:
            answers = [{key: answer} for answer in answers]
        yes, no = (f"agent.invoke(Command(resume={answer!r}), config)" for answer in answers)
        raise InputError(
            f"This thread waits for an answer about {shorten(', '.join(names))}, and this input would drop "
            f"the question. Answer first. To accept: {yes}. To reject: {no}."
        )


def _build_refusal(value: Mapping[str, Any]) -> Any:
    """Return the answer that runs nothing of what a question asks about."""
    no, answer = {"type": "reject"}, {"type": "respond", "message": "Not now."}
    if value.get("type") == "tool_approval":
        return no if value["on"] == "approval" else answer
    decisions = []
    for config in value.get("review_configs") or ():
        decisions.append(no if "reject" in config["allowed_decisions"] else answer)
    return {"decisions": decisions}


def refuse_empty(found: CheckpointTuple | None, config: Mapping[str, Any]) -> None:
    """Refuse a run without an input on an empty thread, which LangGraph does without its name."""
    if found is None or not found.checkpoint["channel_versions"]:
        thread = config.get("configurable", {}).get("thread_id")
        why = "the agent has no checkpointer" if thread is None else f"the thread {thread!r} is empty"
        raise EmptyInputError(f"There is nothing to resume, since {why}. Pass another thread or a message.")


def refuse_lost_answer(snapshot: StateSnapshot) -> None:
    """Refuse `Command(resume=…)` on a thread at rest: LangGraph would lose it. Raises `InputError`."""
    if not snapshot.next:
        thread = snapshot.config["configurable"]["thread_id"]
        raise InputError(
            f"Command(resume=…) answers an interrupt, but the thread {thread!r} waits at none. "
            "Send a message."
        )
