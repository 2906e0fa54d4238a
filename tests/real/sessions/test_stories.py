"""Sessions that ask, answer, spawn and wait, with exact counts, in memory and on DBOS."""

from typing import Any

import pytest
from host_stage import Stage
from langgraph.types import interrupt
from memory_host import MemoryHost
from rig import write

from wakeloop import SessionError, ToolNameError, answer_of
from wakeloop.dialects import get_dialect
from wakeloop.sessions import SessionHost, SessionStatus, choose_next_input, list_outstanding, session_tools
from wakeloop.sessions.communication_tools import TOOL_NAMES, SubagentLimits
from wakeloop.sessions.host import CANCELLED_MESSAGE
from wakeloop.testing import calls


def ask(agent: str, message: str) -> Any:
    return calls(("talk_to_agent", {"agent": agent, "message": message}))


def tell(agent: str, message: str) -> Any:
    return calls(("send_message", {"agent": agent, "message": message}))


def waits(*handles: str) -> Any:
    return calls(("wait_for", {"handles": list(handles)}))


def reply(message: str) -> Any:
    return calls(("reply_to_peer", {"message": message}))


def spawn(*tasks: str, agent: str | None = "worker") -> Any:
    more = {"agent": agent} if agent else {}
    return calls(*(("spawn_subagent", {"task": task, **more}) for task in tasks))


def close(*keys: int) -> Any:
    return calls(*(("todo_update", {"id": key, "status": "done"}) for key in keys))


# -- the interface ---------------------------------------------------------------------------------------


def test_the_host_of_these_tests_is_a_session_host(host: Stage) -> None:
    assert isinstance(host, SessionHost)


def test_a_thread_of_no_agent_is_refused(host: Stage) -> None:
    host.agent("ada")
    with pytest.raises(SessionError, match=r"Thread 'bob:1' belongs to no agent. Available agents: ada"):
        host.send("bob:1", {"kind": "kick"})
    host.agent("main")
    assert host.send("bob:1", {"kind": "kick"}) == "e1"
    assert host.status("bob:1").agent == "main"


def test_status_reads_the_checkpoint_and_counts_what_is_queued(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "I wait.").agent("bob")
    host.send("ada", {"kind": "human", "text": "go"})
    assert host.status("ada") == SessionStatus("ada", "ada", "dormant", None, 0, 0, 0, None, 1)
    host.turn("ada")
    found = host.status("ada")
    assert found == SessionStatus(
        "ada", "ada", "waiting", "waiting", 0, 0, 25, "peer", 0, None, ("bob",), until=found.until
    )
    assert found.until is not None
    assert [status.thread for status in host.list()] == ["ada", "bob"]


# -- asking a person -------------------------------------------------------------------------------------


def test_a_person_is_asked_and_answers(host: Stage) -> None:
    host.agent("ada", calls(("ask_user", {"question": "Which colour?"})), "Blue it is.")
    host.say("ada", "Paint it.")
    assert host.ending("ada") == ("waiting", "interrupted", "human")
    assert [i.value for i in host.snapshot("ada").interrupts] == [
        {
            "action_requests": [
                {
                    "name": "ask_user",
                    "args": {"question": "Which colour?"},
                    "description": "Which colour?",
                }
            ],
            "review_configs": [{"action_name": "ask_user", "allowed_decisions": ["respond"]}],
            "on": "human",
        }
    ]
    host.say("ada", "Blue.")
    assert host.results("ada") == [("success", "Blue.")]
    assert host.ending("ada") == ("dormant", "answered")
    assert host.turns == ["ada", "ada"]
    host.done()


def test_events_during_a_question_are_held_until_the_answer(host: Stage) -> None:
    host.agent("ada", calls(("ask_user", {"question": "?"})), "Thanks.", "Tick heard.")
    host.say("ada", "go")
    host.send("ada", {"kind": "cron", "id": "c", "text": "tick"})
    host.settle()
    assert (host.asked("ada"), len(host.queue)) == (1, 1)
    host.say("ada", "yes")
    assert host.last("ada") == "[cron] tick"
    assert host.turns == ["ada"] * 3
    host.done()


