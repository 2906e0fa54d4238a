"""After two silences it is the person's turn to speak (rule 26)."""

from typing import Any

import pytest
from agents import END, QUIET, START, TODO, WAKE, WORK, Make, done, look, looks, update, write
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import answer_of, create_todo_agent, preset, session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.presets import PRESETS
from wakeloop.sessions import list_outstanding
from wakeloop.sessions.host_rules import remove_answered
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.marks import AUTOMATIC, kind_of

ASK = "I found 14 files. Shall I delete them?"
NO_PERMISSION = (
    f"{AUTOMATIC} Nobody has answered, and this is not permission. If you can continue without an answer, "
    "do so now with tool calls. Otherwise say that you are waiting."
)
OR_STOP = (
    "If the last message asks you to continue with them, continue now with tool calls. If it stops or "
    "replaces them, cancel them or set them to blocked, or say that you are waiting."
)
REPLACE = "Continue with them, unless this message replaces them: then cancel them or set them to blocked."
WAKE_ON = {"on_question": "wake"}
OLD: dict[str, Any] = {"max_wake_cycles": 0, "guard_retries": 0}  # the first run leaves its items open


def waits(agent: Any, on: str = "human") -> bool:
    session = agent.session
    return (session["state"], session["reason"], session.get("on")) == ("waiting", "waiting", on)


def old_items(thread: Make, *replies: Any, **changes: Any) -> Any:
    """Return a thread with two items open from an earlier activation."""
    agent = thread(write("a", "b"), "Soon.", *replies, tools=[look], change=OLD)
    agent.run("Go.")
    agent.model.requests.clear()
    return agent


NOW = {"max_wake_cycles": 25}  # the settings of the second activation


def say(agent: Any, text: str, **changes: Any) -> None:
    agent.run({"messages": [("user", text)], "todo_settings": {**NOW, **changes}})


# -- the turn asks a question ----------------------------------------------------------------------------


def test_c58_a_question_gets_one_wake_that_gives_no_permission(thread: Make) -> None:
    agent = thread(write("a", "b"), ASK, "I am waiting.")
    assert agent.walk("Go.") == [*START, *TODO, *WAKE, *END]
    assert waits(agent)
    assert agent.model.requests[-1][-1].text == NO_PERMISSION
    assert agent.session["question"] == answer_of(agent.values) == answer_of(agent.messages) == ASK
    assert agent.session["wakes"] == 1
    assert agent.values["waiting_on"] == [{"id": "question", "on": "human", "question": ASK}]


def test_the_next_message_of_a_person_answers_it(thread: Make) -> None:
    agent = thread(write("a"), ASK, "I am waiting.", done(1), "Done.")
    agent.run("Go.")
    agent.run("Yes.")
    assert (agent.session["reason"], agent.values["waiting_on"]) == ("settled", [])
    assert [m.text for m in agent.messages if m.type == "human"][2:] == [
        "Yes."
    ]  # the items are not mentioned
    assert answer_of(agent.values) == "Done."


def test_c58_with_park_it_waits_at_once(thread: Make) -> None:
    agent = thread(write("a"), ASK, change={"on_question": "park"})
    assert agent.walk("Go.") == [*START, *TODO, *END]
    assert waits(agent)
    assert agent.session["question"] == answer_of(agent.values) == ASK


def test_with_wake_it_is_reminded_repeatedly_that_nobody_has_answered(thread: Make) -> None:
    agent = thread(
        write("a"), ASK, "I am waiting.", "I am waiting.", change={**WAKE_ON, "max_idle_wakes": 2, **QUIET}
    )
    agent.run("Go.")
    assert (agent.session["reason"], agent.asked) == ("stalled", 4)
    assert [request[-1].text for request in agent.model.requests[2:]] == [NO_PERMISSION] * 2


