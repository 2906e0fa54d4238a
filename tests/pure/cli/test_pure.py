"""Parts without IO: options, specs, sentences, words."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot

from wakeloop.cli.agent_spec import AgentSpec, parse_setting, parse_tools, strip_credentials
from wakeloop.cli.failures import CommandError, error_exit_code, format_error
from wakeloop.cli.final_state import closing_lines, exit_code
from wakeloop.cli.questions import format_item, parse_plan
from wakeloop.cli.sessions.commands import format_status
from wakeloop.cli.show import format_message, format_table, message_as_json, summarize_thread
from wakeloop.cli.spec_builder import build_spec
from wakeloop.cli.store import DatabaseFile, ThreadRecord
from wakeloop.cli.stored_state import StoredState
from wakeloop.config.levels import Level
from wakeloop.display.formatting import (
    SENTENCES,
    format_elapsed,
    format_ending,
    format_interrupt,
    format_waiting,
)
from wakeloop.display.terminal_output import clean_line, strip_controls
from wakeloop.display.views import format_session
from wakeloop.sessions import SessionStatus
from wakeloop.stream import Session
from wakeloop.text.characters import escape_invisible


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=true", True),
        ("k=3", 3),
        ("k=null", None),
        ("k=~", None),
        ("k=False", False),
        ("k=0.5", 0.5),
        ("k=some text", "some text"),
        ('k="3"', "3"),
        ('k={"nag": "x"}', {"nag": "x"}),
        ("k=a=b", "a=b"),
        ("k=", ""),
        ("k=[1", "[1"),
        ("k=" + "[" * 100_000, "[" * 100_000),
    ],
)
def test_settings_are_read_as_scalars(text: str, value: object) -> None:
    assert parse_setting(text) == ("k", value)


def test_tools() -> None:
    assert parse_tools("files, shell,files") == ("files", "shell")
    assert parse_tools("none") == ()
    assert parse_tools("") == ()


def test_a_recipe_survives_and_keeps_no_password() -> None:
    spec = AgentSpec(
        model="m", base_url="http://me:pw@host:1/v1", settings={"nag_after": 1}, tools=("files",)
    )
    read = AgentSpec.from_json(spec.to_json())
    assert read.base_url == "http://host:1/v1"
    assert AgentSpec.from_json('{"model": "m", "of the future": 1}').model == "m"
    assert strip_credentials("http://host/v1?x=1") == "http://host/v1?x=1"


def test_a_password_in_the_environment_is_back_at_a_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_CONFIG", "/nowhere")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pw@host:1/v1")
    begun = build_spec(None, {"model": "m"})
    kept = AgentSpec.from_json(begun.to_json())
    assert kept is not None
    assert (kept.base_url, build_spec(kept, {}).base_url) == ("http://host:1/v1", begun.base_url)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pw@other:1/v1")
    assert build_spec(kept, {}).base_url == "http://host:1/v1"


@pytest.mark.parametrize(
    "more",
    [
        *(
            {"model": {"v": 2}},
            {"settings": []},
            {"tools": "files"},
            {"tools": [1]},
            {"demo": "yes"},
            {"mcp": 1},
        ),
        *({"levels": ["x"]}, {"levels": [{"values": 1}]}, {"delay": None}),
    ],
    ids=str,
)
def test_a_recipe_of_another_version_is_ignored(more: dict[str, Any]) -> None:
    levels = [Level("global", "x", {"max_items": 1})]
    spec = AgentSpec(model="m", demo=True, delay=0.5, mcp="x", levels=levels, settings={"max_items": 1})
    whole = json.loads(spec.to_json())
    read = AgentSpec.from_json(json.dumps(whole))
    assert read is not None
    assert json.loads(read.to_json()) == whole
    assert AgentSpec.from_json(json.dumps({**whole, **more})) is None


def test_every_exception_becomes_a_sentence() -> None:
    assert (
        format_error(sqlite3.OperationalError("disk I/O error"))
        == "The database cannot be used: disk I/O error."
    )
    assert format_error(ValueError("a\nb")) == "The run failed: ValueError: a b"
    assert format_error(FileNotFoundError(2, "No such file", "x")) == "No such file: x."
    assert error_exit_code(CommandError("x", 4)) == 4


@pytest.mark.parametrize("reason", list(SENTENCES))
def test_every_reason_has_a_sentence(reason: str) -> None:
    for session in ({"open": 2, "budget": 25}, {"open": 0}):
        assert format_ending({"state": "idle", "reason": reason, **session}).endswith(".")


def test_a_run_that_broke_off_is_reported_even_with_quiet() -> None:
    """With --quiet, lines about success are left out."""
    values = {"todo_session": {"state": "running", "reason": None}, "todos": []}
    snapshot = StateSnapshot(values, (), {}, *[None] * 3, (), ())
    first = closing_lines(snapshot, "t", DatabaseFile.of(None), "", whole=False)[0]
    assert (first.kind, first.text) == ("end", "The run has not finished; 0 open.")


@pytest.mark.parametrize("state", ["running", "idle", "failed", "cancelled", "dormant"])
def test_an_unfinished_run_says_how_to_continue(state: str) -> None:
    values = {"todo_session": {"state": state, "reason": state}, "todos": []}
    snapshot = StateSnapshot(values, (), {}, *[None] * 3, (), ())
    ways = [line.text for line in closing_lines(snapshot, "t", DatabaseFile.of(None), "", whole=False)]
    assert ("To continue: wakeloop resume t" in ways) == (state != "dormant")


def test_an_unknown_reason_is_named() -> None:
    assert format_ending({"reason": "new one", "open": 1}) == "Ended: new one; 1 open."
    assert format_ending({"reason": "{odd}", "open": 1}) == "Ended: {odd}; 1 open."


ODD = [None, -1, 1e300, float("nan"), "x", "\x1b[2J", [1], {"a": 1}, True, 2**80]
WAITING = {"state": "waiting", "reason": "waiting", "open": 1, "wakes": 1, "budget": 5, "on": "limit"}


@pytest.mark.parametrize("key", Session.__annotations__)
def test_a_session_that_no_run_wrote_can_be_shown(key: str) -> None:
    for odd in ODD:
        values = {"todo_session": {**WAITING, "until": 2e9, key: odd}, "todos": []}
        assert format_session(values["todo_session"]).isprintable()
        status = SessionStatus.from_snapshot("t", "t", StateSnapshot(values, (), {}, *[None] * 3, (), ()))
        assert format_status(status).isprintable()
        row = summarize_thread(
            ThreadRecord("t", None, "go"), StoredState(values), DatabaseFile.of(None), live=False
        )
        lines = [*format_table([{**row, "sent": 0}]), *format_waiting(row)]
        assert all(map(str.isprintable, lines))


BOUNDED = ("looping", "request_budget", "token_budget", "cost_budget", "time_budget")
LEFT = (("idle", 2, 3), ("dormant", 0, 1))


@pytest.mark.parametrize(
    ("state", "reason", "open_items", "code"),
    [
        ("dormant", "settled", 0, 0),
        ("idle", "stalled", 1, 3),
        ("waiting", "interrupted", 1, 4),
        ("waiting", "waiting", 0, 4),
        ("dormant", "empty_reply", 0, 1),
        ("dormant", "truncated", 0, 1),
        ("idle", "truncated", 2, 3),
        ("dormant", "handed_over", 0, 1),
        ("running", None, 1, 1),
        ("dormant", "malformed_calls", 0, 1),
        ("dormant", "step_limit", 0, 1),
        ("dormant", "refused", 0, 1),
        ("idle", "refused", 2, 1),
        *((state, reason, left, code) for reason in BOUNDED for state, left, code in LEFT),
    ],
)
def test_exit_codes(state: str, reason: str | None, open_items: int, code: int) -> None:
    session = {"state": state, "reason": reason, "open": open_items}
    assert exit_code(session) == code
    assert exit_code(session, 2) == 130
    assert exit_code(session, 15) == 143


EVIL = (
    "a\x1b[31mb\x1b[0m\x1b]0;title\x07c\x9b2Jd\x9d0;x\x9ce\u202ef\u2066g\x00h\x7fi\x85j\rk\r\nl\tm"
    "\ud800n\x1bPq\x1b\\o"
)


def test_nothing_that_a_terminal_would_obey_is_left() -> None:
    assert strip_controls(EVIL) == "abcdefghi\nj\nk\nl\tmno"
    assert clean_line("a \n b", 3) == "a b"
    assert clean_line("abcdef", 4) == "abc…"
    assert escape_invisible("rm x\x1b[8m") == "rm x\\x1b[8m"
    assert "\u202e" not in escape_invisible("\u202e")
    assert escape_invisible("seen\n\nun\u200bseen\r\n") == "seen\n\nun\\u200bseen\\r\n"
    assert strip_controls("\x1b[" + "1" * 5000) == "[" + "1" * 5000


def test_questions_hide_nothing() -> None:
    unseen = "(1 invisible character, shown as \\x.. or \\u....)"
    assert format_interrupt("a\nb\x1b") == ["a", "b\\x1b", unseen]
    told = ["Run?", "  command: x\\ry", f"  | {unseen}", "  to: a", "  | b"]
    assert format_interrupt({"question": "Run?", "command": "x\ry", "to": "a\nb"}) == told
    action: Any = {"name": "send", "args": {"to": "a", "text": "x\ry"}, "description": "Send it?", "more": 1}
    asked: Any = {"action_requests": [action], "review_configs": [], "on": "approval", "note": "b"}
    told = ["Send it?", "  tool: send", "  more: 1", "  to: a", "  text: x\\ry", f"  | {unseen}", "  note: b"]
    assert format_interrupt(asked) == told
    assert format_interrupt([1, 2]) == ["[1, 2]"]
    assert format_interrupt({}) == ["{}"]


def test_a_plan_is_shown_item_by_item() -> None:
    forged = {"id": 1, "content": "a\n[2] harmless", "status": "pending"}
    held = {"id": "x", "content": "b\x1b", "status": "blocked", "reason": "no key"}
    args: dict[str, Any] = {"todos": [forged, held]}
    action: Any = {"name": "approve_plan", "args": args, "description": "Go on?"}
    asked: Any = {"action_requests": [action], "review_configs": [], "on": "approval"}
    unseen = "(1 invisible character, shown as \\x.. or \\u....)"
    lines = ["  [ ] 1 a", "  | [2] harmless", "  [!] x b\\x1b (no key)", f"  | {unseen}"]
    assert format_interrupt(asked) == ["Continue with this list?", *lines]
    again = {**asked, "error": "No list.", "goal": "g"}
    assert format_interrupt(again) == ["No list.", "Continue with this list?", *lines, "  goal: g"]
    args["more"] = "hidden?"
    assert "  more: hidden?" in format_interrupt(asked)


def test_lines_from_an_editor_become_a_list() -> None:
    todos = [
        {"id": 1, "content": "a\nb", "status": "in_progress"},
        {"id": 2, "content": "c", "status": "pending", "reason": "r"},
        {"id": "x", "content": "d", "status": "pending"},
    ]
    assert [format_item(todo) for todo in todos] == ["[1] a\\nb", "[2] c", "[x] d"]
    assert parse_plan("# head\n[2] c, rather\n\n[1] a\\nb\nnew\n[9] nine\n[2] twice\n", todos) == [
        {"id": 2, "content": "c, rather", "status": "pending", "reason": "r"},
        todos[0],
        {"content": "new"},
        {"content": "[9] nine"},
        {"content": "[2] twice"},
    ]


def test_times() -> None:
    assert [format_elapsed(s) for s in (4.26, 65, 7500)] == ["4.3 s", "1 min 05 s", "2 h 05 min"]


@pytest.mark.parametrize(
    ("extra", "line", "source"),
    [
        ({"lc_source": "summarization"}, "added by summarization: so far", "summarization"),
        ({"lc_source": "a\nuser: b"}, "added by a user: b: so far", "a\nuser: b"),
        ({"lc_source": " "}, "user: so far", None),
        ({}, "user: so far", None),
    ],
)
def test_messages_of_others_are_labelled_with_their_name(
    extra: dict[str, str], line: str, source: str | None
) -> None:
    message = HumanMessage("so far", additional_kwargs=extra)
    assert list(format_message(message)) == [line]
    assert message_as_json(message).get("source") == source
