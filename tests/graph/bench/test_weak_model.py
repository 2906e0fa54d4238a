"""The weak model: reliable at its defaults, and each habit by itself, by exact counts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import benched
import pytest
from benched import GO_ON, Run, ours, plain, task_of
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from wakeloop import preset
from wakeloop.bench.families import FAMILIES
from wakeloop.bench.task import find_damage
from wakeloop.dialects.parley import List, Update, Write
from wakeloop.testing import calls, says
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel

AWAKE = {"max_wake_cycles": 25, "auto_continue": True, "max_items": None}
SPOKEN = ("wakeloop", "agentparley", "loki", "lesson", "cubepi")


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.parametrize(
    ("knobs", "requests", "reason"),
    [
        ({}, 22, "settled"),
        ({"plan_beside": False}, 23, "settled"),
        ({"replies": 2}, 41, "settled"),
        ({"replies": 2, "plan_beside": False}, 42, "settled"),
        ({"list_from": 21}, 21, "answered"),
    ],
)
def test_a_reliable_model_makes_as_many_requests_as_the_study_says(
    knobs: dict[str, Any], requests: int, reason: str, tmp_path: Path
) -> None:
    assert ours(tmp_path, Knobs(**knobs), parts=20).facts == (True, requests, reason)


@pytest.mark.parametrize(
    ("varied", "requests"),
    [
        ({}, 22),
        ({"prompts": {"instructions": "Close it in the reply that starts the next one."}}, 23),
        ({"prompts": {"instructions": "Plan with your first call."}}, 41),
        ({"inject_todo_instructions": False}, 42),
        ({"statuses": ("done", "blocked")}, 42),
    ],
)
def test_it_follows_its_instructions(varied: dict[str, Any], requests: int, tmp_path: Path) -> None:
    settings = preset("wakeloop").model_copy(update=varied)
    assert ours(tmp_path, parts=20, settings=settings).facts == (True, requests, "settled")


def test_several_items_are_closed_in_one_call_if_the_tool_takes_several(tmp_path: Path) -> None:
    def closings(name: str) -> list[dict[str, Any]]:
        settings = preset(name).model_copy(update=AWAKE)
        run = ours(tmp_path / name, Knobs(forget=1, replies=2, plan_beside=False), settings=settings)
        made = [call for message in run.messages for call in getattr(message, "tool_calls", ())]
        return [call["args"] for call in made if call["name"] == "todo_update"]

    assert closings("wakeloop") == [{"ids": [1, 2, 3, 4, 5]}]
    assert closings("agentparley") == [{"id": number, "status": "done"} for number in range(1, 6)]


@pytest.mark.parametrize("name", SPOKEN)
@pytest.mark.parametrize(("replies", "requests"), [(2, 12), (1, 8)])
@pytest.mark.parametrize("family", ["make-files", "follow-trail"])
def test_it_speaks_every_vocabulary_also_where_parts_are_found(
    name: str, replies: int, requests: int, family: str, tmp_path: Path
) -> None:
    settings = preset(name).model_copy(update=AWAKE)
    found = {"list_from": 1} if family == "follow-trail" else {}
    run = ours(
        tmp_path,
        Knobs.model_validate({"replies": replies, "plan_beside": False, **found}),
        settings=settings,
        family=family,
    )
    assert run.facts == (True, requests, "settled")
    assert [todo["status"] for todo in run.todos] == ["completed"] * 5


def test_parts_that_have_to_be_found_are_in_no_plan(tmp_path: Path) -> None:
    replies = ours(tmp_path, family="follow-ups").messages
    written = [call["args"]["items"] for message in replies for call in getattr(message, "tool_calls", ())
               if call["name"] == "todo_write"]  # fmt: skip
    assert [len(items) for items in written] == [3, 1, 1]


def test_without_a_list_it_does_the_work_and_when_asked_says_that_nothing_is_left(tmp_path: Path) -> None:
    assert plain(tmp_path, asks=2).facts == (True, 8, "")


@pytest.mark.parametrize("family", ["one-setting", "question-sum"])
def test_a_job_of_one_step_and_a_question_get_no_list(family: str, tmp_path: Path) -> None:
    run = ours(tmp_path, family=family, parts=int(family == "one-setting"))
    assert run.facts == (True, 2 if family == "one-setting" else 1, "answered")
    assert run.todos == []


@pytest.mark.parametrize("family", ["missing-sources", "outside-folder"])
def test_it_blocks_and_reports_what_the_world_refuses(family: str, tmp_path: Path) -> None:
    run = ours(tmp_path / "w", family=family)
    assert (run.facts[0], run.facts[2]) == (True, "blocked")
    blocked = {"missing-sources": 2, "outside-folder": 5}[family]
    assert [todo["status"] for todo in run.todos].count("blocked") == blocked
    assert plain(tmp_path / "again", family=family).facts == (True, 6, "")


ODD = [name for name, family in FAMILIES.items() if family.kind != "work"]


@pytest.mark.parametrize("name", [*ODD, "keep-ledger", "last-speaker", "split-files"])
def test_it_plays_every_kind_of_family_without_a_list(name: str, tmp_path: Path) -> None:
    parts = next(length for length in FAMILIES[name].lengths if length in (0, 5) or name.startswith("one-"))
    assert plain(tmp_path, family=name, parts=parts).facts == (True, parts + 1, "")


HABITS: dict[str, tuple[dict[str, Any], tuple[bool, int, str], float]] = {
    "stop": ({"stop": 1}, (True, 13, "settled"), 1),
    "false done": ({"false_done": 1}, (False, 3, "settled"), 0.2),
    "forget": ({"forget": 1}, (True, 8, "settled"), 1),
    "repeat": ({"repeat": 1}, (True, 8, "settled"), 1),
    "malformed": ({"malformed": 1}, (True, 10, "malformed_calls"), 1),
    "cut": ({"cut": 1}, (False, 5, "truncated"), 0),
    "empty": ({"empty": 1}, (False, 5, "empty_reply"), 0),
    "no list": ({"no_list": 1}, (True, 6, "answered"), 1),
    "can't, blocks": ({"cannot": 1}, (False, 7, "blocked"), 0.8),
    "can't, says": ({"cannot": 1, "on_failure": "says"}, (False, 17, "stalled"), 0.8),
    "can't, retries": ({"cannot": 1, "on_failure": "retries"}, (False, 18, "stalled"), 0.8),
    "can't, busy": ({"cannot": 1, "on_failure": "busy"}, (False, 66, "wake_budget"), 0.8),
    "close all": ({"close_all": 1}, (False, 3, "settled"), 0.2),
    "skip": ({"skip": 1}, (False, 3, "settled"), 0.2),
    "ask": ({"stop": 1, "ask": 1}, (False, 3, "waiting"), 0.2),
    "deaf": ({"stop": 0.3, "deaf": 1}, (True, 9, "settled"), 1),
    "fake results": ({"stop": 0.5, "fake_results": 1}, (True, 13, "settled"), 1),
    "forgets cleared": ({"forgets_cleared": "Wrote"}, (True, 12, "settled"), 1),
    "empty after a result": ({"empty_after_result": 1}, (True, 17, "settled"), 1),
    "promise": ({"promise": 1}, (False, 5, "malformed_calls"), 0),
    "print a call": ({"print_call": 1}, (False, 5, "malformed_calls"), 0),
    "echo": ({"echo": 1}, (False, 13, "looping"), 0.2),
    "double": ({"double": 1}, (True, 7, "settled"), 1),
    "wrong tool": ({"wrong_tool": 1}, (True, 10, "malformed_calls"), 1),
    "wrong args": ({"wrong_args": 1}, (True, 10, "malformed_calls"), 1),
    "can't, fakes": ({"cannot": 1, "on_failure": "fakes"}, (False, 7, "settled"), 0.8),
}


@pytest.mark.slow
@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_at_its_strongest(habit: str, tmp_path: Path) -> None:
    knobs, facts, share = HABITS[habit]
    run = ours(tmp_path, Knobs(**knobs))
    assert (run.facts, run.share) == (facts, share)


def test_a_false_done_that_is_refused_is_followed_by_the_work(tmp_path: Path) -> None:
    def verify(todo: Any, state: Any) -> str | None:
        name = todo["content"].removeprefix("write ")
        return None if (tmp_path / "notes" / f"{name}.txt").exists() else "the file is missing"

    assert ours(tmp_path, Knobs(false_done=1), verify=verify).facts == (True, 8, "settled")


def test_endless_false_claims_that_are_refused_end(tmp_path: Path) -> None:
    """Two items that their tool refuses, closed as if done: each is blocked after three refusals."""

    def verify(todo: Any, state: Any) -> str | None:
        name = todo["content"].removeprefix("write ")
        return None if (tmp_path / "notes" / f"{name}.txt").exists() else "the file is missing"

    knobs = Knobs(cannot=2, on_failure="fakes")
    run = ours(tmp_path, knobs, verify=verify)
    assert (run.facts, run.share) == ((False, 28, "looping"), 0.6)
    assert [todo["status"] for todo in run.todos][3:] == ["blocked", "blocked"]


def test_a_false_done_without_a_list_is_never_done(tmp_path: Path) -> None:
    run = plain(tmp_path, Knobs(false_done=1), asks=1)
    assert (run.facts, run.share) == ((False, 2, ""), 0)


def test_pushed_after_completion_it_damages_finished_work(tmp_path: Path) -> None:
    finished = plain(tmp_path / "a", Knobs(spoil=1))
    asked = plain(tmp_path / "b", Knobs(spoil=1), asks=1)
    assert (finished.facts, asked.facts) == ((True, 6, ""), (False, 8, ""))
    assert len(find_damage(finished.checks, asked.checks)) == 1
    assert ours(tmp_path / "c", Knobs(spoil=1)).facts == (True, 7, "settled")


def test_asked_to_continue_after_a_stop_it_continues(tmp_path: Path) -> None:
    facts = [plain(tmp_path / str(asks), Knobs(stop=0.5), asks=asks).facts for asks in range(9)]
    assert [requests for _, requests, _ in facts] == [2, 3, 6, 7, 8, 10, 11, 13, 14]
    assert [done for done, _, _ in facts] == [False] * 7 + [True] * 2


PLANNED = [
    HumanMessage("do it"),
    calls(("todo_write", {"items": ["write a", "write b"]}, "w")),
    ToolMessage("Stored 2 items:\n  [1] write a\n  [2] write b", tool_call_id="w"),
]


@cache
def toolbox() -> list[dict[str, Any]]:
    """Return the tools as they are bound, cached because making them takes longer than a reply."""
    return [
        convert_to_openai_tool(tool)
        for tool in (Write, Update, List, *task_of("make-files", 2).tools(Path()))
    ]


def asked(knobs: Knobs, messages: Sequence[BaseMessage], seed: int = 0, **options: Any) -> AIMessage:
    task = task_of("make-files", 2)
    model = WeakModel(task, seed, knobs)
    return model.bind_tools(toolbox(), **options).invoke(list(messages))


def made(reply: AIMessage) -> list[str]:
    """Return the names of the tools that a reply calls."""
    return [call["name"] for call in reply.tool_calls]


def stops(knobs: Knobs, messages: Sequence[BaseMessage]) -> int:
    """Return how many of a hundred seeds stop there."""
    return sum(not asked(knobs, messages, seed).tool_calls for seed in range(100))


def test_a_stop_makes_the_next_more_likely() -> None:
    pushed = [*PLANNED, says("All done."), HumanMessage(GO_ON)]
    assert [stops(Knobs(stop=0.1, stick=stick), PLANNED) for stick in (0, 0.5)] == [10, 10]
    assert [stops(Knobs(stop=0.1, stick=stick), pushed) for stick in (0, 0.5, 1)] == [10, 64, 89]


def test_the_first_reply_is_neither_a_stop_nor_a_distraction() -> None:
    first = [HumanMessage("do it")]
    assert stops(Knobs(stop=1), first) == 0
    reply = asked(Knobs(busy=1, wander=1, relist=1), first)
    assert [call["name"] for call in reply.tool_calls] == ["todo_write"]


STEPS = task_of("make-files", 2).steps
LABELS = [step.label for step in STEPS]
LISTED = [
    HumanMessage("do it"),
    calls(("todo_write", {"items": LABELS}, "w")),
    ToolMessage(f"Stored 2 items:\n  [1] {LABELS[0]}\n  [2] {LABELS[1]}", tool_call_id="w"),
]
PUSHED = [*LISTED, says("All done."), HumanMessage(GO_ON)]


SETTLED = [
    *LISTED,
    calls(("todo_update", {"ids": [1, 2], "status": "done"}, "u")),
    ToolMessage("Updated.", tool_call_id="u"),
    says("All done."),
]


def test_its_stops_become_more_likely_as_the_request_grows() -> None:
    long = [HumanMessage("x" * 20_000), *LISTED[1:]]  # 5,000 tokens
    growth = Knobs(stop_growth=0.4)
    assert [stops(growth, LISTED), stops(growth, long), stops(Knobs(stop_growth=9), long)] == [0, 14, 89]


def test_a_stop_may_be_a_question() -> None:
    assert asked(Knobs(stop=1, ask=1), LISTED).text == "Shall I continue with the rest?"


@pytest.mark.parametrize("habit", ["deaf", "fake_results", "promise", "print_call", "empty", "copy_filler"])
def test_a_forced_call_is_made_whatever_the_habit(habit: str) -> None:
    knobs = Knobs.model_validate({habit: 1})
    assert made(asked(knobs, PUSHED, tool_choice="required")) == ["write_file"]


def test_a_forced_call_uses_the_named_tool_and_any_tool_if_nothing_is_left() -> None:
    named = {"type": "function", "function": {"name": "todo_list"}}
    assert made(asked(Knobs(), LISTED, tool_choice=named)) == ["todo_list"]
    assert made(asked(Knobs(stop=1), LISTED, tool_choice="any")) == ["write_file"]
    done = [HumanMessage("do it")]
    for number, step in enumerate(STEPS):
        [(name, args)] = step.calls
        done += [calls((name, args, f"{number}")), ToolMessage("Wrote it.", tool_call_id=f"{number}")]
    assert made(asked(Knobs(no_list=1), done)) == []
    assert made(asked(Knobs(no_list=1), done, tool_choice="any")) == ["todo_list"]


def test_pushed_in_words_it_may_ignore_them_or_fake_the_results() -> None:
    assert asked(Knobs(deaf=1), PUSHED).text == "All done."
    faked = asked(Knobs(fake_results=1), PUSHED)
    assert (faked.text.count("<tool_response>"), faked.tool_calls) == (1, [])
    assert made(asked(Knobs(deaf=1, fake_results=1), LISTED)) == ["write_file"]
    blank = [*LISTED, says(""), HumanMessage(GO_ON)]
    assert asked(Knobs(deaf=1), blank).text == "All done."  # a blank reply was a stop


def test_a_promise_and_a_printed_call_are_text() -> None:
    promised, printed = (asked(Knobs.model_validate({name: 1}), LISTED) for name in ("promise", "print_call"))
    assert (promised.text, promised.tool_calls) == ("I call write_file now.", [])
    assert promised.response_metadata == {"finish_reason": "tool_calls"}
    [(name, args)] = STEPS[0].calls
    assert (json.loads(printed.text), printed.tool_calls) == ({"name": name, "arguments": args}, [])


def test_a_skipped_part_is_remembered_when_asked_about(tmp_path: Path) -> None:
    facts = []
    for notice in (0, 0.5, 1):
        run = plain(tmp_path / str(notice), Knobs(skip=1, notice=notice), asks=2)
        facts.append((run.facts, run.share))
    assert facts == [((False, 3, ""), 0.0), ((False, 6, ""), 0.6), ((True, 8, ""), 1.0)]
    settled = [*SETTLED, HumanMessage(GO_ON)]
    assert made(asked(Knobs(skip=1), settled)) == []
    assert made(asked(Knobs(skip=1, notice=1), settled)) == ["write_file"]


def test_asked_about_a_skipped_part_by_its_name_it_is_honest() -> None:
    named = [*SETTLED, HumanMessage(f"These were closed unseen: {LABELS[1]}")]
    assert made(asked(Knobs(skip=1, honest=1), [*SETTLED, HumanMessage(GO_ON)])) == []
    assert made(asked(Knobs(skip=1, honest=1), named)) == ["write_file"]
    assert made(asked(Knobs(skip=1), named)) == []


def test_every_bound_tool_slows_it() -> None:
    replies = [made(asked(Knobs(crowd=0.01), LISTED, seed)) for seed in range(100)]
    assert len(toolbox()) == 10
    assert sum(names == ["search_files"] for names in replies) == pytest.approx(10, abs=5)


@pytest.mark.parametrize(("close_by", "closings"), [(1, [1] * 6), (2, [2, 2, 2]), (5, [5, 5])])
def test_it_closes_a_few_items_in_one_call(close_by: Any, closings: list[int], tmp_path: Path) -> None:
    run = ours(tmp_path, Knobs(close_by=close_by), family="switch-lamps", parts=20)
    sizes = []
    for message in run.messages:
        for call in getattr(message, "tool_calls", ()):
            if call["name"] == "todo_update":
                sizes.append(len(call["args"]["ids"]))
    assert run.facts == (True, 22, "settled")
    assert sizes[: len(closings) - 1] == closings[:-1]
    assert sum(sizes) == 20


def test_cleared_work_is_done_again_unless_its_item_is_closed() -> None:
    [(name, args)] = STEPS[0].calls
    cleared = [HumanMessage("do it"), calls((name, args, "c")), ToolMessage("[cleared]", tool_call_id="c")]
    knobs = Knobs(no_list=1)
    again = knobs.model_copy(update={"forgets_cleared": "[cleared]"})
    assert asked(knobs, cleared).tool_calls[0]["args"] == STEPS[1].calls[0].args
    assert asked(again, cleared).tool_calls[0]["args"] == args
    closed = [*LISTED, calls(("todo_update", {"id": 1, "status": "done"}, "u")), *cleared[2:]]
    closed[-1] = ToolMessage("Closed [1].", tool_call_id="u")
    listed = Knobs(forgets_cleared="[cleared]")
    assert asked(listed, closed).tool_calls[0]["args"] == STEPS[1].calls[0].args


def test_a_filler_is_copied_once_it_is_in_the_request() -> None:
    filler = AIMessage("(no text)", additional_kwargs={"wakeloop": {"kind": "filler"}})
    history = [HumanMessage("do it"), filler, HumanMessage("Continue."), *LISTED[1:]]
    assert asked(Knobs(copy_filler=1), history).text == "(no text)"
    assert made(asked(Knobs(copy_filler=1), LISTED)) == ["write_file"]


def test_a_mark_is_overlooked_obeyed_or_disobeyed(tmp_path: Path) -> None:
    def ask(marks: str, message: str, **knobs: Any) -> AIMessage:
        request = [*LISTED, says("All done."), HumanMessage(message)]
        return asked(Knobs.model_validate({"marks": marks, **knobs}), request)

    marked = "(automatic) 2 items are open."
    assert made(ask("unseen", marked)) == made(ask("obeyed", marked)) == ["write_file"]
    assert ask("disobeyed", marked).text == "Thank you, I have seen your message."
    assert made(ask("disobeyed", "2 items are open.")) == ["write_file"]
    assert ask("unseen", marked, stop=1, ask=1).text == "Shall I continue with the rest?"
    assert ask("obeyed", marked, stop=1, ask=1).text == "All done."


def test_obeying_a_mark_it_damages_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(benched, "GO_ON", "(automatic) Go on if anything is left.")
    for marks, completed in (("unseen", False), ("obeyed", True)):
        knobs = Knobs.model_validate({"spoil": 1, "marks": marks})
        assert plain(tmp_path / marks, knobs, asks=1).facts[0] is completed


def test_an_echo_has_new_ids_and_a_double_call_comes_twice() -> None:
    echo = asked(Knobs(echo=1), LISTED)
    assert (made(echo), [call["id"] for call in echo.tool_calls]) == (["todo_write"], ["call_0_1_0"])
    done = [*LISTED, *accepted(0)]
    twice = asked(Knobs(double=1, replies=2), done)
    assert made(twice) == ["todo_update"] * 2
    assert len({call["id"] for call in twice.tool_calls}) == 2


def test_a_wrong_tool_does_not_exist_and_wrong_arguments_do_not_fit() -> None:
    assert made(asked(Knobs(wrong_tool=1), LISTED)) == ["write_file_now"]
    [call] = asked(Knobs(wrong_args=1), LISTED).tool_calls
    assert {type(value) for value in call["args"].values()} == {dict}
    assert asked(Knobs(empty_after_result=1), LISTED).text == ""
    assert made(asked(Knobs(empty_after_result=1), PUSHED)) == ["write_file"]


def accepted(number: int) -> list[BaseMessage]:
    """Return a step's call and its result."""
    [(name, args)] = STEPS[number].calls
    return [calls((name, args, f"s{number}")), ToolMessage("Wrote it.", tool_call_id=f"s{number}")]