def test_with_wake_a_call_ends_the_doubt(thread: Make) -> None:
    agent = thread(write("a"), ASK, looks("x"), "Soon.", done(1), "Done.", tools=[look], change=WAKE_ON)
    agent.run("Go.")
    wakes = [m.text for m in agent.messages if kind_of(m) == "wake"]
    assert [text == NO_PERMISSION for text in wakes] == [True, False]


def test_with_nothing_open_a_question_is_an_answer(thread: Make) -> None:
    agent = thread(ASK)
    agent.run("Go.")
    assert (agent.session["reason"], agent.session["state"]) == ("answered", "dormant")


def test_questions_between_calls_are_bounded_only_by_the_gates(thread: Make) -> None:
    agent = thread(
        write("a"),
        ASK,
        looks("x"),
        ASK,
        looks("y"),
        ASK,
        looks("z"),
        done(1),
        "Done.",
        tools=[look],
    )
    assert agent.walk("Go.") == [*START, *TODO, *WAKE, *WORK, *WAKE, *WORK, *WAKE, *WORK, *TODO, *END]
    assert (agent.session["reason"], agent.session["wakes"]) == ("settled", 3)


def test_a_list_given_with_the_first_message_is_worked_on(thread: Make) -> None:
    change = {"max_idle_wakes": 3, "guard_retries": 0}
    agent = thread("Yes.", "Yes.", "Yes.", "Yes.", change=change)
    agent.run({"messages": [("user", "Go.")], "todos": [{"content": "a"}]})
    assert (agent.session["reason"], agent.asked) == ("stalled", 4)


def test_a_kick_a_clock_and_a_subagent_do_not_answer_a_question(thread: Make) -> None:
    agent = thread(write("a"), ASK, "I am waiting.")
    agent.run("Go.")
    for given in (
        {},
        {"todo_inbox": [{"kind": "cron", "text": "Nine."}]},
        {"todo_inbox": [{"kind": "kick"}]},
    ):
        agent.run(given)
        assert waits(agent)
        assert agent.session["question"] == answer_of(agent.values) == ASK
    assert agent.asked == 3


def test_a_question_in_the_turn_after_the_wake_is_the_question(thread: Make) -> None:
    agent = old_items(thread, "OK.", ASK)
    say(agent, "Continue.")
    assert agent.session["question"] == answer_of(agent.values) == ASK


# -- a message while old items are open ------------------------------------------------------------------


def test_c60_a_new_topic_is_answered_and_then_the_run_waits(thread: Make) -> None:
    agent = old_items(thread, "Paris.", "I am waiting.")
    say(agent, "Forget that. What is the capital of France?")
    assert (agent.asked, waits(agent)) == (2, True)
    assert agent.session["question"] == answer_of(agent.values) == "Paris."
    first, second = [request[-1].text for request in agent.model.requests]
    assert first == f"{AUTOMATIC} Still open from before:\n\n  [1] a\n  [2] b\n\n{REPLACE}"
    assert second == f"{AUTOMATIC} {OR_STOP}"


def test_c59_stop_answered_twice_without_a_call_stops(thread: Make) -> None:
    agent = old_items(thread, "OK.", "OK.")
    say(agent, "Stop. Do nothing more until I say so.")
    assert (agent.asked, waits(agent)) == (2, True)


def test_c59_reading_the_list_still_counts_as_silence(thread: Make) -> None:
    read = calls(("todo_list", {}))
    agent = old_items(thread, read, "OK.", read, "I am waiting.")
    say(agent, "Stop. Do nothing more until I say so.")
    assert (agent.asked, waits(agent)) == (4, True)
    assert agent.session["question"] == answer_of(agent.values) == "OK."
    agent = thread(write("a"), ASK, calls(("todo_list", {}), text="Let me see."), "I am waiting.")
    agent.run("Go.")
    assert (agent.asked, waits(agent)) == (4, True)
    assert agent.session["question"] == answer_of(agent.values) == answer_of(agent.messages) == ASK


