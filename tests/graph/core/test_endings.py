"""Rule 21: an ending says what was done."""

import asyncio
from typing import Any

import pytest
from agents import END, START, TODO, Make, calls, change, done, look, looks, session, todo, update, write
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, session_of, update_todos
from wakeloop.loop.gates import choose_exit_code
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel
from wakeloop.thread.outside import end_run

AT: Any = {"configurable": {"thread_id": "1"}}


def never(item: Any, state: Any) -> str:
    return "not yet"


def always(item: Any, state: Any) -> None:
    return None


def ending(agent: Any) -> tuple[Any, ...]:
    """Return the reason, the counts of each kind of item, and the exit code."""
    end = agent.session
    counts = (end["completed"], end["cancelled"], end["blocked"])
    return end["state"], end["reason"], counts, int(choose_exit_code(end))


def test_without_a_list_and_without_a_call_it_is_answered(thread: Make) -> None:
    agent = thread("Paris.")
    assert agent.walk("What is the capital of France?") == [*START, *END]
    assert ending(agent) == ("dormant", "answered", (0, 0, 0), 0)
    assert (agent.asked, agent.session["items"]) == (1, 0)
    assert "verified" not in agent.session


def test_a_settled_thread_that_is_asked_a_question_has_answered_it(thread: Make) -> None:
    agent = thread(write("a"), done(1), "Done.", "It was a.")
    agent.run("go")
    assert ending(agent) == ("dormant", "settled", (1, 0, 0), 0)
    assert agent.walk("What was it?") == [*START, *END]
    assert ending(agent) == ("dormant", "answered", (1, 0, 0), 0)
    assert agent.asked == 4


@pytest.mark.parametrize(
    ("replies", "reason", "code"),
    [
        ([write("a"), done(1), "Done."], "settled", 0),
        ([write("a"), update(1, "blocked", "no key"), "No."], "blocked", 3),
    ],
)
def test_a_kick_with_nothing_to_do_leaves_the_ending_as_it_was(
    thread: Make, replies: list[Any], reason: str, code: int
) -> None:
    agent = thread(*replies)
    agent.run("go")
    before = ending(agent)
    assert (before[1], before[3]) == (reason, code)
    agent.run({})
    assert (ending(agent), agent.asked) == (before, 3)


def test_a_refused_write_and_a_look_at_the_list_are_not_writes(thread: Make) -> None:
    agent = thread(done(7), calls(("todo_list", {})), "Nothing to do.")
    agent.run("go")
    assert ending(agent) == ("dormant", "answered", (0, 0, 0), 0)


def test_work_without_a_list_is_answered(thread: Make) -> None:
    agent = thread(looks("a"), "I saw it.", tools=[look])
    agent.run("go")
    assert ending(agent) == ("dormant", "answered", (0, 0, 0), 0)


# -- blocked ---------------------------------------------------------------------------------------------


def test_c69_all_refused_three_times_is_blocked(thread: Make) -> None:
    agent = thread(write("a", "b"), *(done(1, 2) for _ in range(3)), "I cannot.", verify=never)
    assert agent.walk("go") == [*START, *TODO * 4, *END]
    assert ending(agent) == ("dormant", "blocked", (0, 0, 2), 3)
    assert agent.session["verified"] is False


def test_if_the_model_then_cancels_them_it_is_still_blocked(thread: Make) -> None:
    cancelled = calls(change(1, "cancelled"), change(2, "cancelled"))
    agent = thread(write("a", "b"), *(done(1, 2) for _ in range(3)), cancelled, "I cannot.", verify=never)
    agent.run("go")
    assert ending(agent) == ("dormant", "blocked", (0, 2, 0), 3)


@pytest.mark.parametrize("replies", ["one", "two"])
def test_an_item_that_was_refused_once_and_is_cancelled(thread: Make, replies: str) -> None:
    leave = change(1, "cancelled")
    given_up = [calls(change(1, "done"), leave)] if replies == "one" else [done(1), calls(leave)]
    agent = thread(write("a"), *given_up, "Done.", verify=never)
    agent.run("go")
    assert ending(agent) == ("dormant", "blocked", (0, 1, 0), 3)


LOKI = (("todo__init", {"goal": "g"}), ("todo__add", {"task": "b"}), ("todo__done", {"id": 1}))
DROPS: Any = {
    "langchain": [
        calls(("write_todos", {"todos": [{"content": "a", "status": status}]}))
        for status in ("pending", "completed")
    ]
    + [calls(("write_todos", {"todos": [{"content": "b", "status": "completed"}]}))],
    "loki": [calls(("todo__add", {"task": "a"})), calls(("todo__done", {"id": 1})), calls(*LOKI)],
}


