"""The screen and its two views, fed by real runs of a scripted model."""

from __future__ import annotations

import io
from itertools import count
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from wakeloop import LoopSettings, create_todo_agent
from wakeloop.display.live_view import LiveView, select_visible, supports_live_view
from wakeloop.display.screen import STREAM_MODES, Line, PlainView, RunningCall, Screen
from wakeloop.testing import ScriptedModel, calls, malformed_call, says

EVIL = "\x1b[31mred\x1b[0m [bold]markup[/bold] \u202edne\x07\x9b2J"
TODO_TOOLS = frozenset({"todo_write", "todo_update", "todo_list"})
GO = {"messages": [HumanMessage("go")]}


@tool
def look(where: str) -> str:
    """Look."""
    raise ValueError(f"nothing at {where}")


def show_run(*script: Any, view: Any = None, settings: Any = "wakeloop") -> tuple[list[Line], Screen]:
    agent = create_todo_agent(ScriptedModel(*script), [look], settings=settings)
    screen = Screen(todo_tools=TODO_TOOLS, clock=count(step=0.25).__next__)
    lines: list[Line] = []
    for mode, data in agent.stream(GO, stream_mode=list(STREAM_MODES)):
        lines += screen.feed(mode, data)
    return lines, screen


def test_a_run_as_lines() -> None:
    lines, screen = show_run(
        calls(("todo_write", {"items": ["a"]}), text="The plan."),
        says("stop"),
        calls(("look", {"where": "x"})),
        calls(("todo_update", {"id": 1, "status": "done"})),
        says("two\nlines"),
    )
    assert [line.text for line in lines] == [
        "model: The plan.",
        "  [ ] 1 a",
        "list: 0/1 closed",
        "model: stop",
        "Auto-continuing (1/25): 1 incomplete todo remains",
        'tool: look(where="x")',
        "tool error: look: ValueError: nothing at x (0.2 s)",
        "  [x] 1 a",
        "list: 1/1 closed",
        "model: two\n    lines",
    ]
    assert (screen.spent["requests"], screen.wakes, screen.running, screen.streamed) == (5, 1, {}, "")


def test_the_graphs_own_words_are_labelled() -> None:
    settings = LoopSettings(nag_after=1, on_guard_exhausted="block", max_wake_cycles=1)
    script = [
        calls(("todo_write", {"items": ["a"]})),
        calls(("look", {"where": "x"})),
        *[says("s")] * 3,
        says("because"),
    ]
    lines, _ = show_run(script, settings=settings)
    texts = [line.text for line in lines]
    assert "graph reminder: 1 round without a change to the list, 1 open" in texts
    asked = [text for text in texts if text.startswith("graph correction: the run would end (wake_budget)")]
    assert asked[0].endswith("bring the list up to date (1/1)")
    assert asked[1].endswith("explain in plain text what was not done")


def test_control_codes_and_markup_never_pass() -> None:
    script = [
        calls(("todo_write", {"items": [EVIL]}), text=EVIL),
        calls(("look", {"where": EVIL}), (EVIL, {EVIL: EVIL})),
        calls(malformed_call(EVIL, EVIL), ("todo_update", {"id": 1, "status": EVIL})),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": EVIL})),
        says(EVIL),
    ]
    lines, screen = show_run(script)
    out = io.StringIO()
    live = LiveView(screen, out)
    live.console.width, live.console.height = 60, 12
    screen.streamed, screen.running = "", {"1": RunningCall("x", None)}
    for line in lines:
        live.say(line)
    live.console.print(live.render(), end="")
    plain = PlainView(Screen(), io.StringIO())
    for line in lines:
        plain.say(line)
    for text in (out.getvalue(), plain.out.getvalue()):  # type: ignore[attr-defined]
        assert not set(text) & set("\x1b\x07\x9b\u202e"), text
        assert "[bold]markup[/bold]" in text
        assert text.count("markup") >= 6


def test_an_output_that_lacks_characters_gets_others() -> None:
    raw = io.BytesIO()
    view = PlainView(Screen(), io.TextIOWrapper(raw, encoding="ascii"))
    view.say(Line("model", "schön ✔"))
    assert raw.getvalue() == b"sch?n ?\n"
    assert not supports_live_view(io.TextIOWrapper(raw, encoding="ascii"))


def test_the_window_shows_the_item_in_progress() -> None:
    todos: Any = [
        {"id": n, "content": "x", "status": "completed" if n < 20 else "pending"} for n in range(40)
    ]
    assert [todo["id"] for todo in select_visible(todos, 4)] == [19, 20, 21, 22]
    assert [todo["id"] for todo in select_visible(todos[:22], 4)] == [18, 19, 20, 21]
    assert select_visible(todos[:3], 4) == todos[:3]
