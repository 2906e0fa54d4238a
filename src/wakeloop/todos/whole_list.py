"""A list that replaces another, and whose items are whose."""

from collections import Counter, OrderedDict, deque
from collections.abc import Generator, Sequence
from dataclasses import replace

from wakeloop.text.characters import is_blank, shorten, shorten_id
from wakeloop.todos.items import (
    ID_SHOWN,
    TEXT_SHOWN,
    OperationRefused,
    Todo,
    clip_text,
    is_open,
    next_free_number,
)
from wakeloop.todos.operations import Board, Draft, Outcome, Question, Replace, Rules
from wakeloop.todos.verification import Verdicts, ask_verifier, is_exhausted, with_status


def replace_list(
    board: Board, operation: Replace, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    """Put a new list in the place of the old one, whole or not at all. Raises `OperationRefused`."""
    drafts = operation.items
    if rules.max_items is not None and len(drafts) > rules.max_items:
        raise OperationRefused(f"the list has {len(drafts)} items; at most {rules.max_items} are allowed")
    for place, draft in enumerate(drafts, 1):
        if is_blank(draft.content):
            raise OperationRefused(f"item {place} is blank; every item needs a text")
    told = Counter(str(draft.id) for draft in drafts if draft.id is not None)
    if twice := next((key for key, times in told.items() if times > 1), None):
        raise OperationRefused(f"the id {shorten(repr(twice))} occurs twice; each id must be unique")
    new, next_id = _match_ids(board, drafts)
    after = replace(board, next_id=next_id)
    old = {todo["id"]: todo for todo in board.todos}
    running = any(todo["status"] == "in_progress" for todo in new)
    denied: dict[int | str, str] = {}
    for i, todo in enumerate(new):
        was = old.get(todo["id"])
        if was is not None and is_exhausted(board, was) and todo["status"] != "cancelled":
            new[i] = was
        elif todo["status"] == "completed" and (was is None or was["status"] != "completed"):
            fallback = with_status(todo, "pending" if running else "in_progress")
            new[i], after, why = yield from ask_verifier(after, todo, call, verdicts, fallback=fallback)
            running = running or new[i]["status"] == "in_progress"
            if why is not None:
                denied[todo["id"]] = why
    after = replace(after, todos=tuple(new))
    left = {todo["id"] for todo in new}
    dropped = tuple(todo for todo in board.todos if is_open(todo) and todo["id"] not in left)
    touched = tuple(t["id"] for t in new if old.get(t["id"]) != t)
    return Outcome(operation, after, touched=touched, dropped=dropped, denied=denied)


def _match_ids(board: Board, drafts: Sequence[Draft]) -> tuple[list[Todo], int]:
    """Give each draft its id: its own, that of the first free old item of equal content, or a new number."""
    free: dict[str, deque[int | str]] = {}
    cut: dict[str, OrderedDict[str, Todo]] = {}
    ids, told = [todo["id"] for todo in board.todos], {draft.id for draft in drafts} - {None}
    unknown = told.difference(ids)  # an id may come back as a nudge shows it, a number as a text
    whole = {str(shorten_id(key, ID_SHOWN)): key for key in ids if key not in told} if unknown else {}
    names = {str(key) for key in told}
    for todo in board.todos:
        if str(todo["id"]) not in names:
            free.setdefault(todo["content"], deque()).append(todo["id"])
        if len(todo["content"]) > TEXT_SHOWN:
            cut.setdefault(clip_text(todo["content"]), OrderedDict())[str(todo["id"])] = todo
    next_id, new = _first_new_number(board, drafts), []
    for draft in drafts:
        key, content = draft.id, draft.content.strip()
        if key is not None and key in unknown:
            key = whole.get(str(key), key)
        if meant := cut.get(content):  # as a nudge shows it: its whole text is kept
            named = meant.pop(str(key), None)
            content = (named or meant.popitem(last=False)[1])["content"]
        if key is None and free.get(content):
            key = free[content].popleft()
        elif key is None:
            key, next_id = next_id, next_id + 1
        item: Todo = {"id": key, "content": content, "status": draft.status}
        if draft.reason:
            item["reason"] = draft.reason
        new.append(item)
    return new, next_id


def _first_new_number(board: Board, drafts: Sequence[Draft]) -> int:
    """Return the number of the first draft that needs one: none that the model chose, here or before."""
    told = [draft.id for draft in drafts]
    if None not in told:
        return board.next_id
    return next_free_number(
        [{"id": key} for key in (*told, *(todo["id"] for todo in board.todos))], board.next_id
    )
