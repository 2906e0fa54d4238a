"""The panel and `show`: exact HTML, drawn in place, printed plainly elsewhere."""

from __future__ import annotations

import asyncio
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from wakeloop import answer_of, create_todo_agent, session_of
from wakeloop.display import TodoPanel, show, views
from wakeloop.display.screen import Line
from wakeloop.display.views import MAX_LINES, REDRAW_SECONDS, VISIBLE_LINES
from wakeloop.errors import ArgumentError, EditError, InputError
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.plain_html import html_table

BLOCKED = "Blocked: 0 open, 1 completed, 1 blocked, 0 cancelled."
AT = {"configurable": {"thread_id": "t"}}
GO = {"messages": [("user", "go")]}
EVIL = "<img src=x onerror=alert(1)>\x1b[2J\u202e&"
TOLD = "&lt;img src=x onerror=alert(1)&gt;&amp;"  # codes that a terminal would obey are gone
DONE = [
    {"id": 1, "content": "a", "status": "completed"},
    {"id": 2, "content": EVIL, "status": "blocked", "reason": "no key"},
]
HEAD = ("id", "item", "status")


def look(at: str) -> str:
    """Look."""
    return f"{at}: nothing"


def asks(what: str) -> str:
    """Ask a person."""
    return str(interrupt({"question": f"may I {what}?", "on": "approval"}))


def script() -> list[Any]:
    return [
        calls(("todo_write", {"items": ["a", EVIL]})),
        calls(("look", {"at": "x"})),
        calls(("todo_update", {"id": 1, "status": "done"})),
        says("half"),
        calls(("todo_update", {"id": 2, "status": "blocked", "reason": "no key"})),
        says(f"end {EVIL}"),
    ]


