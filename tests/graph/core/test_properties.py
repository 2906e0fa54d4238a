"""Whatever the model does: a run ends within its bound, and nothing is lost."""

import asyncio
from itertools import cycle
from typing import Any

import pytest
from agents import CONFIG, budget, change, look
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import LoopSettings, create_todo_agent, session_of
from wakeloop.loop.gates import DONE
from wakeloop.testing import (
    Knobs,
    ScriptedModel,
    WeakModel,
    calls,
    malformed_call,
    prompt_faults,
    says,
    wire_faults,
)
from wakeloop.todos.items import count_open

IDS = st.none() | st.sampled_from(["same", "other"])
STATUS = st.sampled_from(["done", "blocked", "cancelled", "open", "in_progress", "nonsense"])
TOLD = ["stop", "stop", "stop", "length"]
CALL = st.one_of(
    st.tuples(
        st.just("todo_write"),
        st.fixed_dictionaries({"items": st.lists(st.sampled_from(["a", "b", " "]), max_size=3)}),
    ),
    st.builds(
        change,
        st.integers(1, 5),
        STATUS,
        st.sampled_from(["", "why"]),
    ),
    st.just(("todo_list", {})),
    st.builds(lambda path: ("look", {"path": path}), st.sampled_from(["x", "y"])),
    st.just(("look", {"wrong": 1})),
    st.just(("peer", {})),
    st.just(malformed_call("todo_write", '{"items": [')),
).flatmap(lambda call: IDS.map(lambda key: (*call, key)) if isinstance(call, tuple) else st.just(call))
TEXT = st.builds(
    says,
    st.sampled_from(["", "a", "b", " "]),
    finish_reason=st.sampled_from(TOLD),
)
ROUND = st.builds(
    lambda made, text, why: calls(*made, text=text, finish_reason=why),
    st.lists(CALL, min_size=1, max_size=3),
    st.sampled_from(["", "t"]),
    st.sampled_from(TOLD),
)
REPLIES = st.lists(TEXT | ROUND, max_size=14)
SETTINGS = st.builds(
    LoopSettings,
    auto_continue=st.sampled_from([True, True, True, False]),
    max_wake_cycles=st.integers(0, 4),
    earn_wakes=st.sampled_from([0, 2, 100]),
    max_idle_wakes=st.integers(0, 2),
    stop_on_repeat=st.booleans(),
    guard_retries=st.integers(0, 2),
    guard_rearms=st.booleans(),
    on_guard_exhausted=st.sampled_from(["proceed", "block"]),
    nag_after=st.integers(0, 2),
    nag_every=st.integers(0, 1),
    nag_when=st.sampled_from(["open", "always"]),
    in_progress=st.sampled_from(["any", "at_most_one"]),
    max_items=st.sampled_from([None, 4]),
    reply_retries=st.integers(0, 2),
    retries_fall=st.booleans(),
    nudge_items=st.integers(1, 3),
)
COUNTERS = ("wake_cycles", "idle_wakes", "todo_stale_iterations")


def requests_then_silence(replies: list[AIMessage]) -> Any:
    """Yield the replies, and then the same text forever."""
    yield from replies
    while True:
        yield says("that is all")


def play(agent: Any, given_: Any, door: str) -> dict[str, Any]:
    if door == "sync":
        return agent.invoke(given_, CONFIG)
    return asyncio.run(agent.ainvoke(given_, CONFIG))


def turns(model: Any, since: int) -> int:
    """Count the turns that these requests began, with a user's or the graph's words; a repeated one counts
    once.
    """
    begun, before = 0, 0
    for request in model.requests[since:]:
        kind = request[-1].additional_kwargs.get("wakeloop", {}).get("kind", request[-1].type)
        begun += kind in ("human", "wake", "guard", "activate") and len(request) != before
        before = len(request)
    return begun


def is_silent_topic(messages: list[Any]) -> bool:
    """Return whether a wake asked if a person's message is a new topic, and no call has been made since."""
    kinds = [message.additional_kwargs.get("wakeloop", {}) for message in messages]
    begun = max(n for n, m in enumerate(messages) if m.type == "human" and not kinds[n])
    doubts = [kind.get("doubt") for kind in kinds[begun:] if kind.get("kind") == "wake"]
    called = any(m.tool_calls for m in messages[begun:] if m.type == "ai")
    return doubts == ["topic"] and not called


