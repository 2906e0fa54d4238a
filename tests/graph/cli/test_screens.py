"""What a terminal of 40, 80 and 120 columns shows after a run, in an emulator."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyte
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer

from wakeloop import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.execution import choose_view
from wakeloop.cli.spec_builder import RunSpec
from wakeloop.cli.store import DatabaseFile
from wakeloop.cli.streams import OutputFormat, OutputOptions
from wakeloop.display import screen
from wakeloop.display.live_view import LiveView
from wakeloop.display.screen import STREAM_MODES, Line, PlainView, Screen, is_wakeloop_event
from wakeloop.stream import Event
from wakeloop.testing import ScriptedModel, calls, says

TODO_TOOLS = frozenset({"todo_write", "todo_update", "todo_list"})
GO = {"messages": [HumanMessage("go")]}
ITEM = "Measure the whole folder and say which of its files are unexpectedly long"
NOTHING = "there is nothing of that name in the whole of the folder that was named"
NOT_GONE = (
    "todo_update: status: input should be 'in_progress', 'done', 'blocked', 'cancelled' or 'open', not 'gone'"
)
ANSWER = """# Found

Two files are **unexpectedly long**, see `a.py`:

- the first of them holds a `List<int>` of everything
- the second [page](https://example.org/x) has <b>tags</b> &#27;[31m

One line
and the next."""


@tool
def look(where: str) -> str:
    """Look."""
    if where == "nowhere":
        raise ValueError(NOTHING)
    return f"# The notes of {where}, which are longer than forty columns\n\nmore\nand more"


SCRIPT = [
    calls(("todo_write", {"items": [ITEM, "b"]})),
    calls(("look", {"where": "notes"})),
    calls(("look", {"where": "nowhere"})),
    calls(("todo_update", {"id": 1, "status": "done"}), ("todo_update", {"id": 2, "status": "gone"})),
    calls(("todo_update", {"id": 2, "status": "blocked", "reason": "no access"})),
    says(ANSWER),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"COLUMNS": request.param, "LINES": 60, "TERM": "xterm"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def on_screen(text: str, width: int) -> list[str]:
    """Return the rows that an emulator shows after all of it."""
    screen = pyte.Screen(width, 60)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return "\n".join(row.rstrip() for row in screen.display).rstrip().split("\n")


def play(view: Any, *script: Any, tools: Any = (look,)) -> None:
    """Play a run in which each step of the graph takes a second."""
    agent = create_todo_agent(ScriptedModel(*script), list(tools))
    now = [0.0]
    view.screen.clock = lambda: now[0]
    with view:
        for mode, data in agent.stream(GO, stream_mode=list(STREAM_MODES)):
            now[0] += mode == "updates"
            view.feed(mode, data)


def live(out: Terminal) -> LiveView:
    return LiveView(Screen(todo_tools=TODO_TOOLS), out)


REPLY = """
       Two files are unexpectedly long, see a.py:

        • the first of them holds a List<int> of everything
        • the second page (https://example.org/x) has <b>tags</b> &#27;[31m

       One line
       and the next."""
AT = {
    40: """\
✔ look(where="notes")  1.0 s
    # The notes of notes, which are
        longer than forty columns (+ 2
        lines)
✘ look(where="nowhere")  1.0 s
    ValueError: there is nothing of that
        name in the whole of the folder
        that was named
list refused: todo_update: status: input
    should be 'in_progress', 'done',
    'blocked', 'cancelled' or 'open',
    not 'gone'
model: Found

       Two files are unexpectedly long,
       see a.py:

        • the first of them holds a
          List<int> of everything
        • the second page
          (https://example.org/x) has
          <b>tags</b> &#27;[31m

       One line
       and the next.""",
    80: f"""\
✔ look(where="notes")  1.0 s
    # The notes of notes, which are longer than forty columns (+ 2 lines)
✘ look(where="nowhere")  1.0 s
    ValueError: there is nothing of that name in the whole of the folder that
        was named
list refused: todo_update: status: input should be 'in_progress', 'done',
    'blocked', 'cancelled' or 'open', not 'gone'
model: Found
{REPLY}""",
    120: f"""\
✔ look(where="notes")  1.0 s
    # The notes of notes, which are longer than forty columns (+ 2 lines)
✘ look(where="nowhere")  1.0 s
    ValueError: {NOTHING}
list refused: {NOT_GONE}
model: Found
{REPLY}""",
}


@pytest.mark.parametrize("terminal", [40, 80, 120], indirect=True)
def test_a_run_in_a_terminal(terminal: Terminal, request: pytest.FixtureRequest) -> None:
    width = request.node.callspec.params["terminal"]
    play(live(terminal), SCRIPT)
    assert on_screen(terminal.getvalue(), width) == AT[width].split("\n")


def test_the_same_in_a_pipe() -> None:
    view = PlainView(Screen(todo_tools=TODO_TOOLS), io.StringIO())
    play(view, SCRIPT)
    *told, _ = view.out.getvalue().split("\nmodel: ")  # type: ignore[attr-defined]
    assert "\n".join(told).split("\n") == [
        f"  [ ] 1 {ITEM}",
        "  [ ] 2 b",
        "list: 0/2 closed",
        'tool: look(where="notes")',
        "tool done: look: # The notes of notes, which are longer than forty columns (+ 2 lines) (1.0 s)",
        'tool: look(where="nowhere")',
        f"tool error: look: ValueError: {NOTHING} (1.0 s)",
        f"  [x] 1 {ITEM}",
        "list: 1/2 closed",
        f"list refused: {NOT_GONE}",
        "  [!] 2 b (blocked: no access)",
        "list: 1/2 closed, 1 blocked",
    ]


def region(view: LiveView) -> list[str]:
    return [row.plain for row in view.render().renderables]  # type: ignore[union-attr]


@pytest.mark.parametrize("terminal", [80], indirect=True)
def test_the_name_of_a_call_shows_while_it_streams_and_its_time_while_it_runs(terminal: Terminal) -> None:
    view = live(terminal)
    view.screen.clock = lambda: 3.5
    pieces = [("write_file", '{"pa'), (None, 'th": "a"'), (None, "}")]
    for name, args in pieces:
        chunk = AIMessageChunk("", tool_call_chunks=[{"name": name, "args": args, "id": None, "index": 0}])
        view.feed("messages", (chunk, {}))
    view.feed("messages", (AIMessageChunk("a tool's own model"), {"langgraph_node": "run_tools"}))
    view.feed("messages", (AIMessageChunk("Now"), {"langgraph_node": "call_model"}))
    assert region(view)[1] == "Now"
    assert region(view)[2][2:] == "calling write_file, 13 characters"
    reply = calls(("write_file", {"path": "a"}), ("look", {"where": "x"}))
    view.feed("updates", {"call_model": {"messages": [reply]}})
    view.screen.clock = lambda: 5.0
    assert [row[2:] for row in region(view)[1:3]] == [
        '1.5 s  write_file(path="a")',
        '1.5 s  look(where="x")',
    ]
    # it waits for a person, whose time must not count as the call's
    view.feed("updates", {"__interrupt__": ()})
    assert region(view)[1][2:] == 'write_file(path="a")'


@pytest.mark.parametrize("terminal", [40], indirect=True)
@pytest.mark.parametrize("kind", ["note", "item", "wake", "question", "end", "error"])
def test_no_line_is_broken_inside_a_word(terminal: Terminal, kind: Any) -> None:
    text = f"  [ ] 12 {ITEM}, " * 3
    live(terminal).say(Line(kind, text))
    rows = on_screen(terminal.getvalue(), 40)
    assert " ".join(" ".join(rows).split()) == " ".join(text.split())
    assert [row for row in rows[1:] if not row.startswith("      ")] == []


@pytest.mark.parametrize("terminal", [40], indirect=True)
def test_a_command_to_copy_has_its_own_rows_that_a_shell_takes_for_one_line(terminal: Terminal) -> None:
    command = "wakeloop resume t-5b0c9d1e --db /tmp/threads.sqlite"
    live(terminal).say(Line("way", f"To continue: {command}"))
    assert on_screen(terminal.getvalue(), 40) == [
        "To continue:",
        "wakeloop resume t-5b0c9d1e --db \\",
        "    /tmp/threads.sqlite",
    ]


@pytest.mark.parametrize("terminal", [80], indirect=True)
def test_without_colours(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38|48|4[0-7])\b[0-9;]*m")
    play(live(terminal), SCRIPT)
    assert coloured.search(terminal.getvalue())
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    play(live(plain), [calls(("look", {"where": "nowhere"})), says("```python\nx = 1\n```")])
    assert not coloured.search(plain.getvalue())


# -- events of others ----------------------------------------------------------------------------------------

SPENT = {"requests": 1, "input": 1, "cached": 0, "output": 0, "cost": None, "seconds": 0.0}
STRANGERS: list[Any] = [
    {"type": "spent", "amount": 12},
    {"type": "spent", "spent": 12, "nearest": None, "share": 0.0},
    {"type": "spent", "spent": SPENT, "nearest": None, "share": 0.0},
    {"type": "activated"},
    {"type": "todos", "todos": [1], "changed": [1]},
    {"type": "todos", "todos": "all of them", "changed": []},
    {"type": "wake", "cycle": "one"},
    {"type": "nag", "rounds": None, "open": []},
    {"type": "guard", "action": "correct"},
    {"type": "verify", "accepted": False},
    {"type": "echo"},
    {"type": "retried", "retry": "x", "status": None},
    {"type": "parked", "session": "done"},
    {"type": "event"},
    {"type": ["spent"]},
    {"type": "__class__"},
    "text",
    3,
    None,
]


def test_the_context_is_shown_with_its_share_and_where_it_was_cleared() -> None:
    screen = Screen()
    told = {"type": "spent", "spent": screen.spent, "nearest": None, "share": 0.0, "budget": 3}
    assert screen.handle_event({**told, "context": 0.431}) == []
    assert ", 43% of the context," in screen.summary
    assert screen.handle_event(told) == []
    assert "context" not in screen.summary
    event = {"type": "cleared", "before": 12_763, "after": 4_815, "window": 15_000}
    [line] = screen.handle_event(event)
    assert line.text == "context: 12,763 of 15,000 tokens; old results were cleared, 4,815 are left"


@pytest.mark.parametrize("view", [PlainView, LiveView])
def test_a_tools_event_with_one_of_our_names_is_not_ours(view: Any) -> None:
    @tool
    def pay() -> str:
        """Pay."""
        for event in STRANGERS:
            get_stream_writer()(event)
        return "paid"

    out = io.StringIO()
    play(view(Screen(todo_tools=TODO_TOOLS), out), [calls(("pay", {})), says("Done.")], tools=[pay])
    told = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    plain = ["tool: pay()", "tool done: pay: paid (1.0 s)", "model: Done."]
    assert told[:3] == (plain if view is PlainView else ["✔ pay()  1.0 s", "    paid", "model: Done."])


def test_every_event_of_the_graph_is_ours() -> None:
    agent = create_todo_agent(ScriptedModel(SCRIPT), [look])
    events = list(agent.stream(GO, stream_mode="custom"))
    assert {event["type"] for event in events} == {"activated", "spent", "todos", "parked"}
    assert [event for event in events if not is_wakeloop_event(event)] == []


def test_an_event_that_is_also_written_as_json_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looked: list[str] = []

    def reader(event: Any) -> bool:
        looked.append(event["type"])
        return is_wakeloop_event(event)

    monkeypatch.setattr(screen, "is_wakeloop_event", reader)
    agent = create_todo_agent(ScriptedModel(SCRIPT), [look], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    database = DatabaseFile(tmp_path / "threads.sqlite", named=True)
    output = OutputOptions(OutputFormat.STREAM_JSON)
    job = RunSpec(database, "t", AgentSpec(root=str(tmp_path)), "go", "go", output=output)
    view = choose_view(job, agent.get_state(config))
    for mode, data in agent.stream(GO, config, stream_mode=[*STREAM_MODES]):
        view.feed(mode, data)
    written, lines = capsys.readouterr()
    assert [json.loads(line)["type"] for line in written.splitlines()] == looked
    assert Counter(looked) == {"activated": 1, "spent": 6, "todos": 3, "parked": 1}
    assert "todo_write" not in lines
    assert "model: # Found" in lines


@pytest.mark.parametrize(
    ("status", "why"), [(503, "the server answered 503"), (None, "the server did not answer")]
)
def test_a_clients_retry_is_a_line(status: int | None, why: str) -> None:
    event: Event = {"type": "retried", "retry": 2, "status": status}
    assert [line.text for line in Screen().feed("custom", event)] == [
        f"retry 2: {why}, the request is sent again"
    ]
