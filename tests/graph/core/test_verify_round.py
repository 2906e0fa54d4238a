"""Rule 24: the verifier is asked after each round, too."""

import asyncio
from typing import Any

import pytest
from agents import END, START, TODO, WORK, Make, done, look, looks, todo, update, write
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import VerifyError, create_todo_agent, update_todos
from wakeloop.testing import calls

CHECK = ["run_tools", "validate_todos", "call_model"]
ROUND = {"verify_when": "round"}


class World:
    """Items are done once they are in the world; every question is recorded."""

    def __init__(self, door: str, *, fails: bool = False) -> None:
        self.made: set[str] = set()
        self.asked: list[int] = []
        self.fails, self.door = fails, door

    def make(self, what: str) -> str:
        """Make something."""
        self.made.add(what)
        if what == "nothing":
            raise ValueError("nothing was made")
        return f"made {what}"

    @property
    def verify(self) -> Any:
        def verify(item: Any, state: Any) -> str | None:
            self.asked.append(item["id"])
            assert item["status"] == "completed"
            return None if item["content"] in self.made else "not there"

        async def later(item: Any, state: Any) -> str | None:
            await asyncio.sleep(0)
            return verify(item, state)

        return verify if self.door == "sync" else later


@pytest.fixture
def world(door: str) -> World:
    return World(door)


def makes(*things: str) -> Any:
    return calls(*(("make", {"what": what}) for what in things))


def test_an_item_that_passes_is_completed_by_the_graph(world: World, thread: Make) -> None:
    agent = thread(
        write("a", "b"),
        makes("b"),
        makes("a"),
        "Done.",
        tools=[world.make],
        verify=world.verify,
        change=ROUND,
    )
    assert agent.walk("go") == [*START, *TODO, *CHECK, *CHECK, *END]
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]
    assert world.asked == [1, 2, 1, 2]  # finally a second look: a call ran after that verdict
    results = [text for _, text in agent.results()]
    assert results[1:] == ["made b\n\n[2] done: verified", "made a\n\n[1] done: verified"]
    assert (agent.session["reason"], agent.session["verified"]) == ("settled", True)


def test_a_failed_check_says_nothing_and_counts_nothing(world: World, thread: Make) -> None:
    replies = [makes(what) for what in ("u", "v", "w", "x")]
    change = {**ROUND, "max_wake_cycles": 0, "guard_retries": 0}
    agent = thread(write("a"), *replies, "Done.", tools=[world.make], verify=world.verify, change=change)
    agent.run("go")
    assert agent.todos == [todo(1, "a")]
    assert world.asked == [1] * 4
    assert "refusals" not in agent.ledger
    assert [text for _, text in agent.results()][1:] == ["made u", "made v", "made w", "made x"]


@pytest.mark.parametrize("replies", [[makes("nothing")], [looks("x")], [write("b")]])
def test_only_after_a_round_in_which_an_external_call_succeeded(replies: Any, thread: Make) -> None:
    world = World("sync")
    change = {**ROUND, "max_wake_cycles": 0, "guard_retries": 0}
    agent = thread(write("a"), *replies, "Done.", tools=[world.make], verify=world.verify, change=change)
    agent.run("go")
    assert world.asked == []


def test_next_to_a_todo_call_it_comes_after_both(world: World, thread: Make) -> None:
    both = calls(("make", {"what": "b"}), ("todo_write", {"items": ["b"]}))
    agent = thread(
        write("a"), both, makes("a"), "Done.", tools=[world.make], verify=world.verify, change=ROUND
    )
    walk = agent.walk("go")
    assert sorted(walk[4:6]) == ["run_tools", "validate_todos"]
    assert walk[6:] == ["validate_todos", "call_model", *CHECK, *END]
    assert world.asked == [1, 2, 1, 2]  # finally a second look: a call ran after that verdict
    assert [item["status"] for item in agent.todos] == ["completed", "completed"]


