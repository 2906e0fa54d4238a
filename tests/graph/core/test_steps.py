"""Rules 16 and 17: no run raises because steps run out; a drained one continues."""

import asyncio
from itertools import chain, count, repeat
from typing import Any

import pytest
from agents import END, START, TODO, Make, done, look, looks, session, settings, todo, update, write
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from levels import every_third
from pydantic import BaseModel

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

LIMITS = range(5, 41)


class Answer(BaseModel):
    """A format."""

    text: str


def work() -> Any:
    """Rounds without end."""
    return chain([write("a")], (looks(str(n)) for n in count()))


flat = chain.from_iterable
SCRIPTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "rounds": (work, {"nag_after": 0}),
    "rounds with nags": (work, {"nag_after": 1, "nag_every": 1}),
    "both kinds": (
        lambda: chain([write("a")], repeat(calls(("look", {"path": "x"}), ("todo_list", {})))),
        {"nag_after": 2},
    ),
    "refused": (lambda: repeat(update(9, "done")), {}),
    "texts": (lambda: chain([write("a")], repeat(".")), {"max_idle_wakes": 0, "max_wake_cycles": 10**6}),
    "wakes with work": (
        lambda: chain([write("a")], flat((looks(f"{n}"), looks(f"b{n}"), ".") for n in count())),
        {"nag_after": 1, "nag_every": 1},
    ),
    "corrections": (lambda: chain([write("a")], repeat(".")), {"max_wake_cycles": 0, "guard_retries": 10**6}),
    "corrections with work": (
        lambda: chain([write("a")], flat((looks(f"{n}"), ".") for n in count())),
        {"max_wake_cycles": 0, "guard_retries": 10**6},
    ),
    "explained": (
        lambda: chain([write("a")], repeat(".")),
        {"max_wake_cycles": 0, "on_guard_exhausted": "block"},
    ),
    "explained late": (
        lambda: chain([write("a")], repeat(".")),
        {"max_wake_cycles": 2, "guard_retries": 3, "on_guard_exhausted": "block"},
    ),
    "cut": (lambda: repeat(says("x", finish_reason="length")), {"reply_retries": 10**6}),
    "cut calls": (
        lambda: repeat(calls(("look", {"path": "x"}), finish_reason="length")),
        {"reply_retries": 10**6},
    ),
    "empty": (lambda: repeat(""), {"reply_retries": 10**6}),
    "empty then work": (lambda: chain(["", ""], work()), {"nag_after": 1, "nag_every": 1}),
    "malformed": (lambda: repeat(calls(("peer", {}))), {"reply_retries": 10**6}),
    "closed": (lambda: [write("a", "b"), done(1), ".", done(2), "bye"], {}),
}
ENDLESS = {
    "rounds",
    "rounds with nags",
    "both kinds",
    "refused",
    "texts",
    "wakes with work",
    "corrections",
    "corrections with work",
}
ENDLESS |= {"cut", "cut calls", "empty", "empty then work", "malformed"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_for_every_limit_nothing_raises_and_the_reason_is_right(name: str, door: str) -> None:
    script, changes = SCRIPTS[name]
    asked, reasons = 0, []
    for limit in every_third(LIMITS) if door == "sync" else (5, 6, 7, 8, 13):
        model = ScriptedModel(script())
        agent = create_todo_agent(model, [look], settings=settings(max_idle_rounds=0, **changes))
        given: Any = {"messages": [("user", "go")]}
        config: Any = {"recursion_limit": limit}
        output = agent.invoke(given, config) if door == "sync" else asyncio.run(agent.ainvoke(given, config))
        stands = output["todo_session"]
        reasons.append(stands["reason"])
        assert stands["open"] == sum(item["status"] == "pending" for item in output["todos"])
        assert stands["state"] == ("idle" if stands["open"] else "dormant")
        assert wire_faults(model.requests) == []
        assert asked <= len(model.requests)  # more steps never mean less work
        asked = len(model.requests)
    if name in ENDLESS:
        assert set(reasons) == {"step_limit"}
    elif door == "sync":
        last = {"closed": "settled", "explained": "guard_blocked", "explained late": "guard_blocked"}[name]
        cut = reasons.index(last)
        assert set(reasons[:cut]) == {"step_limit"}
        assert set(reasons[cut:]) == {last}  # once there are enough, there are always enough


def test_after_a_round_cut_off_by_steps_the_reason_is_step_limit_whatever_the_gates_would_say(
    thread: Make,
) -> None:
    agent = thread(write("a"), done(1), left=True)
    agent.run("go", limit=9)
    assert agent.todos == [todo(1, "a", "completed")]
    assert agent.session == session("dormant", "step_limit", 0, budget=26)


@pytest.mark.parametrize("limit", [*range(5, 10), 40])
def test_a_format_needs_three_steps(limit: int, thread: Make) -> None:
    agent = thread("hi", '{"text": "x"}', left=True, response_format=Answer)
    output = agent.run("go", limit=limit)
    if limit < 6:  # activate, call_model, guard; then call_model, guard, and one to spare
        assert output["todo_session"] == session("dormant", "step_limit", 0)
        assert output["structured_response"] is None
    else:
        assert output["todo_session"] == session("dormant", "answered", 0)
        assert output["structured_response"] == {"text": "x"}


@pytest.mark.parametrize("limit", [*range(5, 15), 40])
def test_a_format_that_never_fits_ends_within_the_steps(limit: int, thread: Make) -> None:
    agent = thread(repeat("no json"), left=True, response_format=Answer, change={"reply_retries": 10**6})
    agent.run("go", limit=limit)
    assert agent.session == session("dormant", "step_limit", 0)


@pytest.mark.parametrize("limit", [1, 2])
def test_below_five_steps_langgraphs_own_error_is_right(limit: int, thread: Make) -> None:
    agent = thread("hi", left=True)
    with pytest.raises(GraphRecursionError):
        agent.run("go", limit=limit)


# -- drain (rule 17) -------------------------------------------------------------------------------------


def drained(agent: Any, control: RunControl, given: Any = "go") -> None:
    with pytest.raises(GraphDrained):
        agent.run(given, control=control)


@pytest.mark.parametrize("at", range(5))
def test_a_drained_run_continues_with_the_same_counters(at: int, thread: Make) -> None:
    control = RunControl()
    script = [write("a"), ".", looks("x"), done(1), "bye"]
    steps: list[Any] = []

    def step(number: int) -> Any:
        def reply(request: Any) -> Any:
            if number == at:
                control.request_drain()
            return script[number]

        return reply

    steps = [step(number) for number in range(len(script))]
    agent = thread(steps, tools=[look])
    try:
        agent.run("go", control=control)
    except GraphDrained:
        assert agent.session["state"] == "running"
        assert agent.session["reason"] is None
        assert agent.snapshot.next
        agent.run(None)
    assert agent.session == session("dormant", "settled", 0, 1, 26)
    assert agent.asked == len(script)
    assert agent.todos == [todo(1, "a", "completed")]


def test_a_drain_requested_while_the_guard_runs_is_covered_by_the_gate(thread: Make) -> None:
    control = RunControl()
    agent = thread(write("a"), ".", done(1), "bye")
    if agent.door == "sync":
        stream = agent.graph.stream(
            {"messages": [("user", "go")]}, agent.at(), stream_mode="debug", control=control
        )
        for event in stream:
            if event["type"] == "task" and event["payload"]["name"] == "finalization_guard":
                control.request_drain()
    else:

        async def run() -> None:
            events = agent.graph.astream(
                {"messages": [("user", "go")]}, agent.at(), stream_mode="debug", control=control
            )
            async for event in events:
                if event["type"] == "task" and event["payload"]["name"] == "finalization_guard":
                    control.request_drain()

        asyncio.run(run())
    assert agent.session["reason"] == "drained"
    assert agent.session == session("idle", "drained", 1)
    assert agent.walk({}) == [*START, *TODO, *END]


# -- how many requests a limit allows ----------------------------------------------------------------------


def asked_with(script: Any, limits: Any, **changes: Any) -> dict[int, int]:
    """Return how many requests a run makes at each limit; `script` makes its replies."""
    asked = {}
    form = changes.pop("form", None)
    for limit in limits:
        model = ScriptedModel(script(limit))
        agent = create_todo_agent(model, [look], settings=settings(**changes), response_format=form)
        try:
            agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": limit})
        except GraphRecursionError:
            assert limit < 5
        asked[limit] = len(model.requests)
    return asked


ALL = range(1, 61)


def ask() -> str:
    """Ask a person."""
    return interrupt("?")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [lambda _: (looks(str(n)) for n in count()), lambda _: repeat(update(9, "done"))]
)
def test_an_endless_caller_makes_an_exact_number_of_requests(script: Any) -> None:
    """Each takes two supersteps; the last round leaves room for a nag, one more round and the end."""
    limits = every_third(ALL)
    exact = {limit: max(min(limit - 1, 1), (limit - 4) // 2) for limit in limits}
    assert asked_with(script, limits, max_idle_rounds=0) == exact


@pytest.mark.slow
@pytest.mark.parametrize("reply", ["", says("x", finish_reason="length")])
def test_endlessly_repeated_requests_reach_the_limit(reply: Any) -> None:
    limits = every_third(ALL)
    exact = {limit: max(min(limit - 1, 1), (limit - 3) // 2) for limit in limits}
    assert asked_with(lambda _: repeat(reply), limits, reply_retries=10**6) == exact


@pytest.mark.slow
def test_a_last_request_without_rounds_needs_one_step_less() -> None:
    """An explanation and a format call no tool: with one of them the bound is (limit - 2) / 2."""
    limits = every_third(range(10, 61))
    exact = {limit: (limit - 2) // 2 for limit in limits}

    def explained(limit: int) -> list[Any]:
        again = [says("x", finish_reason="length")] * ((limit - 2) // 2 - 4)
        return [write("a"), *again, ".", ".", "it cannot be done"]

    assert (
        asked_with(explained, limits, max_wake_cycles=0, on_guard_exhausted="block", reply_retries=99)
        == exact
    )

    def formatted(limit: int) -> list[Any]:
        return [*[says("x", finish_reason="length")] * ((limit - 2) // 2 - 2), "bye", '{"text": "x"}']

    assert asked_with(formatted, limits, form=Answer, reply_retries=99) == exact


@pytest.mark.slow
def test_a_resume_begins_in_mid_round_and_has_one_request_more() -> None:
    asked = {}
    for limit in every_third(range(5, 61)):
        replies = [calls(("ask", {})), *[says("x", finish_reason="length")] * 40]
        model = ScriptedModel(replies)
        agent = create_todo_agent(
            model, [ask], settings=settings(reply_retries=99), checkpointer=InMemorySaver()
        )
        config: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "go")]}, config)
        agent.invoke(Command(resume="yes"), {**config, "recursion_limit": limit})
        asked[limit] = len(model.requests) - 1
    assert asked == {limit: (limit - 1) // 2 for limit in asked}
