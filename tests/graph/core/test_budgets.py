"""Rule 19: what an activation may spend, as exact walks and counts, on the test's own clock."""

import json
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Annotated, Any
from unittest.mock import ANY

import pytest
from agents import AGAIN, END, QUIET, START, TODO, WORK, Make, budget, done, look, looks, session, write
from clocks import Clock, by
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from wakeloop import LoopSettings, SettingsError, answer_of, create_todo_agent, session_of
from wakeloop.testing import Knobs, ScriptedModel, WeakModel, calls, says

PRICES = {"default": {"input": 1000, "cached": 100, "output": 2000}}


def used(reply: AIMessage, given_: int = 100, out: int = 10, cached: int = 0) -> AIMessage:
    """Return a reply that reports its tokens."""
    told: Any = {"input_tokens": given_, "output_tokens": out, "total_tokens": given_ + out}
    told["input_token_details"] = {"cache_read": cached}
    return reply.model_copy(update={"usage_metadata": told})


def new_calls() -> Iterator[AIMessage]:
    """Return endless calls, each a new one."""
    return (used(looks(str(number))) for number in range(10_000))


def working(*first: AIMessage) -> Iterator[AIMessage]:
    return chain(first or [used(write("a"))], new_calls())


def spent(agent: Any) -> dict[str, Any]:
    return dict(agent.session["spent"])


# -- each budget, exactly --------------------------------------------------------------------------------


def test_endless_new_calls_are_twenty_requests_and_the_closing_one(thread: Make) -> None:
    agent = thread(working(), left=True, tools=[look], change={"max_requests": 20, "nag_after": 0})
    walked = agent.walk("go", limit=200)
    assert walked == [*START, *TODO, *WORK * 19, *AGAIN, *END]
    assert agent.asked == 21
    assert len(agent.results()) == 20
    assert agent.session == {**session("idle", "request_budget", 1), "spent": spent(agent)}
    assert (spent(agent)["requests"], agent.kinds[-2:]) == (21, ["guard", "ai"])


@pytest.mark.parametrize(
    ("change", "reason", "rounds"),
    [
        ({"max_tokens": 330}, "token_budget", 3),
        ({"max_tokens": 331}, "token_budget", 4),
        ({"max_cost": 0.36, "prices": PRICES}, "cost_budget", 3),  # 0.12 per request
        ({"max_cost": 0.361, "prices": PRICES}, "cost_budget", 4),
        ({"max_tokens": 330, "max_requests": 3}, "request_budget", 3),
        ({"max_tokens": 330, "max_cost": 0.36, "max_seconds": 0.001, "prices": PRICES}, "token_budget", 3),
    ],
)
def test_tokens_and_cost_are_bounded(change: Any, reason: str, rounds: int, thread: Make) -> None:
    agent = thread(working(), left=True, tools=[look], change=change)
    by(Clock(), agent.graph)
    agent.run("go")
    assert agent.session["reason"] == reason
    assert (agent.asked, len(agent.results())) == (rounds + 1, rounds)
    told = {"requests": rounds + 1, "input": 100 * (rounds + 1), "cached": 0, "output": 10 * (rounds + 1)}
    cost = round(0.12 * (rounds + 1), 9) if "prices" in change else None
    assert spent(agent) == {**told, "cost": cost, "seconds": 0.0, "estimated": False, "failed_calls": 0}


@pytest.mark.parametrize(("most", "rounds"), [(8, 1), (8.001, 2), (18, 2), (18.001, 3)])
def test_seconds_are_the_models_and_the_longest_call_of_each_round(most: float, rounds: int) -> None:
    """3 seconds per request; in each round the longest call takes 5, 7 and 9."""
    clock = Clock()

    def work(seconds: int) -> str:
        """Work."""
        clock.advance(seconds)
        return "done"

    def thinks(reply: AIMessage) -> Any:
        def answer(_: Any) -> AIMessage:
            clock.advance(3)
            return reply

        return answer

    replies = [calls(("work", {"seconds": n}), ("work", {"seconds": n - 4})) for n in (5, 7, 9)]
    model = ScriptedModel([*map(thinks, replies), *repeat(thinks(says("end")), 1)])
    agent = create_todo_agent(
        model, [work], settings=LoopSettings(max_seconds=most), checkpointer=InMemorySaver()
    )
    by(clock, agent)
    result = agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "1"}})
    assert len(model.requests) == rounds
    assert result["todo_session"]["reason"] == "time_budget"
    assert result["todo_session"]["state"] == "dormant"  # nothing is open, so the closing request is left out
    assert result["todo_session"]["spent"]["seconds"] == sum([8, 10, 12][:rounds])


