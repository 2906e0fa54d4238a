"""The setting `approve_plan`: the list is shown to the person before the work."""

from typing import Any

import pytest
from agents import END, QUIET, START, TODO, WORK, Make, change, done, look, session, todo, write
from langgraph.types import Command
from test_verify import Judge, judged

from wakeloop import WakeloopError, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls

FIRST = {"approve_plan": "first"}
CHANGES = {"approve_plan": "changes"}
ACCEPT = Command(resume={"decisions": [{"type": "approve"}]})
JUDGE = ["validate_todos"]
STORED = "Stored 2 items:\n  [1] a\n  [2] b"


def edit(*todos: Any) -> Any:
    return Command(
        resume={
            "decisions": [
                {"type": "edit", "edited_action": {"name": "approve_plan", "args": {"todos": [*todos]}}}
            ]
        }
    )


def reject(words: str) -> Any:
    return Command(resume={"decisions": [{"type": "reject", "message": words}]})


def asked(*todos: Any, text: str) -> dict[str, Any]:
    """Return what the person is asked."""
    return {
        "action_requests": [
            {
                "name": "approve_plan",
                "args": {"todos": [*todos]},
                "description": f"Continue with this list?\n\n{text}",
            }
        ],
        "review_configs": [
            {"action_name": "approve_plan", "allowed_decisions": ["approve", "edit", "reject"]}
        ],
        "on": "approval",
    }


def questions(agent: Any) -> list[Any]:
    return [one.value for one in agent.snapshot.interrupts]


def beside(*items: str, path: str = "x") -> Any:
    """Return a list with a call next to it."""
    return calls(("look", {"path": path}), ("todo_write", {"items": list(items)}))


def test_the_first_list_and_the_calls_next_to_it_wait_for_the_person(thread: Make) -> None:
    ran: list[str] = []

    def look(path: str) -> str:
        """Look at a path."""
        ran.append(path)
        return f"saw {path}"

    agent = thread(beside("a", "b"), write("c"), done(1, 2, 3), "bye", tools=[look], change=FIRST)
    assert agent.walk("go") == [*START, *JUDGE]
    assert questions(agent) == [asked(todo(1, "a"), todo(2, "b"), text="[1] a\n[2] b")]
    assert (ran, agent.todos, agent.asked) == ([], [], 1)
    assert agent.session == {**session("waiting", "interrupted", writes=1), "on": "approval"}
    # the answer restarts the node, then the waiting calls run; a further write asks nobody
    assert agent.walk(ACCEPT) == [*JUDGE, *WORK, *TODO, *TODO, *END]
    assert (ran, agent.asked) == (["x"], 4)
    assert agent.results()[:2] == [
        ("success", STORED),
        ("success", "saw x"),
    ]
    assert agent.todos == [todo(n, c, "completed") for n, c in enumerate("abc", 1)]
    assert agent.session == session("dormant", "settled", 0, 0, budget=28)


def test_each_activation_has_a_first_list(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", write("b"), done(2), "bye", change=FIRST)
    assert agent.walk("go") == [*START, *JUDGE]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]
    assert agent.walk("more") == [*START, *JUDGE]
    assert questions(agent) == [
        asked(todo(1, "a", "completed"), todo(2, "b"), text="[1] a (completed)\n[2] b")
    ]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]


def test_changes_are_put_to_the_person_when_items_come_or_go_but_not_for_statuses(thread: Make) -> None:
    whole = [
        calls(("write_todos", {"todos": [{"content": c, "status": s} for c, s in items]}))
        for items in (
            [("a", "pending"), ("b", "pending")],
            [("a", "in_progress"), ("b", "pending")],
            [("a", "in_progress")],
            [("a", "completed")],
        )
    ]
    varied = preset("cubepi").model_copy(update={**CHANGES, "in_progress": "any"})
    agent = thread(*whole, "bye", settings=varied)
    assert agent.walk("go") == [*START, *JUDGE]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *JUDGE]
    assert questions(agent) == [asked(todo(1, "a", "in_progress"), text="[1] a (in_progress)")]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]
    assert agent.todos == [todo(1, "a", "completed")]


def test_a_list_given_in_the_input_is_the_callers_own(thread: Make) -> None:
    agent = thread(done(1), write("b"), done(2), "bye", change=FIRST)
    given = {"messages": [("user", "go")], "todos": [{"content": "a", "status": "pending"}]}
    assert agent.walk(given) == [*START, *TODO, *JUDGE]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]


