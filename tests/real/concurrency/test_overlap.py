"""Two runs on one thread are detected when they overlap, and only then."""

import pickle
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from keeping import DURABILITIES, SAVERS, THREAD, Stage, long, played
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import ConcurrentRunError, WakeloopError, create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.concurrent_runs import READ_ATTEMPTS, WINDOW

pytestmark = pytest.mark.covering("kind", "play")  # each saver, each durability


@pytest.fixture(params=SAVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=DURABILITIES)
def play(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    where = request.getfixturevalue("postgres") if "postgres" in kind else tmp_path / "threads.db"
    return lambda script: played(kind, where, request.param, script)


# -- detected overlaps ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 20], ids=["short", "long"])
@pytest.mark.parametrize("again", [False, True], ids=["fresh", "known"])
def test_a_run_within_a_step_of_another(play: Any, rounds: int, again: bool) -> None:
    async def script(stage: Stage) -> None:
        if again:
            await stage.run(stage.agent(says("before")))
        other = stage.agent(says("the other"))

        async def meanwhile() -> None:
            await stage.run(other, "me too")

        stage.doing = meanwhile
        mine = stage.agent(*long("mine", rounds))
        with pytest.raises(ConcurrentRunError) as caught:
            await stage.run(mine)
        error = caught.value
        assert error.thread_id == "t"
        assert error.own != error.other
        ids = [row async for row in _ids(stage)]
        assert error.other in ids
        assert error.own in ids
        # the next message continues: the conflict is reported once
        out = await stage.run(stage.agent(says("after")), "and now?")
        assert out["todo_session"]["reason"] == "answered"

    play(script)


async def _ids(stage: Stage) -> Any:
    if stage.door == "sync":
        for row in stage.saver.list(THREAD):
            yield row.config["configurable"]["checkpoint_id"]
    else:
        async for row in stage.saver.alist(THREAD):
            yield row.config["configurable"]["checkpoint_id"]


def test_an_edit_by_hand_in_mid_run(play: Any) -> None:
    async def script(stage: Stage) -> None:
        await stage.run(stage.agent(says("before")))
        mine = stage.agent(*long("mine"))

        async def meanwhile() -> None:
            await stage.edit(mine, THREAD, {"todo_goal": "another"})

        stage.doing = meanwhile
        with pytest.raises(ConcurrentRunError):
            await stage.run(mine)

    play(script)


def test_two_resumes_at_once(play: Any) -> None:
    """Of two runs that resume from the same interrupt, the slower one detects the other."""

    async def script(stage: Stage) -> None:
        await stage.run(stage.agent(calls(("ask", {}))))
        other = stage.agent(says("the other"))

        async def meanwhile() -> None:
            await stage.run(other, Command(resume="yes"))

        stage.doing = meanwhile
        mine = stage.agent(says("mine"))
        if stage.durability != "sync":  # "exit" stores none of a run, "async" may be two steps behind
            return
        with pytest.raises(ConcurrentRunError):
            await stage.run(mine, Command(resume="no"))

    play(script)


def test_the_first_to_end_detects_one_that_began_meanwhile(play: Any) -> None:
    """The second run continues past the end of the first; the first detects it, with any durability."""

    async def script(stage: Stage) -> None:
        await stage.run(stage.agent(says("before")))
        inner = type(stage)(stage.saver, stage.durability, stage.door)
        first = stage.agent(says("first"))
        ended: list[BaseException | None] = []

        async def within() -> None:
            try:
                await stage.run(first, "first")
            except ConcurrentRunError as error:
                ended.append(error)
            else:
                ended.append(None)

        inner.doing = within
        with pytest.raises(ConcurrentRunError):
            await inner.run(inner.agent(*long("second")))
        assert ended == [None]

    play(script)


# -- what is not a conflict ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, WINDOW, 40])
def test_runs_one_after_another(play: Any, rounds: int) -> None:
    async def script(stage: Stage) -> None:
        for text in ("one", "two", "three"):
            out = await stage.run(stage.agent(*long(text, rounds)))
            assert out["messages"][-1].content == text
            assert out["todo_session"]["reason"] == "answered"

    play(script)


def test_an_ended_thread_invoked_with_none_and_kicked(play: Any) -> None:
    async def script(stage: Stage) -> None:
        agent = stage.agent(says("one"))
        await stage.run(agent)
        for _ in range(3):
            await stage.run(agent, None)
            await stage.run(agent, {})

    play(script)


def test_a_fork_from_an_older_checkpoint(play: Any) -> None:
    async def script(stage: Stage) -> None:
        first = stage.agent(*long("one"), says("two"), says("three"), *long("four"), says("five"))
        await stage.run(first)
        old = (await stage.state(first)).config
        await stage.run(first, "two")
        await stage.run(first, "three")
        out = await stage.run(first, "four", old)
        assert [m.content for m in out["messages"] if m.type == "human"] == ["go", "four"]
        out = await stage.run(first, "five")
        assert [m.content for m in out["messages"] if m.type == "human"] == ["go", "four", "five"]

    play(script)


def test_a_replay_from_within_an_ended_run(play: Any) -> None:
    async def script(stage: Stage) -> None:
        if stage.durability == "exit":  # keeps no checkpoint within a run
            return
        agent = stage.agent(*long("one", 3), says("again"), says("after"))
        await stage.run(agent)
        rows = [row async for row in _ids(stage)]
        out = await stage.run(agent, None, {"configurable": {"thread_id": "t", "checkpoint_id": rows[2]}})
        assert out["messages"][-1].content == "again"
        out = await stage.run(agent, "more")
        assert out["messages"][-1].content == "after"

    play(script)


def test_edits_between_runs(play: Any) -> None:
    async def script(stage: Stage) -> None:
        agent = stage.agent(says("one"), says("two"), says("three"))
        await stage.run(agent)
        await stage.edit(agent, THREAD, {"todo_goal": "another"}, "finalization_guard")
        await stage.run(agent, "two")
        for goal in ("a", "b"):
            await stage.edit(agent, THREAD, {"todo_goal": goal}, "finalization_guard")
        assert (await stage.run(agent, "three"))["todo_goal"] == "b"

    play(script)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 20])
