"""The tools actually bound to a request count, whoever changed them and wherever it is in the list."""

from collections.abc import Callable
from typing import Any

import pytest
from laid_over import GO, THREAD, ended, look, looks, over, plan
from langchain.agents.middleware import AgentMiddleware, dynamic_prompt, wrap_model_call
from langchain_core.tools import tool

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.middleware.watched_request import read_bound_tools
from wakeloop.testing import ScriptedModel, calls, says


@tool
def dig(depth: int) -> str:
    """Dig a hole."""
    return f"dug {depth}"


class Digger(AgentMiddleware[Any, Any, Any]):
    """Adds a tool to each request, and runs it."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[*request.tools, dig]))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        own = request.tool_call["name"] == "dig"
        return handler(request.override(tool=dig) if own else request)


@wrap_model_call
def no_look(request: Any, handler: Any) -> Any:
    """Removes the tool that looks."""
    left = [one for one in request.tools if getattr(one, "name", "") != "look"]
    return handler(request.override(tools=left))


@tool("look")
def look_deeper(path: str) -> str:
    """Look deeper."""
    return f"saw into {path}"


class Replacer(AgentMiddleware[Any, Any, Any]):
    """Replaces a tool by another of the same name."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        others = [one for one in request.tools if getattr(one, "name", "") != "look"]
        return handler(request.override(tools=[*others, look_deeper]))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tool=look_deeper))


def results(agent: Any) -> list[str]:
    found = agent.get_state(THREAD).values["messages"]
    return [message.text for message in found if message.type == "tool" and message.name != "write_todos"]


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize(
    ("other", "call", "result"),
    [
        (Digger, ("dig", {"depth": 2}), "dug 2"),
        (lambda: no_look, looks(1), "Error: unknown tool 'look'. Available: write_todos."),
        (Replacer, looks(1), "saw into 1"),
    ],
    ids=["added", "removed", "replaced"],
)
def test_tools_changed_by_another_middleware(
    other: Callable[[], Any], call: Any, result: str, first: bool
) -> None:
    script = [calls(plan("a")), calls(call), calls(plan("a!")), says("bye")]
    ours = WakeLoopMiddleware()
    agent = over(ScriptedModel(*script), *([ours, other()] if first else [other(), ours]))
    agent.invoke(GO, THREAD)
    assert results(agent) == [result]
    assert ended(agent) == ("dormant", "settled", 4)


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_model_chosen_by_another_middleware_is_asked(first: bool) -> None:
    chosen = ScriptedModel(calls(plan("a")), says("stop"), calls(plan("a!")), says("bye"))

    @wrap_model_call
    def choose(request: Any, handler: Any) -> Any:
        return handler(request.override(model=chosen))

    ours = WakeLoopMiddleware()
    agent = over(ScriptedModel(), *([ours, choose] if first else [choose, ours]))
    agent.invoke(GO, THREAD)
    chosen.assert_done()
    assert ended(agent) == ("dormant", "settled", 4)


def test_an_earlier_prompt_is_followed_by_the_lists_instructions() -> None:
    """A later middleware that sets the whole prompt replaces them, as with `TodoListMiddleware`."""

    @dynamic_prompt
    def speak(request: Any) -> str:
        return "Speak like a pirate."

    model = ScriptedModel(says("Arr."))
    over(model, speak, WakeLoopMiddleware()).invoke(GO, THREAD)
    assert model.requests[0][0].text.startswith("Speak like a pirate.\n\n")
    assert "write_todos" in model.requests[0][0].text


def test_the_names_of_bound_tools_in_every_clients_form() -> None:
    forms: list[Any] = [
        {"type": "function", "function": {"name": "look"}},
        {"name": "look", "input_schema": {}},
        {"type": "function", "name": "look"},
        {"toolSpec": {"name": "look"}},
        {"function_declarations": [{"name": "look"}]},
    ]
    for form in forms:
        assert [*read_bound_tools({"tools": [form]})] == ["look"]
    assert read_bound_tools({}) == {}
    assert look("x") == "saw x"
