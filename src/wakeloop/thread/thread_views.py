"""Thread views: one form for results, states and snapshots."""

from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from wakeloop.channels.todo_list import check_channels
from wakeloop.errors import ArgumentError
from wakeloop.text.characters import shorten, to_one_line
from wakeloop.text.secrets import redact_text
from wakeloop.text.wording import describe_type

MAX_FAILURE = 500  # characters of an exception's words
INTERRUPT_KEY = "__interrupt__"  # where LangGraph puts the interrupts of a parked run


@dataclass(frozen=True)
class ThreadView:
    """The values of an agent's thread, and what is known about its run.

    `parked`: it waits at an interrupt, for a human or an approval (`waiting_on`). `mid_run`: it has
    unfinished tasks. `is_agent`: the values are the agent's own, not those of a parent that shares some.
    `failure`: the words of the exception that a task of its newest run raised. `cancelled`: a server says
    that it cancelled the run.
    """

    values: Mapping[str, Any]
    parked: bool = False
    mid_run: bool = False
    is_agent: bool = True
    waiting_on: str = "human"
    failure: str | None = None
    cancelled: bool = False


def read_thread(given: object) -> ThreadView:
    """Read a result, a state, a snapshot, or a thread or its state as the LangGraph SDK returns them.

    In a parent's snapshot, taken with `subgraphs=True`, find the agent whose run is not over. Raises
    `ArgumentError` for anything else.
    """
    if isinstance(given, ThreadView):
        return given
    from langgraph.types import GraphOutput, StateSnapshot  # slow to import, and not needed to read rows

    if isinstance(given, GraphOutput):
        asked: Any = given.interrupts
        return ThreadView(
            _read_values(given.value), parked=bool(asked), waiting_on=find_interrupt_kind(asked)
        )
    if isinstance(given, StateSnapshot):
        return _read_tasks(given.values, given.tasks, given.interrupts)
    if not isinstance(given, Mapping):
        raise make_input_error(given)
    if isinstance(given.get("tasks"), list | tuple) and "values" in given:
        return _read_sdk_state(given)
    if "values" in given and "status" in given:
        return _read_sdk_thread(given)
    from wakeloop.state import TodoState

    if given and not given.keys() & {*TodoState.__annotations__, INTERRUPT_KEY}:
        raise make_input_error(given)
    asked = given.get(INTERRUPT_KEY)
    return ThreadView(
        _read_values(given),
        parked=bool(asked),
        is_agent=_has_list(given),
        waiting_on=find_interrupt_kind(asked),
    )


def _read_sdk_state(state: Mapping[str, Any]) -> ThreadView:
    """Read what the SDK's `threads.get_state` returns; older servers list interrupts only under the tasks."""
    asked = list(state.get("interrupts") or ())
    if not asked:
        for task in state["tasks"]:
            asked += _get_field(task, "interrupts") or ()
    return _read_tasks(state["values"], state["tasks"], asked)


def _read_sdk_thread(thread: Mapping[str, Any]) -> ThreadView:
    """Read what the SDK's `threads.get` returns, where interrupts are listed by task."""
    asked, status, error = thread.get("interrupts"), thread["status"], thread.get("error")
    # A server calls a cancelled run interrupted, too; then nothing is asked. Older ones do not list what is.
    cancelled = status == "interrupted" and isinstance(asked, Mapping) and not asked
    if isinstance(asked, Mapping):
        asked = next(iter(asked.values()), None)
    return ThreadView(
        _read_values(thread["values"]),
        parked=status == "interrupted" and not cancelled,
        mid_run=status in ("busy", "error") or cancelled,
        waiting_on=find_interrupt_kind(asked),
        failure=describe_failure(error or "the server says no more") if status == "error" else None,
        cancelled=cancelled,
    )


