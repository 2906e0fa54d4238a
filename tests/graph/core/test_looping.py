"""Rule 18: idle rounds are counted, lead to a reminder and one correction, and end the run."""

from itertools import chain, count, cycle, repeat
from typing import Annotated, Any

import pytest
from agents import (
    AGAIN,
    CONFIG,
    START,
    TODO,
    WORK,
    Make,
    change,
    done,
    look,
    looks,
    session,
    settings,
    update,
    write,
)
from clocks import Clock, by
from langchain.agents import create_agent
from langchain_core.messages import RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from wakeloop import create_todo_agent, preset
from wakeloop.display.formatting import format_ending
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, wire_faults
from wakeloop.text.marks import split_result_text

X = looks("x")
LIST = calls(("todo_list", {}))
SPELT = ("Write the tests", "write tests")


def replaced(name: str) -> Any:
    """Return endless lists of one item, in two spellings in turn."""
    if name == "write_todos":
        lists = [{"todos": [{"content": text, "status": "in_progress"}]} for text in SPELT]
    else:
        lists = [{"items": [{"id": text[:2], "text": text, "status": "pending"}]} for text in SPELT]
    return cycle([calls(("write_todos" if name == "write_todos" else "todo", given)) for given in lists])


ENDLESS: dict[str, tuple[Any, int, int, bool]] = {
    # replies, requests, open items, whether a correction is asked for
    "one call": (lambda: chain([write("a")], repeat(X)), 13, 1, True),
    "two in turn": (lambda: chain([write("a")], cycle([X, looks("y")])), 14, 1, True),
    "two in a reply": (lambda: chain([write("a")], repeat(looks("x", "y"))), 13, 1, True),
    "reading the list": (lambda: chain([write("a")], repeat(LIST)), 12, 1, True),
    "the same plan": (lambda: repeat(write("a")), 12, 1, True),
    "one status": (lambda: chain([write("a")], repeat(update(1, "in_progress"))), 12, 1, True),
    "to and fro": (
        lambda: chain([write("a")], cycle([update(1, "in_progress"), update(1, "open")])), 12, 1, True,
    ),
    "closed and opened": (lambda: chain([write("a", "b")], cycle([done(1), update(1, "open")])), 13, 2, True),
    "refused": (lambda: chain([write("a")], repeat(update(9, "done"))), 12, 1, True),
    "refused without a list": (lambda: repeat(write(" ")), 10, 0, False),
    "without a list": (lambda: repeat(X), 11, 0, False),
    "reading no list": (lambda: repeat(LIST), 10, 0, False),
    "an error": (lambda: repeat(calls(("fail", {}))), 11, 0, False),
    "next to a malformed call": (lambda: repeat(calls(("look", {"path": "x"}), ("peer", {}))), 11, 0, False),
    "with the plan closed": (lambda: chain([write("a"), done(1)], repeat(X)), 13, 0, False),
}  # fmt: skip


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("no such thing")


@pytest.mark.parametrize("name", ENDLESS)
def test_the_exact_number_of_requests(name: str, thread: Make) -> None:
    replies, requests, left, corrected = ENDLESS[name]
    agent = thread(replies(), tools=[look, fail], left=True)
    agent.run("go")
    earned = name in ("closed and opened", "with the plan closed")
    assert agent.session == session("idle" if left else "dormant", "looping", left, budget=25 + earned)
    assert agent.asked == requests
    assert agent.kinds.count("guard") == corrected
    assert agent.ledger["idle_rounds"] == (11 if corrected else 10)


@pytest.mark.parametrize(
    ("name", "base", "requests"),
    [
        ("checklist", "lesson", 11),
        ("write_todos", "cubepi", 12),
        ("write_todos", "cubepi-strict", 13),
        ("checklist", "wakeloop", 12),
        ("write_todos", "wakeloop", 12),
    ],
)
def test_two_spellings_that_drop_each_other(name: str, base: str, requests: int, thread: Make) -> None:
    base_settings = preset(base).model_copy(update={"max_idle_rounds": 10, "dialect": name})
    agent = thread(replaced(name), left=True, settings=base_settings)
    agent.run("go")
    assert (agent.session["state"], agent.session["reason"]) == ("idle", "looping")
    assert agent.asked == requests == 11 + base_settings.guard_retries
    assert all("dropped" in text for _, text in agent.results()[1:])


