"""cubepi: a middleware's todo list, rule by rule; `cubepi-strict` where its code goes further.

The keys of its state are in `snapshot.values["todo_ledger"]`.
"""

import json
from typing import Any

import pytest
from cubepi_rows import GUARD, NAME, STRICT, result_json, rows
from stage import CONFIG, Make, Stage, kind_of

from wakeloop import answer_of, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, malformed_call, says


def write(*lists: str, others: Any = (), text: str = "") -> Any:
    return calls(*(("write_todos", {"todos": rows(short)}) for short in lists), *others, text=text)


# -- the tool --------------------------------------------------------------------------------------------


def test_one_tool_the_whole_list_each_call(stage: Make) -> None:
    s = stage(NAME).run(write("a:i b:p"), write("b:i c:p"), write("b:c c:c"), "Done.")
    assert s.tools == ["look", "write_todos"]
    assert s.listed == [("b", "completed"), ("c", "completed")]


def test_the_result_is_json(stage: Make) -> None:
    s = stage(NAME).run(write("a:i b:p"), write("a:c b:c"), "Done.")
    assert result_json(s, 0) == {"todos": rows("a:i b:p")}
    assert result_json(s, 1) == {"todos": rows("a:c b:c")}


def test_an_item_keeps_its_number_by_its_content(stage: Make) -> None:
    s = stage(NAME).run(write("a:i b:p"), write("b:i c:p a:p"), write("b:c c:c a:c"), "Done.")
    assert [(todo["id"], todo["content"]) for todo in s.todos] == [(2, "b"), (3, "c"), (1, "a")]


# -- rejected writes ------------------------------------------------------------------------------------

REJECTED = {
    "empty content": [{"content": "", "status": "in_progress"}],
    "blank content": [{"content": " \n", "status": "in_progress"}],
    "blank content after a good item": [*rows("a:i"), {"content": " ", "status": "pending"}],
    "none in progress": rows("a:p b:p"),
    "none in progress, one completed": rows("a:c b:p"),
    "two in progress": rows("a:i b:i"),
    "an empty list": [],
    "an invalid status": [{"content": "a", "status": "done"}],
    "no status": [{"content": "a"}],
    "no content": [{"status": "in_progress"}],
    "no list": 7,
}


@pytest.mark.parametrize("sent", REJECTED.values(), ids=REJECTED)
def test_rejected(stage: Make, sent: Any) -> None:
    s = stage(NAME).run(write("a:i b:p"), calls(("write_todos", {"todos": sent})), write("a:c b:c"), "Done.")
    assert [m.status for m in s.results] == ["success", "error", "success"]
    assert list(result_json(s, 1)) == ["error"]
    kept = [state.values["todos"] for state in s.agent.get_state_history(CONFIG)]
    contents = {tuple((t["content"], t["status"]) for t in todos) for todos in kept}
    assert contents == {
        (),
        (("a", "in_progress"), ("b", "pending")),
        (("a", "completed"), ("b", "completed")),
    }


DOUBLED = {
    "malformed": malformed_call("write_todos", "{no json"),
    "unfit": ("write_todos", {"todos": 7}),
    "empty": ("write_todos", {"todos": []}),
    "blank": ("write_todos", {"todos": [{"content": " ", "status": "in_progress"}]}),
}


@pytest.mark.parametrize("bad", DOUBLED.values(), ids=DOUBLED)
@pytest.mark.parametrize("first", [True, False])
def test_a_call_next_to_a_bad_one_counts_as_more_than_one_call(stage: Make, bad: Any, first: bool) -> None:
    good = ("write_todos", {"todos": rows("a:c")})
    s = stage(NAME).run(write("a:i"), calls(*((bad, good) if first else (good, bad))), write("a:c"), "Done.")
    assert [m.status for m in s.results] == ["success", "error", "error", "success"]
    assert s.listed == [("a", "completed")]
    assert [list(json.loads(str(m.content))) for m in s.results[1:3]] == [["error"], ["error"]]


def test_an_empty_list_while_anything_was_unfinished_is_rejected(stage: Make) -> None:
    s = stage(NAME).run(write("a:i"), write(""), write("a:c"), write(""), "Done.")
    assert [m.status for m in s.results] == ["success", "error", "success", "success"]
    assert (s.todos, s.ending) == ([], ("dormant", "settled"))


def test_open_items_left_out_are_named(stage: Make) -> None:
    s = stage(NAME).run(write("a:i b:p"), write("b:c"), "Done.")
    assert result_json(s, 1) == {"todos": rows("b:c"), "dropped": ["a"]}


# -- the finalization guard ------------------------------------------------------------------------------


