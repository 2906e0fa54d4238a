"""Case C04 under the views: a call without a list never breaks a display."""

import io
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from rig import close, write

from wakeloop import create_todo_agent
from wakeloop.display.live_view import LiveView
from wakeloop.display.screen import STREAM_MODES, PlainView, Screen
from wakeloop.testing import ScriptedModel, calls, malformed_call, wire_faults

SENT: dict[str, Any] = {
    "nothing": calls(("todo_write", {})),
    "null": calls(("todo_write", {"items": None})),
    "an object": calls(("todo_write", {"items": {"content": "a"}})),
    "a string": calls(("todo_write", {"items": "not json"})),
    "numbers": calls(("todo_write", {"items": [1, None, {}]})),
    "no id": calls(("todo_update", {"status": "done"})),
    "an object as id": calls(("todo_update", {"id": {"a": [1]}, "status": None})),
    "half a call": calls(malformed_call("todo_write", '{"items": ["a", ')),
    "no arguments": calls(malformed_call("todo_write", None)),
}


@pytest.mark.parametrize("view", [PlainView, LiveView])
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_c04_no_list_at_all_under_the_views(view: Any, sent: Any) -> None:
    model = ScriptedModel(write("a"), sent, close(1), "Done.", "Second answer.")
    agent = create_todo_agent(model)
    out = io.StringIO()
    screen = Screen(todo_tools=frozenset({"todo_write", "todo_update", "todo_list"}))
    with view(screen, out) as shown:
        for text in ("go", "again"):
            for mode, data in agent.stream(
                {"messages": [HumanMessage(text)]}, stream_mode=list(STREAM_MODES)
            ):
                shown.feed(mode, data)
    model.assert_done()
    assert wire_faults(model.requests) == []
    told = out.getvalue()
    assert told.count("list refused: ") == 1
    assert told.index("list refused: ") < told.index("Done.") < told.index("Second answer.")
    assert [todo["status"] for todo in screen.todos] == ["completed"]
