"""Events that come in: bad ones are refused and do not stay."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import InputError, create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, says

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (["x"], r"todo_inbox must be a list of events, not \['x'\]"),
        (5, "todo_inbox must be a list of events, not 5"),
        ({"kind": "cron"}, "todo_inbox must be a list of events"),
        ([None], "todo_inbox must be a list of events"),
        ([{"kind": []}], r"todo_inbox event 1: kind must be a text, not \[\]"),
        ([{"kind": "cron", "text": "a"}, {"kind": "cron", "id": ["x"]}], "event 2: id must be a text, not "),
        ([{"kind": "human", "text": 5}], "event 1: text must be a text, not 5"),
    ],
)
def test_a_bad_event_is_refused_once_and_does_not_stay(events: Any, why: str) -> None:
    model = ScriptedModel([says("one"), says("two")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "first")]}, THREAD)
    before = session_of(agent.get_state(THREAD))
    for given in ({"todo_inbox": events}, None):
        with pytest.raises(InputError, match=why):
            agent.invoke(given, THREAD)
    assert session_of(agent.get_state(THREAD)) == before
    assert agent.invoke({"messages": [("user", "again")]}, THREAD)["messages"][-1].text == "two"
    assert len(model.requests) == 2


def test_settings_that_are_no_mapping_are_named_as_such() -> None:
    agent = create_todo_agent(ScriptedModel([]))
    with pytest.raises(InputError, match="todo_settings must be a mapping of setting to value, not 5"):
        agent.invoke({"messages": [("user", "go")], "todo_settings": 5})
