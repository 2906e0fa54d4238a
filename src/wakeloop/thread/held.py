"""What a caller holds of a thread: result, state, snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from wakeloop.channels.stored_values import check_channels
from wakeloop.errors import ArgumentError
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type

ASKED = "__interrupt__"  # where LangGraph puts the questions of a run that is parked


@dataclass(frozen=True)
class Held:
    """The values of one thread of an agent, and what is known of its run.

    `parked` says that it waits at an interrupt (`on` a human or an approval), `midway` that it has tasks that
    are not done, `whole` that the values are the agent's own and not those of a parent that shares some.
    """

    values: Mapping[str, Any]
    parked: bool = False
    midway: bool = False
    whole: bool = True
    on: str = "human"


def held(given: object) -> Held:
    """Read a result, a state, a snapshot, a thread's state as the SDK has it, or a parent's snapshot.

    Of a parent's, taken with `subgraphs=True`, the agent's own is found where its run is not over. Raises
    `ArgumentError` for anything else.
    """
    if isinstance(given, Held):
        return given
    from langgraph.types import GraphOutput, StateSnapshot  # what is read from rows does without

    if isinstance(given, GraphOutput):
        return Held(_values(given.value), parked=bool(given.interrupts), on=whom(given.interrupts))
    if isinstance(given, StateSnapshot):
        return _of_thread(given.values, given.tasks, given.interrupts)
    if not isinstance(given, Mapping):
        raise nothing_of(given)
    if isinstance(given.get("tasks"), list | tuple) and "values" in given:
        tasks = given["tasks"]
        asked = given.get("interrupts") or [one for task in tasks for one in _part(task, "interrupts") or ()]
        return _of_thread(given["values"], tasks, asked)
    if "values" in given and "status" in given:  # the SDK's thread
        asks = given["status"] == "interrupted"
        midway = given["status"] in ("busy", "error")
        by_task = given.get("interrupts")
        asked = next(iter(by_task.values()), None) if isinstance(by_task, Mapping) else by_task
        return Held(_values(given["values"]), parked=asks, midway=midway, on=whom(asked))
    from wakeloop.state import TodoState

    if given and not given.keys() & {*TodoState.__annotations__, ASKED}:
        raise nothing_of(given)
    asked = given.get(ASKED)
    return Held(_values(given), parked=bool(asked), whole=_has_list(given), on=whom(asked))


def _of_thread(values: Any, tasks: Any, asked: Any) -> Held:
    """Read a thread with tasks; where it is a parent's, go down to the agent whose run is not over."""
    values, parked, on = _values(values), bool(asked), whom(asked)
    if "todo_ledger" not in values:
        below = [_part(task, "state") for task in tasks or ()]
        inner = [found for state in below if state is not None for found in _agents(state)]
        if inner:
            return next((one for one in inner if one.parked), inner[0])
        if any(state is not None for state in below):  # only where its state is found
            return Held(values, parked, midway=bool(tasks), whole=False, on=on)
    return Held(values, parked, midway=bool(tasks), whole=_has_list(values), on=on)


def _has_list(values: Mapping[str, Any]) -> bool:
    """Tell whether values may be an agent's own: a parent may share its messages alone."""
    return not values or not {"todos", "todo_session"}.isdisjoint(values)


def _agents(state: Any) -> Iterator[Held]:
    """Yield the agents at or beneath a subgraph's state; a mere address has none."""
    from langgraph.types import StateSnapshot

    if isinstance(state, StateSnapshot) or (isinstance(state, Mapping) and "values" in state):
        found = held(state)
        if "todo_ledger" in found.values:
            yield found


def whom(asked: Any) -> str:
    """Return whom the first of some interrupts asks: one that says so is believed."""
    value = _part(asked[0], "value") if isinstance(asked, list | tuple) and asked else None
    return "approval" if isinstance(value, Mapping) and value.get("on") == "approval" else "human"


def _part(task: Any, name: str) -> Any:
    return task.get(name) if isinstance(task, Mapping) else getattr(task, name, None)


def _values(values: object) -> Mapping[str, Any]:
    """Return the values of a thread; messages as JSON has them become messages."""
    if not isinstance(values, Mapping):
        return {}
    check_channels(values)
    messages = values.get("messages") or []
    if any(isinstance(message, Mapping) for message in messages):
        return {**values, "messages": convert_to_messages(messages)}
    return values


def messages_of(given: list[Any]) -> list[Any]:
    """Return messages, also those that JSON holds. Raises `ArgumentError` for other lists."""
    if all(isinstance(one, BaseMessage) for one in given):
        return given
    try:
        return convert_to_messages(given)
    except Exception:  # noqa: BLE001 - whatever it is, it holds no answer
        raise nothing_of(given) from None


def nothing_of(given: object) -> ArgumentError:
    """Say that a value is nothing of a thread."""
    told = shorten(repr(given)) if isinstance(given, Mapping | list) else describe_type(given)
    return ArgumentError(
        f"{told[0].upper()}{told[1:]} is neither a result, a state nor a snapshot: pass what agent.invoke(…) "
        "or agent.get_state(config) has returned."
    )