@pytest.mark.parametrize("preset", DROPS)
def test_an_item_that_was_refused_once_and_is_dropped(preset: str) -> None:
    def only_b(item: Any, state: Any) -> str | None:
        return None if item["content"] == "b" else "no"

    settings = {"preset": preset, "auto_continue": True}
    agent = create_todo_agent(ScriptedModel([*DROPS[preset], "Done."]), settings=settings, verify=only_b)
    end = agent.invoke({"messages": [("user", "go")]})["todo_session"]
    assert (end["reason"], end["completed"], end["items"], end["verified"]) == ("blocked", 1, 1, True)


def test_an_item_that_is_resumed_is_not_given_up(thread: Make) -> None:
    answers = iter(["no", None])
    replies = [update(1, "cancelled"), update(1, "pending"), done(1)]
    agent = thread(write("a"), done(1), *replies, "Done.", verify=lambda *_: next(answers))
    agent.run("go")
    assert ending(agent) == ("dormant", "settled", (1, 0, 0), 0)
    assert agent.session["verified"] is True


def test_an_item_that_the_model_blocks_is_blocked_in_this_activation_only(thread: Make) -> None:
    agent = thread(write("a"), update(1, "blocked", "no disk"), "No.", write("b"), done(2), "Done.", "Yes.")
    agent.run("go")
    assert ending(agent) == ("dormant", "blocked", (0, 0, 1), 3)
    agent.run("more")
    assert ending(agent) == ("dormant", "settled", (1, 0, 1), 0)
    agent.run("really?")
    assert ending(agent) == ("dormant", "answered", (1, 0, 1), 0)


def test_what_a_person_blocks_does_not_count(thread: Make) -> None:
    agent = thread(write("a", "b"), ".", "Fine.", change={"max_wake_cycles": 0, "guard_retries": 0})
    agent.run("go")
    update_todos(agent.graph, agent.at(), block={1: "not now"}, done=2)
    assert ending(agent)[1:] == ("settled", (1, 0, 1), 0)
    agent.run("and now?")
    assert ending(agent) == ("dormant", "answered", (1, 0, 1), 0)


# -- proved ----------------------------------------------------------------------------------------------


def test_all_items_cancelled_untried_is_settled_without_a_proof(thread: Make) -> None:
    agent = thread(
        write("a", "b"), calls(change(1, "cancelled"), change(2, "cancelled")), "Done.", verify=never
    )
    agent.run("go")
    assert ending(agent) == ("dormant", "settled", (0, 2, 0), 3)
    assert agent.session["verified"] is False


def test_one_item_that_passed_is_a_proof_for_later_activations_too(thread: Make) -> None:
    replies = [write("a", "b"), calls(change(1, "done"), change(2, "cancelled")), "Done.", "It is."]
    agent = thread(*replies, calls(change(1, "pending")), done(1), "Yes.", verify=always)
    for words, reason in (("go", "settled"), ("is it?", "answered"), ("once more", "settled")):
        agent.run(words)
        assert (agent.session["reason"], agent.session["verified"]) == (reason, True)
        assert choose_exit_code(agent.session) == 0


def test_what_was_done_by_hand_is_no_proof(thread: Make) -> None:
    agent = thread("Fine.", verify=always)
    agent.run({"messages": [("user", "go")], "todos": [todo(1, "a", "completed")]})
    assert ending(agent) == ("dormant", "answered", (1, 0, 0), 3)


@pytest.mark.parametrize("edit", [{"reopen": 1}, {"clear": True, "add": "b"}], ids=["reopened", "cleared"])
def test_an_item_that_a_person_reopens_is_no_longer_a_proof(thread: Make, edit: Any) -> None:
    agent = thread(write("a"), done(1), "Done.", "Fine.", verify=always)
    agent.run("go")
    assert agent.session["verified"] is True
    update_todos(agent.graph, agent.at(), **edit)
    key = agent.todos[0]["id"]
    update_todos(agent.graph, agent.at(), done=key)
    agent.run("is it?")
    assert ending(agent) == ("dormant", "answered", (1, 0, 0), 3)


def test_an_ordinary_thread_has_one_note_about_it(thread: Make) -> None:
    agent = thread(write("a"), done(1), "Done.")
    agent.run("go")
    assert {"wrote", "given_up", "passed"} & agent.ledger.keys() == {"wrote"}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (["Paris."], "answered"),
        ([write("a"), *(done(1) for _ in range(3)), "No."], "blocked"),
        ([write("a"), update(1, "cancelled"), "Done."], "settled"),
    ],
)
def test_c69_the_same_in_create_agent(script: Any, reason: str) -> None:
    loop = WakeLoopMiddleware(settings="wakeloop", verify=never)
    agent = create_agent(ScriptedModel(script), middleware=[loop])
    end = agent.invoke({"messages": [("user", "go")]})["todo_session"]
    assert (end["state"], end["reason"], end["verified"]) == ("dormant", reason, False)
    assert choose_exit_code(end) == 3