def test_the_verifier_is_asked_once_per_item_whatever_the_person_says(door: str, thread: Make) -> None:
    """It is asked before the person is; its answer is stored a superstep before the question."""
    judge = Judge(None, "no proof", None)
    round_ = calls(change(1, "done"), change(2, "done"), ("todo_write", {"items": ["c"]}))
    agent = thread(write("a", "b"), round_, done(2, 3), "bye", verify=judged(door, judge), change=CHANGES)
    agent.run("go")
    assert agent.walk(ACCEPT) == [*TODO, *JUDGE, *JUDGE]
    assert judge.asked == [(1, "completed"), (2, "completed")]
    assert questions(agent) == [
        asked(
            todo(1, "a", "completed"),
            todo(2, "b"),
            todo(3, "c"),
            text="[1] a (completed)\n[2] b\n[3] c",
        )
    ]
    assert agent.walk(reject("Not c.")) == [*TODO, *TODO, *END]
    assert judge.asked == [(1, "completed"), (2, "completed"), (2, "completed")]
    assert agent.ledger["refusals"] == {"2": 1}
    said = agent.results()
    assert said[1][0] == "success"  # what the verifier accepted stays accepted
    assert said[2][0] == "error"
    assert "no proof" in said[2][1]
    assert said[3] == (
        "error",
        (
            "Error: the user did not accept this list, so nothing of it was stored. "
            'They said: "Not c." Send a new one, as they want it.'
        ),
    )
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed")]


def test_an_edit_is_the_persons_list_and_the_model_is_informed_once(door: str, thread: Make) -> None:
    judge = Judge()
    agent = thread(
        beside("a", "b"), done(2, 3), "bye", tools=[look], verify=judged(door, judge), change=FIRST
    )
    agent.run("go")
    events = agent.events(edit("new", todo(1, "a", "completed"), {"id": "2", "content": "b, rather"}))
    assert agent.todos == [
        todo(3, "new", "completed"),
        todo(1, "a", "completed"),
        todo(2, "b, rather", "completed"),
    ]
    assert judge.asked == [(2, "completed"), (3, "completed")]  # not item 1, which the person has closed
    assert [event["type"] for event in events].count("todos") == 2
    results = agent.results()
    assert results[:2] == [
        (
            "success",
            (
                f"{STORED}\n\nThe user accepted the list with changes of their own. "
                "Continue with these items:\n  [3] new\n  [2] b, rather"
            ),
        ),
        (
            "error",
            (
                "Error: this call was not run, because the user changed the list sent with it. "
                "Repeat what still fits the list."
            ),
        ),
    ]
    assert sum("accepted the list" in message.text for message in agent.messages) == 1
    assert agent.session == session("dormant", "settled", 0, 0, budget=28, writes=3, verified=True)


def test_an_edit_that_changes_nothing_accepts(thread: Make) -> None:
    agent = thread(beside("a"), done(1), "bye", tools=[look], change=FIRST)
    agent.run("go")
    assert agent.walk(edit(todo(1, "a"))) == [*JUDGE, *WORK, *TODO, *END]
    assert agent.results()[1] == ("success", "saw x")


def test_a_rejected_list_is_as_if_it_had_not_been_sent(thread: Make) -> None:
    agent = thread(beside("a"), beside("b", path="y"), done(1), "bye", tools=[look], change=FIRST)
    agent.run("go")
    assert agent.walk(reject("Smaller steps.")) == [*TODO, *JUDGE]
    assert agent.todos == []
    assert [text for _, text in agent.results()] == [
        (
            "Error: the user did not accept this list, so nothing of it was stored. "
            'They said: "Smaller steps." Send a new one, as they want it.'
        ),
        "Error: this call was not run, because the user rejected the list sent with it.",
    ]
    assert questions(agent) == [asked(todo(1, "b"), text="[1] b")]
    assert agent.walk(ACCEPT) == [*JUDGE, *WORK, *TODO, *END]
    assert agent.results()[-2] == ("success", "saw y")


