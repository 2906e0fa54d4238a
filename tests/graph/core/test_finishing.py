"""What helps to finish more: rules 2, 8 and 14 as set by the settings, and a list that was never written."""

from itertools import chain, count, repeat
from typing import Any

import pytest
from agents import (
    AGAIN,
    CONFIG,
    END,
    START,
    TODO,
    WAKE,
    WORK,
    Make,
    done,
    look,
    looks,
    session,
    update,
    write,
)
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

ALONE: dict[str, Any] = {  # each rule by itself, with the others off
    "max_idle_wakes": 3,
    "earn_wakes": 0,
    "guard_rearms": False,
    "reply_retries": 2,
    "retries_fall": False,
}
REARMS = {**ALONE, "guard_rearms": True}
STALLED = [write("a", "b"), *"...."]
CUT = {"finish_reason": "length"}
BLOCK = {"on_guard_exhausted": "block"}


# -- a correction that leads to progress (rule 8) --------------------------------------------------------

CORRECTED: dict[str, tuple[Any, dict[str, Any], list[str], dict[str, Any]]] = {
    # what follows the plan and four bare replies: replies, settings, the walk from the correction on, session
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
    "without the setting": ([done(1), "."], ALONE, [*AGAIN, *TODO, *END], session("idle", "stalled", 1, 3)),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECTED)
def test_a_correction_that_leads_to_progress_is_followed_by_wakes(name: str, thread: Make) -> None:
    replies, change, walked, ended = CORRECTED[name]
    agent = thread(*STALLED, *replies, tools=[look], change=change)
    assert agent.walk("go") == [*START, *TODO, *WAKE * 3, *walked]
    assert agent.session == ended


def test_progress_is_measured_from_the_correction_on(thread: Make) -> None:
    """What was new before the correction no longer is: the same call, the item that was closed and opened."""
    script = [write("a", "b"), looks("x"), *"....", looks("x"), "."]
    agent = thread(*script, tools=[look], change=REARMS)
    assert agent.walk("go") == [*START, *TODO, *WORK, *WAKE * 3, *AGAIN, *WORK, *END]
    assert agent.session == session("idle", "stalled", 2, 3)


def test_rounds_without_progress_and_then_one_with_it(thread: Make) -> None:
    script = [write("a"), *[looks("x")] * 11, looks("y"), *"...."]
    agent = thread(*script, tools=[look], change={**REARMS, "nag_after": 0})
    rounds = [*START, *TODO, *WORK * 11]
    assert agent.walk("go") == [*rounds, *AGAIN, *WORK, *WAKE * 3, *END]
    assert agent.session == session("idle", "stalled", 1, 3)
    agent = thread(*script[:13], ".", tools=[look], change={**ALONE, "nag_after": 0})
    assert agent.walk("go") == [*rounds, *AGAIN, *WORK, *END]
    assert agent.session == session("idle", "looping", 1)


# -- earned wakes (rule 2) -------------------------------------------------------------------------------

EARNS = {**ALONE, "earn_wakes": 100, "max_idle_wakes": 0, "guard_retries": 0}


def adding(first: int = 3) -> Any:
    """One item stays open; each turn adds one and closes it."""
    turns = ([write(f"{n}"), done(n), "."] for n in count(first))
    return chain([write("a", "b"), done(2), "."], chain.from_iterable(turns))


def busy() -> Any:
    """One item stays open; each turn has a new result."""
    return chain([write("a"), "."], chain.from_iterable([looks(str(n)), "."] for n in count()))


@pytest.mark.slow
@pytest.mark.parametrize("door", ["sync"])
@pytest.mark.parametrize(
    ("replies", "change", "requests", "wakes", "most"),
    [
        (busy, EARNS, 2 + 25 * 2, 25, 25),
        pytest.param(adding, EARNS, 3 + 125 * 3, 125, 125, marks=pytest.mark.large),
        (adding, {**EARNS, "earn_wakes": 7}, 3 + 32 * 3, 32, 32),
        (adding, {**EARNS, "earn_wakes": 0}, 3 + 25 * 3, 25, 25),
        pytest.param(adding, {**EARNS, "max_wake_cycles": 1}, 3 + 101 * 3, 101, 101, marks=pytest.mark.large),
        (adding, {**EARNS, "max_wake_cycles": 0}, 3, 0, 0),
    ],
)
def test_a_wake_for_each_settled_item_and_none_for_being_busy(
    replies: Any, change: dict[str, Any], requests: int, wakes: int, most: int, thread: Make
) -> None:
    agent = thread(replies(), tools=[look], left=True, change=change)
    agent.run("go", limit=2000)
    assert agent.asked == requests
    assert agent.session == session("idle", "wake_budget" if most else "disabled", 1, wakes, most)


