"""What finishes more: rules 2, 8 and 14 as the settings have them, and a list that was never written."""

from itertools import chain, repeat
from typing import Any

import pytest
from agents import AGAIN, CONFIG, END, START, TODO, WAKE, WORK, Make, done, look, looks, session, write
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

REARMS = {"guard_rearms": True}
STALLED = [write("a", "b"), *"...."]
BLOCK = {"on_guard_exhausted": "block"}


# -- a correction that brings progress (rule 8) ----------------------------------------------------------

CORRECTED: dict[str, tuple[Any, dict[str, Any], list[str], dict[str, Any]]] = {
    # what follows the plan and four texts: replies, settings, the walk from the correction on, the session
    "an item is closed": (
        [done(1), *"...."], REARMS, [*AGAIN, *TODO, *WAKE * 3, *END], session("idle", "stalled", 1, 6),
    ),
    "a new call": (
        [looks("x"), *"...."], REARMS, [*AGAIN, *WORK, *WAKE * 3, *END], session("idle", "stalled", 2, 6),
    ),
    "all is closed": (
        [done(1, 2), "."], REARMS, [*AGAIN, *TODO, *END], session("dormant", "settled", 0, 3),
    ),
    "nothing": (["."], REARMS, [*AGAIN, *END], session("idle", "stalled", 2, 3)),
    "adding and closing": (
        [write("c"), done(3), "."], REARMS, [*AGAIN, *TODO * 2, *END], session("idle", "stalled", 2, 3),
    ),
    "without the setting": ([done(1), "."], {}, [*AGAIN, *TODO, *END], session("idle", "stalled", 1, 3)),
    "corrected again": (
        [done(1), *"....."],
        {**REARMS, "guard_retries": 2},
        [*AGAIN, *TODO, *WAKE * 3, *AGAIN, *END],
        session("idle", "stalled", 1, 6),
    ),
    "progress after none": (
        [".", done(1), *"...."],
        {**REARMS, "guard_retries": 2},
        [*AGAIN, *AGAIN, *TODO, *WAKE * 3, *END],
        session("idle", "stalled", 1, 6),
    ),
    "another reason": (
        [done(1), "."],
        {**REARMS, "max_wake_cycles": 3},
        [*AGAIN, *TODO, *END],
        session("idle", "wake_budget", 1, 3, 3),
    ),
    "then explained": (
        [done(1), *"....", "why"],
        {**REARMS, **BLOCK},
        [*AGAIN, *TODO, *WAKE * 3, *AGAIN, *END],
        session("idle", "guard_blocked", 1, 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRECTED)
def test_a_correction_that_brings_progress_is_followed_by_wakes(name: str, thread: Make) -> None:
    replies, change, walked, ended = CORRECTED[name]
    agent = thread(*STALLED, *replies, tools=[look], change=change)
    assert agent.walk("go") == [*START, *TODO, *WAKE * 3, *walked]
    assert agent.session == ended


def test_progress_is_measured_from_the_correction_on(thread: Make) -> None:
    """What was new before the correction is none: the same call, the item that was closed and opened."""
    script = [write("a", "b"), looks("x"), *"....", looks("x"), "."]
    agent = thread(*script, tools=[look], change=REARMS)
    assert agent.walk("go") == [*START, *TODO, *WORK, *WAKE * 3, *AGAIN, *WORK, *END]
    assert agent.session == session("idle", "stalled", 2, 3)


def test_rounds_that_brought_nothing_and_then_something(thread: Make) -> None:
    script = [write("a"), *[looks("x")] * 11, looks("y"), *"...."]
    agent = thread(*script, tools=[look], change={**REARMS, "nag_after": 0})
    rounds = [*START, *TODO, *WORK * 11]
    assert agent.walk("go") == [*rounds, *AGAIN, *WORK, *WAKE * 3, *END]
    assert agent.session == session("idle", "stalled", 1, 3)
    agent = thread(*script[:13], ".", tools=[look], change={"nag_after": 0})
    assert agent.walk("go") == [*rounds, *AGAIN, *WORK, *END]
    assert agent.session == session("idle", "looping", 1)


# -- broken off ------------------------------------------------------------------------------------------

SCRIPTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "rearmed": ([*STALLED, ".", done(1), *"...."], {**REARMS, "guard_retries": 2}),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_broken_off_at_every_superstep_it_comes_to_the_same(name: str) -> None:
    """Each superstep in a run of its own, by another agent over the same thread."""
    replies, change = SCRIPTS[name]
    from agents import settings

    def made(model: Any, saver: Any) -> Any:
        return create_todo_agent(model, [look], settings=settings(**change), checkpointer=saver)

    model, at_once = ScriptedModel(*replies), InMemorySaver()
    whole = made(model, at_once)
    wanted = whole.invoke({"messages": [("user", "go")]}, CONFIG)["todo_session"]
    ledger = whole.get_state(CONFIG).values["todo_ledger"]
    model, saver, given = ScriptedModel(*replies), InMemorySaver(), {"messages": [("user", "go")]}
    while True:
        agent = made(model, saver)
        out = agent.invoke(given, CONFIG, interrupt_after="*")
        given = None
        if not agent.get_state(CONFIG).next:
            break
    volatile = ("spent",)
    assert {k: v for k, v in out["todo_session"].items() if k not in volatile} == {
        k: v for k, v in wanted.items() if k not in volatile
    }
    model.assert_done()
    ends = agent.get_state(CONFIG).values["todo_ledger"]
    kept = ("wake_cycles", "idle_wakes", "peak", "budget", "todo_guard_retries", "bad_replies")
    assert {k: ends.get(k) for k in kept} == {k: ledger.get(k) for k in kept}
