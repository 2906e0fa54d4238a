"""A verifier that runs a command: exit code 0 accepts an item."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from wakeloop.text.characters import shorten
from wakeloop.todos.items import Todo
from wakeloop.tools.bounded_process import BoundedOutput
from wakeloop.tools.shell import run_command

# a name or an absolute path, not a relative path, an assignment or a function definition
PROGRAM_NAME = re.compile(r"\s*([A-Za-z][\w.+-]*|/[\w./+-]+)(?=\s+[^(\s]|\s*$)")
LOOK_UP_TIMEOUT = 10.0  # seconds; without an answer by then, the program counts as found
LONGEST = 10_000  # characters of an item in the environment, whose size is limited


def command_verifier(
    command: str, root: str | Path, *, timeout: float = 60, stop: Event | None = None
) -> Callable[[Todo, Any], str | None]:
    """Return a `verify` function that runs a command with `/bin/sh`: exit code 0 accepts the item.

    Otherwise the last line of its output that is not empty is the reason. The item is in the environment, as
    `WAKELOOP_TODO` (JSON), `WAKELOOP_TODO_ID` and `WAKELOOP_TODO_CONTENT`. It is not put into the command
    line, so write `"$WAKELOOP_TODO_CONTENT"`, in quotes. As with the tool `run_shell`, variables that look
    like secrets are left out of the environment, and the command is not sandboxed.

    Args:
        command: The command line.
        root: The folder in which it starts.
        timeout: Seconds after which it is killed with its process group, and the item refused.
        stop: When set, a running command is killed. That is not a verdict: the run stops as with Ctrl-C.

    Example:
        >>> verify = command_verifier("echo report.md is missing; false", ".")
        >>> verify({"id": 1, "content": "Write the report", "status": "in_progress"}, {})
        'report.md is missing'
    """
    ending = stop or Event()

    def verify(todo: Todo, state: Any) -> str | None:  # noqa: ARG001 - the signature of a verifier
        output = BoundedOutput(LONGEST)
        code = run_command(command, Path(root), timeout, output, ending, make_environment(todo))
        if ending.is_set():
            raise KeyboardInterrupt
        if code == 0:
            return None
        if code is None:
            return f"the check took longer than {timeout:g} s"
        last = next((line for line in reversed(output.render().splitlines()) if line.strip()), "")
        return shorten(last.strip(), 300) or f"the check ended with exit code {code}"

    return verify


def find_missing_program(command: str) -> str | None:
    """Return the program that a command line starts with, if `/bin/sh` does not find it; else None.

    A line that starts with anything but a name or an absolute path is not checked, since the agent may be
    about to write the script of a relative path. Nor is one that contains `||`.
    """
    begins = PROGRAM_NAME.match(command)
    if begins is None or "||" in command:
        return None
    name = begins.group(1)
    found = run_command(f"command -v {name}", Path(os.sep), LOOK_UP_TIMEOUT, BoundedOutput(LONGEST), Event())
    return None if found in (0, None) else name


def make_environment(todo: Todo) -> dict[str, str]:
    """Return an item's variables for a command. An environment cannot hold a NUL or a lone surrogate."""
    content = todo["content"].replace("\0", " ").encode(errors="replace").decode()[:LONGEST]
    item = json.dumps({**todo, "content": todo["content"][:LONGEST]})
    return {"WAKELOOP_TODO": item, "WAKELOOP_TODO_ID": str(todo["id"]), "WAKELOOP_TODO_CONTENT": content}
