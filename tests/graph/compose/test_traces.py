"""What OpenTelemetry's and OpenInference's own packages see of a run."""

import asyncio
from typing import Any

import pytest
from laid_over import laid, looks
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry.sdk.trace import TracerProvider
from shared_tools import ask, look
from tracing import OPENINFERENCE, OTEL, instrumented

from wakeloop import create_todo_agent
from wakeloop.platform.traces import mark_as_agent
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}
DOORS = pytest.mark.parametrize("door", ["sync", "async"])
WRITE = calls(("todo_write", {"items": ["a"]}, "w"), ("look", {"place": "x"}, "l"))
DONE = calls(("todo_update", {"id": 1, "status": "done"}, "d"))


def waking(**options: Any) -> Any:
    """An agent that plans, stops too early, is woken, and closes its item."""
    model = ScriptedModel(WRITE, says("Soon."), DONE, says("Done."))
    return create_todo_agent(model, [look], checkpointer=InMemorySaver(), **options)


def run(agent: Any, door: str, given: Any = GO) -> Any:
    return agent.invoke(given, THREAD) if door == "sync" else asyncio.run(agent.ainvoke(given, THREAD))


def began(agent: Any) -> str:
    """Return the address of the checkpoint that `activate` found."""
    first = [s for s in agent.get_state_history(THREAD) if s.next == ("activate",)][-1]
    return str(first.config["configurable"]["checkpoint_id"])


@DOORS
def test_the_genai_convention_sees_an_agent_its_tools_and_its_wakes(door: str) -> None:
    agent = waking(name="gardener")
    with instrumented(OTEL) as spans:
        run(agent, door)
    root = "invoke_agent gardener"
    assert spans.tree[0] == ("", root)
    assert sorted(spans.tree[1:]) == [
        (root, "execute_tool look"),
        (root, "execute_tool todo_update"),
        (root, "execute_tool todo_write"),
    ]
    tools = [dict(span.attributes or {}) for span in spans.all[1:]]
    assert {t["gen_ai.agent.name"] for t in tools} == {"gardener"}
    assert sorted(t["gen_ai.tool.call.id"] for t in tools) == ["d", "l", "w"]
    (attributes,) = spans.named(root)
    assert attributes["gen_ai.conversation.id"] == "t"
    assert attributes["wakeloop.activation"] == began(agent)
    assert (attributes["wakeloop.state"], attributes["wakeloop.reason"]) == ("dormant", "settled")
    events = [(event.name, (event.attributes or {})["wakeloop.cycle"]) for event in spans.all[0].events]
    assert events == [
        ("wakeloop.activated", 0),
        *[("wakeloop.spent", 0)] * 2,
        ("wakeloop.wake", 1),
        *[("wakeloop.spent", 1)] * 2,
        ("wakeloop.parked", 1),
    ]
    wake = dict(spans.all[0].events[3].attributes or {})
    assert wake["wakeloop.reasons"] == ("todos",)


@DOORS
def test_openinference_has_the_notes_on_the_nodes_and_on_the_run(door: str) -> None:
    agent = waking()
    with instrumented(OPENINFERENCE) as spans:
        run(agent, door)
    activation = began(agent)
    opened = {"activation": activation, "cycle": 0, "sources": ["human"], "open": 0, "budget": 25}
    woken = {"activation": activation, "cycle": 1, "budget": 25, "open": 1, "reasons": ["todos"]}
    ended = {"activation": activation, "cycle": 1, "state": "dormant", "reason": "settled"}
    ended |= {
        "open": 0,
        "wakes": 1,
        "budget": 26,
        "list": 2,
        "items": 1,
        "completed": 1,
        "cancelled": 0,
        "blocked": 0,
    }
    assert spans.noted("activate") == [opened]
    assert spans.noted("wake") == [woken]
    assert spans.noted("finalization_guard") == [{}, ended]
    assert spans.noted("wakeloop") == [opened | woken | ended]
    assert [note["cycle"] for note in spans.noted("call_model")] == [0, 0, 1, 1]
    assert [s["session.id"] for s in spans.named("wake")] == ["t"]
    called = [pair for pair in spans.tree if pair[0] in ("run_tools", "validate_todos")]
    assert sorted(called) == [
        ("run_tools", "look"),
        ("validate_todos", "todo_update"),
        ("validate_todos", "todo_write"),
    ]
    (write,) = spans.named("todo_write")
    assert write["input.value"] == '{"items": ["a"]}'
    assert "[1] a" in str(write["output.value"])


