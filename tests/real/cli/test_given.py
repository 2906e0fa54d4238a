"""The user's own list and check: run --todos FILE, --verify COMMAND, and what is kept of them."""

from __future__ import annotations

import json
import re

import pytest
from chat_server import Reply
from processes import Shell

pytestmark = pytest.mark.loopback

BYE = Reply("All done.")


def done(key: int) -> Reply:
    return Reply(calls=[("todo_update", {"id": key, "status": "done"})])


def user_messages(request: dict[str, object]) -> list[str]:
    """Return the user's messages of a request."""
    return [m["content"] for m in request["messages"] if m["role"] == "user"]  # type: ignore[attr-defined]


def test_a_list_from_a_file_is_shown_and_worked_through(shell: Shell, serve) -> None:
    server = serve(done(1), done(2), BYE)
    (shell.folder / "list.txt").write_text("look\n\nwrite\n")
    ran = shell("run", "go", "--todos", "list.txt", "--model", "small", "--base-url", server.url, "--json")
    final = json.loads(ran.stdout)
    assert (ran.returncode, len(server.requests)) == (0, 3)
    assert [(t["content"], t["status"]) for t in final["todos"]] == [
        ("look", "completed"),
        ("write", "completed"),
    ]
    words, listing = user_messages(server.requests[0])
    assert words == "go"
    assert listing.endswith("\n\n  [1] look\n  [2] write")


def test_an_invalid_list_is_refused_before_anything_is_written(shell: Shell, serve) -> None:
    server = serve()
    ran = shell("run", "go", "--todos", "none.txt", "--model", "small", "--base-url", server.url)
    assert ran.returncode == 2
    assert "Cannot read the file 'none.txt' of --todos" in ran.stderr
    assert not shell.db.exists()


@pytest.mark.slow
def test_a_command_checks_each_item_and_after_a_resume_too(shell: Shell, serve) -> None:
    server = serve(done(1), Reply("Not yet."), done(1), BYE, done(1), done(2), BYE)
    (shell.folder / "list.json").write_text('["$(touch hit)", "write"]')
    check = 'echo "there is no $WAKELOOP_TODO_ID"; test -e "$WAKELOOP_TODO_ID"'
    ran = shell(
        "run", "go", "--todos", "list.json", "--verify", check, "--root", ".", "--set", "max_wake_cycles=1",
        "--set", "guard_retries=0", "--model", "small", "--base-url", server.url,
    )  # fmt: skip
    assert ran.returncode == 3
    assert "not accepted: 1 $(touch hit): there is no 1" in ran.stdout
    assert not (shell.folder / "hit").exists()
    (shell.folder / "2").touch()
    thread = re.search(r"\bt-[0-9a-f]{8}", ran.stdout)
    assert thread
    again = shell("resume", thread.group(), "keep going", "--json")
    final = json.loads(again.stdout)
    assert [(t["id"], t["status"]) for t in final["todos"]] == [(1, "blocked"), (2, "completed")]
    assert (again.returncode, final["session"]["reason"]) == (3, "blocked")  # the verifier refused an item


@pytest.mark.parametrize("wrong", ["", " "])
def test_an_invalid_check_is_refused(shell: Shell, wrong: str) -> None:
    ran = shell("run", "go", "--verify", wrong, "--model", "small")
    assert ran.returncode == 2
    assert "--verify expects a command" in ran.stderr


def test_a_missing_check_is_refused(shell: Shell) -> None:
    ran = shell("run", "go", "--verify", "nosuchprogram --strict", "--model", "small")
    assert ran.returncode == 2
    assert "/bin/sh does not find 'nosuchprogram', the program of --verify" in ran.stderr
