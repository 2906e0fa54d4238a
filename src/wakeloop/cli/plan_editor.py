"""Edit a plan that waits for approval in the user's editor."""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeloop.cli.failures import usage_error
from wakeloop.display.formatting import find_plan
from wakeloop.loop.approval import PLAN_ACTION
from wakeloop.text.characters import escape_invisible

EDIT_ANSWER = "e"  # what the user types to open the editor
HEADER = (
    "# The plan, one item per line. Change, reorder, delete or add lines, then save and close the editor.\n"
    "# Lines that start with # are ignored. An empty list changes nothing: you are asked again.\n"
)
NUMBERED_ITEM = re.compile(r"\[([^\]]+)\] ?(.*)")


def wants_editor(value: Any, typed: str) -> bool:
    """Whether an answer asks for the editor, and there is a plan to edit."""
    return find_plan(value) is not None and typed.strip().lower() == EDIT_ANSWER


def edit_plan(value: Any) -> str | None:
    """Let the user edit a plan, and return the answer as JSON; None if the plan was emptied."""
    todos = find_plan(value) or []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.txt"
        path.write_text(HEADER + "".join(f"{format_item(todo)}\n" for todo in todos), encoding="utf-8")
        _run_editor(path)
        edited = parse_plan(path.read_text(encoding="utf-8-sig", errors="replace"), todos)
    if not edited:
        return None
    action = {"name": PLAN_ACTION, "args": {"todos": edited}}
    return json.dumps({"decisions": [{"type": "edit", "edited_action": action}]})


def format_item(todo: Mapping[str, Any]) -> str:
    r"""Format an item as one line; a line break in it becomes `\n`."""
    return f"[{todo['id']}] " + escape_invisible(todo["content"]).replace("\n", "\\n")


def parse_plan(text: str, todos: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Read the edited lines; a line with an id of the list is that item, others are new items."""
    known = {str(todo["id"]): todo for todo in todos}
    items: list[dict[str, Any]] = []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        numbered = NUMBERED_ITEM.fullmatch(line)
        todo = known.pop(numbered[1], None) if numbered else None
        if todo is None or numbered is None:
            items.append({"content": line})
        elif line == format_item(todo).strip():
            items.append(dict(todo))  # unchanged: keep the original text, with its line breaks
        else:
            items.append({**todo, "content": numbered[2]})
    return items


def _run_editor(path: Path) -> None:
    """Open a file in `$VISUAL`, `$EDITOR` or vi, and wait until it is closed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603 - the user's own
    except (OSError, ValueError) as error:
        raise usage_error(f"Cannot start the editor {editor!r} ({error}): set EDITOR to another.") from None
    if code:
        raise usage_error(f"The editor {editor!r} exited with code {code}: the plan is unchanged.")