def test_the_budget_is_shown_as_it_is(thread: Make) -> None:
    script = [write("a", "b", "c"), done(1), ".", ".", done(2), ".", ".", ".", "."]
    agent = thread(*script, change={**EARNS, "max_wake_cycles": 3})
    told = [(e["type"], e["budget"]) for e in agent.events("go") if "budget" in e]
    assert told == [("activated", 3), ("wake", 4), ("wake", 4), ("wake", 5), ("wake", 5), ("wake", 5)]
    assert agent.session == session("idle", "wake_budget", 1, 5, 5)
    assert agent.ledger["settled"] == [0, 2]


def test_items_settled_before_earn_nothing(thread: Make) -> None:
    """Neither before the activation, nor a second time after it was opened again."""
    change = {**EARNS, "max_wake_cycles": 1}
    again = [update(1, "open"), done(1), "."]
    agent = thread(write("a", "b"), done(1), ".", *again, *again, *again, ".", change=change)
    agent.run("go")
    assert agent.session == session("idle", "wake_budget", 1, 2, 2)
    agent.run("go")
    assert agent.session == session("idle", "wake_budget", 1, 1, 1)


def test_the_maximum_counts_even_if_the_list_is_emptied(thread: Make) -> None:
    """Two items are done, then the list starts again:

    earned wakes are kept, and the same items earn none again.
    """
    plan = calls(*(("todo__add", {"task": task}) for task in "abc"))
    closed = calls(("todo__done", {"id": 1}), ("todo__done", {"id": 2}))
    script = [plan, closed, calls(("todo__clear", {})), plan, closed, *"....."]
    change = {**EARNS, "dialect": "loki", "max_wake_cycles": 2}
    agent = thread(*script, change=change)
    agent.run("go")
    assert agent.session == session("idle", "wake_budget", 1, 4, 4)


def test_a_subagents_result_continues_with_the_earned_wakes(thread: Make) -> None:
    change = {**EARNS, "max_wake_cycles": 1, "max_idle_wakes": 1}
    agent = thread(write("a", "b"), done(1), *"..", "thanks", change=change)
    agent.run("go")
    assert agent.session == session("idle", "stalled", 1, 1, 2)
    told = [e["budget"] for e in agent.events(result(1)) if "budget" in e]
    assert (told, agent.session) == ([2, 2], session("idle", "wake_budget", 1, 2, 2))
    assert agent.walk(result(2)) == ["activate", *END]
    assert agent.session == session("idle", "wake_budget", 1, 2, 2)


def result(number: int) -> dict[str, Any]:
    return {"todo_inbox": [{"kind": "subagent_done", "id": f"s{number}", "text": f"result {number}"}]}


# -- the last bad reply, with open items (rule 14) -------------------------------------------------------

