"""What a caller holds of a thread: result, state, snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import convert_to_messages
from langgraph.types import GraphOutput, StateSnapshot

from wakeloop.errors import ArgumentError
from wakeloop.state import check_channels

ASKED = "__interrupt__"  # where LangGraph puts the questions of a run that is parked


@dataclass(frozen=True)
class Held:
    """The values of one thread of an agent, and what is known of its run.

    `parked` says that it waits at an interrupt, `midway` that it has tasks which are not done, `whole` that
    the values are the agent's own and not those of a parent that shares some of them.
    """

    values: Mapping[str, Any]
    parked: bool = False
    midway: bool = False
    whole: bool = True


def held(given: object) -> Held:
    """Read a result, a state, a snapshot, a thread's state as the SDK has it, or a parent's snapshot.

    Of a parent's, taken with `subgraphs=True`, the agent's own is found where its run is not over. Raises
    `ArgumentError` for anything else.
    """
    if isinstance(given, GraphOutput):
        return Held(_values(given.value), parked=bool(given.interrupts))
    if isinstance(given, StateSnapshot):
        return _of_thread(given.values, given.tasks, parked=bool(given.interrupts))
    if isinstance(given, list):
        return Held({"messages": given})
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{_kind(given)} is neither a result, a state nor a snapshot: pass what agent.invoke(…) or "
            "agent.get_state(config) has returned."
        )
    if isinstance(given.get("tasks"), list | tuple) and "values" in given:
        tasks = given["tasks"]
        asked = given.get("interrupts") or [one for task in tasks for one in _part(task, "interrupts") or ()]
        return _of_thread(given["values"], tasks, parked=bool(asked))
    if "values" in given and "status" in given:  # the SDK's thread
        asks = given["status"] == "interrupted"
        return Held(_values(given["values"]), parked=asks, midway=given["status"] in ("busy", "error"))
    return Held(_values(given), parked=bool(given.get(ASKED)))


def _of_thread(values: Any, tasks: Any, *, parked: bool) -> Held:
    """Read a thread with tasks; where it is a parent's, go down to the agent whose run is not over."""
    values = _values(values)
    if "todo_ledger" not in values:
        below = [_part(task, "state") for task in tasks or ()]
        inner = [found for state in below if state is not None for found in _agents(state)]
        if inner:
            return next((one for one in inner if one.parked), inner[0])
        if any(state is not None for state in below):  # only where its state is found
            return Held(values, parked, midway=bool(tasks), whole=False)
    return Held(values, parked, midway=bool(tasks))


def _agents(state: Any) -> Iterator[Held]:
    """Yield the agents at or beneath a subgraph's state; a mere address has none."""
    if isinstance(state, StateSnapshot) or (isinstance(state, Mapping) and "values" in state):
        found = held(state)
        if "todo_ledger" in found.values:
            yield found


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


def _kind(given: object) -> str:
    return "None" if given is None else f"A {type(given).__name__}"