def test_two_questions_at_once_are_answered_one_by_one_or_by_name(host: Stage) -> None:
    def wonder(question: str) -> str:
        """Wonder."""
        return str(interrupt(question))

    two = calls(("wonder", {"question": "a?"}), ("wonder", {"question": "b?"}))
    host.agent("ada", two, "Thanks.", tools=[wonder])
    host.say("ada", "go")
    second = host.snapshot("ada").interrupts[1].id
    host.send("ada", {"kind": "human", "text": "to b", "correlation_id": second})
    host.settle().say("ada", "to a")
    assert host.results("ada") == [("success", "to a"), ("success", "to b")]
    host.done()


# -- two agents ------------------------------------------------------------------------------------------


def test_one_asks_the_other_answers(host: Stage) -> None:
    host.agent("ada", write("learn it"), ask("bob", "What is 6 x 7?"), "I have asked.", close(1), "It is 42.")
    host.agent("bob", reply("42"), "I have told ada.")
    host.send("ada", {"kind": "human", "text": "Ask bob."})
    host.turn("ada")
    assert host.ending("ada") == ("waiting", "waiting", "peer")  # an item is open, but it is not woken
    assert host.status("ada").wakes == 0
    host.settle()
    assert host.last("bob", 0) == "[peer_message from ada] What is 6 x 7?"
    assert host.last("ada", 3) == "[peer_reply from bob] 42"
    assert host.turns == ["ada", "bob", "ada"]
    assert (host.ending("ada"), host.ending("bob")) == (("dormant", "settled"), ("dormant", "answered"))
    assert host.values("ada")["waiting_on"] == []
    assert host.values("bob")["owed_replies"] == []
    host.done()


def test_both_ways_when_the_first_question_is_answered(host: Stage) -> None:
    host.agent("ada", ask("bob", "1?"), "Asked.", "Got one.", reply("two"), "Told.")
    host.agent("bob", reply("one"), ask("ada", "2?"), "Asked.", "Got two.")
    host.say("ada", "go")
    assert host.sent("peer_reply") == ["one", "two"]
    assert host.turns == ["ada", "bob", "ada", "bob"]
    host.done()


def test_a_message_wakes_and_waits_for_nothing(host: Stage) -> None:
    host.agent("ada", tell("bob", "lunch"), "Told.")
    host.agent("bob", "Fine.")
    host.say("ada", "go")
    assert host.values("bob").get("owed_replies", []) == []
    assert host.ending("ada") == host.ending("bob") == ("dormant", "answered")
    assert host.results("ada") == [("success", "Sent to bob.")]
    host.done()


@pytest.mark.parametrize("batch", [True, False])
def test_the_oldest_owed_reply_comes_first_even_of_two_in_one_round(batch: bool) -> None:
    host = MemoryHost(batch=batch)
    host.agent("ada", ask("bob", "a?"), "wait", "got").agent("eve", ask("bob", "e?"), "wait", "got")
    both = calls(("reply_to_peer", {"message": "to ada"}), ("reply_to_peer", {"message": "to eve"}))
    host.agent("bob", *([both] if batch else [reply("to ada"), "one", reply("to eve")]), "done")
    for name in ("ada", "eve"):
        host.send(name, {"kind": "human", "text": "go"})
    host.turn("ada")
    host.turn("eve")
    host.settle()
    assert (host.last("ada"), host.last("eve")) == (
        "[peer_reply from bob] to ada",
        "[peer_reply from bob] to eve",
    )
    host.done()


def putting_off(host: Any) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.", "Heard.")
    host.agent("bob", "Later.", "Later.", "It is 42.", max_wake_cycles=2)
    host.say("ada", "go")