@DOORS
def test_an_agent_of_create_agent_is_traced_like_the_graph(door: str) -> None:
    """Its hooks have the spans that the graph's nodes have; a todo call is a tool's run there, too."""
    wrote, done = (
        ("write_todos", {"todos": [{"content": "a", "status": s}]}, s) for s in ("pending", "completed")
    )
    model = ScriptedModel(calls(wrote, looks("x")), says("Soon."), calls(done), says("Done."))
    agent = laid(model, name="gardener")
    with instrumented(OTEL) as theirs, instrumented(OPENINFERENCE) as spans:
        run(agent, door)
    root = "invoke_agent gardener"
    assert theirs.tree == [
        ("", root),
        *[(root, f"execute_tool {name}") for name in ("write_todos", "look", "write_todos")],
    ]
    (attributes,) = theirs.named(root)
    activation = attributes["wakeloop.activation"]
    begins = [s for s in agent.get_state_history(THREAD) if s.next == ("WakeLoopMiddleware.before_agent",)]
    assert activation == begins[0].config["configurable"]["checkpoint_id"]
    events = [event.name.removeprefix("wakeloop.") for event in theirs.all[0].events]
    assert events == ["activated", "spent", "spent", "wake", "spent", "spent", "parked"]
    opened = {"activation": activation, "cycle": 0, "sources": ["human"], "open": 0, "budget": 25}
    woken = {"activation": activation, "cycle": 1, "budget": 25, "open": 1, "reasons": ["todos"]}
    ended = {"cycle": 1, "state": "dormant", "reason": "settled", "open": 0, "wakes": 1}
    ended |= {"budget": 26, "list": 2, "items": 1, "completed": 1, "cancelled": 0, "blocked": 0}
    assert spans.noted("WakeLoopMiddleware.before_agent") == [opened]
    assert spans.noted("WakeLoopMiddleware.after_model") == [{}, woken, {}, {}]
    assert spans.noted("WakeLoopMiddleware.after_agent") == [ended]
    assert spans.noted("gardener") == [opened | woken | ended]
    assert [note["cycle"] for note in spans.noted("model")] == [0, 0, 1, 1]
    assert ("WakeLoopMiddleware.after_model", "write_todos") in spans.tree


def test_reminders_and_corrections_are_noted_on_their_nodes() -> None:
    settings = {"nag_after": 1, "max_wake_cycles": 0}
    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls(("look", {"place": "x"})), *["No."] * 2
    )
    with instrumented(OPENINFERENCE) as spans:
        create_todo_agent(model, [look], settings=settings).invoke(GO)
    assert spans.noted("nag") == [{"cycle": 0, "rounds": 1, "open": 1}]
    corrected, ended = spans.noted("finalization_guard")
    counts = {"cycle": 0, "retry": 1, "retries": 1, "open": 1}
    assert corrected == {"action": "correct", "reason": "disabled", **counts}
    assert (ended["state"], ended["reason"]) == ("idle", "disabled")


@DOORS
def test_a_resumed_run_reports_the_same_activation(door: str) -> None:
    model = ScriptedModel(calls(("ask", {"question": "?"})), says("Thank you."), says("Hello."))
    agent = create_todo_agent(model, [ask], checkpointer=InMemorySaver())
    with instrumented(OPENINFERENCE) as spans:
        run(agent, door)
        run(agent, door, Command(resume="yes"))
        first = began(agent)
        run(agent, door, {"messages": [("user", "hi")]})
    asked, answered, anew = spans.noted("wakeloop")
    assert (asked["activation"], asked.get("state")) == (first, None)
    assert (answered["activation"], answered["state"]) == (first, "dormant")
    assert anew["activation"] > first