def test_busy_repeats_a_look_wandering_makes_a_new_one_and_listing_asks_for_the_list() -> None:
    task = task_of("make-files", 2)
    looks = {}
    for habit in ("busy", "wander", "relist"):
        model = WeakModel(task, 0, Knobs.model_validate({habit: 1}))
        bound = model.bind_tools(toolbox())
        replies = [bound.invoke(PLANNED) for _ in range(2)]
        looks[habit] = [(call["name"], call["args"]) for reply in replies for call in reply.tool_calls]
    assert looks == {
        "busy": [("list_files", {})] * 2,
        "wander": [("search_files", {"query": "look 1"}), ("search_files", {"query": "look 2"})],
        "relist": [("todo_list", {})] * 2,
    }


def test_it_answers_if_no_call_is_allowed_and_keeps_to_a_format_if_one_is_asked_for(
    tmp_path: Path,
) -> None:
    assert ours(tmp_path, Knobs(stop=1), settings="cubepi-strict").facts == (False, 5, "guard_blocked")
    model = WeakModel(task_of("make-files", 2))
    form = {"json_schema": {"schema": {"properties": {"said": {"type": "string"}}, "required": ["said"]}}}
    reply = model.bind_tools(toolbox(), response_format=form).invoke(PLANNED)
    assert (reply.text, reply.tool_calls) == ('{"said": "All done."}', [])