@pytest.mark.parametrize("name", ["agentparley", "loki", "lesson", "cubepi", "cubepi-strict"])
def test_the_described_systems_do_without(name: str, thread: Make) -> None:
    quiet = preset(name).model_copy(update={"nag_after": 0})
    agent = thread(repeat(X), tools=[look], left=True, checked=False, settings=quiet)
    agent.run("go", limit=100)
    assert (agent.session["reason"], agent.asked) == ("step_limit", 48)
    assert not {"idle_rounds", "pairs", "best"} & agent.ledger.keys()


def test_the_walk(thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True, change={"nag_after": 0})
    rounds = [*TODO, *WORK * 11]
    assert agent.walk("go") == [*START, *rounds, *AGAIN, *WORK, "finalization_guard"]
    agent = thread(repeat(X), tools=[look], left=True)
    assert agent.walk("go") == [*START, *WORK * 11, "finalization_guard"]


# -- what the model is shown -----------------------------------------------------------------------------


def suffixes(agent: Any) -> list[tuple[int, str]]:
    """Return the suffixes that the graph has added to results, and each result's position."""
    results = [m for m in agent.messages if isinstance(m, ToolMessage)]
    return [(n, split_result_text(m)[1].strip()) for n, m in enumerate(results, 1) if split_result_text(m)[1]]


TOLD = (
    "[Reminder: the last 5 rounds brought nothing new: {}. Repeating them won't help. Try something "
    "different, or say what you need.]"
)
NAG = "[Reminder: no change to the todo list for 6 rounds; 1 open. If it no longer shows where you are, update it with `todo_update`.]"  # noqa: E501


def test_the_fifth_idle_round_is_mentioned_once_and_stored(thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True, change={"nag_after": 0})
    agent.run("go")
    assert suffixes(agent) == [(7, TOLD.format('look(path="x")'))]
    seen = [request[-1].text for request in agent.model.requests]
    assert [n for n, text in enumerate(seen) if "[Reminder" in text] == [7]


def test_it_comes_after_the_suffix_of_rule_7(thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True, change={"nag_after": 6})
    agent.run("go")
    assert suffixes(agent)[0] == (7, NAG + "\n\n" + TOLD.format('look(path="x")'))


def test_it_comes_after_the_last_of_several_results(thread: Make) -> None:
    agent = thread(repeat(calls(("look", {"path": "x"}), ("todo_list", {}))), tools=[look], left=True)
    agent.run("go")
    assert suffixes(agent) == [(12, TOLD.format('look(path="x"), todo_list()'))]


def test_the_correction_names_what_was_repeated(thread: Make) -> None:
    agent = thread(chain([write("a")], cycle([X, looks("y")])), tools=[look], left=True)
    agent.run("go")
    before, line, correction = agent.model.requests[-1][-3:]
    assert isinstance(before, ToolMessage)
    assert line.additional_kwargs == {"wakeloop": {"kind": "repair"}, "lc_source": "wakeloop"}
    assert correction.additional_kwargs == {"wakeloop": {"kind": "guard"}, "lc_source": "wakeloop"}
    assert correction.text == (
        '(automatic) The last 10 rounds brought nothing new: look(path="x"), look(path="y"). One more like '
        "them ends this run, with 1 items still open. Try something different, or update the list to show "
        "how things really stand and close in one sentence.\n\n  [1] a"
    )
    assert agent.ledger["shown"] == correction.id
    assert [kind for kind in agent.kinds if kind in ("repair", "guard")] == ["repair", "guard"]  # stored