def test_a_persons_time_and_a_failed_attempt_are_not_counted(thread: Make) -> None:
    clock = Clock()

    def ask(seconds: int) -> str:
        """Ask a person."""
        clock.advance(seconds)
        return str(interrupt("which?"))

    def breaks(_: Any) -> AIMessage:
        clock.advance(50)
        raise TimeoutError

    def answers(_: Any) -> AIMessage:
        clock.advance(3)
        return says("end")

    agent = thread(calls(("ask", {"seconds": 5})), breaks, answers, tools=[ask])
    by(clock, agent.graph)
    agent.run("go")
    assert (agent.session["state"], agent.session["spent"]["requests"]) == ("waiting", 1)
    clock.advance(1_000)
    with pytest.raises(TimeoutError):
        agent.run(Command(resume="this"))
    assert agent.session == session("failed", "failed", error="TimeoutError")
    clock.advance(1_000)
    agent.run(None)
    took = spent(agent)
    if agent.door == "sync":
        assert took["seconds"] == 5 + 3
    assert (took["requests"], took["failed_calls"]) == (2, 0)


# -- which gate decides, and what does not follow --------------------------------------------------------


def test_with_nothing_open_a_spent_budget_ends_it_dormant_and_nothing_more_is_asked(thread: Make) -> None:
    agent = thread(new_calls(), left=True, tools=[look], change={"max_requests": 5})
    assert agent.walk("go") == [*START, *WORK * 5, *END]
    assert (agent.asked, len(agent.results())) == (5, 5)
    assert agent.session == session("dormant", "request_budget")


@pytest.mark.parametrize(
    ("change", "asked"),
    [({}, 4), ({"on_budget": "stop"}, 3), ({"auto_continue": False}, 3), ({"max_wake_cycles": 0}, 4)],
)
def test_whether_the_closing_request_is_made_in_mid_turn(change: Any, asked: int, thread: Make) -> None:
    agent = thread(working(), left=True, tools=[look], change={"max_requests": 3, **change})
    agent.run("go")
    assert agent.session["reason"] == "request_budget"
    assert (agent.asked, len(agent.results())) == (asked, 3)


@pytest.mark.parametrize(
    ("replies", "change", "walked", "reason"),
    [
        # a turn that ended with nothing open, or where an earlier gate stops the run
        (["hi"], {"max_requests": 1}, [*START, *END], "answered"),
        ([write("a"), done(1), "hi"], {"max_requests": 3}, [*START, *TODO * 2, *END], "settled"),
        ([write("a"), "x"], {"max_requests": 2, "auto_continue": False}, [*START, *TODO, *END], "disabled"),
        (
            [write("a"), "x"],
            {"max_requests": 2, "max_wake_cycles": 0, **QUIET},
            [*START, *TODO, *END],
            "disabled",
        ),
        # no wake, no correction
        ([write("a"), "x", "y"], {"max_requests": 2}, [*START, *TODO, *AGAIN, *END], "request_budget"),
        (
            [write("a"), "x", "y"],
            {"max_requests": 2, "max_wake_cycles": 0},
            [*START, *TODO, *AGAIN, *END],
            "request_budget",
        ),
        # after a correction: no second one, no explanation
        (
            [write("a"), "x", "y", "z"],
            {"max_requests": 3, "max_wake_cycles": 0, "guard_retries": 2},
            [*START, *TODO, *AGAIN, *AGAIN, *END],
            "request_budget",
        ),
        (
            [write("a"), "x", "y", "z"],
            {"max_requests": 3, "max_wake_cycles": 0, "on_guard_exhausted": "block"},
            [*START, *TODO, *AGAIN, *AGAIN, *END],
            "request_budget",
        ),
        # the explanation was asked for before
        (
            [write("a"), "x", "y", "z"],
            {"max_requests": 4, "max_wake_cycles": 0, "on_guard_exhausted": "block"},
            [*START, *TODO, *AGAIN, *AGAIN, *END],
            "guard_blocked",
        ),
        # no retry after a cut reply with or without open items, or after an empty one
        ([says("x", finish_reason="length")], {"max_requests": 1}, [*START, *END], "request_budget"),
        (
            [write("a"), says("x", finish_reason="length"), "y"],
            {"max_requests": 2},
            [*START, *TODO, *AGAIN, *END],
            "request_budget",
        ),
        ([""], {"max_requests": 1}, [*START, *END], "request_budget"),
        (["", ""], {"max_requests": 2}, [*START, *AGAIN, *END], "request_budget"),
        # the run has ended already for another reason
        (
            [says("x", finish_reason="length")],
            {"max_requests": 1, "reply_retries": 0},
            [*START, *END],
            "truncated",
        ),
        ([says("No.", finish_reason="content_filter")], {"max_requests": 1}, [*START, *END], "refused"),
    ],
)  # fmt: skip
def test_what_follows_a_turn(replies: Any, change: Any, walked: Any, reason: str, thread: Make) -> None:
    agent = thread(*replies, change=change)
    assert agent.walk("go") == walked
    assert agent.session["reason"] == reason
    assert spent(agent)["requests"] == len(replies) == agent.asked