def test_an_interrupt_a_resume_and_the_next_run(play: Any, rounds: int) -> None:
    async def script(stage: Stage) -> None:
        before = [calls(("todo_list", {}))] * rounds
        agent = stage.agent(*before, calls(("ask", {})), *long("done", rounds), says("next"))
        await stage.run(agent)
        out = await stage.run(agent, Command(resume="yes"))
        assert out["messages"][-1].content == "done"
        out = await stage.run(agent, "next", {**THREAD, "recursion_limit": 50})
        assert out["messages"][-1].content == "next"

    play(script)


def test_an_interrupted_run_continues(play: Any) -> None:
    async def script(stage: Stage) -> None:
        agent = stage.agent(calls(("todo_list", {})), ConnectionError("dead"), *long("done", 20))
        with pytest.raises(ConnectionError):
            await stage.run(agent)
        out = await stage.run(agent, None)
        assert out["messages"][-1].content == "done"

    play(script)


def test_either_side_may_continue(play: Any) -> None:
    async def script(stage: Stage) -> None:
        await stage.run(stage.agent(says("before")))
        other = stage.agent(says("the other"))

        async def meanwhile() -> None:
            await stage.run(other, "me too")

        stage.doing = meanwhile
        mine = stage.agent(*long("mine"))
        with pytest.raises(ConcurrentRunError) as caught:
            await stage.run(mine)
        stage.doing = None
        own = {"configurable": {"thread_id": "t", "checkpoint_id": caught.value.own}}
        out = await stage.run(mine, None, own)
        assert out["messages"][-1].content == "mine"
        assert out["todo_session"]["reason"] == "answered"
        assert session_of(await stage.state(mine))["reason"] == "answered"

    play(script)


# -- where the thread is read, and where not -----------------------------------------------------------------


