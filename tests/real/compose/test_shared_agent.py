"""One agent, used by many threads over SQLite."""

import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import ANY

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rig import close, write

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults

MANY = 20


# -- one agent, many threads -----------------------------------------------------------------------------


@tool
def echo(word: str) -> str:
    """Say it again."""
    time.sleep(0.001)
    return f"echo {word}"


def reply(request: list[Any]) -> Any:
    """Two activations per thread, each answered from its own request."""
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
            "budget": 27,
            "list": ANY,
            "items": 2,
            "spent": ANY,
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
