"""No view writes what a terminal obeys, and none can be made to lie."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from processes import PROGRAM, run_python

from wakeloop import create_todo_agent
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.questions import format_question_value
from wakeloop.cli.show import format_message
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.display.live_view import LiveView
from wakeloop.display.screen import Line, PlainView, Screen
from wakeloop.display.terminal_output import clean_line, indent_continuation, strip_controls
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.characters import escape_invisible
from wakeloop.tools.shell import approval_request

CODES = [
    "\x1b[2J", "\x1b]8;;http://evil\x07link\x1b]8;;\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x1b\\",
    "\x1bc", "\x1bP1$r\x1b\\", "\x9b2J", "\x9d52;c;x\x9c", "\x90x\x9c", "\r", "\x08\x08", "\x07", "\x7f",
    "\x00", "\x0e", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u061c", "\u200f", "\u200b", "\u2060",
    "\ufeff", "\u00ad", "\ufffa", "\U000e0041", "\ud800", "\v", "\f",
]  # fmt: skip
EVIL = "".join(f"a{code}b" for code in CODES) + "\n  [x] 1 forged\nlist: 9/9 closed\n  result of x: forged"
OBEYED = set("".join(map(chr, [*range(9), *range(11, 32), *range(0x7F, 0xA0)])))
OBEYED |= set("\u2028\u2029\u202e\u2066\u061c")
OBEYED |= set("\u200f\u200b\u2060\ufeff\u00ad\ufffa\U000e0041\ud800")


@pytest.mark.parametrize("code", CODES, ids=ascii)
@pytest.mark.parametrize("way", [strip_controls, clean_line, indent_continuation, escape_invisible])
def test_no_code_passes(way: Any, code: str) -> None:
    assert not OBEYED & set(way(f"a{code}b{code}"))


def test_letters_that_need_joiners_keep_them() -> None:
    for text in ("👩\u200d💻", "\u0645\u06cc\u200c\u062e\u0648", "tab\there", "é", "漢字"):
        assert strip_controls(text) == text


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A thread in which every string is evil."""
    path = tmp_path / "db"
    script = [
        calls(("todo_write", {"items": [EVIL, "b"]}), text=EVIL),
        calls((EVIL, {EVIL: EVIL}), ("todo_update", {"id": EVIL, "status": "done"})),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": EVIL})),
        *[says(EVIL)] * 7,
    ]
    given: Any = {
        "messages": [("user", EVIL)],
        "todo_goal": EVIL,
        "todo_inbox": [{"kind": "peer_message", "id": "1", "sender": EVIL, "text": EVIL}],
        "todo_settings": {"continuation_prompt": EVIL.replace("$", "")},
    }
    with open_to_write(DatabaseFile(path, named=True)) as store:
        agent = create_todo_agent(ScriptedModel(script), checkpointer=store.saver)
        agent.invoke(given, {"configurable": {"thread_id": "t"}})
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["threads"],
        ["show", "t"],
        ["show", "t", "--history"],
        ["todo", "t", "list"],
        ["todo", "t", "edit", "1", "x\x1b[2J\u202e"],
        ["todo", "t", "\x1b[2J"],
        ["todo", "t", "done", "\x1b]0;x\x07"],
        ["show", "\x1b[2J"],
        ["config", "--thread", "t"],
        ["resume", "t", "--model", "\x1b[2J\u202e:x"],
        ["run", "x", "--root", "/nowhere\x1b[2J"],
        ["run", "x", "--set", "a\x1b[2J=5", "--model", "m"],
        ["demo", "/nowhere\x1b[2J"],
    ],
    ids=ascii,
)
def test_no_command_writes_what_a_terminal_obeys(db: Path, command: list[str]) -> None:
    done = run_python(*PROGRAM, *command, "--db", db)
    assert not OBEYED & set(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout + done.stderr


@pytest.mark.parametrize("command", [["threads"], ["show", "t", "--history"], ["config", "--thread", "t"]])
def test_json_is_valid_and_escaped(db: Path, command: list[str]) -> None:
    done = run_python(*PROGRAM, *command, "--json", "--db", db)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout, parse_constant=pytest.fail)
    assert set(done.stdout) <= {chr(code) for code in range(32, 127)} | {"\n"}
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (float("nan"), None),
        ({"a": [float("inf"), 1.5]}, {"a": [None, 1.5]}),
        ({(1, 2): 3}, {"(1, 2)": 3}),
        ("\x7f\x1b\u202e", "\x7f\x1b\u202e"),
        ({"x": {1}}, {"x": "{1}"}),
        (Path("a"), "a"),
    ],
)
def test_json_of_anything(value: Any, read: Any) -> None:
    text = to_json_line(value)
    assert json.loads(text, parse_constant=pytest.fail) == read
    assert text.isprintable()
    assert text.isascii()


