"""Many threads on one agent, many calls in one round."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from langchain_core.tools import tool

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import ScriptedModel, calls

GO: Any = {"messages": [("user", "go")]}


def test_many_kinds_of_system_prompts_at_once() -> None:
    """The cache of system prompts is bounded and shared: no thread may find another's, or none."""
    agent_model = ScriptedModel([lambda request: str(request[0].content).split("\n")[0]] * 300)
    agent = create_todo_agent(agent_model)

    def run(number: int) -> bool:
        out = agent.invoke({"messages": [("system", f"head {number}"), ("user", "q")]})
        return answer_of(out) == f"head {number}"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, [n % 150 for n in range(300)]))
    agent_model.assert_done()


# -- many calls in one round -----------------------------------------------------------------------------


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