# -- failed ----------------------------------------------------------------------------------------------


def test_c71_a_run_that_raised_reads_as_failed_with_its_words(thread: Make) -> None:
    agent = thread(write("a"), OSError("no network"), done(1), "Done.")
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    end = agent.session
    assert (end["state"], end["reason"], end["error"]) == ("failed", "failed", "OSError: no network")
    assert (end["open"], end["items"], end["spent"]["requests"], choose_exit_code(end)) == (1, 1, 1, 1)
    agent.run(None)  # it stays resumable
    assert agent.session == session("dormant", "settled", 0, 0, 26)


def test_a_run_that_raised_and_that_a_host_ended_stays_failed(thread: Make) -> None:
    agent = thread(write("a"), OSError("no network"), done(1), "Done.")
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    assert end_run(agent.graph, agent.at(), "OSError: no network")
    end = agent.session
    assert (end["state"], end["reason"], end["error"]) == ("failed", "failed", "OSError: no network")
    agent.run("again")
    assert (agent.session["reason"], "error" in agent.session) == ("settled", False)


@pytest.mark.parametrize("failure", ["OSError: no network", None])
@pytest.mark.parametrize("script", [[], [write("a"), done(1)]])
def test_a_kick_answers_what_an_interrupted_run_had_read(
    thread: Make, script: list[Any], failure: str | None
) -> None:
    """Nothing is open, but the last words, or the last results, still need an answer."""
    agent = thread(*script, OSError("no network"), "Paris.")
    with pytest.raises(OSError, match="no network"):
        agent.run("What is the capital of France?")
    assert end_run(agent.graph, agent.at(), failure)
    agent.run({"todo_inbox": [{"kind": "kick"}]})
    assert (len(agent.model.requests), agent.messages[-1].text) == (len(script) + 2, "Paris.")
    assert (agent.session["state"], "error" in agent.session) == ("dormant", False)
    agent.run({"todo_inbox": [{"kind": "kick"}]})  # now it is answered
    assert len(agent.model.requests) == len(script) + 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_signal_leaves_a_run_running(stop: Any) -> None:
    agent = create_todo_agent(ScriptedModel([write("a"), stop()]), checkpointer=InMemorySaver())
    with pytest.raises(stop):
        agent.invoke({"messages": [("user", "go")]}, AT)
    assert session_of(agent.get_state(AT)) == session("running", None)


async def test_a_task_that_is_cancelled_leaves_a_run_running() -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "waited"

    model = ScriptedModel([calls(("wait", {}))])
    agent = create_todo_agent(model, [wait], checkpointer=InMemorySaver())
    run = asyncio.create_task(agent.ainvoke({"messages": [("user", "go")]}, AT))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert session_of(await agent.aget_state(AT))["state"] == "running"


@pytest.mark.parametrize(
    ("status", "more", "state", "error"),
    [
        ("error", {}, "failed", "the server says no more"),
        ("error", {"error": {"error": "ValueError", "message": "no"}}, "failed", "ValueError: no"),
        ("interrupted", {"interrupts": {}}, "cancelled", None),
        ("interrupted", {}, "waiting", None),
        ("interrupted", {"interrupts": {"t": [{"value": "why?", "id": "i"}]}}, "waiting", None),
        ("busy", {"interrupts": {}}, "running", None),
    ],
)
def test_c71_what_a_servers_thread_says(status: str, more: Any, state: str, error: str | None) -> None:
    values = {"messages": [], "todos": [todo(1, "a")], "todo_session": {"state": "running", "reason": None}}
    found = session_of({"thread_id": "1", "status": status, "values": values, **more})
    assert (found["state"], found.get("error")) == (state, error)
    if state in ("failed", "cancelled"):
        assert (found["reason"], found["open"], choose_exit_code(found)) == (state, 1, 1)


def test_a_parent_that_reads_it() -> None:
    from typing import TypedDict

    from langgraph.graph import StateGraph

    class Talk(TypedDict):
        messages: list[Any]

    agent = create_todo_agent(ScriptedModel([write("a"), ValueError("sk-not this")]), checkpointer=True)
    builder = StateGraph(Talk).add_node("agent", agent).set_entry_point("agent")
    parent = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="not this"):
        parent.invoke({"messages": [("user", "go")]}, AT)
    inside = session_of(parent.get_state(AT, subgraphs=True))
    assert (inside["state"], inside["error"], inside["open"]) == ("failed", "ValueError: sk-not this", 1)
    assert session_of(parent.get_state(AT)) == {
        "state": "failed", "reason": "failed", "error": "ValueError: sk-not this",
    }  # fmt: skip