class Counting(InMemorySaver):
    """A saver that counts how often it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []

    def list(self, config: Any, **how: Any) -> Any:
        self.asked.append(how)
        return super().list(config, **how)


def test_a_run_reads_once_and_a_long_one_twice() -> None:
    saver = Counting()
    model = ScriptedModel([says("a"), *[calls(("todo_list", {}))] * 9, says("b")])
    agent = create_todo_agent(model, checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD, durability="sync")
    assert saver.asked == [{"limit": 5}]  # after input, START, activate and call_model, and what it began on
    agent.invoke({"messages": [("user", "go")]}, THREAD, durability="sync")
    assert saver.asked[1:] == [{"limit": 8}, {"filter": {"source": "input"}, "limit": 1}]


class Shaken(InMemorySaver):
    """A saver that is written to while it is read, a number of times, as `InMemorySaver` may be."""

    def __init__(self, times: int, says: str) -> None:
        super().__init__()
        self.left, self.says = times, says

    def list(self, config: Any, **how: Any) -> Any:
        if self.left:
            self.left -= 1
            raise RuntimeError(self.says)
        return super().list(config, **how)


SHAKEN = "dictionary changed size during iteration"


@pytest.mark.parametrize("times", [1, READ_ATTEMPTS])
def test_a_saver_in_memory_that_is_written_to_meanwhile_is_read_again(times: int) -> None:
    saver = Shaken(times, SHAKEN)
    agent = create_todo_agent(ScriptedModel([says("a")]), checkpointer=saver)
    out = agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert (saver.left, out["todo_session"]["reason"]) == (0, "answered")


@pytest.mark.parametrize(("times", "said"), [(READ_ATTEMPTS + 1, SHAKEN), (1, "no such table")])
def test_other_errors_of_a_saver_are_its_own(times: int, said: str) -> None:
    agent = create_todo_agent(ScriptedModel([says("a")]), checkpointer=Shaken(times, said))
    with pytest.raises(RuntimeError, match=said):
        agent.invoke({"messages": [("user", "go")]}, THREAD)


def test_one_builder_compiled_with_two_savers_does_not_mix_them() -> None:
    from wakeloop import build_todo_graph

    one, two = Counting(), Counting()
    graph = build_todo_graph(ScriptedModel([says("a")] * 3))
    first, second, third = graph.compile(one), graph.compile(two), graph.compile()
    first.invoke({"messages": [("user", "go")]}, THREAD)
    assert (len(one.asked), len(two.asked)) == (1, 0)
    second.invoke({"messages": [("user", "go")]}, THREAD)
    assert (len(one.asked), len(two.asked)) == (1, 1)
    third.invoke({"messages": [("user", "go")]}, THREAD)
    assert (len(one.asked), len(two.asked)) == (1, 1)


def test_a_copy_with_a_config_is_watched_too() -> None:
    saver = Counting()
    agent = create_todo_agent(ScriptedModel([says("a")]), checkpointer=saver).with_config(tags=["x"])
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert len(saver.asked) == 1


def test_a_graph_extended_after_it_was_compiled_still_warns(caplog: pytest.LogCaptureFixture) -> None:
    from wakeloop import build_todo_graph

    graph = build_todo_graph(ScriptedModel([]))
    graph.compile()
    graph.add_node("more", lambda state: {})
    assert "already been compiled" in caplog.text


def test_no_ending_is_reported_if_another_run_is_found() -> None:
    saver = InMemorySaver()
    agent = create_todo_agent(ScriptedModel([says("a"), lambda _: _interfere(saver)]), checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    events: list[Any] = []
    stream = agent.stream({"messages": [("user", "go")]}, THREAD, stream_mode="custom")
    with pytest.raises(ConcurrentRunError):
        events.extend(event["type"] for event in stream)
    assert events == ["activated", "spent"]


def _interfere(saver: Any) -> Any:
    update_state = create_todo_agent(ScriptedModel([]), checkpointer=saver).update_state
    Context().run(update_state, THREAD, {"todo_goal": "other"}, "finalization_guard")
    return says("b")


def test_the_error_is_one_sentence_that_names_both_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ConcurrentRunError("t", "mine", "other")))
    assert isinstance(error, WakeloopError)
    assert (error.thread_id, error.own, error.other) == ("t", "mine", "other")
    for part in ("'t'", "mine", "other", "lock", "checkpoint_id"):
        assert part in str(error)
    assert str(error).endswith(".")
