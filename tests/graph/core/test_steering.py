"""Words and edits for a run under way, through the store (rule 26), in the graph and in an agent."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import Thread, done, look, looks, settings, write
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore

from wakeloop import ArgumentError, EditError, asteer, create_todo_agent, hold_thread, steer
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults
from wakeloop.thread.steering import list_waiting

Steered = Callable[..., Thread]


class CountingStore(InMemoryStore):
    """A store that counts how often it is read."""

    reads = 0

    def batch(self, ops: Any) -> Any:
        operations = list(ops)
        self.reads += any(isinstance(one, SearchOp) for one in operations)
        return super().batch(operations)

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


@pytest.fixture(params=["graph", "middleware"])
def steered(request: pytest.FixtureRequest, door: str) -> Any:
    """Make a thread with a store; a callable reply of its script may steer. Its requests are checked."""
    made: list[tuple[ScriptedModel, bool]] = []

    def make(*replies: Any, store: Any = None, forks: bool = False, **changes: Any) -> Thread:
        model, store = ScriptedModel(*replies), CountingStore() if store is None else store
        made.append((model, forks))
        options: Any = {"checkpointer": InMemorySaver(), "store": store}
        own = settings(**changes)
        if request.param == "graph":
            graph: Any = create_todo_agent(model, [look], settings=own, **options)
        else:
            layer = WakeLoopMiddleware(settings=own)
            graph = create_agent(model, tools=[look], middleware=[layer], **options)
        return Thread(graph, model, door)

    yield make
    for model, forks in made:
        assert wire_faults(model.requests) == []
        assert forks or prompt_faults(model.requests) == []
        model.assert_done()


def after(store: Any, reply: AIMessage | str, *words: Any, **edits: Any) -> Callable[[Any], Any]:
    """Return a reply during which a person steers."""

    def answer(_request: Any) -> Any:
        for text in words or (None,):
            steer(store, "1", text, edits or None)
        return reply

    return answer


def texts(agent: Thread, request: int = -1) -> list[str]:
    return [message.text for message in agent.model.requests[request]]


def waiting(agent: Thread) -> list[str]:
    return [entry.message for entry in list_waiting(agent.graph.store, "1")]


def test_words_in_mid_turn_are_a_users_message_after_the_results(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), after(store, looks("x"), "Use tabs."), done(1), "Done.", store=store)
    events = agent.events("Go.")
    assert texts(agent, 2)[-3:] == ["saw x", "[continued]", "Use tabs."]
    assert agent.kinds[-5:] == ["repair", "human", "ai", "tool", "ai"]
    assert [event["type"] for event in events].count("steered") == 1
    assert (agent.session["reason"], agent.asked) == ("settled", 4)
    assert store.reads == agent.asked + 1  # before each request, and once at the turn's end
    assert waiting(agent) == []
    assert "steered" not in agent.ledger


def test_words_at_a_turns_end_continue_the_run_without_a_wake(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), done(1), after(store, "Done.", "Now b.", "And c."), "B and c.", store=store)
    agent.run("Go.")
    assert texts(agent)[-3:] == ["Done.", "Now b.", "And c."]
    assert (agent.session["wakes"], agent.session["reason"]) == (0, "settled")
    assert agent.asked == 4
    assert waiting(agent) == []


def test_they_reset_the_counts(steered: Steered) -> None:
    store = CountingStore()
    talk = ["One.", "Two.", "Three.", after(store, "Four.", "Are you there?"), *["Yes."] * 5]
    agent = steered(
        write("a"),
        *talk,
        store=store,
        max_idle_wakes=4,
        guard_retries=0,
        on_question="wake",
        on_new_topic="ignore",
    )
    agent.run("Go.")
    # three idle wakes, the words, then as many wakes as after any message
    assert (agent.session["reason"], agent.session["wakes"]) == ("stalled", 3 + 4)
    assert agent.asked == 1 + 4 + 1 + 4


def test_a_stop_stops(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), after(store, looks("x"), "Stop."), "OK.", "I am waiting.", store=store)
    agent.run("Go.")
    assert (agent.session["reason"], agent.session["on"], agent.asked) == ("waiting", "human", 4)
    assert "Still open from before" in texts(agent)[-1]


def test_edits_are_shown_once_as_a_persons(steered: Steered) -> None:
    store = CountingStore()
    edits: Any = {"add": ["b"], "edit": {1: "A"}}
    agent = steered(write("a"), after(store, looks("x"), **edits), done(1, 2), "Done.", store=store)
    agent.run("Go.")
    assert "Added by a person" in texts(agent, 2)[-1]
    assert "Added by a person" not in texts(agent)[-1]
    assert [todo["content"] for todo in agent.values["todos"]] == ["A", "b"]
    assert agent.session["reason"] == "settled"
    assert waiting(agent) == []


def test_edits_at_a_turns_end_change_what_is_ruled_on(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), after(store, "Soon.", done=[1]), store=store)
    agent.run("Go.")
    assert (agent.session["completed"], agent.session["open"], agent.asked) == (1, 0, 2)


def test_an_edit_that_does_not_fit_changes_nothing_and_loses_no_words(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(
        write("a"), after(store, looks("x"), "Drop 9.", remove=[9]), done(1), "Done.", store=store
    )
    [event] = [one for one in agent.events("Go.") if one["type"] == "steered"]
    assert event["error"] == "Nothing was changed: there is no item 9; the ids are: 1."
    assert texts(agent, 2)[-1] == "Drop 9."


def test_what_no_request_took_is_the_next_runs_input(steered: Steered) -> None:
    store = CountingStore()
    agent = steered("Hello.", "Tabs it is.", store=store)
    agent.run("Hi.")
    steer(store, "1", "Use tabs.")
    events = agent.events({"messages": []})
    assert next(one for one in events if one["type"] == "activated")["sources"] == ["human"]
    assert texts(agent)[-1] == "Use tabs."
    assert waiting(agent) == []
    assert agent.asked == 2


@pytest.mark.parametrize("budget", [{"max_requests": 2, "on_budget": "stop"}, {"max_wake_cycles": 0}])
def test_a_spent_budget_leaves_them_waiting(steered: Steered, budget: dict[str, Any]) -> None:
    store = CountingStore()
    replies = [write("a"), after(store, looks("x"), "Use tabs.")]
    if "max_wake_cycles" in budget:  # it limits wakes, and words are not a wake
        agent = steered(
            *replies,
            "Tabs.",
            store=store,
            guard_retries=0,
            on_question="wake",
            on_new_topic="ignore",
            **budget,
        )
        agent.run("Go.")
        assert waiting(agent) == []
        return
    agent = steered(*replies, done(1), "Done.", store=store, **budget)
    agent.run("Go.")
    assert (agent.session["reason"], waiting(agent)) == ("request_budget", ["Use tabs."])
    agent.run({"todo_settings": {"max_requests": 10}})
    assert "Use tabs." in texts(agent)
    assert agent.session["reason"] == "settled"


def test_hold_keeps_them_until_a_person_speaks(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), "Later.", done(1), "Done.", store=store, max_wake_cycles=0, guard_retries=0)
    agent.run("Go.")
    hold_thread(agent.graph, agent.at())
    steer(store, "1", "Use tabs.")
    agent.run({})
    assert (agent.asked, waiting(agent)) == (2, ["Use tabs."])
    agent.run("Continue.")
    assert ("Use tabs." in texts(agent), waiting(agent)) == (True, [])


def test_they_answer_a_question(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), "Shall I?", done(1), "Done.", store=store, on_question="park")
    agent.run("Go.")
    assert agent.session["on"] == "human"
    steer(store, "1", "Yes.")
    agent.run({})
    assert agent.session["reason"] == "settled"


def test_a_question_is_answered_before_the_run_waits(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(
        write("a"), after(store, "Shall I?", "Yes."), done(1), "Done.", store=store, on_question="park"
    )
    agent.run("Go.")
    assert (agent.session["reason"], agent.asked) == ("settled", 4)


def test_an_exception_consumes_nothing(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(
        write("a"), after(store, looks("x"), "Use tabs."), TimeoutError, done(1), "Done.", store=store
    )
    with pytest.raises(TimeoutError):
        agent.run("Go.")
    assert waiting(agent) == ["Use tabs."]
    agent.run(None)
    assert [message.text for message in agent.values["messages"]].count("Use tabs.") == 1
    assert (agent.session["reason"], waiting(agent)) == ("settled", [])


def test_a_fork_from_before_does_not_see_them_again(steered: Steered) -> None:
    store = CountingStore()
    again = [looks("y"), done(1), "Done."]
    agent = steered(
        write("a"), after(store, looks("x"), "Use tabs."), done(1), "Done.", *again, store=store, forks=True
    )
    agent.run("Go.")
    assert "Use tabs." in [message.text for message in agent.values["messages"]]
    earlier = [one for one in agent.graph.get_state_history(agent.at()) if one.values.get("todos")]
    agent.run(None, config=earlier[-1].config)
    assert "Use tabs." not in [message.text for message in agent.values["messages"]]


def test_a_wakes_request_does_not_read_a_second_time(steered: Steered) -> None:
    store = CountingStore()
    agent = steered(write("a"), "Soon.", done(1), "Done.", store=store)
    agent.run("Go.")
    assert (agent.session["wakes"], store.reads) == (1, agent.asked + 1)


# -- the door --------------------------------------------------------------------------------------------


def test_without_a_store_it_says_so() -> None:
    with pytest.raises(ArgumentError, match=r"Steering needs the LangGraph store .+, got None"):
        steer(None, "1", "Hello.")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Steering needs the LangGraph store"):
        steer("store", "1", "Hello.")  # type: ignore[arg-type]


def test_what_cannot_be_sent() -> None:
    store = InMemoryStore()
    for message, edits in ((None, None), (" ", None), (None, {}), (5, None), (None, {"ad": "b"})):
        with pytest.raises(ArgumentError):
            steer(store, "1", message, edits)  # type: ignore[arg-type]
    with pytest.raises(EditError, match="`done` must be"):
        steer(store, "1", edits={"done": 1.5})
    for name in ("", None, {"configurable": {"thread_id": "1"}}):
        with pytest.raises(ArgumentError, match="`thread_id` must be the id of the thread"):
            steer(store, name, "Hello.")  # type: ignore[arg-type]
    assert store.search(()) == []


def test_threads_do_not_see_each_others_words() -> None:
    store = InMemoryStore()
    for thread in ("a", "a.b", "a%2Eb", "ä/b"):
        steer(store, thread, thread)
    for thread in ("a", "a.b", "a%2Eb", "ä/b"):
        assert [entry.message for entry in list_waiting(store, thread)] == [thread]


def test_entries_keep_their_order_and_only_a_limited_number_is_taken_at_once() -> None:
    store = InMemoryStore()
    for number in range(70):
        asyncio.run(asteer(store, "1", str(number)))
    agent = create_todo_agent(ScriptedModel("Read.", "All."), checkpointer=InMemorySaver(), store=store)
    out = agent.invoke({"messages": []}, {"configurable": {"thread_id": "1"}})
    said = [message.text for message in out["messages"] if message.type == "human"]
    assert said == [str(number) for number in range(70)]


def test_an_agent_inside_a_tool_does_not_take_them(door: str) -> None:
    store = InMemoryStore()
    inner = create_todo_agent(ScriptedModel("Inside."))

    def delegate() -> str:
        """Ask another agent."""
        steer(store, "1", "Use tabs.")
        return inner.invoke({"messages": [("user", "Help.")]})["messages"][-1].text

    model = ScriptedModel(calls(("delegate", {})), "Done.")
    agent = Thread(
        create_todo_agent(model, [delegate], checkpointer=InMemorySaver(), store=store), model, door
    )
    agent.run("Go.")
    assert texts(agent)[-1] == "Use tabs."
