"""The plan on the command line: shown, approved, edited, refused; in run, resume and chat."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply
from processes import Shell
from test_typed_ahead import PROMPT, ends, start

__all__ = ["start"]
pytestmark = [
    pytest.mark.loopback,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
WRITE = Reply(calls=[("todo_write", {"items": ["look\naround", "leave"]})])
BYE = Reply("All done.")
HINT = "y takes the list, e edits it"


def closes(*keys: int) -> Reply:
    return Reply(calls=[("todo_update", {"id": key, "status": "done"}) for key in keys])


def options(server: Any) -> list[str]:
    return ["--model", "m", "--base-url", server.url, "--set", "approve_plan=first"]


def todos(shell: Shell) -> list[Any]:
    final = json.loads(shell("show", "t", "--json").stdout)
    return [(todo["id"], todo["content"], todo["status"]) for todo in final["todos"]]


def sent(server: Any) -> str:
    return str(server.requests[-1]["messages"][-1]["content"])


def test_a_script_is_shown_the_list_and_accepts_it(shell: Shell, serve: Any) -> None:
    server = serve(WRITE, closes(1, 2), BYE)
    ran = shell.folder / "verified"
    verify = ["--verify", f"echo x >> {ran}"]
    parked = shell("run", "go", "--thread", "t", *options(server), *verify)
    assert parked.returncode == 4
    told = [line for line in parked.stdout.splitlines() if line.startswith("question: ")]
    assert told == [
        "question: Continue with this list?",
        "question:   [ ] 1 look",
        "question:   | around",
        "question:   [ ] 2 leave",
    ]
    assert (len(server.requests), ran.exists()) == (1, False)
    assert "question:   [ ] 2 leave" in shell("show", "t").stdout
    assert shell("resume", "t", "y").returncode == 0
    assert (len(server.requests), ran.read_text()) == (3, "x\nx\n")


@pytest.mark.slow
def test_a_script_edits_with_a_json_decision_and_refuses_in_words(shell: Shell, serve: Any) -> None:
    server = serve(WRITE, WRITE, closes(3), BYE)
    assert shell("run", "go", "--thread", "t", *options(server)).returncode == 4
    assert shell("resume", "t", "Shorter, please.").returncode == 4
    assert 'They said: "Shorter, please."' in sent(server)
    wrong = shell("resume", "t", '{"type": "edit"}')
    assert wrong.returncode == 4
    assert "question: The answer was not accepted: a decision to edit needs edited_action" in wrong.stdout
    edit = {"type": "edit", "edited_action": {"name": "approve_plan", "args": {"todos": ["only this"]}}}
    assert shell("resume", "t", json.dumps({"decisions": [edit]})).returncode == 0
    assert todos(shell) == [(3, "only this", "completed")]
    assert len(server.requests) == 4


def editor(folder: Path, script: str) -> str:
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_in_a_terminal_e_opens_the_editor(start: Any, serve: Any, shell: Shell, tmp_path: Path) -> None:
    server = serve(WRITE, closes(1, 3), BYE)
    shell.env["EDITOR"] = editor(tmp_path, 'cp "$1" seen; sed -i "s/^.2. leave/[9] fresh/" "$1"')
    child = start("run", "go", "--thread", "t", *options(server))
    child.expect(HINT)
    child.send("e\n")
    assert ends(child) == 0
    assert (shell.folder / "seen").read_text().splitlines()[2:] == ["[1] look\\naround", "[2] leave"]
    assert todos(shell) == [(1, "look\naround", "completed"), (3, "[9] fresh", "completed")]
    assert len(server.requests) == 3


def test_an_editor_that_fails_or_empties_the_list_changes_nothing(
    start: Any, serve: Any, shell: Shell, tmp_path: Path
) -> None:
    server = serve(WRITE, closes(1, 2), BYE)
    once = shell.folder / "once"
    shell.env["EDITOR"] = editor(tmp_path, f'if mkdir {once} 2>/dev/null; then exit 3; fi; : > "$1"')
    child = start("run", "go", "--thread", "t", *options(server))
    child.expect(HINT)
    child.send("e\n")
    child.expect(r"code\s+3:")
    child.expect(HINT)
    child.send("e\n")
    child.expect(HINT)
    child.send("y\n")
    assert ends(child) == 0
    assert todos(shell) == [(1, "look\naround", "completed"), (2, "leave", "completed")]


@pytest.mark.slow
def test_the_chat_shows_the_list_and_edits_it(start: Any, serve: Any, shell: Shell, tmp_path: Path) -> None:
    server = serve(WRITE, closes(2), BYE)
    asks = 'stty -a | grep -q " echo " && echo "Which line?"; read -r word; sed -i "/$word/d" "$1"'
    shell.env["EDITOR"] = editor(tmp_path, asks)
    child = start("chat", "--thread", "t", *options(server))
    child.expect(PROMPT)
    child.send("go\r")
    child.expect(HINT)
    child.expect(PROMPT)
    time.sleep(0.5)
    child.send("e\r")
    child.expect("Which line?")  # the editor has the terminal to itself, as it was
    child.send("look\r")
    child.expect("model: All done.")
    child.expect(PROMPT)
    child.send(".exit\r")
    assert ends(child) == 0
    assert todos(shell) == [(2, "leave", "completed")]


def test_a_chat_of_a_script_answers_line_by_line(shell: Shell, serve: Any) -> None:
    server = serve(WRITE, closes(1, 2), BYE)
    done = shell("chat", "--thread", "t", *options(server), typed="go\ny\n")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 3