def test_json_of_values_too_deep_or_recursive() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert to_json_line(ring) == "[" * 64 + '"<list>"' + "]" * 64


def test_no_line_of_a_text_passes_for_one_of_the_views() -> None:
    outputs = []
    for view in (PlainView(Screen(), io.StringIO()), LiveView(Screen(), io.StringIO())):
        script = [calls(("todo_write", {"items": [EVIL]})), *[says(EVIL)] * 7]
        agent = create_todo_agent(ScriptedModel(script))
        with view:
            for mode, data in agent.stream({"messages": [("user", EVIL)]}, stream_mode=["custom", "updates"]):
                view.feed(mode, data)
        out: Any = view.out if isinstance(view, PlainView) else view.console.file
        outputs.append(out.getvalue())
    for output, deep in zip(outputs, (4, 7), strict=True):
        lines = [line.rstrip() for line in output.splitlines()]
        assert " " * deep + "list: 9/9 closed" in lines
        assert not [line for line in lines if line.startswith(("  [x]", "list: 9/9", "  result"))]


def test_history_sets_texts_apart() -> None:
    reply = calls(("x", {}), text=EVIL)
    lines = "\n".join(format_message(reply)).split("\n")
    assert [line for line in lines if not line.startswith("    ")] == [lines[0], "  call: x()"]


# -- what a person is asked about ----------------------------------------------------------------------------

UNSEEN = "shown as \\x.. or \\u....)"


def lines_of_question(command: str) -> list[str]:
    """Return the lines in which a plain terminal asks for permission to run a command."""
    out = io.StringIO()
    view = PlainView(Screen(), out)
    for line in format_question_value(approval_request(command)):
        view.say(line)
    return out.getvalue().split("\n")[:-1]


@pytest.mark.parametrize(
    "code", [*CODES, "\u00a0", "\u3000", "\t", "\u2062", "\U000e0020", "\ue000"], ids=ascii
)
def test_a_command_shows_every_invisible_character(code: str) -> None:
    lines = lines_of_question(f"echo a{code}b")
    unseen = [one for one in code if not one.isprintable()]
    spelled = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in code)
    count = "1 invisible character," if len(unseen) == 1 else f"{len(unseen)} invisible characters,"
    assert lines == [
        "question: Run this command?",
        "question:   tool: run_shell",
        f"question:   command: echo a{spelled}b",
        f"question:   | ({count} {UNSEEN}",
        "y for yes, or n and your reason for no:",
    ]


def test_a_long_command_is_shown_whole_and_measured() -> None:
    long = "x" * 100_000
    assert lines_of_question(long)[2:-1] == [
        f"question:   command: {long}",
        "question:   | (1 line, 100,000 characters; all above)",
    ]
    many = "\n".join("ls" for _ in range(500))
    lines = lines_of_question(many)
    assert len(lines) == 504
    assert lines[-2] == "question:   | (500 lines, 1,499 characters; all above)"
    out = io.StringIO()
    live = LiveView(Screen(), out)
    for line in format_question_value({"question": "Run?", "command": long}):
        live.say(line)
    assert out.getvalue().count("x") == 100_000


def test_a_line_is_clean_whoever_makes_it() -> None:
    assert not OBEYED & set(Line("note", EVIL).text)
