"""Knobs fitted to transcripts, checked by exact counts."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from benched import ours
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from wakeloop.errors import ArgumentError
from wakeloop.testing import calls, malformed_call, says
from wakeloop.testing.knobs import Knobs

fit_knobs: Any = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "fitting.py"))["fit_knobs"]
PLAN = ("todo_write", {"items": ["a", "b"]})
SHOWN = "Stored 2 items:\n  [1] a\n  [2] b"
Call = tuple[str, dict[str, Any]]


def work(name: str) -> Call:
    return ("write_file", {"path": name, "content": "x"})


def close(key: int) -> Call:
    return ("todo_update", {"id": key, "status": "done"})


def thread(*replies: AIMessage | str | tuple[Call, ...]) -> list[BaseMessage]:
    """Return a transcript: calls are answered, and every text but the last is followed by a user message."""
    messages: list[BaseMessage] = [HumanMessage("do it")]
    for place, made in enumerate(replies):
        reply = says(made) if isinstance(made, str) else made
        if not isinstance(reply, AIMessage):
            reply = calls(*reply)
        messages.append(reply)
        for call in reply.tool_calls:
            text = SHOWN if call["name"] == "todo_write" else "ok"
            messages.append(ToolMessage(text, tool_call_id=call["id"]))
        if not reply.tool_calls and place < len(replies) - 1:
            messages.append(HumanMessage("keep going"))
    return messages


RELIABLE = ((PLAN,), (work("a"),), (close(1),), (work("b"),), (close(2),), "All done.")
AT_ONCE = ((PLAN, work("a")), (close(1), work("b")), (close(2),), "All done.")


def test_a_reliable_transcript_fits_a_reliable_model() -> None:
    fitted = fit_knobs([thread(*RELIABLE)] * 2)
    assert fitted.knobs == Knobs(replies=2, plan_beside=False)
    assert {habit: tuple(count) for habit, count in fitted.counts.items()} == {
        "stop": (0, 8),
        "after_stop": (0, 0),
        "false_done": (0, 4),
        "forget": (0, 4),
        "repeat": (0, 2),
        "malformed": (0, 10),
        "cut": (0, 12),
        "empty": (0, 12),
        "busy": (0, 10),
        "relist": (0, 10),
        "no_list": (0, 2),
        "one_reply": (0, 2),
        "plan_beside": (0, 2),
    }


def test_one_reply_per_item() -> None:
    assert fit_knobs([thread(*AT_ONCE)]).knobs == Knobs(replies=1, plan_beside=True)


HABITS: dict[str, tuple[tuple[Any, ...], dict[str, tuple[int, int]]]] = {
    "a stop": ((*RELIABLE[:2], "Done.", *RELIABLE[2:]), {"stop": (1, 4), "after_stop": (0, 1)}),
    "a stop after a stop": (
        (*RELIABLE[:2], "Done.", "Done.", *RELIABLE[2:]),
        {"stop": (1, 4), "after_stop": (1, 2), "forget": (0, 2)},
    ),
    "stops to the end": ((*RELIABLE[:3], "Done.", "Done."), {"stop": (1, 3), "after_stop": (1, 1)}),
    "false done": ((*RELIABLE[:3], (close(2),), "All done."), {"false_done": (1, 2), "stop": (0, 3)}),
    "forgets": (
        (*RELIABLE[:2], RELIABLE[3], "Done.", (close(1), close(2)), "All done."),
        {"forget": (1, 2), "false_done": (0, 1), "stop": (0, 2)},
    ),
    "the plan again": ((*RELIABLE[:1], *RELIABLE), {"repeat": (1, 1)}),
    "broken": (
        (*RELIABLE[:1], calls(malformed_call("write_file", "{")), *RELIABLE[1:]),
        {"malformed": (1, 6), "stop": (0, 5)},
    ),
    "cut": (
        (says("All d", finish_reason="length"), *RELIABLE),
        {"cut": (1, 7), "empty": (0, 7), "malformed": (0, 5)},
    ),
    "empty": ((*RELIABLE[:1], "", *RELIABLE[1:]), {"empty": (1, 7), "stop": (0, 3)}),
    "the same look": ((*RELIABLE[:2], RELIABLE[1], *RELIABLE[2:]), {"busy": (1, 6)}),
    "lists": ((*RELIABLE[:1], (("todo_list", {}),), *RELIABLE[1:]), {"relist": (1, 6)}),
    "no list": (((work("a"),), (work("b"),), "All done."), {"no_list": (1, 1), "stop": (0, 1)}),
    "no list, a stop": (
        ((work("a"),), "Done.", (work("b"),), "All done."),
        {"no_list": (1, 1), "stop": (1, 1), "after_stop": (0, 1)},
    ),
}


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_is_counted(habit: str) -> None:
    replies, counts = HABITS[habit]
    found = fit_knobs([thread(*replies)]).counts
    assert {name: tuple(found[name]) for name in counts} == counts


def test_stickiness_is_the_rise_in_stops_after_a_stop() -> None:
    stops = thread(*RELIABLE[:3], "Done.", "Done.", "Done.", *RELIABLE[3:])
    assert fit_knobs([stops]).knobs.stop == pytest.approx(1 / 4)
    assert fit_knobs([stops]).knobs.stick == pytest.approx(2 / 3 - 1 / 4)


def test_a_rate_has_an_interval() -> None:
    found = fit_knobs([thread(*RELIABLE[:2], "Done.", *RELIABLE[2:])]).counts["stop"]
    assert [round(share, 2) for share in found.interval] == [0.25, 0.05, 0.7]


def test_several_items_closed_in_one_call_count_as_several() -> None:
    both = ("todo_update", {"ids": [1, 2], "status": "done"})
    found = fit_knobs([thread((PLAN, work("a")), (work("b"),), (both,), "All done.")])
    assert (found.counts["false_done"], found.counts["forget"]) == ((0, 2), (0, 2))


def test_one_transcript_may_be_passed_without_a_list() -> None:
    with pytest.raises(ArgumentError, match=r"for one, write fit_knobs\(\[messages\]\)"):
        fit_knobs(thread(*RELIABLE))


def test_no_transcripts_give_the_default_knobs() -> None:
    assert fit_knobs([]).knobs == Knobs()
    assert {count.of for count in fit_knobs([]).counts.values()} == {0}


def test_a_fit_finds_the_knobs_again(tmp_path: Path) -> None:
    """Checked on threads as they are stored: broken and cut calls are errors there."""
    knobs = Knobs(stop=0.2, malformed=0.1, cut=0.1, false_done=0.3)
    runs = [ours(tmp_path / str(seed), knobs, parts=10, seed=seed) for seed in range(6)]
    fitted = fit_knobs([run.messages for run in runs])
    counts = {habit: tuple(fitted.counts[habit]) for habit in ("stop", "malformed", "cut", "false_done")}
    assert counts == {"stop": (9, 36), "malformed": (4, 37), "cut": (9, 60), "false_done": (4, 33)}
    assert fitted.knobs.stop == 9 / 36
    assert (fitted.knobs.replies, fitted.knobs.plan_beside) == (1, True)