FALL = {**ALONE, "retries_fall": True}
BAD: dict[str, tuple[Any, str, list[str]]] = {  # the reply, the reason, and the next node
    "cut": (says("half of this", finish_reason="length"), "truncated", []),
    "cut call": (looks("x").model_copy(update={"response_metadata": CUT}), "truncated", ["run_tools"]),
    "malformed": (calls(("peer", {})), "malformed_calls", ["run_tools"]),
    "malformed todo": (update(1, "sideways"), "malformed_calls", ["validate_todos"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("retries", [2, 4])
def test_endless_bad_replies_with_open_items(name: str, retries: int, thread: Make) -> None:
    bad, reason, node = BAD[name]
    change = {**FALL, "reply_retries": retries}
    agent = thread(chain([write("a")], repeat(bad)), left=True, tools=[look], change=change)
    again = AGAIN if name == "cut" else ["call_model"]
    first = [*node, *again] * retries
    assert agent.walk("go") == [
        *START, *TODO, *first, *node, *[*WAKE, *node] * 3, *AGAIN, *node, *END,
    ]  # fmt: skip
    assert agent.session == session("idle", reason, 1, 3)
    assert agent.asked == 1 + (retries + 1) + 3 + 1


@pytest.mark.parametrize("retries", [2, 4])
def test_endless_empty_replies_are_handled_as_before(retries: int, thread: Make) -> None:
    change = {**FALL, "reply_retries": retries}
    agent = thread(chain([write("a")], repeat("")), left=True, change=change)
    agent.run("go")
    # the list, then two requests in each turn: the first, three wakes, a correction
    assert (agent.asked, agent.session) == (11, session("idle", "stalled", 1, 3))
    agent = thread(repeat(""), left=True, change=change)
    agent.run("go")
    assert (agent.asked, agent.session) == (retries + 1, session("dormant", "empty_reply"))


@pytest.mark.parametrize("name", BAD)
def test_with_nothing_open_the_last_bad_reply_ends_the_run(name: str, thread: Make) -> None:
    bad, reason, _ = BAD[name]
    agent = thread(bad, bad, bad, tools=[look], change=FALL)
    agent.run("go")
    assert agent.session == session("dormant", reason)


PEER = calls(("peer", {}))
FALLEN: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    # what follows the plan and three malformed rounds
    "a sound reply begins the count anew": (
        [".", PEER, PEER, done(1), "."], {}, session("dormant", "settled", 0, 2),
    ),
    "one more is one turn": ([PEER, done(1), "."], {}, session("dormant", "settled", 0, 2)),
    "a sound end has the gate's name": ([PEER, PEER, PEER, "."], {}, session("idle", "stalled", 1, 3)),
    "no re-entry": ([], {"auto_continue": False}, session("idle", "malformed_calls", 1)),
    "no wakes": ([PEER], {"max_wake_cycles": 0}, session("idle", "malformed_calls", 1, 0, 0)),
    "wakes spent": ([PEER, PEER], {"max_wake_cycles": 1}, session("idle", "malformed_calls", 1, 1, 1)),
    "no correction": (
        [PEER], {"max_idle_wakes": 1, "guard_retries": 0}, session("idle", "malformed_calls", 1, 1),
    ),
    "explained": (
        [PEER, PEER, "why"], {"max_idle_wakes": 1, **BLOCK}, session("idle", "guard_blocked", 1, 1),
    ),
    "out of requests": (["report"], {"max_requests": 4}, session("idle", "request_budget", 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALLEN)
def test_the_gates_are_asked_and_an_ending_has_the_bad_replys_reason(name: str, thread: Make) -> None:
    replies, change, ended = FALLEN[name]
    agent = thread(write("a"), PEER, PEER, PEER, *replies, change={**FALL, **change})
    agent.run("go")
    assert agent.session == ended


def test_too_few_steps_after_the_last_bad_reply(thread: Make) -> None:
    agent = thread(write("a"), PEER, PEER, PEER, change=FALL)
    agent.run("go", limit=13)
    assert agent.session == session("idle", "malformed_calls", 1)


# -- all of it at once, as in the preset ----------------------------------------------------------------


def growing() -> Any:
    """Each turn closes the item of the one before it and adds another."""
    turns = ([done(n), write(f"{n}"), "."] for n in count(2))
    return chain([write("a", "b"), "."], chain.from_iterable(turns))


TOGETHER: dict[str, tuple[Any, int, dict[str, Any]]] = {  # replies, requests, the session
    "the same text for ever": (chain([write("a")], repeat(".")), 8, session("idle", "stalled", 1, 5)),
    "a correction that leads to progress": (
        chain([write("a", "b"), *["."] * 6, done(1)], repeat(".")), 14, session("idle", "stalled", 1, 10, 26),
    ),
    "malformed for ever": (
        chain([write("a")], repeat(PEER)), 1 + 5 + 5 + 1, session("idle", "malformed_calls", 1, 5),
    ),
    "malformed for ever, nothing open": (repeat(PEER), 5, session("dormant", "malformed_calls")),
    "busy for ever": (busy(), 2 + 25 * 2 + 2, session("idle", "wake_budget", 1, 25)),
    "adding and closing at once for ever": (adding(), 3 + 5 * 3 + 3, session("idle", "stalled", 1, 5, 32)),
    "closing and adding for ever": (
        growing(), 2 + 125 * 3 + 3, session("idle", "wake_budget", 2, 125, 125),
    ),
    "a reliable model": (
        [write("a", "b"), looks("x"), done(1), looks("y"), done(2), "bye"],
        6,
        session("dormant", "settled", 0, 0, 27),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("door", ["sync"])
@pytest.mark.parametrize("name", TOGETHER)
def test_what_the_preset_adds_up_to(name: str, thread: Make) -> None:
    replies, requests, ended = TOGETHER[name]
    agent = thread(replies, tools=[look], left=True)
    agent.run("go", limit=2000)
    assert (agent.asked, agent.session) == (requests, ended)


# -- a list that was never written -----------------------------------------------------------------------

ASKS = {"on_no_list": "ask"}
X = looks("x")
REFUSED = write(" ")
LISTLESS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {  # replies, settings, the walk from the start
    "nothing is left": ([X, "done", "nothing"], ASKS, [*WORK, *AGAIN, *END]),
    "a list after all": ([X, "done", write("a"), done(1), "."], ASKS, [*WORK, *AGAIN, *TODO * 2, *END]),
    "tools and no list again": ([X, "done", looks("y"), "."], ASKS, [*WORK, *AGAIN, *WORK, *END]),
    "an empty answer": ([X, "done", ""], ASKS, [*WORK, *AGAIN, *END]),
    "a refused list": ([X, REFUSED, ".", "."], ASKS, [*WORK, *TODO, *AGAIN, *END]),
    "without wakes": ([X, ".", "."], {**ASKS, "max_wake_cycles": 0}, [*WORK, *AGAIN, *END]),
    "one sound call": ([calls(("peer", {}), ("look", {"path": "x"})), ".", "."], ASKS, [*WORK, *AGAIN, *END]),
    "accepted": ([X, "done"], {}, [*WORK, *END]),
    "no tools": (["hi"], ASKS, END),
    "only malformed calls": ([PEER, "hi"], ASKS, [*WORK, *END]),
    "only a refused list": ([REFUSED, "hi"], ASKS, [*TODO, *END]),
    "a cut call": ([BAD["cut call"][0], "hi"], ASKS, [*WORK, *END]),
    "a list": ([write("a"), X, done(1), "."], ASKS, [*TODO, *WORK, *TODO, *END]),
    "no re-entry": ([X, "done"], {**ASKS, "auto_continue": False}, [*WORK, *END]),
    "out of requests": ([X, "done"], {**ASKS, "max_requests": 2}, [*WORK, *END]),
}


@pytest.mark.parametrize("name", LISTLESS)
def test_if_tools_ran_and_no_list_was_ever_written(name: str, thread: Make) -> None:
    replies, change, walked = LISTLESS[name]
    agent = thread(*replies, tools=[look], change=change)
    assert agent.walk("go") == [*START, *walked]
    reason = "settled" if agent.todos else "answered"
    budget = change.get("max_wake_cycles", 25) + len(agent.todos)
    assert agent.session == session("dormant", reason, budget=budget)
    assert agent.kinds.count("guard") == walked.count("finalization_guard") - 1


def test_it_is_asked_once_per_activation_and_reported(thread: Make) -> None:
    agent = thread(X, "done", "done", X, "done", "done", "bye", tools=[look], change=ASKS)
    for _ in range(2):
        told = [e for e in agent.events("go") if e["type"] == "guard"]
        assert told == [
            {"type": "guard", "action": "ask", "retry": 0, "retries": 1, "open": 0, "reason": "answered"}
        ]
    assert [e for e in agent.events("thanks") if e["type"] == "guard"] == []


def test_a_list_of_an_earlier_activation_counts(thread: Make) -> None:
    """Even if nothing is left of it, and with whole lists that have ids of the model's own."""
    own = [{"id": "x", "text": "a", "status": "completed"}]
    plan, none = calls(("todo", {"items": own})), calls(("todo", {"items": []}))
    agent = thread(plan, none, ".", X, ".", tools=[look], change={**ASKS, "dialect": "checklist"})
    agent.run("go")
    assert agent.todos == []
    assert agent.walk("more") == [*START, *WORK, *END]


def test_it_comes_before_the_format(thread: Make) -> None:
    class Answer(BaseModel):
        """A format."""

        text: str

    agent = thread(X, "done", "done", '{"text": "x"}', tools=[look], change=ASKS, response_format=Answer)
    assert agent.run("go")["structured_response"] == {"text": "x"}
    assert agent.kinds.count("guard") == 1


@pytest.mark.parametrize(
    ("replies", "reason", "items"),
    [
        ([X, "."], "answered", 0),
        ([write("a", "b"), done(1, 2), "."], "settled", 2),
        ([write("a", "b"), done(1), *["."] * 7], "stalled", 2),
        ([write("a"), *[PEER] * 11], "malformed_calls", 1),
    ],
)
def test_every_ending_says_how_many_items_the_list_has(
    replies: Any, reason: str, items: int, thread: Make
) -> None:
    agent = thread(*replies, tools=[look])
    out = agent.run("go")
    assert (agent.session["reason"], agent.session["items"]) == (reason, items)
    assert out["todo_session"]["items"] == items


# -- interrupted -----------------------------------------------------------------------------------------

SCRIPTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "earned": (
        [write("a", "b", "c"), done(1), *"..", done(2), *"...."],
        {**EARNS, "max_wake_cycles": 3},
    ),
    "fallen": ([write("a"), *[PEER] * 4, ".", *[PEER] * 3, done(1), "."], {**FALL, "max_wake_cycles": 9}),
    "asked": ([X, "done", write("a"), done(1), "."], ASKS),
    "rearmed": ([*STALLED, ".", done(1), *"...."], {**REARMS, "guard_retries": 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_interrupted_at_any_superstep_it_ends_the_same(name: str) -> None:
    """Each superstep is a run of its own, by another agent on the same thread."""
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
    kept = ("wake_cycles", "idle_wakes", "peak", "settled", "budget", "todo_guard_retries", "bad_replies")
    assert {k: ends.get(k) for k in kept} == {k: ledger.get(k) for k in kept}


# -- a list that is given in the input -------------------------------------------------------------------

GIVEN = [{"content": "a"}, {"content": "b"}]


def given(*todos: Any, text: str = "go") -> dict[str, Any]:
    return {"messages": [("user", text)], "todos": list(todos)}


LISTED = "(automatic) Here is your todo list, with {} of {} items open. You need not write it again."


def listings(request: Any) -> list[str]:
    """Return the first sentences of what shows a given list, in a request."""
    return [
        m.text.partition(" Work")[0]
        for m in request
        if m.text.startswith("(automatic) Here is your todo list")
    ]


def test_a_given_list_is_shown_once_after_the_message_that_came_with_it(thread: Make) -> None:
    agent = thread(done(1, 2), "bye", "hello", "again", done(3), "bye")
    assert agent.walk(given(*GIVEN)) == [*START, *TODO, *END]
    assert agent.kinds == ["human", "activate", "ai", "tool", "tool", "ai"]
    first = agent.model.requests[0]
    assert [m.type for m in first] == ["system", "human", "human"]
    assert (first[1].text, listings(first)) == ("go", [LISTED.format(2, 2)])
    assert first[2].text.endswith("\n\n  [1] a\n  [2] b")
    assert agent.session == session("dormant", "settled", budget=27, items=2)
    agent.run("and now?")
    agent.run(given(*agent.todos, text="as it was"))
    assert [listings(request) for request in agent.model.requests[2:]] == [[LISTED.format(2, 2)]] * 2
    agent.run(given(*agent.todos, {"content": "c"}, text="more"))
    assert listings(agent.model.requests[-1]) == [LISTED.format(2, 2), LISTED.format(1, 3)]


def test_a_list_that_comes_back_with_its_history_is_not_shown_again() -> None:
    """An agent without a thread of its own is given both with every call."""
    model = ScriptedModel(write("a", "b"), done(1), *"........", done(2), "bye")
    agent = create_todo_agent(model)
    out = agent.invoke({"messages": [("user", "go")]})
    agent.invoke({"messages": [*out["messages"], ("user", "keep going")], "todos": out["todos"]})
    assert listings(model.requests[-1]) == []


@pytest.mark.parametrize(
    ("more", "change"),
    [
        ({"todos": [{"content": "a", "status": "completed"}]}, {}),
        ({"todos": [{"content": "a"}]}, {"dialect": "loki", "auto_continue": False}),
        ({"todos": []}, {}),
        ({}, {}),
    ],
)
def test_a_list_with_nothing_to_do_is_not_shown(more: Any, change: Any, thread: Make) -> None:
    agent = thread("bye", change=change, checked=not change)
    agent.run({"messages": [("user", "go")], **more})
    assert agent.kinds == ["human", "ai"]


def test_an_empty_kick_shows_it_only_in_its_nudge(thread: Make) -> None:
    agent = thread(done(1, 2), "bye")
    agent.run({"todos": GIVEN})
    assert agent.kinds == ["activate", "ai", "tool", "tool", "ai"]
    assert listings(agent.model.requests[0]) == []


def test_a_peers_message_and_a_list(thread: Make) -> None:
    agent = thread(done(1, 2), "bye")
    agent.run(
        {"todo_inbox": [{"kind": "peer_message", "id": "p", "sender": "x", "text": "do"}], "todos": GIVEN}
    )
    assert agent.kinds == ["event", "activate", "ai", "tool", "tool", "ai"]
    assert agent.ledger["shown"] == agent.messages[1].id
