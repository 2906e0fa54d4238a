"""Waiting: what a run waits for, until when, and what follows (rule 29)."""

import asyncio
import time
from typing import Any

import pytest
from agents import END, START, TODO, Make, done, look, looks, write
from langchain.agents import create_agent
from langchain_core.exceptions import ModelRateLimitError
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import answer_of, create_todo_agent, hold_thread, session_of, wait
from wakeloop.loop.waits import describe_waiting
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.sessions import choose_next_input
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.marks import AUTOMATIC
from wakeloop.tools import wait_for_work

REFUSED = ModelRateLimitError("Rate limit reached. Please try again in 40s.")
UNTIMED = ModelRateLimitError("Rate limit reached. Please try again later.")
NOT_COME = f"{AUTOMATIC} You were waiting for this, and it has not come:"
WORK_OVER = f"{AUTOMATIC} You were waiting for this:"
HOUR = 3600


def build() -> Any:
    """Return a reply that waits for the build."""
    return calls(("wait_for_work", {"what": "the nightly build", "seconds": 600}))


def parked(agent: Any) -> tuple[Any, ...]:
    session = agent.session
    return session["state"], session["reason"], session.get("on")


def seconds_left(agent: Any) -> float:
    return float(agent.session["until"] - time.time())


def advance(agent: Any, seconds: float) -> None:
    """Let the nodes that read the time of day read a later one."""
    for name in ("activate", "finalization_guard"):
        node = agent.graph.builder.nodes[name].runnable
        object.__setattr__(node, "clock", lambda: time.time() + seconds)


def clock(agent: Any, seconds: float) -> Any:
    """Return what a host gives the graph after this many seconds."""
    advance(agent, seconds)
    chosen = choose_next_input(agent.snapshot, [], now=time.time() + seconds)
    assert chosen.run
    return agent.run(chosen.input)


# -- rate limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"todo_inbox": [{"kind": "kick", "id": "k"}]}], ids=["empty", "kick"])
def test_a_refused_request_is_repeated_unchanged(thread: Make, given: Any) -> None:
    agent = thread(write("a"), looks("x"), REFUSED, done(1), "Done.", tools=[look])
    walk = agent.walk("Go.")
    assert walk == [*START, *TODO, "run_tools", "call_model", *END]
    assert parked(agent) == ("waiting", "waiting", "limit")
    assert seconds_left(agent) == pytest.approx(42, abs=5)
    before = agent.messages
    assert agent.walk(given) == [*START, *TODO, *END]
    assert agent.model.requests[3] == agent.model.requests[2]
    assert agent.messages[: len(before)] == before
    assert (agent.session["reason"], agent.session["wakes"]) == ("settled", 0)
    assert "until" not in agent.session
    assert agent.values["waiting_on"] == []


def test_a_first_message_that_was_refused_is_answered_later(thread: Make) -> None:
    agent = thread(REFUSED, "Hello.")
    agent.run("Hi.")
    assert parked(agent) == ("waiting", "waiting", "limit")
    clock(agent, 60)
    assert (agent.session["reason"], answer_of(agent.values)) == ("answered", "Hello.")


def test_a_refused_wake_is_neither_idle_nor_paid_for_twice(thread: Make) -> None:
    agent = thread(write("a"), "Soon.", REFUSED, done(1), "Done.")
    agent.run("Go.")
    assert (parked(agent)[2], agent.session["wakes"]) == ("limit", 1)
    agent.run({})
    assert (agent.session["reason"], agent.session["wakes"]) == ("settled", 1)
    assert agent.ledger.get("idle_wakes") == 0