def test_an_owed_reply_is_nudged_from_the_budget_and_the_last_text_is_delivered(host: Stage) -> None:
    putting_off(host)
    assert host.sent("peer_reply") == ["It is 42."]
    assert (host.status("bob").wakes, host.ending("bob")) == (2, ("dormant", "wake_budget"))
    assert host.values("bob")["owed_replies"] == []
    assert host.ending("ada") == ("dormant", "answered")
    host.done()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replies", "change", "text", "reason"),
    [
        (["No wakes."], {"max_wake_cycles": 0}, "No wakes.", "disabled"),
        (["Off."], {"auto_continue": False}, "Off.", "disabled"),
        (["Same."] * 3, {"max_idle_wakes": 2}, "Same.", "stalled"),
        ([""] * 3, {"reply_retries": 2}, "[no text]", "empty_reply"),
    ],
)
def test_a_peer_gets_the_last_text_at_any_ending(
    replies: Any, change: Any, text: str, reason: str, host: Stage
) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.", "Heard.").agent("bob", *replies, **change)
    host.say("ada", "go")
    assert host.sent("peer_reply", "ada") == [text]
    assert host.ending("bob") == ("dormant", reason)
    host.done()


def test_the_peer_gets_the_exception_and_the_thread_stays_usable(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.", "Heard.")
    host.agent("bob", ConnectionError("the line \ud83d is dead"), "Hello.")  # with a lone surrogate
    host.say("ada", "go")
    assert host.sent("peer_reply") == ["No answer: the turn failed. ConnectionError: the line \ufffd is dead"]
    assert host.ending("ada") == ("dormant", "answered")
    host.say("bob", "Are you there?")
    assert answer_of(host.values("bob")) == "Hello."
    assert len(host.sent("peer_reply")) == 1
    host.done()


def test_during_a_wait_nothing_is_outstanding_and_an_answer_has_one_id(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.", "Heard.").agent("eve", reply("e"), "told")
    host.agent("bob", ask("eve", "?"), "I ask eve.", reply("so it is"), "Told.")
    host.send("ada", {"kind": "human", "text": "go"})
    host.turn("ada")
    host.turn("bob")
    assert host.ending("bob") == ("waiting", "waiting", "peer")
    values = host.values("bob")
    assert list_outstanding("bob", values, values["todo_session"]) == []
    first, again = (list_outstanding("bob", values, values["todo_session"], "lost") for _ in range(2))
    assert first == again
    assert [answer.thread for answer in first] == ["ada"]
    host.settle()
    (answer,) = first
    assert answer.event["id"] in host.accepted  # reply_to_peer sent it under the same id
    assert host.sent("peer_reply", "ada") == ["so it is"]
    host.done()


@pytest.mark.slow
def test_a_cancelled_question_is_answered(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.", "Heard.").agent("bob")
    host.send("ada", {"kind": "human", "text": "go"})
    host.turn("ada")
    (_, question) = host.queue[0]
    assert host.cancel(question["id"])
    assert not host.cancel(question["id"])
    host.settle()
    assert host.sent("peer_reply") == [f"No answer: the turn failed. {CANCELLED_MESSAGE}"]
    assert host.ending("ada") == ("dormant", "answered")
    host.done()


# -- cycles ----------------------------------------------------------------------------------------------


def test_a_cycle_of_askers_is_refused_by_name(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "wait", "got")
    host.agent("bob", ask("eve", "?"), "wait", reply("b"), "told")
    host.agent("eve", ask("ada", "?"), reply("e"), "told")
    host.say("ada", "go")
    refused = "Error: ada is itself waiting for an answer (ada → bob → eve → ada), so it cannot be asked; "
    assert host.results("eve")[0] == ("error", f"{refused}answer first, or continue with what you have")
    assert host.sent("peer_reply") == ["e", "b"]
    assert host.turns == ["ada", "bob", "eve", "bob", "ada"]
    host.done()


WRONG = [
    (ask("ada", "?"), "Error: ada is your own name; a session cannot write to itself"),
    (ask("zoe", "?"), "Error: unknown agent 'zoe'; available: ada, worker"),
    (ask("worker", "  "), "Error: message must not be empty"),
    (ask(" ", "x"), "Error: agent must not be empty"),
    (tell("ada", "x"), "Error: ada is your own name; a session cannot write to itself"),
    (tell("worker", ""), "Error: message must not be empty"),
    (reply("x"), "Error: you owe no reply; use send_message to tell an agent something"),
    (spawn("x", agent="zoe"), "Error: unknown agent 'zoe'; available: ada, worker"),
    (spawn(" "), "Error: task must not be empty"),
    (waits("worker:sub1-0"), "Error: unknown subagent 'worker:sub1-0'; running: none"),
    (waits(), "Error: handles is empty; name at least one subagent"),
    (calls(("ask_user", {"question": " "})), "Error: question must not be empty"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("call", "error"), WRONG)
def test_a_wrong_call_gets_one_clear_error(call: Any, error: str, memory: MemoryHost) -> None:
    memory.agent("ada", call, "I see.").agent("worker").say("ada", "go")
    assert memory.results("ada") == [("error", error)]
    assert memory.ending("ada") == ("dormant", "answered")
    assert len(memory.accepted) == 1
    memory.done()


def test_two_that_ask_each_other_at_the_same_moment_are_both_answered(memory: MemoryHost) -> None:
    memory.batch = False  # each has begun its turn before the other's question comes, so none can be refused
    memory.agent("ada", ask("bob", "a?"), "Asked.", "Not now.", "Heard.")
    memory.agent("bob", ask("ada", "b?"), "Asked.", "Later.", "Heard.")
    for name in ("ada", "bob"):
        memory.send(name, {"kind": "human", "text": "go"})
    memory.turn("ada")
    memory.turn("bob")
    assert memory.ending("ada") == memory.ending("bob") == ("waiting", "waiting", "peer")
    memory.settle()
    assert memory.sent("peer_reply", "ada") == ["Later."]
    assert memory.sent("peer_reply", "bob") == ["Not now."]
    assert memory.ending("ada") == memory.ending("bob") == ("dormant", "answered")
    memory.done()


@pytest.mark.parametrize("size", [3, 4])
def test_a_cycle_that_closes_at_one_moment_is_resolved_like_that_of_two(
    memory: MemoryHost, size: int
) -> None:
    memory.batch = False  # each has begun its turn before the other's question comes, so none can be refused
    names = ("ada", "bob", "eve", "joe")[:size]
    last = names[0]  # the last to come to rest, so it sees the whole cycle; the others get an answer
    for name, other in zip(names, (*names[1:], names[0]), strict=True):
        then = ["Heard."] if name == last else [reply(f"by {name}"), "Told."]
        memory.agent(name, ask(other, "?"), "Asked.", f"Later, says {name}.", *then)
        memory.send(name, {"kind": "human", "text": "go"})
    for name in names:
        memory.turn(name)
    assert {memory.ending(name) for name in names} == {("waiting", "waiting", "peer")}
    memory.settle()
    told = [f"by {name}" for name in reversed(names[1:])]
    assert memory.sent("peer_reply") == [f"Later, says {last}.", *told]
    assert {memory.ending(name) for name in names} == {("dormant", "answered")}
    memory.done()


def test_an_asker_outside_a_cycle_is_not_answered_early(memory: MemoryHost) -> None:
    """Ada owes eve an answer and waits for bob, who waits for a person."""
    memory.batch = False
    memory.agent("ada", ask("bob", "?"), "Asked.", "Later.", reply("It is blue."), "Told.")
    memory.agent("bob", calls(("ask_user", {"question": "Which?"})), reply("blue"), "Told.")
    memory.agent("eve", ask("ada", "?"), "Asked.", "Heard.")
    memory.say("ada", "go")
    memory.say("eve", "go")
    assert memory.sent("peer_reply") == []
    memory.say("bob", "blue")
    assert memory.sent("peer_reply") == ["blue", "It is blue."]
    memory.done()


# -- subagents -------------------------------------------------------------------------------------------


WORK = {"a": "A is fine.", "b": RuntimeError("no disk"), "c": "C is fine."}


def work(request: Any) -> Any:
    """Do the task that the last message names. Calls of one round run in parallel, in no fixed order."""
    done = WORK[request[-1].text[-1]]
    if isinstance(done, Exception):
        raise done
    return done


def started(request: Any) -> list[str]:
    results = [m.text for m in request if m.type == "tool" and m.text.startswith("Started ")]
    return [text.removeprefix("Started ").rstrip(".") for text in results]


def wait_all(request: Any) -> Any:
    """Wait for all started subagents."""
    return calls(("wait_for", {"handles": started(request)}))


FAILED = "No answer: the turn failed. RuntimeError: no disk"


def parent(host: Any, *replies: Any, **change: Any) -> Any:
    """Add a session with an open item that starts three subagents and waits."""
    host.agent("main", write("report"), spawn("a", "b", "c"), wait_all, "I wait.", *replies, **change)
    return host.agent("worker", *[work] * 3)


def three_subagents(host: Any) -> None:
    parent(host, close(1), "All in.").say("main", "go")


def test_three_subagents_one_of_which_fails(host: Stage) -> None:
    parent(host, close(1), "All in.").send("main", {"kind": "human", "text": "go"})
    host.turn("main")
    assert host.ending("main") == ("waiting", "waiting", "subagent")
    host.settle()
    assert sorted(host.sent("subagent_done")) == ["A is fine.", "C is fine.", FAILED]
    assert (host.turns[0], len(host.turns), host.turns[-1]) == ("main", 5, "main")
    assert (host.asked("main"), host.status("main").wakes) == (6, 1)
    assert host.ending("main") == ("dormant", "settled")
    assert host.values("main")["todo_subagents"] == host.values("main")["waiting_on"] == []
    assert {host.last("worker", n) for n in range(3)} == {f"[task from main] {t}" for t in "abc"}
    told = host.last("main", 4)
    assert told.startswith(
        "(automatic) Here is what your subagent brought back. Use it and continue.\n\n[subagent_done"
    )
    assert told.index("] C is fine.") < told.index("  [1] report")
    host.done()


def test_results_that_come_one_by_one_wake_once_when_all_are_in(memory: MemoryHost) -> None:
    memory.batch = False
    parent(memory, close(1), "All in.").say("main", "go")
    assert memory.turns.count("main") == 4  # three results, each a turn; two of them ask nobody
    assert (memory.asked("main"), memory.status("main").wakes) == (6, 1)
    stored = [m.text for m in memory.values("main")["messages"] if m.text.startswith("[subagent_done")]
    assert len(stored) == 2  # the third came with the nudge
    memory.done()


@pytest.mark.parametrize("change", [{"auto_continue": False}, {"max_wake_cycles": 0}])
def test_without_re_entries_a_result_is_stored_and_parks_as_disabled(change: Any, host: Stage) -> None:
    host.agent("main", spawn("a"), wait_all, "I wait.", "I see it now.", **change).agent("worker", work)
    host.say("main", "go")
    assert (host.ending("main"), host.asked("main")) == (("dormant", "disabled"), 3)
    host.say("main", "And?")
    assert any("A is fine." in m.text for m in host.models["main"].requests[-1])
    host.done()


def test_an_unfinished_subagent_says_so(host: Stage) -> None:
    host.agent("main", spawn("x", agent="slow"), "Started.", "Fine.")
    host.agent("slow", write("x"), "Not done.", max_wake_cycles=0, guard_retries=0).say("main", "go")
    assert host.sent("subagent_done") == [
        "Not done.\n\n(The subagent stopped before its list was done: 1 open, disabled.)"
    ]
    host.done()


def test_a_subagents_step_limit_ends_in_a_result(host: Stage) -> None:
    host.limit = 14  # one superstep is kept back in each round: the agent may ask a person (rule 16)
    host.agent("main", spawn("x"), "Started.", "Fine.").agent(
        "worker", *[write(f"x{n}") for n in range(4)], nag_after=0
    )
    host.say("main", "go")
    assert host.status(host.turns[1]).reason == "step_limit"
    assert host.sent("subagent_done") == [
        "[no text]\n\n(The subagent stopped before its list was done: 4 open, step_limit.)"
    ]
    assert host.failures == []
    host.done()


def test_no_more_simultaneous_children_than_allowed_even_in_one_round(host: Stage) -> None:
    host.agent(
        "main", spawn("a", "b", "c"), "Started.", spawn("c"), "Again.", limits=SubagentLimits(children=2)
    )
    host.agent("worker")
    host.send("main", {"kind": "human", "text": "go"})
    host.turn("main")
    host.send("main", {"kind": "human", "text": "one more"})
    host.turn("main")
    refused = "Error: at most 2 subagents may run at once; wait for one of them first"
    assert [r for r in host.results("main") if r[0] == "error"] == [("error", refused)] * 2
    assert [text for _, text in host.results("main")][2:] == [refused] * 2
    assert len(host.values("main")["todo_subagents"]) == 2


def test_a_subagent_of_a_subagent_of_a_subagent_is_too_deep(host: Stage) -> None:
    nested = [spawn("d", agent=None), "s"]
    host.agent("main", *nested, *nested, *nested, *["up"] * 2, limits=SubagentLimits(depth=2))
    host.say("main", "go")
    deepest = [status.thread for status in host.list() if ":sub2-" in status.thread]
    assert len(deepest) == 1
    assert host.results(deepest[0]) == [
        ("error", "Error: subagents may nest at most 2 deep; do the task yourself")
    ]
    host.done()


def test_waiting_for_a_finished_subagent_is_not_an_error(host: Stage) -> None:
    host.agent("main", spawn("a"), "Started.", wait_all, "Nothing to do.").agent("worker", work)
    host.say("main", "go")
    handle = host.turns[1]
    assert host.results("main")[-1] == (
        "success", f"Nothing to wait for. Already finished, see their messages: {handle}."
    )  # fmt: skip
    assert host.ending("main") == ("dormant", "answered")
    host.done()


def test_a_subagent_may_not_ask_those_who_wait_for_it(host: Stage) -> None:
    host.agent("main", spawn("x"), wait_all, "I wait.", "Fine.").agent(
        "worker", ask("main", "?"), "No reply."
    )
    host.say("main", "go")
    child = host.turns[1]
    ((status, text),) = host.results(child)
    assert (status, f"(main → {child} → main)" in text) == ("error", True)
    assert host.sent("subagent_done") == ["No reply."]
    host.done()


def asked_while_waiting(host: Any) -> None:
    host.agent("eve", ask("main", "?"), "Asked.", "Heard.").agent("worker", work)
    host.agent("main", write("r"), spawn("a"), wait_all, "I wait.", reply("so"), close(1), "Done.")
    host.say("eve", "go")


def test_reply_subagent_and_list_are_one_message_and_one_cycle(host: Stage) -> None:
    asked_while_waiting(host)
    parts = ["You still owe a reply to: eve.", "Here is what your subagent brought", "  [1] r"]
    told = host.last("main", 4)
    assert sorted(parts, key=told.index) == parts
    assert (host.asked("main"), host.status("main").wakes) == (7, 1)
    assert host.sent("peer_reply") == ["so"]
    host.done()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "wakes"),
    [
        (putting_off, [(1, 0, ["reply"]), (2, 0, ["reply"])]),
        (three_subagents, [(1, 1, ["subagent", "todos"])]),
        (asked_while_waiting, [(1, 1, ["reply", "subagent", "todos"])]),
    ],
)
def test_a_wake_is_streamed_with_its_reasons(story: Any, wakes: Any, memory: MemoryHost) -> None:
    story(memory)
    streamed = [(e["cycle"], e["open"], e["reasons"]) for e in memory.events if e["type"] == "wake"]
    assert streamed == wakes


def test_a_result_is_sent_when_its_own_subagents_have_finished(host: Stage) -> None:
    host.agent("main", spawn("x", agent="chief"), "Started.", "Fine.").agent("worker", work)
    host.agent("chief", spawn("a"), "Started a helper.", "The helper says: A is fine.")
    host.say("main", "go")
    assert host.sent("subagent_done", "main") == ["The helper says: A is fine."]
    assert [thread.partition(":")[0] for thread in host.turns] == ["main", "chief", "worker", "chief", "main"]
    host.done()


def test_a_reply_to_somebody_who_is_gone_stops_nobody(host: Stage) -> None:
    host.agent("ada", "It is 42.", max_wake_cycles=0)
    question = {"kind": "peer_message", "text": "?", "sender": "zoe", "correlation_id": "q"}
    host.send("ada", question)  # type: ignore[arg-type]
    host.settle()
    assert host.values("ada")["owed_replies"] == []
    assert host.sent("peer_reply") == []
    host.done()


# -- kicks and timers ------------------------------------------------------------------------------------


def test_a_kick_on_a_settled_session_requests_nothing(host: Stage) -> None:
    host.agent("ada", "Hello.").say("ada", "hi")
    host.send("ada", {"kind": "kick"})
    host.settle()
    assert (host.asked("ada"), host.turns) == (1, ["ada", "ada"])
    assert host.ending("ada") == ("dormant", "answered")
    host.done()


def test_a_kick_on_an_idle_session_is_the_nudge_and_spends_nothing(host: Stage) -> None:
    host.agent("ada", write("a"), "Later.", "Later.", close(1), "Done.", max_wake_cycles=1, guard_retries=0)
    host.say("ada", "go")
    assert host.ending("ada") == ("idle", "wake_budget")
    host.send("ada", {"kind": "kick"})
    host.settle()
    assert "  [1] a" in host.last("ada", 3)
    assert (host.status("ada").wakes, host.ending("ada")) == (0, ("dormant", "settled"))
    host.done()


def test_a_timer_wakes_a_dormant_and_an_idle_session_with_the_whole_budget(host: Stage) -> None:
    host.agent("ada", "Hello.", write("a"), *["Later."] * 4, max_wake_cycles=1, guard_retries=0)
    host.say("ada", "hi")
    key = host.schedule("ada", "0 0 29 2 *", "It is time.")
    assert [plan.id for plan in host.schedules("ada")] == [key]
    host.tick(key, "monday")
    host.tick(key, "monday")  # a repeat
    host.settle()
    assert host.last("ada", 1) == "[cron] It is time."
    assert (host.ending("ada"), host.status("ada").wakes) == (("idle", "wake_budget"), 1)
    host.tick(key, "tuesday")
    host.settle()
    assert host.last("ada", 4) == "[cron] It is time."
    assert (host.ending("ada"), host.status("ada").wakes) == (("idle", "wake_budget"), 1)
    assert host.cancel(key)
    assert list(host.schedules()) == []
    host.done()


def test_a_timer_and_a_kick_do_not_wake_a_waiting_session_and_are_not_lost(host: Stage) -> None:
    host.agent("ada", write("a"), ask("bob", "?"), "Asked.", close(1), "Both heard.").agent(
        "bob", reply("b"), "told"
    )
    host.send("ada", {"kind": "human", "text": "go"})
    host.turn("ada")
    host.send("ada", {"kind": "cron", "id": "c", "text": "tick"})
    host.send("ada", {"kind": "kick", "id": "k"})
    host.turn("ada")
    assert (host.asked("ada"), host.ending("ada")) == (3, ("waiting", "waiting", "peer"))
    host.settle()
    assert host.read("ada", 3)[-2:] == ["[cron] tick", "[peer_reply from bob] b"]
    host.done()


# -- cases -----------------------------------------------------------------------------------------------


def test_c12_parent_and_child_over_the_host(host: Stage) -> None:
    host.agent("main", write("p"), spawn("x"), wait_all, "I wait.", close(1), "Done.")
    question = calls(("ask_user", {"question": "Go?"}))
    host.agent(
        "worker", write("c"), question, "Not yet.", "Not yet.", "Not yet.", max_wake_cycles=2, guard_retries=0
    )
    host.say("main", "go")
    child = host.turns[1]
    assert host.ending("main") == ("waiting", "waiting", "subagent")
    assert host.ending(child) == ("waiting", "interrupted", "human")
    assert (host.asked("main"), host.asked("worker")) == (4, 2)
    host.say(child, "Go")
    assert host.results(child)[-1] == ("success", "Go")
    assert (host.status(child).wakes, host.status(child).reason) == (2, "wake_budget")
    assert (host.status("main").wakes, host.ending("main")) == (1, ("dormant", "settled"))
    host.done()


def test_c13_lifetime_of_the_budget_over_the_host(host: Stage) -> None:
    question = calls(("ask_user", {"question": "?"}))
    once = {"max_wake_cycles": 1, "guard_retries": 0}
    host.agent("ada", write("a"), "1", "2", "3", question, "5", **once)
    host.say("ada", "go")
    assert (host.asked("ada"), host.status("ada").wakes) == (3, 1)
    host.say("ada", "again")
    said, note = host.read("ada", 3)[-2:]
    assert (said, host.status("ada").reason) == ("again", "interrupted")
    assert note.startswith("(automatic) Still open from before:\n\n  [1] a\n\nContinue with them,")
    assert host.status("ada").wakes == 1
    host.say("ada", "yes")
    assert (host.status("ada").wakes, host.status("ada").reason) == (1, "wake_budget")
    people = [m.text for m in host.values("ada")["messages"] if m.type == "human" and not m.additional_kwargs]
    assert people == ["go", "again"]
    host.done()


# -- the tools -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["parley", "loki", "checklist", "write_todos"])
def test_no_tool_is_named_like_a_dialects(dialect: str) -> None:
    assert not set(TOOL_NAMES) & set(get_dialect(dialect).tool_names)


def test_tools_are_chosen_by_name_and_know_whom_they_may_address(host: Stage) -> None:
    tools = session_tools(host, ["send_message", "ask_user"], agents={"bob": "prints"})
    assert [tool.name for tool in tools] == ["send_message", "ask_user"]
    assert tools[0].description.endswith("without waiting for an answer. Agents: bob (prints).")
    assert list(tools[0].tool_call_schema.model_json_schema()["properties"]) == ["agent", "message"]
    with pytest.raises(ToolNameError, match=r"Unknown session tool 'shout'. Available: ask_user, "):
        session_tools(host, ["shout"])


def test_a_host_may_be_created_after_its_agents() -> None:
    later: list[MemoryHost] = []
    (tool,) = session_tools(lambda: later[0], ["send_message"])
    host = MemoryHost().agent("bob", "Fine.")
    host.agent("ada", tell("bob", "x"), "Told.", tools=[tool], names=[])
    later.append(host)
    host.say("ada", "go")
    assert host.turns == ["ada", "bob"]
    host.done()


def test_a_call_that_runs_again_sends_the_same_event(memory: MemoryHost) -> None:
    memory.agent("ada", ask("bob", "?"), "Asked.", "Asked.").agent("bob")
    memory.send("ada", {"kind": "human", "text": "go"})
    memory.turn("ada")
    before = list(memory.accepted)
    graph, config = memory.graph("ada"), {"configurable": {"thread_id": "ada"}}
    round_ = next(s for s in graph.get_state_history(config) if s.next == ("run_tools",))
    memory.run(graph, None, round_.config)
    assert list(memory.accepted) == before


def test_nothing_of_the_host_is_in_the_state(host: Stage) -> None:
    host.agent("ada", ask("bob", "?"), "Asked.").agent("bob")
    host.send("ada", {"kind": "human", "text": "go"})
    host.turn("ada")
    (entry,) = host.values("ada")["waiting_on"]
    assert set(entry) == {"id", "on", "from", "until"}
    assert "Host" not in repr(host.values("ada"))


def test_an_interrupted_run_continues_before_new_events(memory: MemoryHost) -> None:
    memory.agent("ada", ConnectionError("dead"), "Hello.", "Yes.")
    graph, config = memory.graph("ada"), {"configurable": {"thread_id": "ada"}}
    with pytest.raises(ConnectionError):
        memory.run(graph, {"messages": [("user", "go")]}, config)
    step = choose_next_input(memory.snapshot("ada"), [{"kind": "human", "text": "more"}])
    assert (step.run, step.input, step.taken, len(step.held)) == (True, None, (), 1)
    memory.say("ada", "more")
    assert [m.text for m in memory.values("ada")["messages"]] == ["go", "Hello.", "more", "Yes."]
    memory.done()