class Answer(BaseModel):
    """An answer."""

    number: int


@pytest.mark.parametrize(("most", "asked", "reason"), [(1, 1, "request_budget"), (2, 2, "answered")])
def test_a_format_is_not_requested_after_a_spent_budget(
    most: int, asked: int, reason: str, thread: Make
) -> None:
    replies = ["hi", says('{"number": 7}')][:asked]
    agent = thread(*replies, response_format=Answer, change={"max_requests": most})
    result = agent.run("go")
    assert (agent.asked, agent.session) == (asked, session("dormant", reason))
    assert result["structured_response"] == ({"number": 7} if asked > 1 else None)


def test_an_unfit_format_is_not_asked_for_again(thread: Make) -> None:
    agent = thread("hi", says("seven"), response_format=Answer, change={"max_requests": 2})
    result = agent.run("go")
    assert agent.session == session("dormant", "request_budget")
    assert result["structured_response"] is None


@pytest.mark.parametrize(("limit", "walked"), [(6, [*AGAIN, *END]), (5, END)])
def test_a_closing_request_needs_three_steps(limit: int, walked: Any, thread: Make) -> None:
    agent = thread(says("x", finish_reason="length"), "y", left=True, change={"max_requests": 1})
    went_in: Any = {"messages": [("user", "go")], "todos": [{"content": "a", "status": "pending"}]}
    assert agent.walk(went_in, limit=limit) == [*START, *walked]
    assert agent.session == session("idle", "request_budget", 1)