def test_two_waits_in_a_row_and_then_it_is_an_error(thread: Make) -> None:
    agent = thread(REFUSED, REFUSED, REFUSED, REFUSED, "Hello.", REFUSED, "You too.")
    agent.run("Hi.")
    agent.run({})
    assert parked(agent)[2] == "limit"
    with pytest.raises(ModelRateLimitError):
        agent.run({})
    with pytest.raises(ModelRateLimitError):
        agent.run(None)
    agent.run(None)
    assert answer_of(agent.values) == "Hello."
    agent.run("How are you?")  # a reply has come in between
    assert parked(agent)[2] == "limit"
    agent.run({})
    assert answer_of(agent.values) == "You too."


def test_a_persons_message_cancels_the_wait(thread: Make) -> None:
    agent = thread(write("a"), REFUSED, done(1), "Done.", tools=[look])
    agent.run("Go.")
    agent.run("Are you there?")
    assert agent.model.requests[2][-2].text == "Are you there?"  # and what is still open
    assert agent.values["waiting_on"] == []
    assert agent.session["reason"] == "settled"


@pytest.mark.parametrize("kind", ["peer_message", "cron", "subagent_done"])
def test_during_the_wait_nobody_else_costs_a_request(thread: Make, kind: str) -> None:
    agent = thread(write("a"), REFUSED, done(1), "Done.")
    agent.run("Go.")
    agent.run({"todo_inbox": [{"kind": kind, "id": "e", "text": "News.", "sender": "bob"}]})
    assert (agent.asked, parked(agent)[2]) == (2, "limit")
    clock(agent, 60)
    assert "News." in agent.model.requests[2][-1].text
    assert agent.session["reason"] == "settled"


def test_without_a_stated_time_it_is_an_error(thread: Make) -> None:
    agent = thread(UNTIMED, left=True)
    with pytest.raises(ModelRateLimitError):
        agent.run("Hi.")
    assert session_of(agent.snapshot)["state"] == "failed"


def test_without_a_checkpointer_it_is_an_error() -> None:
    with pytest.raises(ModelRateLimitError):
        create_todo_agent(ScriptedModel(REFUSED)).invoke({"messages": [("user", "Hi.")]})


def test_on_hold_no_clock_ends_the_wait(thread: Make) -> None:
    agent = thread(REFUSED)
    agent.run("Hi.")
    hold_thread(agent.graph, agent.at())
    assert (parked(agent)[2], agent.session.get("until")) == ("hold", None)
    assert not choose_next_input(agent.snapshot, [], now=time.time() + HOUR).run