def test_plain_text_with_unfinished_items_causes_a_correction_and_one_extra_turn(stage: Make) -> None:
    s = stage(NAME).run(write("a:i b:p"), "All done!", write("a:c b:c"), "Now it is.")
    (correction,) = s.injected("guard")
    assert correction.endswith("\n\n  - [in_progress] a\n  - [pending] b")
    assert kind_of(s.model.requests[2][-1]) == "guard"
    assert s.ending == ("dormant", "settled")
    assert answer_of(s.values) == "Now it is."


# -- as in its code: twice, then block, then suppress ----------------------------------------------------


def test_strict_blocked_is_set_while_the_explanation_is_awaited(stage: Make) -> None:
    s = stage(STRICT)
    s.build(write("a:i"), "1", "2", "3", RuntimeError("the server is gone"))
    with pytest.raises(RuntimeError):
        s.play({"messages": [("user", "go")]})
    blocked = s.snapshot.values["todo_ledger"]["todo_guard_blocked"]
    assert blocked["guard"] == GUARD
    assert blocked["message"] == s.snapshot.values["messages"][-1].content
    s.run("I could not.", given=None)
    assert (s.ledger["todo_guard_blocked"], s.ending) == (None, ("idle", "guard_blocked"))


# -- the state -------------------------------------------------------------------------------------------

KEYS = (
    "todo_stale_iterations",
    "todo_guard_retries",
    "todo_guard_blocked",
    "todo_guard_suppressed",
    "todo_finalization_correction",
)


def kept(s: Stage) -> dict[str, Any]:
    return {key: s.ledger[key] for key in KEYS}


def test_the_state_of_a_fresh_thread(stage: Make) -> None:
    assert kept(stage(NAME).run("Hello.")) == {
        "todo_stale_iterations": 0,
        "todo_guard_retries": {},
        "todo_guard_blocked": None,
        "todo_guard_suppressed": False,
        "todo_finalization_correction": None,
    }


def test_the_correction_flag_belongs_to_this_turn(stage: Make) -> None:
    s = stage(NAME).run(write("a:i"), "Done!", "Sorry.")
    assert s.ledger["todo_finalization_correction"] is True
    first = [
        state.values["todo_ledger"]["todo_finalization_correction"]
        for state in s.agent.get_state_history(CONFIG)
        if "todo_ledger" in state.values and not any(kind_of(m) == "guard" for m in state.values["messages"])
    ]
    assert set(first) == {None}
    assert s.run(write("a:c"), "Done.").ledger["todo_finalization_correction"] is None


def test_a_wake_ends_the_corrections_turn(stage: Make) -> None:
    s = stage("wakeloop", {"max_wake_cycles": 1})
    s.run(calls(("todo_write", {"items": ["a"]})), "1", "2", "3")
    assert (s.ledger["todo_finalization_correction"], s.notices) == (True, ["1/1"])
    s.run("4", calls(("todo_update", {"id": 1, "status": "done"})), "5")
    assert (s.ledger["todo_finalization_correction"], s.notices) == (None, ["1/1"])


# -- the last check --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "asks"),
    [("a:c b:c c:c", True), ("a:c b:c c:c d:c", True), ("a:c b:c", False), ("a:c b:c c:i", False)],
)
def test_with_three_or_more_all_completed_the_result_asks_for_a_last_check(
    stage: Make, sent: str, asks: bool
) -> None:
    s = stage(NAME, {"guard_retries": 0}).run(write(sent), "Done.")
    assert sorted(result_json(s, 0)) == (["note", "todos"] if asks else ["todos"])
    assert result_json(s, 0)["todos"] == rows(sent)


# -- a strict verifier cannot make it hang ---------------------------------------------------------------


def test_a_verifiers_third_refusal_blocks_an_item_even_if_one_must_be_in_progress(
    stage: Make,
) -> None:
    s = stage(NAME, verify=lambda todo, state: "not good enough")
    s.run(write("a:c"), write("a:c"), write("a:c"), "I give up.")
    assert s.todos == [{"id": 1, "content": "a", "status": "blocked", "reason": "not good enough"}]
    assert s.ending == ("dormant", "blocked")


def test_the_words_of_the_last_check_can_be_replaced_like_all_others() -> None:
    done = {"todos": [{"content": text, "status": "completed"} for text in "abc"]}
    settings = preset("cubepi").model_copy(update={"prompts": {"last_check": "Sure?"}})
    agent = create_todo_agent(ScriptedModel([calls(("write_todos", done)), says("ok")]), settings=settings)
    result = agent.invoke({"messages": [("user", "go")]})
    assert json.loads(result["messages"][2].text)["note"] == "Sure?"