def test_a_hook_sees_the_reminder(thread: Make) -> None:
    seen: list[str] = []

    def hook(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(state["messages"][-1].text)
        return {"llm_input_messages": state["messages"]}

    agent = thread(repeat(X), tools=[look], left=True, pre_model_hook=hook)
    agent.run("go")
    assert [n for n, text in enumerate(seen) if "[Reminder" in text] == [6]
    assert [n for n, _ in suffixes(agent)] == [6]


def test_the_events(thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True)
    guards = [event for event in agent.events("go") if event["type"] == "guard"]
    assert guards == [
        {"type": "guard", "action": "correct", "retry": 1, "retries": 1, "open": 1, "reason": "looping"}
    ]


def test_a_hook_that_removes_messages_hides_no_loop(thread: Make) -> None:
    """Six calls in turn, of which no request shows more than two."""

    def hook(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [RemoveMessage(m.id) for m in state["messages"][1:-4]]}

    script = cycle([looks(str(n)) for n in range(6)])
    agent = thread(script, tools=[look], left=True, rewritten=True, pre_model_hook=hook)
    agent.run("go", limit=100)
    assert (agent.session["reason"], agent.asked) == ("looping", 16)


# -- polling ---------------------------------------------------------------------------------------------


# -- what resets the count, and what does not ------------------------------------------------------------


def test_a_round_with_progress_resets_it(thread: Make) -> None:
    agent = thread([*[X] * 10, looks("y"), *[X] * 20], tools=[look], left=True)
    agent.run("go")
    assert (agent.session["reason"], agent.asked) == ("looping", 1 + 9 + 1 + 10)
    assert [n for n, _ in suffixes(agent)] == [6, 16]


def test_neither_a_turns_end_nor_a_wake_resets_it(thread: Make) -> None:
    script = chain([write("a")], cycle([X, "."]))
    agent = thread(script, tools=[look], left=True, change={"max_idle_wakes": 0})
    agent.run("go")
    assert (agent.session["reason"], agent.session["wakes"]) == ("looping", 10)
    assert agent.asked == 1 + 2 * 11


def test_after_the_correction_a_round_with_progress_continues(thread: Make) -> None:
    script = [write("a"), *[X] * 11, looks("y"), *[X] * 3, done(1), "bye"]
    agent = thread(script, tools=[look])
    agent.run("go")
    assert agent.session == session("dormant", "settled", budget=26)
    assert agent.asked == len(script)
    assert "idle_rounds" not in agent.ledger


def test_after_the_corrections_turn_the_first_gates_are_asked_and_no_other(thread: Make) -> None:
    agent = thread(write("a"), *[X] * 11, looks("y"), "I stop.", tools=[look], change={"guard_rearms": False})
    agent.run("go")
    assert agent.session == session("idle", "looping", 1)


def test_a_second_loop_ends_without_another_correction(thread: Make) -> None:
    agent = thread([write("a"), *[X] * 11, looks("y"), *[X] * 20], tools=[look], left=True)
    agent.run("go")
    assert (agent.session["reason"], agent.asked) == ("looping", 12 + 1 + 10)
    assert agent.kinds.count("guard") == 1


def test_two_corrections_are_two_rounds(thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True, change={"guard_retries": 2})
    agent.run("go")
    assert (agent.session["reason"], agent.asked, agent.kinds.count("guard")) == ("looping", 14, 2)


def test_a_repeated_request_counts_its_round_once(thread: Make) -> None:
    """An empty reply that is not stored leaves the round where it is."""
    agent = thread([X, X, "", "", X, "bye"], tools=[look])
    agent.run("go")
    assert agent.ledger["idle_rounds"] == 2
    assert agent.session == session("dormant", "answered")


def test_a_cut_reply_is_no_progress(thread: Make) -> None:
    cut = calls(("look", {"path": "x"}), finish_reason="length")
    agent = thread(
        [write("a"), cut, X, cut, X, "bye", "bye"],
        tools=[look],
        change={"guard_retries": 0, "max_idle_wakes": 1},
    )
    agent.run("go")
    assert agent.ledger["idle_rounds"] == 2


@pytest.mark.parametrize("tool_polls", [False, True])
def test_c89_a_polling_tool_is_never_idle_and_any_other_is_named(thread: Make, *, tool_polls: bool) -> None:
    @tool
    def poll(job: str) -> str:
        """Ask for a job's status."""
        return "running"

    poll.metadata = {"polls": tool_polls}
    agent = thread(
        repeat(calls(("poll", {"job": "7"}))), tools=[poll], left=True, change={"max_requests": 20}
    )
    agent.run("go")
    if tool_polls:
        assert (agent.session["reason"], agent.asked) == ("request_budget", 20)
        assert "idle_rounds" not in agent.ledger
        return
    assert agent.session == session("dormant", "looping", repeated='poll(job="7")')
    assert format_ending(agent.session) == (
        'Going in circles with 0 open: no new result from poll(job="7"), several times in a row.'
    )
    assert agent.asked == 11


@pytest.mark.parametrize("tool_polls", [False, True])
def test_c89_the_same_in_an_agent_of_create_agent(*, tool_polls: bool) -> None:
    @tool
    def poll(job: str) -> str:
        """Ask for a job's status."""
        return "running"

    poll.metadata = {"polls": tool_polls}
    model = ScriptedModel(repeat(calls(("poll", {"job": "7"}))))
    layer = WakeLoopMiddleware(settings={"preset": "wakeloop", "max_requests": 20})
    out = create_agent(model, [poll], middleware=[layer]).invoke({"messages": [("user", "go")]})
    ended = out["todo_session"]
    assert (ended["reason"], len(model.requests), ended.get("repeated")) == (
        ("request_budget", 20, None) if tool_polls else ("looping", 11, 'poll(job="7")')
    )


# -- the list --------------------------------------------------------------------------------------------


def test_a_list_written_by_a_tool_is_progress(thread: Make) -> None:
    written = count(1)

    @tool
    def plan(key: Annotated[str, InjectedToolCallId]) -> Any:
        """Plan one more."""
        items = [{"content": str(n), "status": "pending"} for n in range(next(written))]
        return Command(update={"todos": items, "messages": [ToolMessage("ok", tool_call_id=key)]})

    agent = thread([*[calls(("plan", {}))] * 12, calls(("plan", {})), "bye"], tools=[plan], left=True)
    agent.run("go", limit=29)
    assert agent.session["reason"] == "step_limit"
    assert not {"idle_rounds", "best"} & agent.ledger.keys()
    assert len(agent.todos) == 12


@pytest.mark.parametrize(("items", "more"), [("ab", 10), ("b", 8)])
def test_a_list_edited_by_hand_in_mid_run(items: str, more: int) -> None:
    model = ScriptedModel(chain([write("a")], repeat(X)))
    agent = create_todo_agent(model, [look], checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, CONFIG, interrupt_before=["call_model"])
    for _ in range(4):
        agent.invoke(None, CONFIG, interrupt_before=["call_model"])
    assert len(model.requests) == 4  # the second idle round is not counted yet
    by_hand = [{"content": text, "status": "pending"} for text in items]
    agent.update_state(CONFIG, {"todos": by_hand}, as_node="run_tools")
    out = agent.invoke(None, CONFIG)
    assert out["todo_session"]["reason"] == "looping"
    assert len(model.requests) == 4 + more + 1
    assert wire_faults(model.requests) == []


# -- gates, guard, format, steps, drain ------------------------------------------------------------------


class Answer(BaseModel):
    """A format."""

    text: str


def test_no_format_is_asked_for(thread: Make) -> None:
    agent = thread(repeat(X), tools=[look], left=True, response_format=Answer)
    assert agent.run("go")["structured_response"] is None
    assert (agent.session["reason"], agent.asked) == ("looping", 11)


def test_a_list_that_the_correction_settles_has_its_format(thread: Make) -> None:
    script = [write("a"), *[X] * 11, done(1), "bye", '{"text": "x"}']
    agent = thread(script, tools=[look], response_format=Answer)
    assert agent.run("go")["structured_response"] == {"text": "x"}
    assert agent.session == session("dormant", "settled", budget=26)


def test_no_explanation_is_requested_in_mid_turn(thread: Make) -> None:
    agent = thread(
        chain([write("a")], repeat(X)), tools=[look], left=True, change={"on_guard_exhausted": "block"}
    )
    agent.run("go")
    assert (agent.session["reason"], agent.asked) == ("looping", 13)


def test_while_an_escalation_silences_the_guard_nothing_is_said_or_corrected(
    thread: Make,
) -> None:
    agent = thread(
        chain([write("a"), ".", ".", "why"], repeat(X)),
        tools=[look],
        left=True,
        change={"max_wake_cycles": 0, "on_guard_exhausted": "block"},
    )
    agent.run("go")
    assert agent.session["reason"] == "guard_blocked"
    agent.run("go")
    assert (agent.session["reason"], agent.asked) == ("looping", 4 + 11)
    assert suffixes(agent) == []


@pytest.mark.parametrize(
    ("changed", "corrected"),
    [
        ({"auto_continue": False}, False),
        ({"guard_retries": 0}, False),
        ({"max_wake_cycles": 0}, True),
        ({"max_wake_cycles": 1, "max_idle_wakes": 1}, True),
    ],
)
def test_when_it_is_corrected(changed: Any, corrected: bool, thread: Make) -> None:
    agent = thread(chain([write("a")], repeat(X)), tools=[look], left=True, change=changed)
    agent.run("go")
    assert (agent.session["reason"], agent.asked) == ("looping", 12 + corrected)


def test_a_correction_that_another_gate_caused_is_ended_too(thread: Make) -> None:
    agent = thread([write("a"), ".", *[X] * 20], tools=[look], left=True, change={"max_wake_cycles": 0})
    agent.run("go")
    assert agent.session == session("idle", "looping", 1, 0, 0)
    assert agent.asked == 2 + 11


def test_the_first_gate_decides(thread: Make) -> None:
    @tool
    def ask(key: Annotated[str, InjectedToolCallId]) -> Any:
        """Ask a peer, and wait."""
        entry = {"id": "q", "on": "peer"}
        return Command(update={"waiting_on": [entry], "messages": [ToolMessage("asked", tool_call_id=key)]})

    agent = thread(chain([write("a")], repeat(calls(("ask", {})))), tools=[ask], left=True)
    agent.run("go")
    assert (agent.session["state"], agent.session["reason"]) == ("waiting", "waiting")
    assert agent.asked == 12


def stopping(control: RunControl, reply: Any) -> Any:
    """Return a reply during which the process is asked to stop."""

    def say(_: Any) -> Any:
        control.request_drain()
        return reply

    return say


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 7, 12, 13])
def test_a_drained_run_continues_with_the_same_count(at: int, thread: Make) -> None:
    control = RunControl()
    script = [write("a"), *[X] * 12]
    script[at - 1] = stopping(control, script[at - 1])
    agent = thread(script, tools=[look])
    with pytest.raises(GraphDrained):
        agent.run("go", control=control)
    assert agent.ledger.get("idle_rounds", 0) == max(0, at - 3)
    agent.run(None)
    assert agent.session == session("idle", "looping", 1)
    assert [n for n, text in suffixes(agent) if "brought nothing new" in text] == [7]