def _read_tasks(values: Any, tasks: Any, asked: Any) -> ThreadView:
    """Read a thread with tasks. In a parent's, go down to the agent whose run is not over."""
    values, parked, on = _read_values(values), bool(asked), find_interrupt_kind(asked)
    failure = find_failure([_get_field(task, "error") for task in tasks or ()])
    if "todo_ledger" not in values:
        states: list[Any] = []
        agents: list[ThreadView] = []
        for task in tasks or ():
            state = _get_field(task, "state")
            if state is not None:
                states.append(state)
                agents += _find_agents(state)
        if agents:
            return next((one for one in agents if one.parked or one.failure), agents[0])
        if states:  # taken with subgraphs=True, which alone shows what runs inside
            return ThreadView(values, parked, bool(tasks), is_agent=False, waiting_on=on, failure=failure)
    return ThreadView(values, parked, bool(tasks), _has_list(values), on, failure)


def _has_list(values: Mapping[str, Any]) -> bool:
    """Tell whether values may be an agent's own; a parent may share nothing but its messages."""
    return not values or not {"todos", "todo_session"}.isdisjoint(values)


def _find_agents(state: Any) -> Iterator[ThreadView]:
    """Yield the agent in a subgraph's state or below it; a config in place of the state has none."""
    from langgraph.types import StateSnapshot

    if isinstance(state, StateSnapshot) or (isinstance(state, Mapping) and "values" in state):
        found = read_thread(state)
        if "todo_ledger" in found.values:
            yield found


def find_interrupt_kind(interrupts: Any) -> str:
    """Return "approval" if the first interrupt asks for one, else "human"."""
    if not isinstance(interrupts, list | tuple) or not interrupts:
        return "human"
    value = _get_field(interrupts[0], "value")
    return "approval" if isinstance(value, Mapping) and value.get("on") == "approval" else "human"


STOPPED = ("CancelledError", "KeyboardInterrupt", "SystemExit")
"""What a task raises that was stopped from outside: its thread is to be resumed, so it has not failed."""


def find_failure(errors: Iterable[Any]) -> str | None:
    """Return the words of the first exception that a task raised, as a checkpoint or a server has it.

    A task that was cancelled because another one raised does not count, nor one that Ctrl-C cancelled.
    """
    for error in errors:
        name = type(error).__name__ if isinstance(error, BaseException) else str(error).partition("(")[0]
        if error and name not in STOPPED:
            return describe_failure(error)
    return None


def describe_failure(error: object) -> str:
    """Return the words of an exception, which may be stored as its repr, or as a server's mapping."""
    if isinstance(error, BaseException):
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
    elif isinstance(error, Mapping):
        words = f"{error.get('error', 'Error')}: {error.get('message', '')}"
    else:
        words = str(error).removesuffix("()")
        name, _, rest = words.partition("(")
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            told = literal_eval(f"({rest[:-1]},)")  # the arguments of an exception with plain ones
            words = f"{name}: {', '.join(map(str, told))}"
    return shorten(redact_text(to_one_line(words)), MAX_FAILURE)


def _get_field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _read_values(values: object) -> Mapping[str, Any]:
    """Return a thread's values, with messages that JSON holds as dicts converted to messages."""
    if not isinstance(values, Mapping):
        return {}
    check_channels(values)
    messages = values.get("messages") or []
    if any(isinstance(message, Mapping) for message in messages):
        return {**values, "messages": convert_to_messages(messages)}
    return values


def read_messages(given: list[Any]) -> list[Any]:
    """Return a list of messages, converted from JSON if need be. Raises `ArgumentError` for other lists."""
    if all(isinstance(one, BaseMessage) for one in given):
        return given
    try:
        return convert_to_messages(given)
    except Exception:  # noqa: BLE001 - LangChain raises several types for what is not a message
        raise make_input_error(given) from None


def make_input_error(given: object) -> ArgumentError:
    """Return the error for a value that cannot be read as a thread."""
    shown = shorten(repr(given)) if isinstance(given, Mapping | list) else describe_type(given)
    return ArgumentError(
        "Expected a result, a state or a snapshot, as agent.invoke(…) or agent.get_state(config) returns it, "
        f"got {shown}."
    )
