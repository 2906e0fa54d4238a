"""Many threads over one agent, many calls in one round."""

import asyncio
import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}
GO: Any = {"messages": [("user", "go")]}
MANY = 20


def write(*items: str) -> Any:
    return calls(("todo_write", {"items": list(items)}))


def close(*ids: int) -> Any:
    return calls(*(("todo_update", {"id": i, "status": "done"}) for i in ids))


# -- one agent, many threads -----------------------------------------------------------------------------


@tool
def echo(word: str) -> str:
    """Say it again."""
    time.sleep(0.001)
    return f"echo {word}"


def reply(request: list[Any]) -> Any:
    """Two activations for each thread, each by what its own request holds."""
    people = [m.content for m in request if m.type == "human" and not m.additional_kwargs]
    name = str(people[0]).split()[0]
    step = sum(m.type == "ai" for m in request)
    script = [
        write(f"{name} one", f"{name} two"),
        calls(("echo", {"word": name}), ("echo", {"word": f"{name}!"})),
        close(1),
        f"{name} stops.",
        close(2),
        f"{name} is done.",
        calls(("echo", {"word": f"{name} again"})),
        f"{name} goodbye.",
    ]
    return script[step]


@pytest.mark.parametrize("saver", ["none", "memory", "sqlite"])
def test_one_agent_used_by_many_threads(saver: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
    connection.execute("PRAGMA synchronous=OFF")
    keep: Any = {"none": None, "memory": InMemorySaver(), "sqlite": SqliteSaver(connection)}[saver]
    model = ScriptedModel([reply] * 8 * MANY)
    agent = create_todo_agent(model, [echo], system_prompt="Say it.", checkpointer=keep)
    barrier = Barrier(MANY)

    def run(number: int) -> None:
        name = f"n{number}"
        config: Any = {"configurable": {"thread_id": name}}
        barrier.wait()
        first = agent.invoke({"messages": [("user", f"{name} begins")]}, config)
        assert first["todo_session"] == {
            "state": "dormant",
            "reason": "settled",
            "open": 0,
            "wakes": 1,
            "budget": 25,
        }
        more = [("user", f"{name} goes on")]
        out = agent.invoke({"messages": more if keep else [*first["messages"], *more]}, config)
        assert answer_of(out) == f"{name} goodbye."
        told = [str(m.content) for m in out["messages"]]
        assert all(name in text for text in told if text and not text.startswith(("Your turn", "[1]", "[2]")))
        assert [m.content for m in out["messages"] if m.name == "echo"] == [
            f"echo {name}",
            f"echo {name}!",
            f"echo {name} again",
        ]
        ids = [m.id for m in out["messages"]]
        assert len(ids) == len(set(ids)) == 17

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(run, range(MANY)))
    model.assert_done()
    assert wire_faults(model.requests) == []
    owners = Counter(str(request[1].content).split()[0] for request in model.requests)
    assert set(owners.values()) == {8}
    for name in owners:
        assert prompt_faults([r for r in model.requests if str(r[1].content).startswith(f"{name} ")]) == []
    connection.close()


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
    barrier = Barrier(3, timeout=20)

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