def test_a_first_list_of_finished_work_is_put_to_the_person_too(thread: Make) -> None:
    """Otherwise a rejected plan would come back as work that nobody was asked about."""
    varied = preset("cubepi").model_copy(update={**FIRST, "in_progress": "any"})
    whole = [
        calls(("write_todos", {"todos": [{"content": "a", "status": s}]})) for s in ("pending", "completed")
    ]
    agent = thread(*whole, "bye", settings=varied)
    agent.run("go")
    assert agent.walk(reject("no")) == [*TODO, *JUDGE]
    assert questions(agent) == [asked(todo(1, "a", "completed"), text="[1] a (completed)")]
    assert agent.walk(ACCEPT) == [*TODO, *END]


def test_rejections_are_no_idle_rounds_and_no_wakes(thread: Make) -> None:
    replies = [write(f"{n}") for n in range(6)]
    agent = thread(*replies, done(1), "bye", change={**FIRST, "max_idle_rounds": 2, "nag_after": 0})
    agent.run("go")
    for _ in range(5):
        agent.run(reject("no"))
    assert (agent.ledger.get("idle_rounds"), agent.ledger["wake_cycles"], agent.ledger["idle_wakes"]) == (
        None,
        0,
        0,
    )
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 0, budget=26)
    assert [kind for kind in agent.kinds if kind in ("wake", "guard", "nag")] == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (
            {"type": "respond", "message": "x"},
            "approve_plan cannot be decided by 'respond'; allowed are approve, edit, reject",
        ),
        (edit(" ").resume, "todos item 1 has no content; every item needs text that is not blank"),
        (
            edit({"content": "a", "status": "begun"}).resume,
            (
                "todos item 1 (a) has the status 'begun'; allowed: pending, in_progress, completed, "
                "cancelled, blocked"
            ),
        ),
    ],
)
def test_an_answer_that_cannot_be_taken_is_asked_for_again(thread: Make, answer: Any, fault: str) -> None:
    agent = thread(write("a"), done(1), "bye", change=FIRST)
    agent.run("go")
    [before] = agent.snapshot.interrupts
    assert agent.walk(Command(resume=answer)) == JUDGE
    [question] = agent.snapshot.interrupts
    assert question.id != before.id
    assert question.value == {
        **before.value,
        "error": f"The answer was not accepted: {fault}.",
        "action_requests": [
            {
                **before.value["action_requests"][0],
                "description": f"The answer was not accepted: {fault}.\n\nContinue with this list?\n\n[1] a",
            }
        ],
    }
    assert (agent.todos, agent.asked) == ([], 1)
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]


@pytest.mark.parametrize("answer", ["y", "Yes", True, {"approved": True}, '{"type": "approve"}'])
def test_plain_words_and_json_accept(thread: Make, answer: Any) -> None:
    agent = thread(write("a"), done(1), "bye", change=FIRST)
    agent.run("go")
    assert agent.walk(Command(resume=answer)) == [*TODO, *TODO, *END]


@pytest.mark.parametrize("answer", [{"todos": ["a"]}, ["a"], 1])
def test_an_answer_that_is_neither_words_nor_decisions_is_asked_again(thread: Make, answer: Any) -> None:
    agent = thread(write("a"), done(1), "bye", change=FIRST)
    agent.run("go")
    agent.walk(Command(resume=answer))
    [asked] = agent.snapshot.interrupts
    assert "it is neither a yes nor a no" in asked.value["error"]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]


def test_c65_new_input_does_not_take_the_place_of_the_answer(thread: Make) -> None:
    agent = thread(beside("a"), "As you like.", tools=[look], change=FIRST)
    agent.run("go")
    asked = agent.snapshot.interrupts
    with pytest.raises(WakeloopError, match="This thread waits for an answer about approve_plan"):
        agent.walk("Never mind.")
    assert agent.snapshot.interrupts == asked
    assert agent.walk(reject("Never mind.")) == [*TODO, *END]
    assert agent.todos == []


def test_a_call_that_was_not_run_achieves_nothing(thread: Make) -> None:
    agent = thread(beside("a"), "As you like.", tools=[look], change=FIRST)
    agent.run("go")
    agent.run(edit())
    assert (agent.todos, agent.ledger["idle_rounds"]) == ([], 1)