def agent_of(replies: Any = None, **more: Any) -> Any:
    model = ScriptedModel(script() if replies is None else replies)
    return create_todo_agent(model, tools=[look, asks], checkpointer=InMemorySaver(), **more)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """A notebook cell as seen from here: each display with everything drawn in it."""
    places: list[list[Any]] = []

    def display(bundle: Any, *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        places.append([bundle])
        here = places[-1]

        def update(more: Any, *, raw: bool) -> None:
            assert raw
            here.append(more)

        return SimpleNamespace(update=update)

    module: Any = ModuleType("IPython")
    module.display, module.get_ipython = display, lambda: SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return places


def ticking(step: float) -> Any:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock


def timeless(line: str) -> str:
    """Return a line without the duration of its call."""
    return re.sub(r"\(\d+\.\d s\)$", "(0.0 s)", line)


# -- show ------------------------------------------------------------------------------------------------


def test_a_list() -> None:
    shown = show(DONE)
    assert shown.html == "<p>1/2 closed, 1 blocked</p>\n" + html_table(
        HEAD, [("1", "a", "✔ completed"), ("2", "<img src=x onerror=alert(1)>&", "■ blocked: no key")]
    )
    assert TOLD in shown.html
    assert "<img" not in shown.html
    assert str(shown) == repr(shown)
    assert str(shown).splitlines() == [
        "[x] 1 a",
        "[!] 2 <img src=x onerror=alert(1)>& (blocked: no key)",
        "list: 1/2 closed, 1 blocked",
    ]


@pytest.mark.parametrize(
    ("status", "more", "told"),
    [
        ("pending", {}, "○ pending"),
        ("in_progress", {}, "▸ in progress"),
        ("cancelled", {}, "– cancelled"),
        ("completed", {"evidence": "12 tests\npassed"}, "✔ completed: 12 tests passed"),
        ("odd", {}, "? odd"),
    ],
)
def test_the_status_of_an_item(status: str, more: dict[str, str], told: str) -> None:
    shown = show([{"id": 1, "content": "a", "status": status, **more}])
    assert shown.html.partition("\n")[2] == html_table(HEAD, [("1", "a", told)])


def test_an_empty_list_and_one_without_ids() -> None:
    assert show([]).html == "<p>The list is empty.</p>"
    assert str(show([])) == "The list is empty."
    assert str(show([{"content": "a", "status": "pending"}])) == "[ ] - a\nlist: 0/1 closed"


def test_a_session_and_a_result_and_a_snapshot() -> None:
    agent = agent_of()
    result = agent.invoke({**GO, "todo_goal": "<i>goal"}, AT)
    snapshot = agent.get_state(AT)
    told = show(session_of(snapshot))
    spent = session_of(snapshot)["spent"]
    tokens = spent["input"] + spent["output"]
    words = f"{BLOCKED} 1 wake, 6 requests, about {tokens:,} tokens."
    assert (told.html, str(told)) == (f"<p>{words}</p>", words)
    assert show(result) == show(snapshot)
    assert show(result).html == "\n".join(
        [
            "<p><b>&lt;i&gt;goal</b></p>",
            show(DONE).html,
            f"<p>{words}</p>",
            f'<pre style="white-space:pre-wrap">end {TOLD}</pre>',
        ]
    )
    assert str(show(result)).splitlines()[-2:] == [words, "model: end <img src=x onerror=alert(1)>&"]


@pytest.mark.parametrize("given", [3, "x", [1], [{"a": 1}], {"zzz": 1}, script()])
def test_anything_but_a_threads_data_is_refused(given: Any) -> None:
    with pytest.raises(ArgumentError, match="Expected a result, a state or a snapshot"):
        show(given)


# -- the panel in a notebook -----------------------------------------------------------------------------


def test_a_token_redraws_the_panel_without_its_list(
    cell: list[list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[int] = []
    whole = views.render_list_html

    def counted(todos: Any, bar: str = "") -> str:
        rendered.append(len(todos))
        return whole(todos, bar)

    monkeypatch.setattr(views, "render_list_html", counted)
    shown = TodoPanel(agent_of(), AT, clock=ticking(2 * REDRAW_SECONDS))
    shown.feed("values", {"todos": DONE})
    for word in ("a", "b", "c"):
        shown.feed("messages", (AIMessageChunk(word), {}))
    assert rendered == [0, 2]
    assert len(cell[0]) == 4
    shown.feed("values", {"todos": [DONE[0], {**DONE[1], "reason": "found it"}]})
    assert rendered == [0, 2, 2]
    assert "found it" in cell[0][-1]["text/html"]
    assert "found it" in cell[0][-1]["text/plain"]


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_panel_is_drawn_in_place(cell: list[list[Any]], door: str) -> None:
    panel = TodoPanel(agent_of(), AT, title=f"T{EVIL}", clock=ticking(REDRAW_SECONDS))

    async def in_a_cell() -> str:  # a loop is running, whatever the door
        return panel.run(GO) if door == "sync" else await panel.arun(GO)

    assert asyncio.run(in_a_cell()) == f"end {EVIL}"
    assert panel.answer == answer_of(panel.result) == f"end {EVIL}"
    assert len(cell) == 1
    first, *middle, last = [bundle["text/html"] for bundle in cell[0]]
    assert first.startswith(f"<div>\n<p><b>T{TOLD}</b></p>\n<p>The list is empty.</p>\n<p>At work: 0 wakes")
    seen = dict.fromkeys(html.partition(" closed")[0][-14:] for html in middle if " closed" in html)
    assert list(seen) == ["▱▱▱▱▱▱▱▱▱▱ 0/2", "▰▰▰▰▰▱▱▱▱▱ 1/2", "▰▰▰▰▰▰▰▰▰▰ 1/2"]
    html, status, events = last.partition("\n<p>Blocked")
    assert html == f"<div>\n<p><b>T{TOLD}</b></p>\n" + show(DONE).html.replace("<p>1/", "<p>▰▰▰▰▰▰▰▰▰▰ 1/", 1)
    assert status
    assert "<details><summary>6 events</summary><pre" in events
    told = map(timeless, events.splitlines())
    assert [line for line in told if line.startswith(("Auto", "model: half", "tool done"))] == [
        "tool done: look: x: nothing (0.0 s)",
        "model: half",
        "Auto-continuing (1/26): 1 incomplete todo remains",
    ]
    assert last == panel._repr_html_()
    assert "<img" not in "".join((first, *middle, last))
    assert cell[0][-1]["text/plain"] == str(panel)


def test_news_is_drawn_at_once_and_letters_only_as_often_as_an_eye_can_follow(cell: list[list[Any]]) -> None:
    fed = 0

    class Counting(TodoPanel):
        def feed(self, mode: str, data: Any) -> None:
            nonlocal fed
            fed += 1
            super().feed(mode, data)

    Counting(agent_of(), AT, clock=ticking(0)).run(GO)
    lists = [bundle["text/plain"].splitlines()[-2] for bundle in cell[0]]
    assert lists == [
        "The list is empty.",
        *["list: 0/2 closed"] * 3,  # written; a call; its result
        *["list: 1/2 closed"] * 3,  # closed; a reply; a wake
        *["list: 1/2 closed, 1 blocked"] * 3,  # blocked; a reply; the end
    ]
    fed = 0
    Counting(agent_of(), AT, clock=ticking(1)).run(GO)
    assert len(cell[1]) == fed + 2  # one at the beginning, one at the end


def test_a_drawing_during_a_run_looks_only_at_the_lines_that_it_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(views, "redact_text", lambda text: looked.append(text) or text)
    drawn = TodoPanel(agent_of(), AT)
    drawn.lines.extend(Line("tool", f"tool: {number}") for number in range(MAX_LINES))
    drawn.running = True
    told = drawn._repr_html_()
    assert re.findall(r"tool: (\d+)", told) == [
        str(number) for number in range(MAX_LINES - VISIBLE_LINES, MAX_LINES)
    ]
    assert len(looked) == VISIBLE_LINES + 1  # plus the streaming reply


def test_the_next_run_has_its_own_display_and_an_edit_is_drawn_in_the_last(cell: list[list[Any]]) -> None:
    panel = TodoPanel(agent_of([*script(), says("again")]), AT, clock=ticking(0))
    panel.run(GO)
    assert panel.run(GO) == "again"
    assert [len(place) for place in cell] == [10, 3]
    shown = panel.edit(add="<u>", reopen=2)
    assert [len(place) for place in cell] == [10, 4]
    assert cell[1][-1]["text/html"].startswith("<div>\n<p>▰▰▰▱▱▱▱▱▱▱ 1/3 closed</p>")
    assert "<p>Edited by hand since the last run.</p>" in cell[1][-1]["text/html"]
    assert str(shown).splitlines()[-2:] == ["[ ] 3 <u>", "list: 1/3 closed"]
    asyncio.run(panel.aedit(done=3))
    assert cell[1][-1]["text/html"].startswith("<div>\n<p>▰▰▰▰▰▰▱▱▱▱ 2/3 closed</p>")
    with pytest.raises(EditError, match="there is no item 9"):
        panel.edit(done=9)


def test_an_interrupted_run_leaves_its_list(cell: list[list[Any]]) -> None:
    panel = TodoPanel(agent_of([script()[0], KeyboardInterrupt()]), AT, clock=ticking(0))
    with pytest.raises(KeyboardInterrupt):
        panel.run(GO)
    assert "<p>The run broke off (KeyboardInterrupt). 0 wakes" in cell[0][-1]["text/html"]
    assert "▱▱▱▱▱▱▱▱▱▱ 0/2 closed" in cell[0][-1]["text/html"]
    panel = TodoPanel(agent_of(), AT)
    assert "Nothing has been run yet." in panel._repr_html_()


def test_a_callers_own_stream_reports_its_spending(cell: list[list[Any]]) -> None:
    agent = agent_of()
    panel = TodoPanel(agent, AT, clock=ticking(0))
    for mode, data in agent.stream(GO, AT, stream_mode=["custom", "updates"]):
        panel.feed(mode, data)
    assert len(cell) == 1
    shown = re.sub(r"about [\d,]+ tokens(.*) [\d.]+ s", r"T\1 S", cell[0][-1]["text/html"])
    assert f"<p>{BLOCKED} 1 wake, 6 requests, T, 1% of max_requests, S</p>" in shown


def test_a_failed_call_under_a_settled_list_is_reported(cell: list[list[Any]]) -> None:
    panel = TodoPanel(agent_of([calls(("look", {"to": "x"})), says("all is well")]), AT, clock=ticking(0))
    assert panel.run(GO) == "all is well"
    only_failed = "Answered without a list, and no call of a tool succeeded."
    assert panel.status.startswith(f"{only_failed} 1 call failed. 0 wakes, 2 requests, ")
    refused = calls(("todo_update", {"id": 9, "status": "done"}))
    panel = TodoPanel(agent_of([refused, says("all is well")]), AT, clock=ticking(0))
    panel.run(GO)
    assert panel.status.startswith(f"{only_failed} 0 wakes, 2 requests, ")


@pytest.mark.parametrize("door", ["notebook", "terminal"])
def test_a_refused_input_does_not_look_like_an_interrupted_run(
    cell: list[list[Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], door: str
) -> None:
    if door == "terminal":
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    panel = TodoPanel(agent_of(), AT, clock=ticking(0))
    with pytest.raises(InputError) as refused:
        panel.run({**GO, "todos": [{"content": "a", "status": "odd"}]})
    assert str(panel) == f"The list is empty.\n{refused.value}"
    assert [bundle["text/plain"].splitlines()[-1] for place in cell for bundle in place[1:]] == (
        [str(refused.value)] if door == "notebook" else []
    )
    assert capsys.readouterr().out == ""  # whoever runs it reads the error beneath


def test_nothing_that_looks_like_a_secret_is_stored_in_a_notebook(cell: list[list[Any]]) -> None:
    key = "sk-0123456789abcdef"
    agent = agent_of(
        [
            calls(("todo_write", {"items": [f"use {key}"]}), ("look", {"at": f"https://u:{key}@h"})),
            calls(("look", {"Cookie": "hunter2", "at": key})),
            calls(("asks", {"what": f"send {key}"})),
            says(f"I have sent {key}"),
            calls(("todo_update", {"id": 1, "status": "done"})),
            says(f"It was {key}"),
        ]
    )
    panel = TodoPanel(agent, AT, clock=ticking(0))
    panel.run(GO)
    shown = cell[0][-1]["text/html"]
    assert f"may I send {key}?" in shown  # whoever answers has to see it
    assert shown.count(key) == 1
    assert "hunter2" not in shown
    result = agent.invoke(Command(resume="yes"), AT)
    assert key not in f"{show(result).html}{show(result)}{show(result['todos'])}"
    assert answer_of(result) == f"It was {key}"


def test_a_question_is_shown_and_answered(cell: list[list[Any]]) -> None:
    agent = agent_of([calls(("asks", {"what": "<go>"})), says("I did")])
    panel = TodoPanel(agent, AT, clock=ticking(0))
    assert panel.run(GO) == ""
    shown = cell[0][-1]["text/html"]
    unfolded, _, folded = shown.partition("<details>")
    assert ("may I &lt;go&gt;?" in unfolded, "may I" in folded) == (True, False)
    assert "<p>Waiting for your answer. " in unfolded
    assert "may I <go>?" in str(panel)
    assert panel.run(Command(resume="yes")) == "I did"


# -- elsewhere -------------------------------------------------------------------------------------------


def test_outside_a_notebook_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    panel = TodoPanel(agent_of(), AT)
    panel.run(GO)
    *lines, end = map(timeless, capsys.readouterr().out.splitlines())
    assert lines == [
        "  [ ] 1 a",
        "  [ ] 2 <img src=x onerror=alert(1)>&",
        "list: 0/2 closed",
        'tool: look(at="x")',
        "tool done: look: x: nothing (0.0 s)",
        "  [x] 1 a",
        "list: 1/2 closed",
        "model: half",
        "Auto-continuing (1/26): 1 incomplete todo remains",
        "  [!] 2 <img src=x onerror=alert(1)>& (blocked: no key)",
        "list: 1/2 closed, 1 blocked",
        "model: end <img src=x onerror=alert(1)>&",
    ]
    assert end.startswith(f"{BLOCKED} 1 item blocked. 1 wake, 6 requests, about ")
    assert str(panel).splitlines()[:2] == ["[x] 1 a", "[!] 2 <img src=x onerror=alert(1)>& (blocked: no key)"]


def test_a_terminals_ipython_prints_too(
    cell: list[list[Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    TodoPanel(agent_of([says("x")]), AT).run(GO)
    assert cell == []
    assert capsys.readouterr().out.splitlines()[0] == "model: x"


def test_the_lists_own_tools_are_recognised_in_an_agent_with_the_middleware() -> None:
    agent = create_agent(ScriptedModel([]), middleware=[WakeLoopMiddleware()])
    assert TodoPanel(agent).screen.todo_tools == {"write_todos"}
