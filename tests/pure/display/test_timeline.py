"""Timelines: exact lanes and moments for exact histories."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Interrupt

from wakeloop.display.checkpoint_history import Step, SubagentSpan, ThreadHistory
from wakeloop.display.report_page import (
    MAX_TEXT,
    ReportPage,
    TimeAxis,
    clean_text,
    limit_per_text,
    markdown_to_html,
    split_messages,
)
from wakeloop.display.timeline import Timeline
from wakeloop.loop.approval import build_approval_request
from wakeloop.text.marks import append_to_result, make_user_message

ASKED = HumanMessage("Do it.", id="u")
PLANNED = AIMessage("", id="p", tool_calls=[{"name": "todo_write", "args": {}, "id": "c1"}])
WRITTEN = ToolMessage("Stored.", tool_call_id="c1", name="todo_write", id="r")


def item(key: int | str, status: str = "pending", **more: str) -> dict[str, Any]:
    return {"id": key, "content": f"item {key}", "status": status, **more}


def past(*steps: dict[str, Any], **more: Any) -> ThreadHistory:
    """Return one-second steps with these writes by channel; `stored`, `source`, `into`, `gap` are keys."""
    last = len(steps) - 1
    return ThreadHistory(
        "t",
        [
            Step(
                began=float(at),
                ended=None if at == last else float(at + 1),
                source=step.get("source", "loop" if at else "input"),
                into=step.get("into", "loop"),
                stored=step.get("stored", {}),
                writes=[(key, value) for key, value in step.items() if key not in OWN],
                after_gap=step.get("gap", False),
            )
            for at, step in enumerate(steps)
        ],
        **more,
    )


OWN = ("stored", "source", "into", "gap")


def lanes(shown: Timeline) -> dict[Any, list[tuple[str, float, float | None]]]:
    return {
        lane.todo["id"]: [(span.status, span.start, span.end) for span in lane.spans] for lane in shown.lanes
    }


def moments(shown: Timeline) -> list[tuple[float, str]]:
    return [(one.at, one.kind) for one in shown.moments]


def test_an_item_is_opened_worked_on_blocked_and_closed_with_its_evidence() -> None:
    shown = Timeline(
        past(
            {"messages": [ASKED]},
            {"messages": [PLANNED]},
            {"messages": [WRITTEN], "todos": {"put": [item(1), item(2)]}},
            {"todos": {"put": [item(1, "in_progress")]}},
            {"todos": {"put": [item(1, "blocked", reason="no key")]}},
            {"todos": {"put": [item(1, "completed", evidence="key.txt")]}},
            {},
        )
    )
    assert lanes(shown) == {
        1: [
            ("pending", 3.0, 4.0),
            ("in_progress", 4.0, 5.0),
            ("blocked", 5.0, 6.0),
            ("completed", 6.0, None),
        ],
        2: [("pending", 3.0, None)],
    }
    assert shown.lanes[0].todo["evidence"] == "key.txt"
    assert shown.lanes[0].said is not None
    assert shown.lanes[0].said.message is PLANNED
    assert moments(shown) == [(0.0, "request")]


def test_an_item_that_leaves_and_comes_back_has_one_lane() -> None:
    shown = Timeline(
        past(
            {"todos": {"all": [item(1), item(2)]}},
            {"todos": {"drop": [1]}},
            {"todos": [item(1, "completed"), item(2)]},
            {"todos": {"drop": [2]}},
            {},
        )
    )
    assert lanes(shown) == {
        1: [("pending", 0.0, 2.0), ("completed", 3.0, None)],
        2: [("pending", 0.0, 4.0)],
    }
    assert [lane.gone for lane in shown.lanes] == [None, 4.0]


def test_a_snapshot_and_a_plain_channel_count_as_writes() -> None:
    class Snapshot:
        value = (ASKED, PLANNED)

    shown = Timeline(
        past({}, {"stored": {"messages": Snapshot(), "todos": [item(1)]}}, {"messages": [WRITTEN]})
    )
    assert [(one.at, one.message.id) for one in shown.said] == [(1.0, "u"), (1.0, "p"), (2.0, "r")]
    assert lanes(shown) == {1: [("pending", 1.0, None)]}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (make_user_message("wake", "Go on."), "wake"),
        (make_user_message("guard", "Bring it up to date."), "guard"),
        (make_user_message("retry", "Again."), "guard"),
        (make_user_message("format", "As JSON."), "guard"),
        (make_user_message("event", "A peer says."), "event"),
        (make_user_message("activate", "Go on."), "kick"),
        (HumanMessage("More."), "request"),
        (ToolMessage("no", tool_call_id="c", status="error", name="look"), "failed"),
        (append_to_result(ToolMessage("x", tool_call_id="c"), "Update the list."), "nag"),
    ],
)
def test_the_graphs_own_messages_are_set_apart(message: Any, kind: str) -> None:
    shown = Timeline(past({"messages": [ASKED]}, {"messages": [message]}, {}))
    assert moments(shown) == [(0.0, "request"), (2.0, kind)]


def test_a_reminder_added_to_a_stored_result_is_one_nag() -> None:
    nagged = append_to_result(WRITTEN, "Update the list.")
    later = nagged.model_copy(update={"artifact": "what a hook has put there"})
    shown = Timeline(
        past(
            {"messages": [ASKED, PLANNED]},
            {"messages": [WRITTEN]},
            {"messages": [nagged]},
            {"messages": [later]},
            {},
        )
    )
    assert moments(shown) == [(0.0, "request"), (3.0, "nag")]
    assert [one.message.id for one in shown.said] == ["u", "p", "r"]
    assert shown.said[2].at == 2.0
    assert shown.said[2].message is later


def test_a_message_that_is_removed_can_still_be_read() -> None:
    shown = Timeline(
        past(
            {"messages": [ASKED, PLANNED]},
            {"messages": [RemoveMessage("u"), HumanMessage("Sum.", id="s")]},
            {},
        )
    )
    assert [(one.message.id, one.gone) for one in shown.said] == [("u", True), ("p", False), ("s", False)]
    assert moments(shown) == [(0.0, "request"), (2.0, "dropped"), (2.0, "request")]


def spent(*numbers: Any) -> dict[str, Any]:
    return {"todo_ledger": {"spent": list(numbers)}}


def test_requests_count_what_they_added_and_an_activation_starts_at_zero() -> None:
    shown = Timeline(
        past(
            spent(1, 100, 40, 10, 500, 0, 2_000_000_000),
            spent(2, 250, 140, 30, 900, 0, 5_000_000_000),
            spent(2, 250, 140, 30, 990, 1, 5_000_000_000),  # a round ran: no request
            {},  # what another activation began with cannot be read
            spent(1, 7, 0, 3, 20, 0, None),
            {},
        )
    )
    assert [(s.at, s.input, s.cached, s.output, s.cost, s.seconds) for s in shown.spends] == [
        (1.0, 100, 40, 10, 2.0, 0.5),
        (2.0, 150, 100, 20, 3.0, 0.4),
        (5.0, 7, 0, 3, None, 0.02),
    ]


def test_endings_refusals_manual_edits_and_questions_are_moments() -> None:
    idle = {"state": "idle", "reason": "stalled"}
    shown = Timeline(
        past(
            {"todos": {"put": [item("a")]}},
            {"todo_ledger": {"refusals": {"a": 1}}},
            {"todo_session": idle},
            {"todo_session": idle, "todos": {"put": [item("b")]}, "into": "update"},
            {"todo_session": {"state": "running", "reason": None}},
            {"todo_session": idle},
            {"__interrupt__": [{"question": "May I?"}]},
        )
    )
    assert [(one.at, one.kind, one.text) for one in shown.moments] == [
        (3.0, "end", "stalled"),
        (4.0, "hand", ""),
        (6.0, "end", "stalled"),
        (6.0, "question", "May I?"),
    ]
    assert shown.lanes[0].refused == [2.0]


def test_a_question_in_the_format_of_chat_uis_is_shown_as_a_person_reads_it() -> None:
    asked = build_approval_request("run_shell", {"command": "ls"}, "Run this command?", ("approve", "reject"))
    shown = Timeline(past({"messages": [ASKED]}, {"__interrupt__": [Interrupt(asked)]}))
    assert [one.text for one in shown.moments] == ["", "Run this command? tool: run_shell command: ls"]


def test_messages_that_others_put_in_are_not_shown_as_the_persons() -> None:
    summary = HumanMessage("so far", id="s", additional_kwargs={"lc_source": "summarization"})
    shown = Timeline(past({"messages": [summary]}, {"messages": [ASKED]}))
    assert moments(shown) == [(0.0, "event"), (1.0, "request")]
    told = ReportPage(shown, {}, str).values()
    assert told["request"] == "Do it."
    assert [one["who"] for part in told["parts"] for one in part] == ["Inserted by summarization", "You"]


def test_subagents_are_at_work_from_their_start_to_their_result() -> None:
    nested = [SubagentSpan("run_tools", 0.5, 1.5)]
    shown = Timeline(
        past(
            {"todo_subagents": [{"id": "a:1"}, {"id": "a:2"}]},
            {"todo_subagents": {"drop": [{"id": "a:1"}]}},
            {},
            nested=nested,
        )
    )
    assert [(one.name, one.start, one.end) for one in shown.helpers] == [
        ("run_tools", 0.5, 1.5),
        ("a:1", 1.0, 2.0),
        ("a:2", 1.0, None),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"stored": {"todos": [{"content": 7}]}},
        {"stored": {"messages": "none"}},
        {"todo_ledger": {"spent": "much"}},
        {"messages": [object()]},
    ],
)
def test_a_step_that_cannot_be_read_does_not_hide_the_others(broken: dict[str, Any]) -> None:
    shown = Timeline(past({"messages": [ASKED]}, broken, {"todos": {"put": [item(1)]}}, {"gap": True}))
    assert [(one.at, one.kind) for one in shown.moments] == [(0.0, "request"), (1.0, "gap"), (3.0, "gap")]
    assert lanes(shown) == {1: [("pending", 3.0, None)]}


# -- the axis ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "places"),
    [
        ([0.0], [0.0]),
        ([0.0, 1.0, 2.0], [0.0, 50.0, 100.0]),
        ([0.0, 1.0, 2.0, 3.0, 1003.0], [0.0, 100 / 9, 200 / 9, 300 / 9, 100.0]),  # six times the median
        ([5.0, 5.0, 6.0], [0.0, 0.0, 100.0]),
    ],
)
def test_a_long_step_is_shortened_and_time_never_goes_backwards(
    times: Sequence[float], places: Sequence[float]
) -> None:
    axis = TimeAxis(times)
    assert [axis.place(time) for time in times] == pytest.approx(places)


def test_a_pause_is_shown() -> None:
    assert [(round(a), round(b), took) for a, b, took in TimeAxis([0.0, 1.0, 2.0, 3.0, 1003.0]).pauses] == [
        (33, 100, 1000.0)
    ]
    assert TimeAxis([0.0, 1.0, 2.0, 3.0, 13.0]).pauses == []


# -- the page's values -------------------------------------------------------------------------------------


def test_nothing_that_looks_like_a_secret_is_among_the_values() -> None:
    key, password = "sk-" + "abcdefgh" * 4, "hunter2hunter2"
    text = f"{key} https://joe:{password}@example.org/"
    call = {"name": "look", "args": {"text": text}, "id": "c2"}
    listed = {"id": text, "content": text, "status": "blocked", "reason": text, "evidence": text}
    folded = Timeline(
        past(
            {
                "messages": [HumanMessage(text), AIMessage(text, tool_calls=[call])],
                "todos": {"put": [listed]},
            },
            {"messages": [ToolMessage(text, tool_call_id="c2", name=text, status="error")]},
            {"__interrupt__": [text], "todo_subagents": [{"id": text}]},
        )
    )
    said = repr(ReportPage(folded, {"state": "running", "reason": None}, lambda one: one).values())
    assert key not in said
    assert password not in said
    assert said.count("https://…@example.org/") >= 9


def test_a_secret_at_the_cut_of_a_long_string_is_hidden_too() -> None:
    key = "sk-" + "a" * 40
    assert "sk-a" not in clean_text("x" * (MAX_TEXT - 12) + f" {key} " + "y" * 9000, lambda one: one)


@pytest.mark.parametrize(("texts", "room"), [(0, 20_000), (300, 20_000), (5_000, 1_200), (10**6, 1_000)])
def test_with_many_messages_each_has_less_room(texts: int, room: int) -> None:
    assert limit_per_text(texts) == room


@pytest.mark.parametrize(
    ("messages", "parts"), [(0, [0]), (1, [1]), (50, [50]), (51, [50, 1]), (120, [50, 50, 20])]
)
def test_a_browser_lays_the_conversation_out_in_parts(messages: int, parts: list[int]) -> None:
    assert [len(part) for part in split_messages([None] * messages)] == parts


@pytest.mark.parametrize(("more", "laid_out"), [(999, True), (1_000, False)])
def test_folded_parts_of_a_very_long_thread_are_as_written(more: int, laid_out: bool) -> None:
    texts = (f"**bold**{' x' * 400}", "**short**")
    said = [AIMessage(text, id=text[:5]) for text in texts]
    said += [AIMessage("", id=str(number)) for number in range(more - 1)]
    page = ReportPage(Timeline(past({"messages": said}, {})), {"state": "running"}, lambda one: one)
    long, short, *_ = page.values()["parts"][0]
    assert ("<strong>bold</strong>" in long["body"], "**bold**" in long["body"]) == (laid_out, not laid_out)
    assert "<strong>short</strong>" in short["body"]


@pytest.mark.parametrize(("more", "room"), [(0, 20_000), (1_999, 3_000)])
def test_a_long_string_is_cut_with_a_count(more: int, room: int) -> None:
    said = [HumanMessage("x" * 30_000, id="long"), *(HumanMessage("", id=str(n)) for n in range(more))]
    page = ReportPage(Timeline(past({"messages": said}, {})), {"state": "running"}, lambda one: one)
    told = page.values()["parts"][0][0]["body"]
    assert (told.count("x"), f"… and {30_000 - room:,} more characters" in told) == (room, True)


@pytest.mark.parametrize(
    "text",
    [
        "[here](https://evil.example)",
        "![x](https://evil.example/pixel.png)",
        "<https://evil.example>",
        "[a]: https://evil.example\n\n[a]",
        "<img src=https://evil.example>",
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
    ],
)
def test_markdown_has_no_links_and_loads_nothing(text: str) -> None:
    found: list[tuple[str, Any]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append((tag, attrs))  # type: ignore[method-assign]
    parser.feed(markdown_to_html(text))
    assert set(map(str, found)) == {"('p', [])"}