def test_a_person_who_edits_overrules_the_verifier(door: str, thread: Make) -> None:
    judge = Judge("no", "no", "no", None)
    more = calls(change(1, "done"), change(2, "done"), ("todo_write", {"items": ["c"]}))
    agent = thread(
        write("a", "b"),
        more,
        "bye",
        verify=judged(door, judge),
        change={**CHANGES, **QUIET, "max_wake_cycles": 0},
    )
    agent.run("go")
    agent.run(ACCEPT)
    agent.run(edit(todo(1, "a", "in_progress"), todo(2, "b")))
    assert agent.ledger["refusals"] == {"2": 1}


@pytest.mark.parametrize(("setting", "asks"), [(FIRST, []), (CHANGES, JUDGE)])
def test_an_empty_list_is_not_a_first_list(thread: Make, setting: Any, asks: list[str]) -> None:
    varied = preset("loki").model_copy(update={**setting, "auto_continue": True})
    agent = thread(calls(("todo__clear", {})), "bye", settings=varied, left=bool(asks))
    given = {"messages": [("user", "go")], "todos": [{"content": "a", "status": "completed"}]}
    assert agent.walk(given) == [*START, *(asks or [*TODO, *END])]


def test_a_thread_may_have_its_own(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye")
    given = {"messages": [("user", "go")], "todo_settings": FIRST}
    assert agent.walk(given) == [*START, *JUDGE]
    assert agent.walk(ACCEPT) == [*TODO, *TODO, *END]


def test_a_round_that_stores_no_plan_asks_nobody(thread: Make) -> None:
    twice = calls(*[("todo_update", {"id": 9, "status": "done"})] * 2, ("look", {"path": "x"}))
    agent = thread(twice, "bye", tools=[look], change=CHANGES)
    assert agent.walk("go") == [*START, *JUDGE, *WORK, *END]


@pytest.mark.parametrize(
    ("name", "replies", "text"),
    [
        (
            "loki",
            calls(("todo__init", {"goal": "g"}), ("todo__add", {"task": "a"}), ("todo__add", {"task": "b"})),
            "Goal: g\n[1] a\n[2] b",
        ),
        (
            "lesson",
            calls(("todo", {"items": [{"id": "one", "text": "a", "status": "pending"}]})),
            "[one] a",
        ),
    ],
)
def test_a_round_is_one_question_in_every_dialect(thread: Make, name: str, replies: Any, text: str) -> None:
    varied = preset(name).model_copy(update={**CHANGES, "auto_continue": True})
    agent = thread(replies, settings=varied, left=True)
    assert agent.walk("go") == [*START, *JUDGE]
    [question] = questions(agent)
    assert question["action_requests"][0]["description"] == f"Continue with this list?\n\n{text}"


@pytest.mark.parametrize("limit", range(7, 26))
def test_near_the_step_limit_the_run_parks_and_never_raises(thread: Make, limit: int) -> None:
    """A round with waiting calls takes three supersteps, whatever the ones before it were."""
    held = [calls(change(n, "in_progress"), ("look", {"path": f"{n}"})) for n in range(1, 9)]
    given = {
        "messages": [("user", "go")],
        "todos": [{"content": f"{n}", "status": "pending"} for n in range(1, 9)],
    }
    rules = {**CHANGES, "in_progress": "any", "nag_after": 1, "nag_every": 1}
    mixed = [calls(("look", {"path": "z"})), *held[:3], calls(("look", {"path": "y"})), *held[3:]]
    agent = thread(*mixed, tools=[look], change=rules, left=True)
    agent.run(given, limit=limit)
    assert agent.session["reason"] == "step_limit"


@pytest.mark.parametrize("limit", range(7, 16))
def test_near_the_step_limit_the_verifier_is_asked_once_too(thread: Make, door: str, limit: int) -> None:
    judge = Judge()
    more = [calls(change(n, "done"), ("todo_write", {"items": [f"{n + 1}"]})) for n in range(1, 9)]
    agent = thread(write("1"), *more, verify=judged(door, judge), change=CHANGES, left=True)
    agent.run("go", limit=limit)
    runs = 0
    while agent.snapshot.interrupts and runs < 4:
        agent.run(ACCEPT, limit=limit)
        runs += 1
    assert agent.session["reason"] == ("interrupted" if limit > 9 else "step_limit")
    assert judge.asked == [(n, "completed") for n in range(1, len(judge.asked) + 1)]


def test_an_unknown_value_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        WakeloopError, match="'approve_plan' must be 'off', 'first' or 'changes', got 'always'"
    ):
        create_todo_agent(ScriptedModel(), settings={"approve_plan": "always"})