def check(agent: Any, model: Any, settings: LoopSettings, output: dict[str, Any], since: int) -> None:
    values = agent.get_state(CONFIG).values
    session, ledger = output["todo_session"], values["todo_ledger"]
    if session["reason"] == "waiting":  # silent twice after a message over old items (rule 26); no text asks
        assert (session["state"], session["on"]) == ("waiting", "human")
        assert session["open"]
        assert is_silent_topic(output["messages"])
    else:
        assert session["state"] == ("idle" if session["open"] else "dormant")
    assert session["open"] == count_open(output["todos"]) == session_of(agent.get_state(CONFIG))["open"]
    began, most = ledger.get("settled", (0, 0))
    assert (most >= session["items"] - session["open"]) or not settings.earn_wakes
    earned = min(most - began, settings.earn_wakes) if settings.max_wake_cycles else 0
    assert session["budget"] == settings.max_wake_cycles + earned
    assert 0 <= session["wakes"] == ledger["wake_cycles"] <= session["budget"]
    assert all(ledger[name] >= 0 for name in COUNTERS)
    spent = ledger["todo_guard_retries"].get("open_todos", 0)
    assert 0 <= spent <= settings.guard_retries
    explained = settings.on_guard_exhausted == "block"
    assert turns(model, since) <= 1 + session["budget"] + settings.guard_retries + explained
    if settings.in_progress == "at_most_one":
        assert sum(item["status"] == "in_progress" for item in output["todos"]) <= 1
    if session["reason"] in DONE:
        assert not session["open"]
    assert sum(session[kind] for kind in ("open", "completed", "cancelled", "blocked")) == session["items"]
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    assert len({str(request[0].content) for request in model.requests}) <= 1
    ids = [m.id for m in output["messages"]]
    assert len(set(ids)) == len(ids)
    made = [call["id"] for m in output["messages"] if m.type == "ai" for call in m.tool_calls]
    answered = [m.tool_call_id for m in output["messages"] if m.type == "tool"]
    assert sorted(made) == sorted(answered)
    assert len(set(made)) == len(made)


def stored(agent: Any) -> None:
    """Check that nothing is lost without an operation:

    an id that was in the list stays in it, at every checkpoint.
    """
    known: list[Any] = []
    for snapshot in reversed(list(agent.get_state_history(CONFIG))):
        ids = [item["id"] for item in snapshot.values.get("todos", [])]
        assert ids[: len(known)] == known
        known = ids


@budget(60)
@given(REPLIES, REPLIES, SETTINGS, st.sampled_from(["sync", "sync", "async"]))
def test_any_sequence_of_replies(first: Any, second: Any, settings: LoopSettings, door: str) -> None:
    model = ScriptedModel(requests_then_silence([*first, *second]))
    agent = create_todo_agent(model, [look], settings=settings, checkpointer=InMemorySaver())
    for given_ in ({"messages": [("user", "go")]}, {"messages": [("user", "more")]}, {}):
        since = len(model.requests)
        output = play(agent, given_, door)
        check(agent, model, settings, output, since)
    stored(agent)


@budget(25)
@given(
    st.integers(0, 10**6),
    st.floats(0, 0.6),
    st.floats(0, 0.4),
    SETTINGS,
    st.sampled_from(["sync", "sync", "async"]),
)
def test_any_unreliable_model(seed: int, weak: float, bad: float, settings: LoopSettings, door: str) -> None:
    habits = {"wrong_tool": bad, "wrong_args": bad, "double": bad, "echo": bad}
    knobs = Knobs(stop=weak, forget=weak, malformed=bad, **habits)
    model = WeakModel(seed=seed, knobs=knobs)
    agent = create_todo_agent(model, [look], settings=settings, checkpointer=InMemorySaver())
    for text in ("go", "more"):
        since = len(model.requests)
        output = play(agent, {"messages": [("user", text)]}, door)
        check(agent, model, settings, output, since)
    stored(agent)


