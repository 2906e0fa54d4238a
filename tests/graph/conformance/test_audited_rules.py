"""The described systems to the letter: what an audit of their rules found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from stage import CONFIG, Make

from wakeloop import create_todo_agent, preset, update_todos
from wakeloop.testing import ScriptedModel, calls

LISTS: dict[str, Any] = {
    "lesson": ("todo", "items", {"id": "a", "text": "x"}, "text"),
    "cubepi": ("write_todos", "todos", {"content": "x", "status": "in_progress"}, "content"),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    ("second", "says"),
    [
        ({"status": "failed"}, "item 2: status: input should be 'pending', "),
        ({"status": "failed"}, "'in_progress' or 'completed', not 'failed'"),
        ({"text": 5, "content": 5}, "item 2: {text}: input should be a valid string, not 5"),
        (None, "item 2: an object with {keys} expected, not 'y'"),
    ],
)  # fmt: skip
def test_c42_a_fault_names_the_item_by_its_position_from_1(
    name: str, second: Any, says: str, stage: Make
) -> None:
    called, field, first, text = LISTS[name]
    item = "y" if second is None else {"id": "b", text: "y", "status": "pending", **second}
    quiet = {"guard_retries": 0, "nag_after": 0}
    s = stage(name, quiet).run(calls((called, {field: [first, item]})), "Hm.")
    keys = "id, text and status" if name == "lesson" else "content and status"
    assert says.format(text=text, keys=keys) in s.result
    assert not {"items.", "todos.", "Item", "dictionary"} & set(s.result.replace(":", " ").split())
    assert s.todos == []
    blank = calls((called, {field: [first, {**first, "id": "b", text: " ", "status": "pending"}]}))
    s.run(blank, "Hm.")
    assert "item 2 is blank" in s.result  # the same count in every sentence


def test_lokis_ids_begin_at_1_after_an_edit_that_clears_as_after_its_own_tool() -> None:
    on = preset("loki").model_copy(update={"auto_continue": True, "max_wake_cycles": 0})
    two = calls(("todo__add", {"task": "a"}), ("todo__add", {"task": "b"}))
    model = ScriptedModel(two, "x", two, calls(("todo__clear", {})), two, "x")
    agent = create_todo_agent(model, settings=on, checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    assert update_todos(agent, CONFIG, clear=True) == []
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    results = [json.loads(m.text) for m in agent.get_state(CONFIG).values["messages"] if m.type == "tool"]
    assert [one["id"] for one in results if "id" in one] == [1, 2, 1, 2, 1, 2]
    update_todos(agent, CONFIG, remove=[1, 2])
    assert update_todos(agent, CONFIG, clear=True, add="c") == [
        {"id": 1, "content": "c", "status": "pending"}
    ]


def test_agentparley_a_persons_message_ends_a_wait_for_approval_as_for_an_answer(stage: Make) -> None:
    @tool
    def ask_leave() -> Command[Any]:
        """Ask for permission."""
        return Command(update={"waiting_on": [{"id": "leave", "on": "approval"}]})

    s = stage("agentparley", tools=[ask_leave]).run(calls(("ask_leave", {})), "I have asked.")
    assert (s.session["state"], s.session["on"]) == ("waiting", "approval")
    s.run("Then not.", given="Rather not: use the other one.")
    assert s.ending == ("dormant", "answered")
    assert s.values["waiting_on"] == []
    assert s.model.requests[0][-1].content == "Rather not: use the other one."