@pytest.mark.parametrize("mode", ["insist", "park"])
def test_a_wake_says_what_was_not_said_before(thread: Make, mode: str) -> None:
    agent = old_items(thread, "OK.", "OK.")
    say(agent, "Stop.", on_new_topic="ignore", on_question=mode)
    assert waits(agent)
    first, second = [request[-1].text for request in agent.model.requests]
    assert first == "Stop."
    assert second == f"{AUTOMATIC} Still open from before:\n\n  [1] a\n  [2] b\n\n{OR_STOP}"


def test_a_stop_in_answer_to_a_question_stops(thread: Make) -> None:
    agent = thread(write("a"), ASK, "I am waiting.", "OK.", "OK.")
    agent.run("Go.")
    agent.run("No, stop.")
    assert (agent.asked, waits(agent)) == (5, True)
    assert agent.model.requests[-1][-1].text == f"{AUTOMATIC} Still open from before:\n\n  [1] a\n\n{OR_STOP}"


def test_a_call_ends_the_doubt(thread: Make) -> None:
    agent = old_items(thread, "OK.", looks("x"), "Seen.", "Done soon.", done(1, 2), "Done.")
    say(agent, "Go on.")
    assert (agent.session["reason"], agent.session["wakes"]) == ("settled", 3)
    wakes = [m.text for m in agent.messages if kind_of(m) == "wake"]
    assert [OR_STOP in text for text in wakes] == [True, False, False]


def test_c60_items_that_are_dropped_are_not_asked_about(thread: Make) -> None:
    agent = old_items(
        thread, calls(*((("todo_update", {"id": n, "status": "cancelled"})) for n in (1, 2))), "Paris."
    )
    say(agent, "Forget that. What is the capital of France?")
    assert (agent.session["reason"], answer_of(agent.values)) == ("settled", "Paris.")


def test_an_item_that_is_blocked_with_a_question_is_named(thread: Make) -> None:
    agent = thread(write("a", "b"), update(1, "blocked", "Which key?"), done(2), "Blocked.", "Fine.")
    agent.run("Go.")
    agent.run("Hello.")
    assert "Still open from before:\n\n  [1] a (blocked: Which key?)\n\n" in agent.model.requests[-1][-1].text
    assert agent.session["reason"] == "answered"


def test_a_list_of_its_own_replaces_the_old_one(thread: Make) -> None:
    agent = old_items(thread, "Yes.", "Yes.")
    given = {"messages": [("user", "Now this.")], "todos": [{"content": "c"}]}
    agent.run({**given, "todo_settings": {"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0}})
    assert agent.session["reason"] == "wake_budget"
    assert not any("from before" in m.text for m in agent.messages)


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"wakeloop", "langchain"}))
def test_the_described_systems_neither_ask_nor_say_it(name: str) -> None:
    rules = preset(name)
    assert (rules.on_question, rules.on_new_topic) == ("wake", "ignore")