def test_a_claim_is_judged_as_always(world: World, thread: Make) -> None:
    agent = thread(
        write("a"), done(1), makes("a"), "Done.", tools=[world.make], verify=world.verify, change=ROUND
    )
    agent.run("go")
    assert world.asked == [1, 1]
    assert agent.ledger["refusals"] == {"1": 1}


def test_twenty_items_a_round_those_in_progress_first_then_from_where_it_stopped(thread: Make) -> None:
    world = World("sync")
    items = [f"item {n}" for n in range(1, 31)]
    agent = thread(
        write(*items), update(25, "in_progress"), makes("x"), makes("y"), makes("z"), "Done.",
        tools=[world.make], verify=world.verify, change={**ROUND, "max_wake_cycles": 0, "guard_retries": 0},
    )  # fmt: skip
    agent.run("go")
    rest = [n for n in range(1, 31) if n != 25]
    first, second, third = world.asked[:20], world.asked[20:40], world.asked[40:]
    assert first == [25, *rest[:19]]
    assert second == [25, *rest[19:], *rest[:9]]
    assert third == [25, *rest[9:28]]
    assert agent.ledger["checked"] == str(rest[27])


def test_with_few_items_nothing_is_noted(world: World, thread: Make) -> None:
    agent = thread(
        write("a"), makes("x"), makes("a"), "Done.", tools=[world.make], verify=world.verify, change=ROUND
    )
    agent.run("go")
    assert {"checked", "check"}.isdisjoint(agent.ledger)


def test_without_a_verifier_there_is_no_extra_superstep(thread: Make) -> None:
    agent = thread(write("a"), looks("x"), done(1), "Done.", tools=[look], change=ROUND)
    assert agent.walk("go") == [*START, *TODO, *WORK, *TODO, *END]


def test_a_verifier_that_raises_is_raised_and_the_thread_continues(world: World, thread: Make) -> None:
    errors: list[Exception] = [KeyError("a")]

    def verify(item: Any, state: Any) -> None:
        if errors:
            raise errors.pop()

    agent = thread(write("a"), makes("a"), "Done.", tools=[world.make], verify=verify, change=ROUND)
    with pytest.raises(VerifyError):
        agent.run("go")
    assert agent.walk(None) == ["validate_todos", "call_model", *END]
    assert agent.todos == [todo(1, "a", "completed")]


@pytest.mark.slow
def test_near_every_limit_nothing_raises(thread: Make) -> None:
    world = World("sync")
    for limit in range(8, 24):
        replies = [write("a", "b"), makes("x"), makes("a"), "Stop.", makes("b"), "Done."]
        agent = thread(*replies, left=True, tools=[world.make], verify=world.verify, change=ROUND)
        agent.run("go", limit=limit)
        assert agent.session["reason"] in ("settled", "step_limit", "request_budget"), limit
        world.made.clear()


def test_a_manually_written_list_is_asked_about_too(world: World, thread: Make) -> None:
    agent = thread("Hi.", makes("b"), "Done.", tools=[world.make], verify=world.verify, change=ROUND)
    agent.run("go")
    update_todos(agent.graph, agent.at(), add=["b"])
    agent.run("more")
    assert agent.todos == [todo(1, "b", "completed")]


def test_other_dialects_say_it_in_their_own_line(thread: Make) -> None:
    world = World("sync")
    from wakeloop.testing import ScriptedModel

    plan = calls(("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}))
    model = ScriptedModel(plan, makes("a"), "Done.")
    settings = {"preset": "langchain", "verify_when": "round"}
    agent = create_todo_agent(
        model, [world.make], verify=world.verify, settings=settings, checkpointer=InMemorySaver()
    )
    out = agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "1"}})
    assert out["todos"] == [todo(1, "a", "completed")]
    assert out["messages"][-2].text.startswith("made a\n\n")
    assert out["messages"][-2].text.endswith(": verified")