def test_a_drain_prevents_the_closing_request() -> None:
    """The drain is requested while the guard is at work, after a cut reply that spent the budget."""
    control, model = RunControl(), ScriptedModel(write("a"), says("x", finish_reason="length"))
    agent = create_todo_agent(model, settings=LoopSettings(max_requests=2), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for event in agent.stream({"messages": [("user", "go")]}, config, stream_mode="debug", control=control):
        if event["type"] == "task" and event["payload"]["name"] == "finalization_guard":
            control.request_drain()
    assert session_of(agent.get_state(config)) == session("idle", "request_budget", 1)
    model.assert_done()


def test_the_first_gate_decides_and_the_report_comes_with_the_last_result(thread: Make) -> None:
    """A subagent's result is not answered; what was not reported during the wait is reported then."""

    @tool
    def send(key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Send a subagent."""
        said = ToolMessage("sent", tool_call_id=key)
        return Command(update={"waiting_on": [{"id": "s", "on": "subagent"}], "messages": [said]})

    agent = thread(write("a"), calls(("send", {})), "report", tools=[send], change={"max_requests": 2})
    assert agent.walk("go") == [*START, *TODO, *WORK, *END]
    assert agent.session == {**session("waiting", "waiting", 1), "on": "subagent", "until": ANY}
    came: Any = {"todo_inbox": [{"kind": "subagent_done", "id": "1", "text": "x", "correlation_id": "s"}]}
    assert agent.walk(came) == ["activate", *AGAIN, *END]
    assert agent.session == session("idle", "request_budget", 1)
    assert (spent(agent)["requests"], answer_of(agent.values)) == (3, "report")
    late: Any = {"todo_inbox": [{"kind": "subagent_done", "id": "2", "text": "y"}]}
    assert agent.walk(late) == ["activate", *END]
    assert agent.session == session("idle", "request_budget", 1)
    assert agent.asked == 3


# -- the closing request ---------------------------------------------------------------------------------


def test_the_closing_request_is_the_answer_and_its_calls_are_removed(thread: Make) -> None:
    last = calls(("look", {"path": "z"}), ("todo_update", {"id": 1, "status": "done"}), text="Half is done.")
    agent = thread(write("a"), looks("x"), last, tools=[look], change={"max_requests": 2})
    result = agent.run("go")
    assert answer_of(result) == "Half is done."
    assert (agent.messages[-1].tool_calls, len(agent.results())) == ([], 2)
    assert [item["status"] for item in agent.todos] == ["pending"]
    asked = agent.model.requests[-1][-1].text
    assert asked.startswith("(automatic) The budget of this run is spent with 1 items open.")
    assert asked.endswith("[1] a")


@pytest.mark.parametrize(
    ("last", "reason", "text"),
    [
        ("", "request_budget", "[no text]"),
        (looks("z"), "request_budget", "[no text]"),
        (says("so f", finish_reason="length"), "request_budget", "so f"),
        (says("No.", finish_reason="content_filter"), "refused", "No."),
    ],
)
def test_the_closing_request_is_never_asked_again(last: Any, reason: str, text: str, thread: Make) -> None:
    agent = thread(write("a"), last, tools=[look], change={"max_requests": 1})
    assert agent.walk("go") == [*START, "validate_todos", "call_model", *AGAIN, *END]
    assert (agent.session["reason"], agent.messages[-1].text, agent.kinds[-1]) == (reason, text, "ai")


def test_the_reason_is_the_one_that_caused_it(thread: Make) -> None:
    """The closing request reaches the limit that would come first in order."""
    replies = [used(write("a")), used(says("x")), used(says("report"))]
    agent = thread(*replies, change={"max_requests": 3, "max_tokens": 220})
    agent.run("go")
    assert agent.session["reason"] == "token_budget"


def test_the_next_input_resets_the_count_even_an_empty_kick(thread: Make) -> None:
    agent = thread(
        *[write("a"), "report", "x", "report", "y", "report"], change={"max_requests": 1, "guard_retries": 0}
    )
    agent.run("go")
    assert spent(agent)["requests"] == 2
    assert agent.walk("keep going") == [*START, *AGAIN, *END]
    assert spent(agent)["requests"] == 2
    assert agent.walk({}) == [*START, *AGAIN, *END]
    assert (agent.session, spent(agent)["requests"]) == (session("idle", "request_budget", 1), 2)


def test_a_threads_budget_is_raised_with_the_next_input(thread: Make) -> None:
    replies = [write("a"), "report", looks("x"), looks("y"), done(1), "bye"]
    agent = thread(*replies, tools=[look], change={"max_requests": 1})
    agent.run("go")
    agent.run({"messages": [("user", "keep going")], "todo_settings": {"max_requests": 9}})
    assert agent.session == session("dormant", "settled", budget=26)
    assert spent(agent)["requests"] == 4


# -- prices ----------------------------------------------------------------------------------------------


def test_a_cost_limit_is_refused_without_a_price() -> None:
    sentence = "max_cost needs a price, and prices has none for a model whose client does not give its name"
    with pytest.raises(SettingsError, match=sentence):
        create_todo_agent(ScriptedModel("x"), settings=LoopSettings(max_cost=1))


def test_a_thread_may_limit_the_cost_only_with_a_price(thread: Make) -> None:
    agent = thread("x")
    bad = {"messages": [("user", "go")], "todo_settings": {"max_cost": 1}}
    with pytest.raises(Exception, match="max_cost needs a price"):
        agent.run(bad)
    with pytest.raises(Exception, match="'prices' is fixed when the agent is built"):
        agent.run({**bad, "todo_settings": {"prices": PRICES}})
    assert agent.asked == 0
    agent.run({**bad, "todo_settings": {}})
    priced = thread("x", change={"prices": PRICES})
    priced.run(bad)
    assert spent(priced)["cost"] > 0


def test_a_reply_under_a_name_without_a_price_costs_what_the_configured_model_does(thread: Make) -> None:
    class Named(ScriptedModel):
        model_name: str = "router"

    one = {"router": {"input": 1000, "output": 1000}, "big": {"input": 5000, "output": 5000}}
    names = ["big-2026", "unheard-of", None]
    replies = [used(looks(str(name))) for name in names]
    for reply, name in zip(replies, names, strict=True):
        reply.response_metadata |= {"model_name": name} if name else {}
    agent = thread(
        model=Named(*replies, used(says("x"))), tools=[look], change={"prices": one, "max_cost": 9}
    )
    agent.run("go")
    assert spent(agent)["cost"] == 0.88  # one at 0.55, and three at 0.11


# -- reports ------------------------------------------------------------------------------------


def test_every_ending_reports_the_spending_and_an_event_follows_each_request(thread: Make) -> None:
    fails = calls(("look", {"wrong": 1}), ("nothing", {}))
    agent = thread(
        *[used(write("a"), cached=64), used(fails), used(done(1)), used(says("x"))],
        tools=[look],
        change={"max_requests": 10, "max_tokens": 1000},
    )  # fmt: skip
    by(Clock(), agent.graph)
    events = agent.events("go", spent=True)
    told = [event for event in events if event["type"] == "spent"]
    assert [event["spent"]["requests"] for event in told] == [1, 2, 3, 4]
    assert [event["spent"]["failed_calls"] for event in told] == [0, 0, 2, 2]
    assert [(event["nearest"], event["share"]) for event in told] == [
        ("tokens", 0.11), ("tokens", 0.22), ("tokens", 0.33), ("tokens", 0.44),
    ]  # fmt: skip
    assert spent(agent) == told[-1]["spent"] == events[-1]["session"]["spent"] == {
        "requests": 4, "input": 400, "cached": 64, "output": 40, "cost": None, "seconds": 0.0,
        "estimated": False, "failed_calls": 2,
    }  # fmt: skip


def test_an_unfinished_round_is_counted_too(thread: Make) -> None:
    """The step limit ends the run after a round: its calls have run, and one has failed."""
    agent = thread(write("a"), calls(("look", {"wrong": 1})), tools=[look])
    agent.walk("go", limit=9)
    assert agent.session == session("idle", "step_limit", 1)
    assert (spent(agent)["requests"], spent(agent)["failed_calls"]) == (2, 1)


def test_a_running_thread_shows_no_numbers_and_a_parked_one_does(thread: Make) -> None:
    seen: list[Any] = []

    def ask() -> str:
        """Ask a person."""
        seen.append(session_of(agent.snapshot))
        return str(interrupt("which?"))

    agent = thread(used(calls(("ask", {}))), used(says("x")), tools=[ask])
    agent.run("go")
    assert seen == [session("running", None)]
    assert (agent.session["reason"], agent.session["spent"]["input"]) == ("interrupted", 100)
    agent.run(Command(resume="this"))
    assert spent(agent)["input"] == 200


def test_a_limit_set_at_a_resume_covers_what_had_no_price() -> None:
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("which?"))

    saver, config = InMemorySaver(), {"configurable": {"thread_id": "a"}}
    first = ScriptedModel([used(calls(("ask", {})))])
    create_todo_agent(first, [ask], checkpointer=saver).invoke({"messages": [("user", "go")]}, config)
    second = ScriptedModel([used(looks("a"))])  # 0.12 per request
    bounded = LoopSettings(max_cost=0.24, prices=PRICES)
    agent = create_todo_agent(second, [ask, look], settings=bounded, checkpointer=saver)
    ended = agent.invoke(Command(resume="this"), config)["todo_session"]
    assert (ended["reason"], ended["spent"]["requests"]) == ("cost_budget", 2)
    assert (ended["spent"]["cost"], ended["spent"]["estimated"]) == (0.24, True)


class Streaming(GenericFakeChatModel):
    """A model that streams, and reports its tokens with the last chunk, as OpenAI's client does."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for text, more in (
            ("he", {}),
            ("llo", {}),
            ("", {"usage_metadata": used(says("x"), 90, 7, 64).usage_metadata}),
        ):
            last = {"chunk_position": "last"} if more else {}
            yield ChatGenerationChunk(message=AIMessageChunk(text, id="run-1", **more, **last))


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_tokens_of_a_stream_are_counted_once(mode: str) -> None:
    agent = create_todo_agent(
        Streaming(messages=iter([used(says("hello"), 90, 7, 64)])), checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    list(agent.stream({"messages": [("user", "go")]}, config, stream_mode=mode))
    told = session_of(agent.get_state(config))["spent"]
    assert (told["requests"], told["input"], told["cached"], told["output"]) == (1, 90, 64, 7)


def test_a_hooks_request_is_counted_if_it_is_reported(thread: Make) -> None:
    summariser = GenericFakeChatModel(messages=iter([used(says("so far"), 1000, 50), says("unreported")]))

    def hook(state: Any) -> dict[str, Any]:
        said = summariser.invoke("summarise").text
        gone = [RemoveMessage(id=message.id) for message in state["messages"][:-1]]
        return {"messages": [*gone, SystemMessage(said, id=f"summary-{len(state['messages'])}")]}

    agent = thread(used(says("x")), used(says("y")), pre_model_hook=hook, rewritten=True)
    by(Clock(), agent.graph)
    agent.run("go")
    assert (spent(agent)["requests"], spent(agent)["input"], spent(agent)["output"]) == (1, 1100, 60)
    agent.run("more")
    assert (spent(agent)["requests"], spent(agent)["input"], spent(agent)["output"]) == (1, 100, 10)


# -- crash and resume ------------------------------------------------------------------------------------

STORY = [
    used(write("a")),
    used(calls(("look", {"wrong": 1}))),
    used(looks("x")),
    used(says("no")),
    used(says("report"), 200),
]


def told_by_history(request: Any) -> AIMessage:
    """Return the reply that follows a history, so that a run can be resumed anywhere."""
    return STORY[sum(message.type == "ai" for message in request)]


def storied(thread: Make) -> Any:
    agent = thread(
        repeat(told_by_history), left=True, rewritten=True, tools=[look], change={"max_requests": 4}
    )
    by(Clock(), agent.graph)
    return agent


def test_a_run_that_is_resumed_after_any_superstep_counts_the_same(thread: Make) -> None:
    agent = storied(thread)
    agent.run("go")
    whole = agent.session
    assert (whole["reason"], whole["spent"]["requests"], whole["spent"]["failed_calls"]) == (
        "request_budget",
        5,
        1,
    )
    assert (whole["spent"]["input"], whole["spent"]["output"]) == (600, 50)
    taken_up = [snapshot for snapshot in agent.graph.get_state_history(agent.at()) if snapshot.next]
    assert len(taken_up) == 12
    for snapshot in taken_up:
        agent.run(None, config=snapshot.config)
        assert agent.session == whole


@pytest.mark.parametrize("at", range(5))
def test_a_run_whose_model_fails_counts_only_what_was_stored(at: int, thread: Make) -> None:
    replies: list[Any] = [*STORY]
    replies.insert(at, ConnectionError)
    agent = thread(*replies, tools=[look], change={"max_requests": 4})
    by(Clock(), agent.graph)
    with pytest.raises(ConnectionError):
        agent.run("go")
    agent.run(None)
    assert (agent.session["reason"], spent(agent)["requests"], spent(agent)["input"]) == (
        "request_budget",
        5,
        600,
    )
    assert spent(agent)["failed_calls"] == 1


# -- whatever the model does -----------------------------------------------------------------------------

CHANCES = st.floats(0, 1)


@pytest.mark.slow
@budget(60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.sampled_from([{}, {"max_wake_cycles": 0, "on_guard_exhausted": "block"}, {"on_budget": "stop"}]),
    st.tuples(CHANCES, CHANCES, CHANCES, CHANCES, CHANCES),
)
def test_an_activation_makes_at_most_one_request_more_than_its_limit(
    seed: int, most: int, change: Any, chances: Any
) -> None:
    habits = dict(zip(("stop", "forget", "malformed", "double", "echo"), chances, strict=True))
    model = WeakModel(seed=seed, knobs=Knobs(**habits))
    agent = create_todo_agent(model, [look], settings=LoopSettings(max_requests=most, **change))
    result = agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": 500})
    told = result["todo_session"]
    assert told["spent"]["requests"] == len(model.requests) <= most + 1
    assert json.loads(json.dumps(told)) == told
    if len(model.requests) > most:
        assert (told["reason"] in ("request_budget", "refused"), told["state"]) == (True, "idle")
