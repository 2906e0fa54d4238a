"""Replacing the whole list, and which items stay the same."""

from collections import Counter, OrderedDict, deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from operator import itemgetter

from wakeloop.text.characters import is_blank, shorten, shorten_id
from wakeloop.todos.items import (
    ID_SHOWN,
    TEXT_SHOWN,
    OperationRefused,
    Todo,
    clip_text,
    count_running,
    is_open,
    next_free_number,
)
from wakeloop.todos.operations import Board, Draft, Outcome, Question, Replace, Rules
from wakeloop.todos.verification import Verdicts, ask_verifier, is_exhausted, with_status


def replace_list(
    board: Board, operation: Replace, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    """Replace the whole list, or change nothing. Raises `OperationRefused`."""
    drafts = operation.items
    _check_drafts(drafts, rules)
    new, next_id = _match_ids(board, drafts)
    after = replace(board, next_id=next_id)
    old = {todo["id"]: todo for todo in board.todos}
    running = count_running(new) > 0
    denied: dict[int | str, str] = {}
    for i, todo in enumerate(new):
        was = old.get(todo["id"])
        if was is not None and is_exhausted(board, was) and todo["status"] != "cancelled":
            new[i] = was  # blocked by the verifier for good: only giving it up is possible
        elif todo["status"] == "completed" and (was is None or was["status"] != "completed"):
            # If it is refused, the model has to continue with it, unless it has started another item.
            fallback = with_status(todo, "pending" if running else "in_progress")
            new[i], after, why = yield from ask_verifier(after, todo, call, verdicts, fallback=fallback)
            running = running or new[i]["status"] == "in_progress"
            if why is not None:
                denied[todo["id"]] = why
    after = replace(after, todos=tuple(new))
    kept: set[int | str] = set()
    touched: list[int | str] = []
    for todo in new:
        kept.add(todo["id"])
        if old.get(todo["id"]) != todo:
            touched.append(todo["id"])
    dropped = tuple(todo for todo in board.todos if is_open(todo) and todo["id"] not in kept)
    return Outcome(operation, after, touched=tuple(touched), dropped=dropped, denied=denied)


def _check_drafts(drafts: Sequence[Draft], rules: Rules) -> None:
    """Refuse a list that is too long or has blank items or equal ids. Raises `OperationRefused`."""
    if rules.max_items is not None and len(drafts) > rules.max_items:
        raise OperationRefused(f"the list has {len(drafts)} items; at most {rules.max_items} are allowed")
    counts = Counter[str]()
    for place, draft in enumerate(drafts, 1):
        if is_blank(draft.content):
            raise OperationRefused(f"item {place} is blank; every item needs text")
        if draft.id is not None:
            counts[str(draft.id)] += 1
    for key, count in counts.items():
        if count > 1:
            raise OperationRefused(f"the id {shorten(repr(key))} occurs twice; each id must be unique")


def _match_ids(board: Board, drafts: Sequence[Draft]) -> tuple[list[Todo], int]:
    """Return the new items with their ids, and the next number.

    A draft keeps its own id. Without one, it gets the id of the first old item of equal content that no other
    draft has, or else a new number.
    """
    sent = {draft.id for draft in drafts if draft.id is not None}
    whole_ids = _find_cut_ids(board, sent)
    names = set(map(str, sent))
    free: dict[str, deque[int | str]] = {}
    # A nudge shows long contents cut. If a model sends one back like that, it means the whole content.
    cut: dict[str, OrderedDict[str, Todo]] = {}
    for todo in board.todos:
        if not names or str(todo["id"]) not in names:
            free.setdefault(todo["content"], deque()).append(todo["id"])
        if len(todo["content"]) > TEXT_SHOWN:
            cut.setdefault(clip_text(todo["content"]), OrderedDict())[str(todo["id"])] = todo
    next_id = _first_new_number(board, drafts)
    new: list[Todo] = []
    for draft in drafts:
        key, content = draft.id, draft.content.strip()
        if key is not None:
            key = whole_ids.get(key, key)
        meant = cut.get(content)
        if meant:
            same_id = meant.pop(str(key), None)
            content = (same_id or meant.popitem(last=False)[1])["content"]
        if key is None and free.get(content):
            key = free[content].popleft()
        elif key is None:
            key, next_id = next_id, next_id + 1
        item: Todo = {"id": key, "content": content, "status": draft.status}
        if draft.reason:
            item["reason"] = draft.reason
        new.append(item)
    return new, next_id


def _find_cut_ids(board: Board, sent: set[int | str]) -> dict[int | str, int | str]:
    """Return the ids that are meant by ids as a nudge shows them: cut, or a number as a string."""
    unknown = sent.difference(map(itemgetter("id"), board.todos))
    if not unknown:
        return {}
    shown: dict[str, int | str] = {}
    for todo in board.todos:
        if todo["id"] not in sent:
            shown[str(shorten_id(todo["id"], ID_SHOWN))] = todo["id"]
    return {key: shown.get(str(key), key) for key in unknown}


def _first_new_number(board: Board, drafts: Sequence[Draft]) -> int:
    """Return the first number for drafts without an id, above all ids that a model chose."""
    keys = [draft.id for draft in drafts]
    if None not in keys:
        return board.next_id
    above_old = next_free_number(board.todos, board.next_id)
    return next_free_number([{"id": key} for key in keys], above_old)
