"""Cases C25 to C27: questions, tools that raise, steps."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from rig import Rig, close, marks, results, users, write
from shared_tools import ask

from wakeloop import create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, wire_faults


def editing() -> tuple[list[str], Any]:
    ran: list[str] = []

    @tool
    def edit(what: str = "x") -> str:
        """Change something."""
        ran.append(what)
        return f"edited {what}"

    return ran, edit


# -- C25 -------------------------------------------------------------------------------------------------


def test_c25_interrupt_then_a_plain_message(kept: Rig) -> None:
    ran, edit = editing()
    both = calls(("ask", {"question": "?"}, "1"), ("edit", {}, "2"), ("todo_write", {"items": ["b"]}, "3"))
    kept.build(write("a"), both, tools=[ask, edit])
    kept.run("go")
    assert kept.session["reason"] == "interrupted"
    kept.then(close(1), "As you like.")
    kept.run("never mind")
    kept.model.assert_done()
    assert ran == ["x"]
    request = kept.model.requests[0]
    assert [m.type for m in request] == [
        "system",
        "human",
        "ai",
        "tool",
        "ai",
        "tool",
        "tool",
        "tool",
        "ai",
        "human",
        "human",
    ]
    synthetic = request[5:8]
    assert sorted(m.tool_call_id for m in synthetic if isinstance(m, ToolMessage)) == ["1", "2", "3"]
    told = {m.tool_call_id: str(m.content) for m in synthetic if isinstance(m, ToolMessage)}
    assert "may or may not have run" in told["1"]
    assert "may or may not have run" in told["2"]
    assert "nothing was stored" in told["3"]
    assert marks(request) == [*["repair"] * 4, "activate"]
    assert request[-2].content == "never mind"
    state = kept.messages
    assert [m.id for m in state[: len(request) - 1]] == [m.id for m in request[1:]]
    assert [todo["content"] for todo in kept.todos] == ["a"]
    kept.follow_up()


def test_c25_the_resume_before_that_still_works(kept: Rig) -> None:
    ran, edit = editing()
    both = calls(("ask", {"question": "?"}, "1"), ("edit", {}, "2"), ("todo_write", {"items": ["b"]}, "3"))
    kept.build(write("a"), both, close(1, 2), "Done.", tools=[ask, edit])
    kept.run("go")
    kept.run(Command(resume="yes"))
    kept.model.assert_done()
    assert ran == ["x"]
    told = {m.tool_call_id: str(m.content) for m in results(kept.messages)}
    assert (told["1"], told["2"]) == ("yes", "edited x")
    assert marks(kept.messages) == []
    assert [todo["content"] for todo in kept.todos] == ["a", "b"]


def test_c25_repeated_questions(kept: Rig) -> None:
    """Each plain message closes its own question; the history stays legal."""
    kept.build(write("a"), calls(("ask", {"question": "1"})), tools=[ask])
    kept.run("go")
    for n in range(3):
        kept.then(calls(("ask", {"question": str(n)})))
        kept.run(f"no {n}")
    assert wire_faults(kept.requests) == []
    assert users(kept.messages) == ["go", "no 0", "no 1", "no 2"]
    kept.follow_up()


def test_c25_without_a_saver_the_caller_sends_the_open_calls_back(bare: Rig) -> None:
    """The run ends at the question, and nothing can answer it; its history can be sent again."""
    ran, edit = editing()
    both = calls(("ask", {"question": "?"}, "1"), ("edit", {}, "2"), ("todo_write", {"items": ["b"]}, "3"))
    bare.build(write("a"), both, tools=[ask, edit])
    bare.run("go")
    bare.model.assert_done()
    assert bare.session["state"] == "running"
    bare.then(close(1, 2), "As you like.")
    bare.run("never mind")
    bare.model.assert_done()
    assert ran == ["x"]
    told = {m.tool_call_id: str(m.content) for m in results(bare.model.requests[0])}
    assert "may or may not have run" in told["1"]
    assert told["2"] == "edited x"  # finished results came out with the run
    assert told["3"].startswith("Stored 1 item")
    assert marks(bare.model.requests[0]) == ["repair", "repair"]
    assert users(bare.messages) == ["go", "never mind"]
    bare.follow_up()


# -- C26 -------------------------------------------------------------------------------------------------


@tool
def bad_value() -> str:
    """Raise a ValueError."""
    raise ValueError("no such thing: 7")


@tool
def bad_tool() -> str:
    """Raise a ToolException."""
    raise ToolException("the service says no")


@tool
def nothing_said() -> str:
    """Raise an exception without a message."""
    raise RuntimeError


@tool
def huge() -> str:
    """Raise a very long exception."""
    raise ValueError("x" * 100_000)


@tool
def see(todos: Annotated[list[Any], InjectedState("todos")]) -> str:
    """See the list."""
    return f"{len(todos)} items"


@tool
def lacking(what: Annotated[Any, InjectedState("no_such_channel")]) -> str:
    """Ask for a channel that does not exist."""
    return "never"


RAISING = {
    "ValueError": (bad_value, "no such thing: 7"),
    "ToolException": (bad_tool, "the service says no"),
    "without a message": (nothing_said, "RuntimeError"),
    "huge": (huge, "ValueError"),
    "unknown channel": (lacking, "no_such_channel"),
}


@pytest.mark.parametrize(("raising", "text"), RAISING.values(), ids=RAISING)
def test_c26_tools_that_raise(rig: Rig, raising: Any, text: str) -> None:
    ran, edit = editing()
    rig.build(
        write("a"),
        calls((raising.name, {}, "bad"), ("edit", {}, "good"), ("unknown", {}, "what")),
        close(1),
        "Done.",
        tools=[raising, edit],
    )
    rig.run("go")
    rig.model.assert_done()
    assert ran == ["x"]
    found = {m.tool_call_id: m for m in results(rig.messages)}
    assert found["bad"].status == "error"
    assert str(found["bad"].content).startswith("Error: ")
    assert text in str(found["bad"].content)
    assert len(str(found["bad"].content)) <= 1000
    assert "Traceback" not in str(found["bad"].content)
    assert (found["good"].status, found["good"].content) == ("success", "edited x")
    assert found["what"].status == "error"
    assert "'unknown'" in str(found["what"].content)
    assert rig.ending == ("dormant", "settled", 0)


def test_c26_injected_state_on_a_fresh_thread(rig: Rig) -> None:
    rig.build(calls(("see", {})), write("a"), calls(("see", {})), close(1), "Done.", tools=[see])
    rig.run("go")
    rig.model.assert_done()
    assert [m.content for m in results(rig.messages) if m.name == "see"] == ["0 items", "1 items"]


def test_c26_arguments_that_do_not_fit(rig: Rig) -> None:
    @tool
    def strict(number: int) -> str:
        """Take a number."""
        return str(number)

    rig.build(
        calls(("strict", {"number": "many"}), ("strict", {}), ("strict", {"number": "3"})),
        "Done.",
        tools=[strict],
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(out["messages"])] == ["error", "error", "success"]
    assert all("number" in str(m.content) for m in results(out["messages"])[:2])


def test_c26_an_interrupt_passes_through_next_to_a_failure(kept: Rig) -> None:
    kept.build(calls(("bad_value", {}), ("ask", {"question": "?"}, "q")), "Done.", tools=[bad_value, ask])
    kept.run("go")
    assert kept.session["reason"] == "interrupted"
    kept.run(Command(resume="yes"))
    kept.model.assert_done()
    assert {m.name: m.status for m in results(kept.messages)} == {"bad_value": "error", "ask": "success"}


# -- C27 -------------------------------------------------------------------------------------------------


def endless() -> Any:
    """Yield new calls forever."""
    n = 0
    while True:
        n += 1
        yield calls(("edit", {"what": str(n)}))


@pytest.mark.parametrize("planned", [True, False])
def test_c27_endless_calls_park(rig: Rig, planned: bool) -> None:
    ran, edit = editing()
    script = endless()
    rig.build(*([write("a")] if planned else []), *(next(script) for _ in range(20)), tools=[edit])
    rig.run("go", recursion_limit=12)
    assert rig.ending == ("idle" if planned else "dormant", "step_limit", 0)
    assert len(ran) == len([m for m in results(rig.messages) if m.name == "edit"])
    assert len(ran) >= 2
    rig.follow_up()


HABITS = {
    "calls": [calls(("edit", {}))],
    "call and stop": [calls(("edit", {})), "stop"],
    "stops": ["stop"],
    "two calls and stop": [calls(("edit", {})), calls(("edit", {})), "stop"],
}
LOOPS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "wakes": ({"max_idle_wakes": 0}, {"step_limit"}),
    "corrections": ({"max_wake_cycles": 0, "guard_retries": 50}, {"step_limit", "disabled"}),
    "explanation": (
        {"max_wake_cycles": 0, "guard_retries": 2, "on_guard_exhausted": "block"},
        {"step_limit", "disabled", "guard_blocked"},
    ),
}


@pytest.mark.parametrize("limit", range(5, 20))
@pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)
@pytest.mark.parametrize(("changed", "reasons"), LOOPS.values(), ids=LOOPS)
def test_c27_no_limit_from_5_raises(
    limit: int, habit: list[Any], changed: dict[str, Any], reasons: set[str]
) -> None:
    _, edit = editing()
    model = ScriptedModel([write("a"), *(habit * 30)])
    settings = preset("wakeloop").model_copy(update={"nag_after": 1, "nag_every": 1, **changed})
    agent = create_todo_agent(model, [edit], settings=settings)
    out = agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": limit})
    assert out["todo_session"]["reason"] in reasons
    assert out["todo_session"]["state"] == "idle"
    assert wire_faults(model.requests) == []


def turns_of(rounds: int, turns: int) -> list[Any]:
    """Yield a plan, then turns that make this many new calls each and stop."""
    work = endless()
    return [write("a"), *(step for _ in range(turns) for step in (*islice(work, rounds), "stop"))]


EVERY_WAKE = preset("wakeloop").model_copy(
    update={"max_idle_wakes": 0, "nag_after": 0, "guard_retries": 0, "max_requests": None}
)


def test_c27_25_wakes_take_the_same_steps_through_every_door(rig: Rig) -> None:
    """A round is two supersteps, a turn's end two, a wake one, whatever the door and the saver."""
    _, edit = editing()
    rig.build(turns_of(4, 26), tools=[edit], settings=EVERY_WAKE)
    enough = 1 + 2 + 26 * (4 * 2 + 2) + 25
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "wake_budget", 25)
    assert len(rig.model.requests) == 1 + 26 * 5
    if rig.keeps:
        assert rig.snapshot.metadata["step"] == enough
    rig.follow_up()


@pytest.mark.parametrize("bound", [10, 100])
def test_c27_25_wakes_of_100_rounds_fit_the_default_limit(tmp_path: Path, bound: int) -> None:
    """Nobody sets a limit: 5,280 supersteps for 100 rounds. A hook keeps the requests short."""

    def short(state: dict[str, Any]) -> dict[str, Any]:
        first, *_, last = [*state["messages"][:1], *state["messages"]]
        return {"llm_input_messages": [first, last] if last.type == "human" else [first]}

    _, edit = editing()
    rig = Rig("invoke", "none", tmp_path / "unused")
    rig.build(turns_of(bound, 26), tools=[edit], settings=EVERY_WAKE, pre_model_hook=short)
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "wake_budget", 25)
    assert len(rig.model.requests) == 1 + 26 * (bound + 1)
    rig.follow_up()
    assert wire_faults(rig.requests) == []
    rig.shut()