@DOORS
def test_a_refused_todo_call_and_one_that_asks_a_person_end_their_runs(door: str) -> None:
    def verify(todo: Any, state: Any) -> str | None:
        return str(interrupt("Is it done?"))

    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})), calls(("todo_update", {"id": 7, "status": "done"})), DONE
    )
    agent = create_todo_agent(model, verify=verify, checkpointer=InMemorySaver())
    with instrumented(OPENINFERENCE) as spans:
        run(agent, door)
    refused, asking = spans.named("todo_update")
    assert '"status": "error"' in str(refused["output.value"])
    assert "output.value" not in asking
    assert spans.tree.count(("validate_todos", "todo_update")) == 2


def inner() -> Any:
    """An agent inside a tool."""
    model = ScriptedModel(calls(("look", {"place": "x"})), says("Seen."))
    return create_todo_agent(model, [look], name="scout")


@DOORS
def test_an_agent_in_an_agents_tool_is_its_own_agent(door: str) -> None:
    scout = inner()

    def ask_scout(what: str) -> str:
        """Ask the scout."""
        return str(scout.invoke({"messages": [("user", what)]})["messages"][-1].content)

    model = ScriptedModel(calls(("ask_scout", {"what": "x"})), says("So it is."))
    with instrumented(OTEL) as spans:
        run(create_todo_agent(model, [ask_scout], name="chief"), door)
    assert spans.tree == [
        ("", "invoke_agent chief"),
        ("invoke_agent chief", "execute_tool ask_scout"),
        ("execute_tool ask_scout", "invoke_agent scout"),
        ("invoke_agent scout", "execute_tool look"),
    ]
    (looked,) = spans.named("execute_tool look")
    assert looked["gen_ai.agent.name"] == "scout"


@DOORS
def test_an_agent_as_a_node_is_an_agent_within_its_parents_workflow(door: str) -> None:
    parent = StateGraph(MessagesState).add_node("scout", inner()).add_edge(START, "scout").compile()
    with instrumented(OTEL) as spans:
        run(parent, door)
    assert spans.tree == [
        ("", "invoke_workflow LangGraph"),
        ("invoke_workflow LangGraph", "invoke_agent scout"),
        ("invoke_agent scout", "execute_tool look"),
    ]


def own_name(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "metadata": {"agent_name": "mine"}}


@pytest.mark.parametrize("door", ["invoke", "bound", "astream_events"])
def test_a_callers_own_name_is_kept(door: str) -> None:
    agent = waking()
    with instrumented(OTEL) as spans:
        if door == "invoke":
            agent.invoke(GO, own_name(THREAD))
        elif door == "bound":
            agent.with_config(metadata={"agent_name": "mine"}).invoke(GO, THREAD)
        else:

            async def heard() -> list[Any]:
                return [e async for e in agent.astream_events(GO, own_name(THREAD), version="v2")]

            events = asyncio.run(heard())
            assert [e["name"] for e in events if e["event"] == "on_tool_start"].count("todo_write") == 1
    assert spans.tree[0] == ("", "invoke_agent mine")


def test_nothing_of_it_is_stored() -> None:
    """Neither the name nor a note: rows are the same with a tracer and without."""
    rows = []
    for package in (None, OTEL):
        agent = waking(name="gardener")
        if package is None:
            agent.invoke(GO, THREAD)
        else:
            with instrumented(package):
                agent.invoke(GO, THREAD)
        history = list(agent.get_state_history(THREAD))
        rows.append([sorted(snapshot.metadata or ()) for snapshot in history])
        assert {key for snapshot in history for key in snapshot.config["configurable"]} == {
            "thread_id",
            "checkpoint_ns",
            "checkpoint_id",
        }
    assert rows[0] == rows[1]
    assert {key for row in rows[0] for key in row} == {
        "counters_since_delta_snapshot",
        "parents",
        "source",
        "step",
    }


def test_a_config_is_unchanged_if_nobody_listens() -> None:
    agent = waking()
    assert mark_as_agent(THREAD, agent) is THREAD
    with instrumented(OTEL):
        (handler,) = mark_as_agent(THREAD, agent)["callbacks"].handlers  # type: ignore[index, union-attr]
    assert mark_as_agent(THREAD, agent.with_config(callbacks=[handler])) is not THREAD


def test_anothers_span_is_left_alone_if_no_tracer_listens() -> None:
    with TracerProvider().get_tracer("t").start_as_current_span("request") as span:
        waking().invoke(GO, THREAD)
    assert (span.events, dict(span.attributes)) == ((), {})  # type: ignore[attr-defined]
