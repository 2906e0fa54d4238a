"""Many threads over one agent, many calls in one round."""

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rig import close

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}
GO: Any = {"messages": [("user", "go")]}


def test_heads_of_many_kinds_at_once() -> None:
    """The memory of system prompts is bounded and shared: no thread may find another's, or none."""
    agent_model = ScriptedModel([lambda request: str(request[0].content).split("\n")[0]] * 600)
    agent = create_todo_agent(agent_model)

    def run(number: int) -> bool:
        out = agent.invoke({"messages": [("system", f"head {number}"), ("user", "q")]})
        return answer_of(out) == f"head {number}"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, [n % 150 for n in range(600)]))
    agent_model.assert_done()


# -- many calls in one round -----------------------------------------------------------------------------


class Work:
    """Tools that count, one of which asks."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.lock = Lock()

    def note(self, what: str) -> None:
        with self.lock:
            self.ran[what] += 1

    @property
    def tools(self) -> list[Any]:
        @tool
        def step(name: str) -> str:
            """Do a step."""
            self.note(name)
            return f"did {name}"

        @tool
        def ask(question: str) -> str:
            """Ask the person."""
            self.note(f"ask {question}")
            return str(interrupt(question))

        return [step, ask]


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_finished_sibling_is_not_run_again(door: str) -> None:
    work = Work()
    many = calls(
        *(("step", {"name": f"s{n}"}) for n in range(8)),
        ("ask", {"question": "one"}, "q1"),
        ("ask", {"question": "two"}, "q2"),
        ("todo_write", {"items": ["a"]}),
    )
    model = ScriptedModel(many, close(1), "Done.")
    agent = create_todo_agent(model, work.tools, checkpointer=InMemorySaver())

    def run(given: Any) -> Any:
        return agent.invoke(given, THREAD) if door == "invoke" else asyncio.run(agent.ainvoke(given, THREAD))

    run(GO)
    waiting = {i.value: i.id for i in agent.get_state(THREAD).interrupts}
    assert sorted(waiting) == ["one", "two"]
    run(Command(resume={waiting["one"]: "first answer"}))
    assert len(model.requests) == 1  # the other question is still open
    assert [i.value for i in agent.get_state(THREAD).interrupts] == ["two"]
    out = run(Command(resume={waiting["two"]: "second answer"}))
    model.assert_done()
    assert all(work.ran[f"s{n}"] == 1 for n in range(8))
    results = {m.tool_call_id: m.content for m in out["messages"] if m.type == "tool"}
    assert (results["q1"], results["q2"]) == ("first answer", "second answer")
    assert len(results) == 12
    assert [todo["content"] for todo in out["todos"]] == ["a"]
    assert wire_faults(model.requests) == []


def test_calls_of_a_round_run_at_the_same_time() -> None:
    barrier = Barrier(3, timeout=60)

    @tool
    def meet(name: str) -> str:
        """Wait for the others."""
        barrier.wait()
        return name

    model = ScriptedModel(calls(*(("meet", {"name": n}) for n in "abc")), "Done.")
    out = create_todo_agent(model, [meet]).invoke(GO)
    assert sorted(m.content for m in out["messages"] if m.type == "tool") == ["a", "b", "c"]


def test_results_stand_behind_their_calls_whatever_finishes_first() -> None:
    @tool
    def late(seconds: float) -> str:
        """Take a while."""
        time.sleep(seconds)
        return str(seconds)

    made = [("late", {"seconds": s}, f"c{s}") for s in (0.05, 0.0, 0.02)]
    model = ScriptedModel(calls(*made), "Done.")
    create_todo_agent(model, [late]).invoke(GO)
    told = [(m.tool_call_id, m.content) for m in model.requests[1] if m.type == "tool"]
    assert sorted(told) == sorted((key, str(args["seconds"])) for _, args, key in made)
    assert wire_faults(model.requests) == []
