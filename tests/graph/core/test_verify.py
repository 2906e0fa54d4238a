"""Rule 12: the verifier is asked before an item becomes completed."""

import asyncio
from functools import partial
from typing import Any

import pytest
from agents import END, START, TODO, WAKE, Make, WordlessError, done, session, todo, write
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from wakeloop import VerifyError, WakeloopError, create_todo_agent, update_todos
from wakeloop.testing import ScriptedModel, calls

QUIET = {"guard_retries": 0, "max_wake_cycles": 0}


class Judge:
    """Records what it was asked and answers from a script."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked, self.states = list(answers), [], []

    def __call__(self, item: Any, state: Any) -> Any:
        self.asked.append((item["id"], item["status"]))
        self.states.append(state)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def judged(door: str, judge: Judge) -> Any:
    """Return the judge as the door needs it: asynchronous runs accept both kinds."""
    if door == "sync":
        return judge

    async def verify(item: Any, state: Any) -> Any:
        await asyncio.sleep(0)
        return judge(item, state)

    return verify


def test_an_accepted_item_is_completed(door: str, thread: Make) -> None:
    judge = Judge(None)
    agent = thread(write("a"), done(1), "bye", verify=judged(door, judge))
    assert agent.walk("go") == [*START, *TODO, *TODO, *END]
    assert judge.asked == [(1, "completed")]
    assert judge.states[0]["messages"][0].content == "go"


def test_the_model_gets_a_refusal_as_the_reason(door: str, thread: Make) -> None:
    agent = thread(
        write("a", "b"), done(1, 2), done(1), "bye", verify=judged(door, Judge("no proof", None, None))
    )
    assert agent.walk("go") == [*START, *TODO, *TODO, *TODO, *END]
    status, text = agent.results()[1]
    assert status == "error"
    assert "no proof" in text
    assert agent.results()[2][0] == "success"
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]


def test_a_refused_item_stays_open_and_wakes(door: str, thread: Make) -> None:
    agent = thread(write("a"), done(1), "done!", done(1), "bye", verify=judged(door, Judge("not yet")))
    assert agent.walk("go") == [*START, *TODO, *TODO, *WAKE, *TODO, *END]


ERRORS = [KeyError("owner"), WordlessError(), ValueError("no\nnetwork")]
NOT_EXCEPTIONS = [
    SystemExit(1),
    asyncio.CancelledError(),
]  # sys.exit, and its own cancelled scope


@pytest.mark.parametrize("error", [*ERRORS, *NOT_EXCEPTIONS])
def test_c70_an_exception_is_raised_and_the_thread_continues(
    error: BaseException, door: str, thread: Make
) -> None:
    judge = Judge(error, None, None)
    agent = thread(write("a", "b"), done(1, 2), "bye", verify=judged(door, judge))
    with pytest.raises(VerifyError, match=f"verify raised {type(error).__name__}: ") as raised:
        agent.run("go")
    assert raised.value.__cause__ is error
    assert "\n" not in str(raised.value).partition("During")[0].rstrip()
    assert [item["status"] for item in agent.todos] == ["pending", "pending"]
    assert len(agent.model.requests) == 2
    assert agent.walk(None) == ["validate_todos", "call_model", *END]
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]
    assert judge.asked == [(1, "completed")] * 2 + [(2, "completed")]


def test_c70_refusals_before_an_exception_do_not_count_twice(door: str, thread: Make) -> None:
    judge = Judge("no", KeyError("x"), "no", None, None)
    agent = thread(write("a", "b"), done(1, 2), done(1), "bye", verify=judged(door, judge))
    with pytest.raises(VerifyError):
        agent.run("go")
    agent.run(None)
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]
    assert [status for status, _ in agent.results()] == ["success", "error", "success", "success"]


def test_the_third_refusal_blocks_and_ends_the_run(door: str, thread: Make) -> None:
    judge = Judge("one", "two", "three", "four")
    agent = thread(write("a"), done(1), done(1), "no", done(1), "bye", verify=judged(door, judge))
    assert agent.walk("go") == [*START, *TODO * 3, *WAKE, *TODO, *END]
    assert agent.todos == [todo(1, "a", "blocked", reason="three")]
    assert agent.session == session("dormant", "blocked", 0, 1, 26, verified=False)


def test_refusals_count_per_thread_not_per_activation(door: str, thread: Make) -> None:
    agent = thread(
        write("a"),
        done(1),
        ".",
        done(1),
        ".",
        done(1),
        ".",
        verify=judged(door, Judge("1", "2", "3")),
        change=QUIET,
    )
    agent.run("go")
    agent.run("more")
    agent.run("more")
    assert agent.todos == [todo(1, "a", "blocked", reason="3")]


def test_it_stays_blocked_when_a_whole_list_repeats_it(door: str, thread: Make) -> None:
    def whole(status: str) -> Any:
        return calls(
            (
                "write_todos",
                {"todos": [{"content": "a", "status": status}, {"content": "b", "status": "in_progress"}]},
            )
        )

    last = calls(
        (
            "write_todos",
            {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "completed"}]},
        )
    )
    judge = Judge("1", "2", "3")
    agent = thread(
        *[whole("completed")] * 4,
        whole("pending"),
        last,
        ".",
        verify=judged(door, judge),
        settings="cubepi",
    )
    agent.run("go")
    assert agent.todos[0] == todo(1, "a", "blocked", reason="3")
    assert [key for key, _ in judge.asked if key == 1] == [1, 1, 1]


def test_manual_edits_ask_nobody(thread: Make) -> None:
    judge = Judge("no")
    agent = thread(write("a"), ".", verify=judge, change=QUIET)
    agent.run("go")
    update_todos(agent.graph, agent.at(), done=[1])
    assert agent.todos == [todo(1, "a", "completed")]
    assert judge.asked == []


def test_a_manual_edit_may_reopen_an_item_refused_for_good(thread: Make) -> None:
    judge = Judge("1", "2", "3")
    agent = thread(write("a"), done(1), done(1), done(1), ".", done(1), ".", verify=judge)
    agent.run("go")
    update_todos(agent.graph, agent.at(), reopen=[1])
    agent.run("more")
    assert agent.todos == [todo(1, "a", "completed")]


# -- through the wrong door ------------------------------------------------------------------------------


async def verify_later(item: Any, state: Any) -> str | None:
    return None


def verify_unseen(item: Any, state: Any) -> Any:
    return verify_later(item, state)


class LaterJudge:
    async def __call__(self, item: Any, state: Any) -> str | None:
        return None


@pytest.mark.parametrize("verify", [verify_later, LaterJudge(), partial(verify_later)])
def test_an_async_verify_is_refused_when_a_sync_run_starts(verify: Any) -> None:
    model = ScriptedModel(write("a"))
    agent = create_todo_agent(model, verify=verify, checkpointer=InMemorySaver())
    with pytest.raises(VerifyError, match="ainvoke"):
        agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "1"}})
    assert model.requests == []


def test_an_async_verify_that_cannot_be_recognised_is_refused_at_its_first_use() -> None:
    model = ScriptedModel(write("a"), done(1))
    agent = create_todo_agent(model, verify=verify_unseen, checkpointer=InMemorySaver())
    with pytest.raises(WakeloopError, match="ainvoke"):
        agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "1"}})
    assert len(model.requests) == 2


@pytest.mark.parametrize("verify", [verify_unseen, LaterJudge(), lambda item, state: None])
async def test_every_kind_is_fine_in_an_async_run(verify: Any) -> None:
    agent = create_todo_agent(ScriptedModel(write("a"), done(1), "bye"), verify=verify)
    assert (await agent.ainvoke({"messages": [("user", "go")]}))["todos"] == [todo(1, "a", "completed")]


def test_a_verifier_may_ask_a_person(thread: Make) -> None:
    def ask(item: Any, state: Any) -> str | None:
        return None if interrupt(f"is {item['content']} done?") == "yes" else "the person says no"

    agent = thread(write("a"), done(1), "bye", verify=ask)
    agent.run("go")
    assert agent.session["reason"] == "interrupted"
    assert agent.walk(Command(resume="yes")) == ["validate_todos", "call_model", *END]
    assert agent.todos == [todo(1, "a", "completed")]
