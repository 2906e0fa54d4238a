"""A verifier by a command: exit code 0 accepts an item."""

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

PROGRAM_NAME = re.compile(r"\s*([A-Za-z][\w.+-]*)(?=\s+[^(\s]|\s*$)")  # no path, assignment or function
LOOK_UP_TIMEOUT = 10.0  # seconds; without an answer by then the name counts as known
LONGEST = 10_000  # characters of an item that stand in the environment; a text there is bounded


def command_verifier(
    command: str, root: str | Path, *, timeout: float = 60, stop: Event | None = None
) -> Callable[[Todo, Any], str | None]:
    """Return a `verify` that asks a command, run by `/bin/sh` in a folder: exit code 0 accepts the item.

    Else the last line of its output that is not empty is the reason. The item is in the environment:
    `WAKELOOP_TODO` (JSON), `WAKELOOP_TODO_ID` and `WAKELOOP_TODO_CONTENT`; nothing of it is put into the
    command line, so write `"$WAKELOOP_TODO_CONTENT"`, in quotes. As for the tool `run_shell`, variables that
    look like secrets are left out of the environment, and it is no sandbox.

    Args:
        command: The command line.
        root: The folder that it begins in.
        timeout: Seconds after which it is ended with its process group, and the item refused.
        stop: Ends a running command when it is set; that is no verdict, and the run stops as by Ctrl-C.
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
    """Return the program that a command line begins with if `/bin/sh` knows none by this name.

    A line that begins with anything but a bare name is not judged: a path may be made later; nor is one that
    has an "or else" in it.
    """
    begins = PROGRAM_NAME.match(command)
    if begins is None or "||" in command:
        return None
    name = begins.group(1)
    found = run_command(f"command -v {name}", Path(os.sep), LOOK_UP_TIMEOUT, BoundedOutput(LONGEST), Event())
    return None if found in (0, None) else name


def make_environment(todo: Todo) -> dict[str, str]:
    """Return what a command is told of an item; no environment holds a NUL or half a pair of characters."""
    content = todo["content"].replace("\0", " ").encode(errors="replace").decode()[:LONGEST]
    item = json.dumps({**todo, "content": todo["content"][:LONGEST]})
    return {"WAKELOOP_TODO": item, "WAKELOOP_TODO_ID": str(todo["id"]), "WAKELOOP_TODO_CONTENT": content}