@pytest.mark.parametrize(
    ("lenient", "verdict"), [(0, ("needs_revision", "left: write b")), (1, ("satisfied", "All done."))]
)
def test_as_a_grader_it_judges_its_latest_work(lenient: float, verdict: tuple[str, str]) -> None:
    """As the grader of Deep Agents' rubric asks it: with a tool, about a transcript in one string."""
    task = task_of("make-files", 2)
    model = WeakModel(task, 0, Knobs(stop=1, lenient=lenient))
    [(name, args)] = task.steps[0].calls
    tools = [tool for tool in task.tools(Path()) if tool.name == name]
    done = [HumanMessage("do it"), calls((name, args, "w")), ToolMessage("Wrote it.", tool_call_id="w")]
    assert model.bind_tools(tools).invoke(done).text == "All done."
    grader = {"type": "function", "function": {"name": "GraderResponse", "parameters": {"type": "object"}}}
    [call] = model.bind_tools([grader]).invoke([HumanMessage("Is it done?")]).tool_calls
    assert call["name"] == "GraderResponse"
    told = verdict[1].replace("write b", task.steps[1].label)
    assert (call["args"]["result"], call["args"]["explanation"]) == (verdict[0], told)
    assert [one["passed"] for one in call["args"]["criteria"]] == [verdict[0] == "satisfied"]