# -- the middleware --------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["sync", "async"])
def test_c59_the_middleware_lets_the_person_speak_too(door: str) -> None:
    import asyncio

    plan = calls(("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}))
    model = ScriptedModel(plan, says(ASK), says("I am waiting."), says("OK."), says("OK."))
    agent = create_agent(model, middleware=[WakeLoopMiddleware()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}

    def run(text: str) -> Any:
        given: Any = {"messages": [("user", text)]}
        return agent.invoke(given, config) if door == "sync" else asyncio.run(agent.ainvoke(given, config))

    out = run("Go.")
    assert len(model.requests) == 3
    assert (out["todo_session"]["on"], out["todo_session"]["question"], answer_of(out)) == ("human", ASK, ASK)
    out = run("Stop.")
    assert len(model.requests) == 5
    assert (session_of(agent.get_state(config))["on"], answer_of(out)) == ("human", "OK.")


# -- a subagent at work ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wakeloop", "agentparley"])
def test_c68_a_session_with_a_working_subagent_waits_for_it(name: str) -> None:
    from typing import Annotated

    from langchain_core.messages import ToolMessage
    from langchain_core.tools import InjectedToolCallId, tool
    from langgraph.types import Command

    @tool
    def spawn(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Start a subagent."""
        result = ToolMessage("Started s1.", tool_call_id=call_id)
        return Command(update={"messages": [result], "todo_subagents": [{"id": "s1"}, {"id": "s2"}]})

    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]}), ("spawn", {})), "Soon.", "Soon.", done(1), "Done."
    )
    agent: Any = create_todo_agent(model, [spawn], settings=name, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    out = agent.invoke({"messages": [("user", "Go.")]}, config)
    session = out["todo_session"]
    assert (session["state"], session["on"], session["wakes"], len(model.requests)) == (
        "waiting",
        "subagent",
        1,
        3,
    )
    event = {"kind": "subagent_done", "id": "e", "correlation_id": "s1", "text": "Found it."}
    out = agent.invoke({"todo_inbox": [event]}, config)
    assert (out["todo_session"]["reason"], answer_of(out)) == ("settled", "Done.")


# -- nobody will answer ----------------------------------------------------------------------------------

NOBODY = {"todo_inbox": [{"kind": "kick", "id": "k", "correlation_id": "question"}]}


def test_a_kick_that_names_the_question_leaves_it_unanswered(thread: Make) -> None:
    agent = thread(write("a"), ASK, done(1), "Done.", change={"on_question": "park"})
    agent.run("Go.")
    agent.run(NOBODY)
    assert agent.model.requests[2][-1].text == NO_PERMISSION
    assert (agent.session["reason"], answer_of(agent.values)) == ("settled", "Done.")


def test_silence_after_it_keeps_the_question(thread: Make) -> None:
    agent = thread(write("a"), ASK, "I am waiting.", change={"on_question": "park"})
    agent.run("Go.")
    agent.run(NOBODY)
    assert waits(agent)
    assert agent.session["question"] == answer_of(agent.values) == ASK


# -- questions to peers and parents ----------------------------------------------------------------------


def close(agent: Any, *sent: Any) -> None:
    """Remove the entries that these events answer, as a host does."""
    update = {"owed_replies": remove_answered(sent)}
    agent.graph.update_state(agent.at(), update, as_node="finalization_guard")


@pytest.mark.parametrize("wants", ["peer_reply", "subagent_done"])
def test_a_question_counts_as_the_reply_that_is_owed(thread: Make, wants: str) -> None:
    agent = thread(write("a"), ASK, "I am waiting.", done(1), "Done.")
    asked = {"kind": "peer_message", "id": "1", "text": "Tidy up.", "sender": "bob", "correlation_id": "c"}
    agent.run({"todo_inbox": [{**asked, "wants": wants}]})
    assert waits(agent, "peer")
    assert agent.session["question"] == ASK
    [sent] = list_outstanding("ada", agent.values, agent.session)
    assert (sent.thread, sent.event["kind"], sent.event["correlation_id"]) == ("bob", wants, "c")
    assert ASK in sent.event["text"]
    close(agent, sent)
    agent.run({"todo_inbox": [{"kind": "kick"}]})
    assert waits(agent, "peer")
    agent.run({"todo_inbox": [{"kind": "peer_message", "id": "2", "text": "Yes.", "sender": "bob"}]})
    assert (agent.session["reason"], agent.values["waiting_on"]) == ("settled", [])


def test_a_person_may_answer_for_a_peer(thread: Make) -> None:
    agent = thread(write("a"), ASK, "I am waiting.", done(1), "Done.")
    asked = {"kind": "peer_message", "id": "1", "text": "Tidy up.", "sender": "bob", "correlation_id": "c"}
    agent.run({"todo_inbox": [asked]})
    close(agent, *list_outstanding("ada", agent.values, agent.session))
    agent.run("Yes.")
    assert agent.values["waiting_on"] == []
