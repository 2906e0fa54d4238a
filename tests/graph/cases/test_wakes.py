"""Cases C07 to C14: when the graph wakes, corrects and ends."""

import asyncio
from itertools import repeat
from typing import Any
from unittest.mock import ANY

import pytest
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from rig import Rig, close, marks, results, statuses, update, users, write
from shared_tools import ask

from wakeloop import TodoState, answer_of, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, says, walk
from wakeloop.todos.items import count_open

# -- C07 -------------------------------------------------------------------------------------------------

FOR_EVER = {
    # settings: requests, state, reason, wakes
    "wakeloop": ({}, 8, "stalled", 5),
    "no idle limit": ({"max_idle_wakes": 0}, 28, "wake_budget", 25),
    "as agentparley": ({"max_idle_wakes": 0, "guard_retries": 0}, 27, "wake_budget", 25),
    "as loki": (
        {"max_idle_wakes": 0, "max_wake_cycles": 10, "guard_retries": 0, "stop_on_repeat": True},
        3,
        "repeated_reply",
        1,
    ),
    "as lesson": ({"max_wake_cycles": 0, "guard_retries": 0}, 2, "disabled", 0),
    "as cubepi": ({"max_wake_cycles": 0}, 3, "disabled", 0),
    "as cubepi-strict": (
        {"max_wake_cycles": 0, "guard_retries": 2, "on_guard_exhausted": "block"},
        5,
        "guard_blocked",
        0,
    ),
    "switched off": ({"auto_continue": False}, 2, "disabled", 0),
    "no guard": ({"guard_retries": 0}, 7, "stalled", 5),
    "two corrections": ({"guard_retries": 2}, 9, "stalled", 5),
    "one wake": ({"max_wake_cycles": 1}, 4, "wake_budget", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(("changed", "requests", "reason", "wakes"), FOR_EVER.values(), ids=FOR_EVER)
def test_c07_an_exact_number_of_requests(
    quick: Rig, changed: dict[str, Any], requests: int, reason: str, wakes: int
) -> None:
    quick.build(
        [write("a"), *(says("Already done.") for _ in range(requests - 1))],
        settings=preset("wakeloop").model_copy(update=changed),
    )
    quick.run("go")
    quick.model.assert_done()
    assert len(quick.model.requests) == requests
    assert quick.ending == ("idle", reason, wakes)
    assert quick.todos == [{"id": 1, "content": "a", "status": "pending"}]


def test_c07_work_done_but_list_never_updated(rig: Rig) -> None:
    rig.build(write("a"), update(1, "in_progress"), *repeat("already done", 7))
    out = rig.run("go")
    rig.model.assert_done()
    assert len(rig.model.requests) == 9
    assert rig.ending == ("idle", "stalled", 5)
    assert rig.session["open"] == 1
    assert rig.session["budget"] == 25
    assert out["todos"] == [{"id": 1, "content": "a", "status": "in_progress"}]
    assert marks(out["messages"]) == [*["wake"] * 5, "guard"]
    rig.follow_up()


def test_c07_the_walk(quick: Rig) -> None:
    quick.build(write("a"), *repeat("already done", 7))
    turn = ["call_model", "finalization_guard"]
    assert quick.walk("go") == [
        "activate",
        "call_model",
        "validate_todos",
        *turn,
        *(["wake", *turn] * 5),
        *turn,
    ]


# -- C08 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [("cancelled", None), ("blocked", "no key"), ("done", None)], ids=str)
def test_c08_settled_kinds_do_not_wake(rig: Rig, last: tuple[str, str | None]) -> None:
    rig.build(write("a", "b"), close(1), update(2, *last), "That is all.")
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "blocked" if last[0] == "blocked" else "settled", 0)
    assert rig.session["open"] == 0
    assert marks(out["messages"]) == []
    rig.follow_up()


# -- C09 -------------------------------------------------------------------------------------------------


def test_c09_a_question_is_pending(kept: Rig) -> None:
    kept.build(
        write("ask", "use"),
        calls(("ask", {"question": "Which?"}, "q")),
        says("Go it is."),
        close(1, 2),
        "Done.",
        tools=[ask],
    )
    kept.run("go")
    assert len(kept.model.requests) == 2
    assert kept.session == {
        "state": "waiting",
        "reason": "interrupted",
        "on": "human",
        "open": 2,
        "wakes": 0,
        "budget": 25,
        "list": 1,
        "items": 2,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }
    assert marks(kept.messages) == []
    kept.run(Command(resume="Go"))
    kept.model.assert_done()
    answer = next(m for m in results(kept.messages) if m.tool_call_id == "q")
    assert answer.content == "Go"
    assert kept.ending == ("dormant", "settled", 1)
    kept.follow_up()


def test_c09_the_resume_keeps_the_counters(kept: Rig) -> None:
    """Two wakes before the question, and five more without progress, end the run."""
    kept.build(
        write("a"),
        says("one"),
        says("two"),
        calls(("ask", {"question": "?"}, "q")),
        says("three"),
        says("four"),
        says("five"),
        says("six"),
        says("seven"),
        says("eight"),
        says("nine"),
        tools=[ask],
    )
    kept.run("go")
    assert len(kept.model.requests) == 4
    ledger = kept.state["todo_ledger"]
    assert (ledger["wake_cycles"], ledger["idle_wakes"]) == (2, 1)
    kept.run(Command(resume="yes"))
    kept.model.assert_done()
    # the question was new work, so the count without progress restarted; the budget did not
    assert kept.ending == ("idle", "stalled", 7)


def test_c09_without_a_saver_the_question_ends_the_run(bare: Rig) -> None:
    """It does not wake either; nothing can answer it, and the next message finds the list open."""
    bare.build(write("ask", "use"), calls(("ask", {"question": "Which?"}, "q")), tools=[ask])
    bare.run("go")
    bare.model.assert_done()
    assert bare.session["state"] == "running"
    assert marks(bare.messages) == []
    assert statuses(bare.todos) == ["pending", "pending"]
    bare.follow_up()
    assert marks(bare.messages) == ["repair", "repair"]


# -- C10 -------------------------------------------------------------------------------------------------


def slow(rig: Rig, started: asyncio.Event) -> Any:
    """A tool that is interrupted, by Ctrl-C or by a cancellation from outside."""

    async def wait() -> str:
        """Take long."""
        started.set()
        await asyncio.sleep(30)
        return "never"

    def stop() -> str:
        """Take long."""
        raise KeyboardInterrupt

    return tool("slow")(wait if rig.runner else stop)


def test_c10_abort(rig: Rig) -> None:
    started = asyncio.Event()
    rig.build(write("a", "b"), calls(("slow", {}, "s")), tools=[slow(rig, started)])
    if rig.runner is None:
        with pytest.raises(KeyboardInterrupt):
            rig.run("go")
    else:

        async def broken_off() -> None:
            task = asyncio.create_task(rig._arun(rig._input("go"), rig.config))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        rig.wait(broken_off())
    assert len(rig.model.requests) == 2
    assert marks(rig.messages) == []
    if rig.keeps:
        assert rig.session == {"state": "running", "reason": None}
        assert count_open(rig.todos) == 2
    rig.follow_up()
    assert "wake" not in marks(rig.messages)
    if rig.keeps:
        assert marks(rig.messages) == ["repair", "repair", "activate"]
        assert "may or may not have run" in str(
            next(m for m in results(rig.messages) if m.tool_call_id == "s").content
        )


def test_c10_the_model_is_interrupted(kept: Rig) -> None:
    if kept.runner is not None:
        pytest.skip("an event loop passes Ctrl-C on in its own way")
    kept.build(write("a"), KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        kept.run("go")
    assert len(kept.model.requests) == 2
    kept.then("Going on.", close(1), "Done.")
    kept.run(None)
    kept.model.assert_done()
    assert kept.ending == ("dormant", "settled", 1)
    assert users(kept.messages) == ["go"]


# -- C11 -------------------------------------------------------------------------------------------------


class BadRequestError(Exception):
    """What a provider's client raises for a 400."""


def test_c11_the_provider_fails_fast(rig: Rig) -> None:
    rig.build(write("a"), BadRequestError("400: no such model"))
    with pytest.raises(BadRequestError, match="no such model"):
        rig.run("go")
    assert len(rig.model.requests) == 2
    assert marks(rig.messages) == []
    if rig.keeps:
        assert rig.todos == [{"id": 1, "content": "a", "status": "pending"}]
        assert rig.session["state"] == "failed"
    rig.follow_up()


def test_c11_every_request_fails(kept: Rig) -> None:
    kept.build(write("a"), *(BadRequestError("400") for _ in range(3)))
    for attempt in ("go", "again", None):
        with pytest.raises(BadRequestError):
            kept.run(attempt)
    kept.model.assert_done()
    assert users(kept.messages) == ["go", "again"]
    kept.follow_up()


def test_c11_a_failure_after_a_wake_continues_with_its_counters(kept: Rig) -> None:
    kept.build(write("a"), "one", BadRequestError("400"))
    with pytest.raises(BadRequestError):
        kept.run("go")
    kept.then("two", "three", "four", "five", "six", "corrected")
    kept.run(None)
    kept.model.assert_done()
    assert kept.ending == ("idle", "stalled", 5)
    assert marks(kept.messages) == [*["wake"] * 5, "guard"]


# -- C12 -------------------------------------------------------------------------------------------------


def parent_of(rig: Rig, *replies: Any) -> list[str]:
    """Put our agent into a larger graph; the node after it records its visits."""
    rig.model = ScriptedModel(*replies)
    rig.models = [rig.model]
    visits: list[str] = []

    def after(state: TodoState) -> dict[str, Any]:
        visits.append("after")
        return {}

    parent = StateGraph(TodoState)
    parent.add_node("child", create_todo_agent(rig.model, [ask])).add_node("after", after)
    rig.agent = parent.add_edge(START, "child").add_edge("child", "after").compile(checkpointer=rig.saver)
    return visits


ASKING = (write("a"), "pausing", calls(("ask", {"question": "?"}, "q")))


def test_c12_parent_and_child(kept: Rig) -> None:
    visits = parent_of(kept, *ASKING, "still open", close(1), "Done.")
    kept.run("go")
    assert len(kept.model.requests) == 3
    assert visits == []
    assert kept.snapshot.interrupts
    kept.run(Command(resume="yes"))
    kept.model.assert_done()
    assert visits == ["after"]
    assert "yes" in [m.content for m in results(kept.messages)]
    session = {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 2,
        "budget": 26,
        "list": 2,
        "items": 1,
        "completed": 1,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }
    assert kept.state["todo_session"] == session
    assert marks(kept.messages) == ["wake", "wake"]
    kept.follow_up()


def test_c12_without_a_saver_the_child_is_lost_at_its_question(bare: Rig) -> None:
    """Neither wakes, and the parent goes no further; the next message begins with the parent's state."""
    visits = parent_of(bare, *ASKING, write("a"), "stop", close(1), "Done.")
    bare.run("go")
    assert len(bare.model.requests) == 3
    assert visits == []
    assert [str(m.content) for m in bare.messages] == ["go"]
    bare.run("again")
    bare.model.assert_done()
    assert visits == ["after"]
    assert [str(m.content) for m in bare.model.requests[3][1:]] == ["go", "again"]
    assert bare.ending == ("dormant", "settled", 1)  # the child's own full budget
    bare.models = [bare.model]
    bare.follow_up()


# -- C13 -------------------------------------------------------------------------------------------------


def test_c13_every_activation_has_the_whole_budget(rig: Rig) -> None:
    unasked = {"on_question": "wake", "on_new_topic": "ignore"}  # nobody is there to ask
    settings = preset("wakeloop").model_copy(
        update={"max_wake_cycles": 2, "max_idle_wakes": 0, "guard_retries": 0, **unasked}
    )
    rig.build(write("a"), "one", "two", "three", settings=settings)
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "wake_budget", 2)
    rig.then("four", "five", "six")
    rig.run("keep going")
    rig.model.assert_done()
    assert rig.ending == ("idle", "wake_budget", 2)
    assert marks(rig.messages) == ["wake"] * 4
    assert users(rig.messages) == ["go", "keep going"]
    rig.follow_up()


def test_c13_an_interrupt_does_not_give_wakes_back(kept: Rig) -> None:
    settings = preset("wakeloop").model_copy(
        update={"max_wake_cycles": 2, "max_idle_wakes": 0, "guard_retries": 0}
    )
    kept.build(
        write("a"),
        "one",
        calls(("ask", {"question": "?"}, "q")),
        "two",
        "three",
        tools=[ask],
        settings=settings,
    )
    kept.run("go")
    kept.run(Command(resume="yes"))
    kept.model.assert_done()
    assert kept.ending == ("idle", "wake_budget", 2)


def test_c13_the_guard_has_its_retries_again(kept: Rig) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 0})
    kept.build(write("a"), "one", "two", settings=settings)
    kept.run("go")
    kept.then("three", "four")
    kept.run("keep going")
    kept.model.assert_done()
    assert marks(kept.messages) == ["guard", "activate", "guard"]
    assert kept.ending == ("idle", "disabled", 0)


