"""What others changed in the list: noted, and said once.

Whoever writes the list past the model, a person, the program or a tool, leaves a note in the ledger: each
item as the model knows it, and who changed it. While there is no such note, the model knows the newest list.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from wakeloop.dialects.base import Dialect
from wakeloop.loop.ledger import Ledger
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, shorten, to_one_line
from wakeloop.text.marks import escape_automatic, find_list_stamp
from wakeloop.todos.changes import is_moved, stamp_of
from wakeloop.todos.items import Todo, clip_item, count_open, is_closed, is_open, select_for_nudge

PERSON, PROGRAM, VERIFIER = "a person", "the program", "the verifier"


def note_changes(ledger: Ledger, before: Sequence[Todo], after: Sequence[Todo], by: str) -> None:
    """Note what somebody else changed. Earlier notes stay as the model knew the items."""
    unseen: dict[str, Any] = {**ledger.get("unseen", {})}
    rows: dict[str, list[Any]] = {str(row[0]): row for row in unseen.get("items", ())}
    was, now = _by_id(before), _by_id(after)
    for key in was | now:
        if was.get(key) == now.get(key):
            continue
        known = rows[key][1] if key in rows else was.get(key)
        rows.pop(key, None)
        if known != now.get(key):
            rows[key] = [(now.get(key) or was[key])["id"], known, by]
    if is_moved(before, after):
        unseen |= {"order": unseen.get("order", [todo["id"] for todo in before]), "moved_by": by}
    if "order" in unseen and not _is_reordered(unseen["order"], after):
        unseen = {key: value for key, value in unseen.items() if key not in ("order", "moved_by")}
    unseen["items"] = list(rows.values())
    _keep(ledger, unseen)


def note_whole_list(ledger: Ledger) -> None:
    """Note that nobody can say what the model knows of the list, so that it is shown whole."""
    ledger["unseen"] = {"items": [], "whole": True}


def note_unnoticed(
    ledger: Ledger, messages: Sequence[BaseMessage], todos: Sequence[Todo], *, is_new_thread: bool = False
) -> None:
    """Note that a list is another one than the model knows, where nobody has said so.

    A fork, a snapshot or a parent that keeps the thread leaves only the list. What the model knows is on the
    newest message that showed it.
    """
    if "unseen" in ledger or not (is_new_thread or getattr(todos, "loaded", False)):
        return
    if getattr(todos, "loaded", False):
        todos.loaded = False  # type: ignore[attr-defined]  # once is enough
    known = find_list_stamp(messages)
    if known is not None and known != stamp_of(todos):
        note_whole_list(ledger)


def note_vocabulary(ledger: Ledger, todos: Sequence[Todo], dialect: Dialect) -> None:
    """Note that a list was shown in the words of another dialect, so that it is shown whole once."""
    if todos and ledger.get("vocabulary", dialect.name) != dialect.name:
        note_whole_list(ledger)
    ledger["vocabulary"] = dialect.name


def note_own_write(ledger: Ledger, before: Sequence[Todo], after: Sequence[Todo]) -> None:
    """Take off what the model has written itself: a status that it set is one that it knows."""
    if "unseen" not in ledger:
        return
    unseen: dict[str, Any] = {**ledger["unseen"]}
    was, now = _by_id(before), _by_id(after)
    rows = []
    for key, known, by in unseen.get("items", ()):
        old, new, knows = was.get(str(key)), now.get(str(key)), known
        if known is not None and new is not None and new != old:
            knows = {**new, "content": known["content"]}
        if knows != new:
            rows.append([key, knows, by])
    unseen["items"] = rows
    _keep(ledger, unseen)


def drop_changes(ledger: Ledger, by: str) -> None:
    """Take off what somebody changed, because another message says it."""
    if "unseen" in ledger:
        unseen: dict[str, Any] = {**ledger["unseen"]}
        unseen["items"] = [row for row in unseen.get("items", ()) if row[2] != by]
        _keep(ledger, unseen)


def _by_id(todos: Sequence[Todo]) -> dict[str, Todo]:
    return {str(todo["id"]): todo for todo in todos}


def _keep(ledger: Ledger, unseen: dict[str, Any]) -> None:
    ledger.pop("unseen", None)
    if unseen["items"] or unseen.keys() - {"items"}:
        ledger["unseen"] = unseen


def _is_reordered(order: Sequence[Any], after: Sequence[Todo]) -> bool:
    places = {todo["id"]: place for place, todo in enumerate(after)}
    kept = [places[key] for key in order if key in places]
    return kept != sorted(kept)


def find_unchanged(ledger: Ledger, todos: Sequence[Todo]) -> list[Todo]:
    """Return the items that the model knows as they are."""
    unseen = ledger.get("unseen", {})
    if unseen.get("whole"):
        return []
    changed = {str(row[0]) for row in unseen.get("items", ())}
    return [todo for todo in todos if str(todo["id"]) not in changed]


def describe_changes(
    unseen: Mapping[str, Any],
    dialect: Dialect,
    settings: LoopSettings,
    todos: Sequence[Todo],
    goal: str,
    *,
    is_shown: bool,
) -> tuple[str, bool]:
    """Return the text that says what changed, and whether it is the whole list instead.

    With `is_shown` the same message shows the list, so only what that does not show is said.
    """
    now = _by_id(todos)
    listed = _by_id(select_for_nudge(todos, settings.nudge_items)[0]) if is_shown else {}
    groups: dict[tuple[str, str], list[str]] = {}
    lines = 0
    for key, known, by in unseen.get("items", ()):
        if str(key) in listed:
            continue
        for verb, text in _describe_item(dialect, known, now.get(str(key))):
            groups.setdefault((verb, by), []).append(text)
            lines += 1
    if not is_shown and (unseen.get("whole") or lines > settings.nudge_items):
        return render_whole_list(dialect, settings, todos, goal), True
    said: list[str] = []
    for (verb, by), texts in groups.items():
        said += [f"{verb.capitalize()} by {by}:", *texts]
    if "order" in unseen and not is_shown:
        said += [f"Moved by {unseen['moved_by']}; the order is now: {_name_order(dialect, settings, todos)}"]
    if not said:
        return "", False
    return fill_prompt("changes", dialect.prompt_folder, settings.prompts, changes="\n".join(said)), False


def _describe_item(dialect: Dialect, known: Todo | None, new: Todo | None) -> list[tuple[str, str]]:
    """Return what happened to one item, as words and the line of the item."""
    if known is None or new is None:
        todo = new or known
        return [] if todo is None else [("removed" if new is None else "added", _render_line(dialect, todo))]
    found = []
    if known["content"] != new["content"]:
        was = shorten(to_one_line(known["content"]))
        found.append(("reworded", f"{_render_line(dialect, new)} (was: {was})"))
    if {**known, "content": ""} != {**new, "content": ""}:
        found.append((_find_verb(known, new), dialect.render_item(clip_item(new))))
    return found


def _find_verb(known: Todo, new: Todo) -> str:
    status = new["status"]
    if status in ("completed", "cancelled", "blocked"):
        return status
    if not is_open(known):
        return "reopened"
    return "started" if status == "in_progress" else "put back"


def _render_line(dialect: Dialect, todo: Todo) -> str:
    """Return the line of an item; it says its status also where the dialect shows only open items."""
    short = clip_item(todo)
    line = dialect.render_item(short)
    is_bare = is_closed(todo) and line == dialect.render_item({**short, "status": "pending"})
    return f"{line} ({todo['status']})" if is_bare else line


def _name_order(dialect: Dialect, settings: LoopSettings, todos: Sequence[Todo]) -> str:
    shown = todos[: settings.nudge_items]
    if dialect.numbers_items:
        names = [f"[{format_id(todo['id'])}]" for todo in shown]
    else:
        names = [to_one_line(clip_item(todo)["content"]) for todo in shown]
    more = [f"and {len(todos) - len(shown)} more"] if len(todos) > len(shown) else []
    return ", ".join([*names, *more])


def render_every_item(
    dialect: Dialect, settings: LoopSettings, todos: Sequence[Todo], goal: str, most: int
) -> str:
    """Return the list with its closed items, too, as long as these are at most so many characters.

    It stands in for the rounds in which items were closed, so the open ones alone would not say what is done.
    """
    lines = "\n".join(_render_line(dialect, todo) for todo in todos)
    if len(lines) > most:
        return render_whole_list(dialect, settings, todos, goal)
    listing = escape_automatic(lines) if settings.announces else lines
    return fill_prompt("shown_again", dialect.prompt_folder, settings.prompts, list=listing)


def render_whole_list(dialect: Dialect, settings: LoopSettings, todos: Sequence[Todo], goal: str) -> str:
    """Return the list as it is now."""
    listing = dialect.quote_list(todos, goal, settings)
    if not count_open(todos):
        closed = fill_prompt("nothing_open", dialect.prompt_folder, settings.prompts)
        listing = f"{listing}\n{closed}" if listing else closed
    return fill_prompt("shown_again", dialect.prompt_folder, settings.prompts, list=listing)
