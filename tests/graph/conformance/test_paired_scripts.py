"""Scripts that settle their list: equal results with `TodoListMiddleware` and with the middleware."""

from random import Random
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from levels import Level

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.slow


def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def write(items: dict[str, str]) -> Any:
    todos = [{"content": content, "status": status} for content, status in items.items()]
    return "write_todos", {"todos": todos}


def make_script(rng: Random) -> list[Any]:
    """Return replies of a model that plans, works, replans, makes mistakes, and finally settles its list."""
    items = dict.fromkeys(rng.sample("abcdef", rng.randint(1, 4)), "pending")
    script = [calls(write(items), text=rng.choice(["", "I plan."]))]
    while set(items.values()) != {"completed"}:
        step = rng.random()
        current = rng.choice([content for content, status in items.items() if status != "completed"])
        if step < 0.3:
            paths = [f"{len(script)}/{number}" for number in range(rng.randint(1, 3))]
            script.append(calls(*[("look", {"path": path}) for path in paths]))
        elif step < 0.4:  # a new plan
            items = {**items, rng.choice("uvwxyz"): "pending"}
            script.append(calls(write(items)))
        elif step < 0.5:  # both refuse two lists in one reply
            script.append(calls(write(items), write(items)))
        else:
            items[current] = "completed" if items[current] == "in_progress" else "in_progress"
            more = [("look", {"path": f"{len(script)}"})] if rng.random() < 0.3 else []
            script.append(calls(write(items), *more))
    return [*script, says("All is done.")]


def outcome(build: Any, seed: int, layer: Any) -> Any:
    """Return what a caller gets: list, answer, results of work, and the number of requests."""
    model = ScriptedModel(*make_script(Random(seed)))
    result = build(model, [look], middleware=[layer]).invoke({"messages": [("user", "Work.")]})
    model.assert_done()
    todos = [(todo["content"], todo["status"]) for todo in result["todos"]]
    messages = result["messages"]
    results = {message.tool_call_id: message.text for message in messages if message.type == "tool"}
    made = [call for message in messages if message.type == "ai" for call in message.tool_calls]
    work = [results[call["id"]] for call in made if call["name"] == "look"]
    words = [message.text for message in messages if message.type in ("human", "ai")]
    return todos, words, work, len(model.requests)


@pytest.mark.parametrize("build", [create_agent, create_deep_agent], ids=["create_agent", "deepagents"])
def test_scripts_have_the_same_outcome(build: Any) -> None:
    for seed in range(Level.share(24)):
        assert outcome(build, seed, WakeLoopMiddleware()) == outcome(build, seed, TodoListMiddleware()), seed