# -- C14 -------------------------------------------------------------------------------------------------


def test_c14_all_done_too_early(rig: Rig) -> None:
    ran: list[str] = []

    @tool
    def do_b() -> str:
        """Do the second thing."""
        ran.append("b")
        return "b is done"

    rig.build(
        write("a", "b"),
        close(1),
        "All done.",
        calls(("do_b", {})),
        close(2),
        "Really done.",
        tools=[do_b],
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert ran == ["b"]
    assert answer_of(out) == "Really done."
    assert rig.ending == ("dormant", "settled", 1)
    nudge = next(m for m in out["messages"] if m.additional_kwargs.get("wakeloop", {}).get("kind") == "wake")
    assert "  [2] b" in nudge.content
    assert "  [1] a" not in nudge.content
    rig.follow_up()


def test_c14_an_empty_list_asks_once(rig: Rig) -> None:
    rig.build("hi")
    out = rig.run("hello")
    assert len(rig.model.requests) == 1
    assert [m.type for m in out["messages"]] == ["human", "ai"]
    assert out["todos"] == []
    assert rig.ending == ("dormant", "answered", 0)
    rig.follow_up()


@pytest.mark.parametrize(
    ("rounds", "reason", "requests"), [(10, "looping", 12), (0, "step_limit", 20)], ids=["default", "off"]
)
def test_c14_a_list_rejected_on_every_write_still_ends(
    rig: Rig, rounds: int, reason: str, requests: int
) -> None:
    """Well-formed and refused: rounds without progress; if those are not counted, the steps bound it."""
    bounded = preset("wakeloop").model_copy(update={"max_idle_rounds": rounds})
    refused = (calls(("todo_write", {"items": [" "]})) for _ in range(40))
    rig.build([write("a"), *refused], settings=bounded)
    rig.run("go", recursion_limit=44)
    assert rig.ending == ("idle", reason, 0)
    assert rig.todos == [{"id": 1, "content": "a", "status": "pending"}]
    assert len(results(rig.messages)) == len(rig.model.requests) == requests
    rig.follow_up()


def test_c14_refused_then_a_reply_without_calls_ends_by_the_gates(rig: Rig) -> None:
    rig.build(
        write("a"), *(step for _ in range(7) for step in (calls(("todo_write", {"items": [" "]})), "cannot"))
    )
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "stalled", 5)
    assert statuses(rig.todos) == ["pending"]


def test_c14_walk_of_one_wake() -> None:
    agent = create_todo_agent(ScriptedModel(write("a"), "stop", close(1), "bye"))
    assert walk(agent, "go") == [
        "activate",
        "call_model",
        "validate_todos",
        "call_model",
        "finalization_guard",
        "wake",
        "call_model",
        "validate_todos",
        "call_model",
        "finalization_guard",
    ]
