"""What channels hold after writes: the state's reducers, without its graph."""

from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from wakeloop import TodoState
from wakeloop.channels.reducers import BATCH_REDUCERS, SINGLE_REDUCERS, apply_writes
from wakeloop.channels.todo_list import merge_one_write, merge_todos
from wakeloop.middleware.agent_state import ChangesState, WakeLoopState
from wakeloop.platform.channels import CheapDeltaChannel, CheapReducerChannel

A, B = ({"id": n, "content": text, "status": "pending"} for n, text in ((1, "a"), (2, "b")))
HI, HO = HumanMessage("hi", id="hi"), AIMessage("ho", id="ho")


def channels_of(schema: type[Any]) -> dict[str, Any]:
    """Return the channels that a state declares, by name."""
    hints = get_type_hints(schema, include_extras=True)
    marks = {
        name: getattr(hint, "__metadata__", ()) or getattr(hint.__args__[0], "__metadata__", ())
        for name, hint in hints.items()
        if hasattr(hint, "__args__")
    }
    return {
        name: of[-1]
        for name, of in marks.items()
        if of and isinstance(of[-1], CheapDeltaChannel | CheapReducerChannel)
    }


@pytest.mark.parametrize("schema", [WakeLoopState, ChangesState, TodoState])
def test_each_channel_of_a_state_is_folded_by_its_own_reducer(schema: type[Any]) -> None:
    channels = channels_of(schema)
    at_once = {name: of.reducer for name, of in channels.items() if isinstance(of, CheapDeltaChannel)}
    one_by_one = {
        name: (of.typ, of.operator) for name, of in channels.items() if isinstance(of, CheapReducerChannel)
    }
    if one_by_one.get("todos") == (list, merge_one_write):  # which is one write of the same value
        del one_by_one["todos"]
        at_once["todos"] = merge_todos
    assert at_once == {name: BATCH_REDUCERS[name] for name in at_once}
    assert one_by_one == {name: SINGLE_REDUCERS[name] for name in one_by_one}
    if schema is TodoState:
        assert (at_once.keys(), one_by_one.keys()) == (BATCH_REDUCERS.keys(), SINGLE_REDUCERS.keys())


@pytest.mark.parametrize(
    ("channel", "value", "writes", "held"),
    [
        ("messages", None, [[HI], HO], [HI, HO]),
        ("messages", [HI], [Overwrite([HO])], [HO]),
        ("messages", [HI], [Overwrite(None), [HO]], [HO]),
        ("todos", [A], [[B], {"put": [A]}], [B, A]),
        ("todos", [A], [{"put": [B]}, Overwrite([A])], [A]),
        ("todo_goal", None, [], ""),
        ("todo_goal", "old", ["new", None], "new"),
        ("todo_settings", {"nag_after": 1}, [{}], {}),
        ("waiting_on", None, [["a"], ["b"], {"drop": ["a"]}], ["b"]),
        ("todo_session", {"state": "running"}, [], {"state": "running"}),
        ("todo_session", None, [{"state": "running"}, {"state": "idle"}], {"state": "idle"}),
    ],
)
def test_a_channel_after_its_writes(channel: str, value: Any, writes: list[Any], held: Any) -> None:
    assert apply_writes(channel, value, writes) == held


def test_a_first_goal_replaces_no_goal() -> None:
    assert apply_writes("todo_goal", None, ["ship"]).before == ""  # type: ignore[attr-defined]
