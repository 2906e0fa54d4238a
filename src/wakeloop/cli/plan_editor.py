"""A plan that waits for its approval, in the person's editor."""

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
from wakeloop.display.words import plan_in
from wakeloop.loop.approval import PLAN_ACTION
from wakeloop.text.characters import escape_invisible

EDIT_ANSWER = "e"  # what is typed
HEADER = (
    "# The plan, an item a line: change, move, take away or add lines, then save and leave the editor.\n"
    "# Lines that begin with # are left out. An empty list changes nothing: the question is put again.\n"
)
NUMBERED_ITEM = re.compile(r"\[([^\]]+)\] ?(.*)")


def wants_editor(value: Any, typed: str) -> bool:
    """Tell whether an answer asks for the editor, and there is a plan to edit."""
    return plan_in(value) is not None and typed.strip().lower() == EDIT_ANSWER


def edit_plan(value: Any) -> str | None:
    """Let the person edit a plan, and return the answer; None where it was emptied."""
    todos = plan_in(value) or []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.txt"
        path.write_text(HEADER + "".join(f"{format_item(todo)}\n" for todo in todos), encoding="utf-8")
        _run_editor(path)
        kept = parse_plan(path.read_text(encoding="utf-8-sig", errors="replace"), todos)
    action = {"name": PLAN_ACTION, "args": {"todos": kept}}
    return json.dumps({"decisions": [{"type": "edit", "edited_action": action}]}) if kept else None


def format_item(todo: Mapping[str, Any]) -> str:
    """An item as a line; a line within it is spelled out."""
    return f"[{todo['id']}] " + escape_invisible(todo["content"]).replace("\n", "\\n")


def parse_plan(text: str, todos: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Read the lines that are left; one under an id of the list is that item, as it was if unchanged."""
    known = {str(todo["id"]): todo for todo in todos}
    kept: list[dict[str, Any]] = []
    for typed in map(str.strip, text.splitlines()):
        if not typed or typed.startswith("#"):
            continue
        found = NUMBERED_ITEM.fullmatch(typed)
        todo = known.pop(found[1], None) if found else None
        if todo is None or found is None:
            kept.append({"content": typed})
        elif typed == format_item(todo).strip():
            kept.append(dict(todo))
        else:
            kept.append({**todo, "content": found[2]})
    return kept


def _run_editor(path: Path) -> None:
    """Open a file in `$VISUAL` or `$EDITOR`, and wait."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603 - the person's own
    except (OSError, ValueError) as error:
        raise usage_error(f"The editor {editor!r} cannot be started ({error}): set EDITOR to one.") from None
    if code:
        raise usage_error(f"The editor {editor!r} ended with code {code}: the list is as it was.")