def test_no_correction_while_it_is_drained(thread: Make) -> None:
    """The drain is requested while the guard is at work."""
    control = RunControl()
    model = ScriptedModel(chain([write("a")], repeat(X)))
    agent = create_todo_agent(model, [look], checkpointer=InMemorySaver())
    for event in agent.stream({"messages": [("user", "go")]}, CONFIG, stream_mode="debug", control=control):
        if event["type"] == "task" and event["payload"]["name"] == "finalization_guard":
            control.request_drain()
    assert agent.get_state(CONFIG).values["todo_session"]["reason"] == "looping"
    assert len(model.requests) == 12


def test_at_every_step_limit() -> None:
    """The correction needs four steps in the guard; if a round of it is cut off, the reason is the step
    limit.
    """
    asked, reasons = {}, {}
    for limit in range(20, 36):
        model = ScriptedModel(chain([write("a")], repeat(X)))
        agent = create_todo_agent(model, [look], settings=settings(nag_after=0))
        out = agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": limit})
        asked[limit], reasons[limit] = len(model.requests), out["todo_session"]["reason"]
        assert wire_faults(model.requests) == []
    assert asked == {**{n: (n - 4) // 2 for n in range(20, 30)}, 30: 12, **dict.fromkeys(range(31, 36), 13)}
    looping = {30, 34, 35}  # not corrected at 30, cut off within the correction at 31 to 33
    assert reasons == {n: "looping" if n in looping else "step_limit" for n in range(20, 36)}


@pytest.mark.parametrize(
    ("most", "asked", "reason", "guards"),
    [
        (11, 12, "request_budget", 1),
        (12, 13, "request_budget", 1),
        (13, 14, "request_budget", 2),
        (14, 13, "looping", 1),
    ],
)
def test_a_spent_budget_is_reported_first(
    most: int, asked: int, reason: str, guards: int, thread: Make
) -> None:
    """At 12 instead of the correction, at 13 instead of its end."""
    replies = chain([write("a")], [X] * (most - 1), [X] if reason == "looping" else ["I can't continue."])
    agent = thread(replies, tools=[look], left=True, change={"max_requests": most})
    agent.run("go")
    assert (agent.session["reason"], agent.asked, agent.kinds.count("guard")) == (reason, asked, guards)
    assert agent.kinds.count("repair") == guards


# -- crash and resume ------------------------------------------------------------------------------------


def test_an_interrupt_in_a_round_keeps_the_count(thread: Make) -> None:
    @tool
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("?"))

    both = calls(("look", {"path": "x"}), ("ask", {}), ("todo_list", {}))
    agent = thread(chain([write("a")], repeat(both)), tools=[look, ask], left=True)
    agent.run("go")
    for answered in range(12):
        assert agent.asked == answered + 2
        assert agent.ledger.get("idle_rounds", 0) == max(0, answered - 1)
        agent.run(Command(resume="yes"))
    assert agent.session == session("idle", "looping", 1)
    assert agent.asked == 13


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one call", "two in turn", "to and fro", "the same plan"])
def test_interrupted_at_any_superstep_it_counts_the_same(name: str) -> None:
    """Each superstep is a run of its own, by another agent on the same thread."""
    replies, requests, _, _ = ENDLESS[name]
    model, saver, steps = ScriptedModel(replies()), InMemorySaver(), 0
    given: Any = {"messages": [("user", "go")]}
    while True:
        agent = create_todo_agent(model, [look], settings=settings(nag_after=0), checkpointer=saver)
        agent.invoke(given, CONFIG, interrupt_after="*")
        given, steps = None, steps + 1
        if not agent.get_state(CONFIG).next:
            break
    assert agent.get_state(CONFIG).values["todo_session"]["reason"] == "looping"
    assert len(model.requests) == requests
    assert steps == 1 + 2 * requests + 4  # the start, two per round, and twice a count and a ruling
    told = [n for n, request in enumerate(model.requests) if "nothing new" in request[-1].text]
    assert told == [requests - 6, requests - 1]  # after a result, and as the correction
    assert wire_faults(model.requests) == []


@pytest.mark.parametrize("at", range(1, 13))
def test_a_failing_model_loses_and_counts_nothing_twice(at: int) -> None:
    script: list[Any] = [write("a"), *[X] * 12]
    script.insert(at, OSError("no network"))
    model = ScriptedModel(script)
    agent = create_todo_agent(model, [look], checkpointer=InMemorySaver())
    with pytest.raises(OSError, match="no network"):
        agent.invoke({"messages": [("user", "go")]}, CONFIG)
    out = agent.invoke(None, CONFIG)
    model.assert_done()
    assert out["todo_session"]["reason"] == "looping"
    texts = [str(m.text) for m in out["messages"]]
    assert sum("[Reminder: the last 5 rounds" in text for text in texts) == 1


# -- storage --------------------------------------------------------------------------------------


def rows(script: Any, limit: int) -> list[tuple[str, int]]:
    """Return every value that was written: its channel and its size in bytes."""
    saver = InMemorySaver()
    agent = create_todo_agent(
        ScriptedModel(script), [look], settings=settings(max_idle_rounds=limit), checkpointer=saver
    )
    by(Clock(), agent)
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    return sorted((w[1], len(w[2][1])) for task in saver.writes.values() for w in task.values())


def test_a_thread_without_repeats_stores_no_byte_for_it() -> None:
    numbers = range(1, 9)
    work = [calls(("look", {"path": f"{n}"}), change(n, "done")) for n in numbers]
    script = [write(*map(str, numbers)), *work, looks("more"), write("9"), "stop", done(9), "bye"]
    assert rows(script, 10) == rows(script, 0)


def test_what_is_stored_of_rounds_without_progress() -> None:
    """A count; the previous list with a todo result; the pairs from a call's second time on."""

    def more(*script: Any) -> dict[str, int]:
        bytes_of: dict[str, int] = {}
        for limit, sign in ((10, 1), (0, -1)):
            for channel, size in rows([*script, "bye"], limit):
                bytes_of[channel] = bytes_of.get(channel, 0) + sign * size
        return {channel: size for channel, size in bytes_of.items() if size}

    count_, pairs = len("_idle_rounds_"), len("_pairs_") + 3 * 2
    assert more(write("a"), update(1, "in_progress"), looks("x"), done(1)) == {
        "messages": 2,  # two small numbers in place of a None
        "todo_ledger": count_,
    }
    assert more(X, looks("y"), X, "stop") == {"todo_ledger": 2 * (count_ + pairs)}