def test_a_cut_call_has_half_of_its_last_text() -> None:
    [call] = asked(Knobs(cut=1, no_list=1), PLANNED[:1]).tool_calls
    whole = task_of("make-files", 2).steps[0].calls[0].args["content"]
    assert (call["args"]["content"], len(whole)) == (whole[: len(whole) // 2], len(whole))
    assert asked(Knobs(cut=1), PLANNED[:1]).response_metadata == {"finish_reason": "length"}


def test_the_same_seed_gives_the_same_run_and_another_habit_does_not_change_the_dice(
    tmp_path: Path,
) -> None:
    def run(folder: str, **knobs: Any) -> Run:
        return ours(tmp_path / folder, Knobs(**knobs), parts=20, seed=3)

    one, same = run("a", stop=0.3), run("b", stop=0.3)
    assert [m.content for m in one.model.requests[-1]] == [m.content for m in same.model.requests[-1]]
    weak = WeakModel(task_of("make-files", 2), 3, Knobs(stop=0.3))
    more = WeakModel(task_of("make-files", 2), 3, Knobs(stop=0.3, empty=0.5))
    assert [weak._dice.tosses("stop") for _ in range(50)] == [more._dice.tosses("stop") for _ in range(50)]


@pytest.mark.parametrize(
    ("knobs", "requests"),
    [({}, [31, 32, 31]), ({"replies": 2, "plan_beside": False}, [56, 63, 60])],
)
def test_one_seeded_cell_of_the_study(knobs: dict[str, Any], requests: list[int], tmp_path: Path) -> None:
    weak = Knobs(stop=0.3, **knobs)
    runs = [ours(tmp_path / str(seed), weak, parts=20, seed=seed) for seed in (0, 3, 4)]
    assert [run.facts for run in runs] == [(True, number, "settled") for number in requests]


def test_usage_is_the_size_of_the_request_and_of_what_it_shares_with_the_one_before() -> None:
    model = WeakModel(task_of("make-files", 2))
    bound = model.bind_tools([List])
    one, two = (
        HumanMessage("a" * 388),
        HumanMessage("a" * 188 + "b" * 200),
    )  # 395 with "human:" and a line break
    tools = 4 * (len(json.dumps(model.tools)) // 4)
    usage = [bound.invoke(request).usage_metadata for request in ([one], [one, one], [one, two], [two])]
    assert len(json.dumps(model.tools)) % 4 == 1
    assert [(of["input_tokens"], of["input_token_details"]["cache_read"]) for of in usage if of] == [
        ((tools + 396) // 4, 0),
        ((tools + 792) // 4, (tools + 396) // 4),
        ((tools + 792) // 4, (tools + 396 + 194) // 4),
        ((tools + 396) // 4, (tools + 1 + 194) // 4),
    ]
    name, args = model._job.steps[0].calls[0]
    said = len(f"ai:{name}{json.dumps(args)}\n")
    assert [of["output_tokens"] for of in usage if of] == [-(-said // 4)] * 4


def test_a_knob_out_of_bounds_or_unknown_is_refused() -> None:
    for wrong in ({"stop": 1.1}, {"stick": -0.1}, {"cannot": -1}, {"stops": 0.1}, {"replies": 3}):
        with pytest.raises(ValidationError):
            Knobs.model_validate(wrong)


def test_another_toolboxs_word_for_a_path_is_used() -> None:
    def write_file(file_path: str, content: str) -> str:
        """Write."""
        return file_path + content

    model = WeakModel(task_of("make-files", 1))
    [call] = model.bind_tools([write_file]).invoke([HumanMessage("go")]).tool_calls
    assert set(call["args"]) == {"file_path", "content"}
    said = ToolMessage("written", tool_call_id=call["id"])
    reply = model.bind_tools([write_file]).invoke(
        [HumanMessage("go"), calls((call["name"], call["args"], call["id"])), said]
    )
    assert reply.text == "All done."