@pytest.mark.parametrize("door", ["sync", "async"])
def test_the_middleware_waits_too(door: str) -> None:
    plan = calls(("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}))
    closed = calls(("write_todos", {"todos": [{"content": "a", "status": "completed"}]}))
    model = ScriptedModel(REFUSED, plan, REFUSED, closed, says("Done."))
    agent: Any = create_agent(model, middleware=[WakeLoopMiddleware()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}

    def run(given: Any) -> Any:
        return agent.invoke(given, config) if door == "sync" else asyncio.run(agent.ainvoke(given, config))

    for number, given in enumerate(({"messages": [("user", "Go.")]}, {"messages": []}), 1):
        session = run(given)["todo_session"]
        assert (session["state"], session["on"]) == ("waiting", "limit")
        assert len(model.requests) == 2 * number - 1
    out = run({"messages": []})
    assert (out["todo_session"]["reason"], answer_of(out), len(model.requests)) == ("settled", "Done.", 5)


# -- work ----------------------------------------------------------------------------------------------------


def test_background_work_parks_the_run(thread: Make) -> None:
    agent = thread(write("a"), build(), "I am waiting.", tools=[wait_for_work])
    agent.run("Go.")
    assert (parked(agent), agent.session["wakes"]) == (("waiting", "waiting", "work"), 0)
    assert seconds_left(agent) == pytest.approx(600, abs=10)
    assert agent.results()[-1] == (
        "success",
        "Waiting for the nightly build. Do what you can without it, then end your turn.",
    )


@pytest.mark.parametrize("nothing_open", [True, False])
def test_a_kick_continues_it(thread: Make, nothing_open: bool) -> None:
    begins, ends = ([], []) if nothing_open else ([write("a")], [done(1)])
    agent = thread(*begins, build(), "I am waiting.", *ends, "Done.", tools=[wait_for_work])
    agent.run("Go.")
    agent.run({"todo_inbox": [{"kind": "kick", "id": "k"}]})
    said = agent.model.requests[len(begins) + 2][-1].text
    assert said.startswith(f"{WORK_OVER}\n\n- the nightly build\n\nLook at how it went, and continue.")
    assert (agent.session["reason"], agent.values["waiting_on"]) == (
        "answered" if nothing_open else "settled",
        [],
    )


def test_an_event_continues_it(thread: Make) -> None:
    agent = thread(build(), "I am waiting.", "It is green.", tools=[wait_for_work])
    agent.run("Go.")
    agent.run({"todo_inbox": [{"kind": "cron", "id": "e", "text": "The build is green."}]})
    assert agent.model.requests[2][-1].text.endswith("The build is green.")
    assert answer_of(agent.values) == "It is green."


def test_after_its_time_the_run_continues_once_for_one_wake(thread: Make) -> None:
    agent = thread(write("a"), build(), "I wait.", build(), "I wait.", tools=[wait_for_work])
    agent.run("Go.")
    assert not choose_next_input(agent.snapshot, [], now=time.time() + 500).run
    clock(agent, 700)
    said = agent.model.requests[3][-1].text
    assert said.startswith(f"{NOT_COME}\n\n- the nightly build\n\n")
    assert "  [1] a" in said
    assert (parked(agent), agent.session["wakes"]) == (("waiting", "waiting", "work"), 1)


def test_repeated_waiting_is_bounded_by_the_wakes(thread: Make) -> None:
    replies = [build(), "I wait.", build(), "I wait.", build(), "I wait."]
    change = {"max_wake_cycles": 2, "earn_wakes": 0, "guard_retries": 0}
    agent = thread(write("a"), *replies, tools=[wait_for_work], change=change)
    agent.run("Go.")
    for number in (1, 2, 3):
        clock(agent, number * 2000)
    assert (agent.session["reason"], agent.asked) == ("wake_budget", 7)


@pytest.mark.parametrize(
    "args", [{"what": " "}, {"what": "x", "seconds": 0}, {"what": "x", "seconds": 1e300}]
)
def test_work_has_a_name_and_a_time(thread: Make, args: dict[str, Any]) -> None:
    agent = thread(calls(("wait_for_work", args)), "No.", tools=[wait_for_work])
    agent.run("Go.")
    assert [status for status, _ in agent.results()] == ["error"]
    assert agent.values["waiting_on"] == []


@pytest.mark.parametrize("until", [1e300, 253402300799.0, float("nan")])
def test_a_time_outside_the_calendar_is_not_a_time(until: float) -> None:
    assert describe_waiting([{"id": "x", "on": "work", "until": until}]) == {"on": "work"}


# -- conditions ----------------------------------------------------------------------------------------------


class Goal:
    def __init__(self, *verdicts: Any) -> None:
        self.verdicts, self.asked = list(verdicts), 0

    def __call__(self, state: Any) -> Any:
        self.asked += 1
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]


def test_a_condition_is_checked_first_and_costs_nothing_when_met(thread: Make) -> None:
    goal = Goal(wait("the build"), wait("the build"), None)
    agent = thread("Done.", done_when=goal)
    agent.run("go")
    assert (parked(agent)[2], round(seconds_left(agent), -1)) == ("condition", 60)
    clock(agent, 70)
    clock(agent, 140)
    assert (agent.session["reason"], agent.asked, goal.asked) == ("goal_met", 1, 3)


def test_after_an_hour_in_a_row_the_run_continues_once(thread: Make) -> None:
    agent = thread("Done.", "Still waiting.", done_when=Goal(wait("the build")))
    agent.run("go")
    for seconds in (70, 2000, 3500):
        clock(agent, seconds)
        assert agent.asked == 1
    clock(agent, HOUR + 100)
    assert agent.model.requests[1][-1].text.startswith(f"{NOT_COME}\n\n- the build")
    assert (agent.asked, parked(agent)[2]) == (2, "condition")
    clock(agent, HOUR + 200)
    assert agent.asked == 2


# -- peers and subagents -------------------------------------------------------------------------------------


def waits_on(entry: dict[str, Any]) -> Any:
    from typing import Annotated

    from langchain_core.messages import ToolMessage
    from langchain_core.tools import InjectedToolCallId, tool
    from langgraph.types import Command

    @tool
    def ask(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Ask somebody."""
        result = ToolMessage("Asked.", tool_call_id=call_id)
        return Command(update={"messages": [result], "waiting_on": [entry]})

    return ask


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"id": "q", "on": "peer", "from": "bob"}, "a reply from bob"),
        ({"id": "main:sub1-a", "on": "subagent"}, "the result of subagent main:sub1-a"),
    ],
)
def test_an_answer_that_never_comes_is_waited_for_one_hour(
    thread: Make, entry: dict[str, Any], name: str
) -> None:
    agent = thread(calls(("ask", {})), "I wait.", "Then without it.", tools=[waits_on(entry)])
    agent.run("Go.")
    assert parked(agent)[2] == entry["on"]
    assert seconds_left(agent) == pytest.approx(HOUR, abs=10)
    agent.run({})
    assert agent.asked == 2
    clock(agent, HOUR + 10)
    assert agent.model.requests[2][-1].text.startswith(f"{NOT_COME}\n\n- {name}\n\n")
    assert (agent.session["reason"], agent.values["waiting_on"]) == ("answered", [])


def test_a_question_that_a_peer_never_answers_costs_one_wake_per_hour(thread: Make) -> None:
    change = {"on_question": "insist", "max_wake_cycles": 2, "earn_wakes": 0, "guard_retries": 0}
    agent = thread(write("a"), "Shall I?", "I am waiting.", "I am waiting.", change=change)
    asked = {"kind": "peer_message", "id": "1", "text": "Go.", "sender": "bob", "correlation_id": "c"}
    agent.run({"todo_inbox": [asked]})
    assert (parked(agent)[2], agent.session["wakes"]) == ("peer", 1)
    clock(agent, HOUR + 10)
    said = agent.model.requests[3][-1].text
    assert said.startswith(f"{NOT_COME}\n\n- a reply from bob\n\n")
    assert "this is not permission" in said
    assert (parked(agent)[2], agent.session["wakes"]) == ("peer", 2)
    clock(agent, 3 * HOUR)
    assert (agent.session["reason"], agent.asked) == ("wake_budget", 4)


def test_an_answer_after_its_time_is_an_answer(thread: Make) -> None:
    entry = {"id": "q", "on": "peer", "from": "bob"}
    agent = thread(calls(("ask", {})), "I wait.", "It is 42.", tools=[waits_on(entry)])
    agent.run("Go.")
    advance(agent, 2 * HOUR)
    reply = {"kind": "peer_reply", "id": "e", "text": "42", "sender": "bob", "correlation_id": "q"}
    agent.run({"todo_inbox": [reply]})
    assert NOT_COME not in agent.model.requests[2][-1].text


def test_a_persons_words_after_the_deadline_come_with_what_is_missing(thread: Make) -> None:
    entry = {"id": "q", "on": "peer", "from": "bob"}
    agent = thread(calls(("ask", {})), "I wait.", "Without it, then.", tools=[waits_on(entry)])
    agent.run("Go.")
    advance(agent, 2 * HOUR)
    agent.run("Well?")
    words, rest = agent.model.requests[2][-2:]
    assert words.text == "Well?"
    assert rest.text.startswith(NOT_COME)
