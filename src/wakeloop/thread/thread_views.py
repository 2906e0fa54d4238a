"""What a caller holds of a thread: result, state, snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from wakeloop.channels.stored_values import check_channels
from wakeloop.errors import ArgumentError
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type

INTERRUPT_KEY = "__interrupt__"  # where LangGraph puts the questions of a run that is parked


@dataclass(frozen=True)
class ThreadView:
    """The values of one thread of an agent, and what is known of its run.

    `parked` says that it waits at an interrupt (`on` a human or an approval), `midway` that it has tasks that
    are not done, `whole` that the values are the agent's own and not those of a parent that shares some.
    """

    values: Mapping[str, Any]
    parked: bool = False
    mid_run: bool = False
    is_agent: bool = True
    waiting_on: str = "human"


def read_thread(given: object) -> ThreadView:
    """Read a result, a state, a snapshot, a thread's state as the SDK has it, or a parent's snapshot.

    Of a parent's, taken with `subgraphs=True`, the agent's own is found where its run is not over. Raises
    `ArgumentError` for anything else.
    """
    if isinstance(given, ThreadView):
        return given
    from langgraph.types import GraphOutput, StateSnapshot  # what is read from rows does without

    if isinstance(given, GraphOutput):
        return ThreadView(
            _read_values(given.value),
            parked=bool(given.interrupts),
            waiting_on=find_interrupt_kind(given.interrupts),
        )
    if isinstance(given, StateSnapshot):
        return _read_tasks(given.values, given.tasks, given.interrupts)
    if not isinstance(given, Mapping):
        raise make_input_error(given)
    if isinstance(given.get("tasks"), list | tuple) and "values" in given:
        tasks = given["tasks"]
        asked = given.get("interrupts") or [
            one for task in tasks for one in _get_field(task, "interrupts") or ()
        ]
        return _read_tasks(given["values"], tasks, asked)
    if "values" in given and "status" in given:  # the SDK's thread
        asks = given["status"] == "interrupted"
        midway = given["status"] in ("busy", "error")
        by_task = given.get("interrupts")
        asked = next(iter(by_task.values()), None) if isinstance(by_task, Mapping) else by_task
        return ThreadView(
            _read_values(given["values"]), parked=asks, mid_run=midway, waiting_on=find_interrupt_kind(asked)
        )
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


def _read_tasks(values: Any, tasks: Any, asked: Any) -> ThreadView:
    """Read a thread with tasks; where it is a parent's, go down to the agent whose run is not over."""
    values, parked, on = _read_values(values), bool(asked), find_interrupt_kind(asked)
    if "todo_ledger" not in values:
        below = [_get_field(task, "state") for task in tasks or ()]
        inner = [found for state in below if state is not None for found in _find_agents(state)]
        if inner:
            return next((one for one in inner if one.parked), inner[0])
        if any(state is not None for state in below):  # only where its state is found
            return ThreadView(values, parked, mid_run=bool(tasks), is_agent=False, waiting_on=on)
    return ThreadView(values, parked, mid_run=bool(tasks), is_agent=_has_list(values), waiting_on=on)


def _has_list(values: Mapping[str, Any]) -> bool:
    """Tell whether values may be an agent's own: a parent may share its messages alone."""
    return not values or not {"todos", "todo_session"}.isdisjoint(values)


def _find_agents(state: Any) -> Iterator[ThreadView]:
    """Yield the agents at or beneath a subgraph's state; a mere address has none."""
    from langgraph.types import StateSnapshot

    if isinstance(state, StateSnapshot) or (isinstance(state, Mapping) and "values" in state):
        found = read_thread(state)
        if "todo_ledger" in found.values:
            yield found


def find_interrupt_kind(asked: Any) -> str:
    """Return whom the first of some interrupts asks: one that says so is believed."""
    value = _get_field(asked[0], "value") if isinstance(asked, list | tuple) and asked else None
    return "approval" if isinstance(value, Mapping) and value.get("on") == "approval" else "human"


def _get_field(task: Any, name: str) -> Any:
    return task.get(name) if isinstance(task, Mapping) else getattr(task, name, None)


def _read_values(values: object) -> Mapping[str, Any]:
    """Return the values of a thread; messages as JSON has them become messages."""
    if not isinstance(values, Mapping):
        return {}
    check_channels(values)
    messages = values.get("messages") or []
    if any(isinstance(message, Mapping) for message in messages):
        return {**values, "messages": convert_to_messages(messages)}
    return values


def read_messages(given: list[Any]) -> list[Any]:
    """Return messages, also those that JSON holds. Raises `ArgumentError` for other lists."""
    if all(isinstance(one, BaseMessage) for one in given):
        return given
    try:
        return convert_to_messages(given)
    except Exception:  # noqa: BLE001 - whatever it is, it holds no answer
        raise make_input_error(given) from None


def make_input_error(given: object) -> ArgumentError:
    """Say that a value is nothing of a thread."""
    told = shorten(repr(given)) if isinstance(given, Mapping | list) else describe_type(given)
    return ArgumentError(
        f"{told[0].upper()}{told[1:]} is neither a result, a state nor a snapshot: pass what agent.invoke(…) "
        "or agent.get_state(config) has returned."
    )
