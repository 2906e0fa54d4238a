"""An error of the user's own code reaches the caller, and the thread continues afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from agents import END, Make, done, todo, write
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, field_validator

from wakeloop import DialectError, HookError, UserCodeError, create_todo_agent, preset, register_dialect
from wakeloop.dialects import DIALECTS
from wakeloop.dialects.parley import Parley
from wakeloop.testing import ScriptedModel, calls
from wakeloop.todos.operations import Add


class Bug:
    """Raises at its n-th call, and never again."""

    def __init__(self, when: int, error: BaseException) -> None:
        self.left, self.error = when, error

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error


@pytest.mark.parametrize("error", [KeyError("summary"), BaseException("a panic")])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_hook_that_raises(error: BaseException, wrapped: bool, door: str, thread: Make) -> None:
    bug = Bug(2, error)

    def hook(state: Any) -> dict[str, Any]:
        bug()
        return {}

    agent = thread(write("a"), done(1), "bye", pre_model_hook=RunnableLambda(hook) if wrapped else hook)
    with pytest.raises(HookError, match=r"pre_model_hook raised \w+: .*\. Fix it") as raised:
        agent.run("go")
    assert raised.value.__cause__ is bug.error
    assert len(agent.model.requests) == 1
    assert agent.walk(None) == ["call_model", "validate_todos", "call_model", *END]


async def test_c94_the_exit_of_an_asynchronous_hook_does_not_end_the_loop() -> None:
    async def hook(state: Any, config: Any) -> dict[str, Any]:
        raise SystemExit(3)

    agent = create_todo_agent(ScriptedModel("never"), pre_model_hook=hook)
    with pytest.raises(HookError, match=r"pre_model_hook raised SystemExit: 3\. Fix it"):
        await agent.ainvoke({"messages": [("user", "go")]})


class Item(BaseModel):
    """Write one item, whatever it is."""

    what: str

    @field_validator("what")
    @classmethod
    def _look(cls, what: str) -> str:
        BUGS["validator"]()
        return what


BUGS: dict[str, Callable[[], None]] = {}


@dataclass(frozen=True)
class Own(Parley):
    """A custom dialect."""

    name: str = "own"

    def refusal(self, operation: Any, board: Any) -> str | None:
        BUGS["refusal"]()
        return super().refusal(operation, board)

    def render_result(self, outcome: Any) -> str:
        BUGS["render_result"]()
        return super().render_result(outcome)

    def render_nudge(self, todos: Any, goal: str, settings: Any) -> str:
        BUGS["render_nudge"]()
        return super().render_nudge(todos, goal, settings)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(DIALECTS, "own", DIALECTS["parley"])
    register_dialect(Own())
    BUGS.clear()
    for name in ("refusal", "render_result", "render_nudge", "validator"):
        BUGS[name] = Bug(0, KeyError(name))
    return "own"


@pytest.mark.parametrize("name", ["refusal", "render_result", "render_nudge"])
def test_a_dialect_that_raises(name: str, own: str, door: str, thread: Make) -> None:
    error = ZeroDivisionError("no items")
    BUGS[name] = Bug(1, error)
    settings = preset("wakeloop").model_copy(update={"dialect": own})
    agent = thread(write("a"), "Later.", done(1), "bye", settings=settings)
    with pytest.raises(DialectError, match=rf"Own\.{name} raised ZeroDivisionError: no items") as raised:
        agent.run("go")
    assert raised.value.__cause__ is error
    agent.run(None)
    assert agent.todos == [todo(1, "a", "completed")]


def test_a_validator_of_a_dialects_tool_that_raises(own: str, thread: Make) -> None:
    @dataclass(frozen=True)
    class Strict(Own):
        tools: tuple[type[BaseModel], ...] = (Item, *Parley().tools)

        def to_operation(self, call: Any) -> Any:
            if isinstance(call, Item):
                return Add((call.what,))
            return super().to_operation(call)

    register_dialect(Strict())
    BUGS["validator"] = Bug(1, KeyError("x"))
    settings = preset("wakeloop").model_copy(update={"dialect": own})
    again = calls(("Item", {"what": "a"}))
    agent = thread(again, again, done(1), "bye", settings=settings)
    with pytest.raises(UserCodeError, match="parse_call raised KeyError: 'x'"):
        agent.run("go")
    agent.run(None)
    assert agent.todos == [todo(1, "a", "completed")]