@budget(10)
@given(st.integers(0, 10**6))
def test_a_merely_forgetful_model_settles_in_the_end(seed: int) -> None:
    model = WeakModel(seed=seed, knobs=Knobs(stop=0.3, forget=0.2))
    agent = create_todo_agent(model, [look], settings=LoopSettings(max_idle_wakes=0, max_wake_cycles=200))
    output = agent.invoke({"messages": [("user", "go")]})
    assert output["todo_session"]["reason"] == "settled"
    assert [item["status"] for item in output["todos"]] == ["completed"] * 3


@budget(30)
@given(REPLIES, SETTINGS, st.integers(0, 12))
def test_a_run_interrupted_anywhere_continues(replies: Any, settings: LoopSettings, at: int) -> None:
    script: list[Any] = [*replies, *["that is all"] * 12]
    script.insert(at, OSError("no network"))
    model = ScriptedModel(requests_then_silence(script))
    agent = create_todo_agent(model, [look], settings=settings, checkpointer=InMemorySaver())
    for given_ in ({"messages": [("user", "go")]}, None, {"messages": [("user", "more")]}):
        since = len(model.requests)
        try:
            output = agent.invoke(given_, CONFIG)
        except OSError:
            assert agent.get_state(CONFIG).values["todo_session"]["state"] == "running"
            continue
        if given_ is not None and output["todo_session"]["state"] != "running":
            check(agent, model, settings, output, since)
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    stored(agent)


@budget(25)
@given(REPLIES, SETTINGS, st.integers(5, 30))
def test_any_step_limit(replies: Any, settings: LoopSettings, limit: int) -> None:
    model = ScriptedModel(requests_then_silence(replies))
    agent = create_todo_agent(model, [look], settings=settings, checkpointer=InMemorySaver())
    for text in ("go", "more"):
        since = len(model.requests)
        output = agent.invoke({"messages": [("user", text)]}, {**CONFIG, "recursion_limit": limit})
        check(agent, model, settings, output, since)


NEW = (
    3 + 2 + 5
)  # how much progress the calls of CALL can make: pairs, different replies, items settled at once
SAID = st.sampled_from([says("a"), says("b")])
UNCUT = st.builds(lambda made: calls(*made), st.lists(CALL, min_size=1, max_size=3))


@pytest.mark.slow
@budget(60)
@given(st.lists(SAID | UNCUT, min_size=1, max_size=6), st.sampled_from(["sync", "sync", "async"]))
def test_a_model_that_only_repeats_itself_ends(replies: list[AIMessage], door: str) -> None:
    """Nine rounds between two with progress, a tenth for the correction; one text per turn."""
    model = ScriptedModel(cycle(replies))
    agent = create_todo_agent(model, [look], settings=LoopSettings(), checkpointer=InMemorySaver())
    for given_ in ({"messages": [("user", "go")]}, {"messages": [("user", "more")]}):
        since = len(model.requests)
        output = play(agent, given_, door)
        check(agent, model, LoopSettings(), output, since)
        rounds = NEW + 9 * (NEW + 1) + 2
        assert len(model.requests) - since <= rounds + 1 + output["todo_session"]["budget"] + 1
        assert output["todo_session"]["reason"] in {*DONE, "waiting", "stalled", "looping", "malformed_calls"}


@pytest.mark.slow
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("retries", range(4))
@pytest.mark.parametrize("wakes", range(5))
def test_the_bound_on_turns_is_reached_exactly(wakes: int, retries: int, block: bool) -> None:
    model = ScriptedModel(requests_then_silence([calls(("todo_write", {"items": ["a"]}))]))
    base = LoopSettings(
        max_wake_cycles=wakes,
        max_idle_wakes=0,
        guard_retries=retries,
        on_guard_exhausted="block" if block else "proceed",
    )
    agent = create_todo_agent(model, settings=base)
    output = agent.invoke({"messages": [("user", "go")]})
    explained = block and retries > 0  # without a correction there is nothing to explain
    assert turns(model, 0) == 1 + wakes + retries + explained
    assert len(model.requests) == 1 + turns(model, 0)  # one round, and one text per turn
    assert output["todo_session"]["reason"] == (
        "guard_blocked" if explained else "wake_budget" if wakes else "disabled"
    )
