"""Rounds: all operations of one reply, applied in order.

A round is a generator that yields its questions for the verifier, so that synchronous and asynchronous
callers share one body.
"""

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter

from wakeloop.text.characters import format_id, is_blank, shorten, shorten_id, to_one_line
from wakeloop.todos.in_progress import ProgressLimit, find_progress_limit
from wakeloop.todos.items import (
    ID_SHOWN,
    MAX_REFUSAL_LENGTH,
    TEXT_SHOWN,
    OperationRefused,
    Todo,
    clip_text,
    count_closed,
    count_running,
    is_open,
    next_free_number,
)
from wakeloop.todos.operations import (
    MAX_REFUSALS,
    Add,
    Board,
    Change,
    ChangeSeveral,
    Complete,
    Draft,
    Operation,
    Outcome,
    Question,
    Replace,
    Reset,
    Rules,
    Show,
    Verdicts,
    ask_verifier,
    is_exhausted,
    with_status,
)

MAX_LISTED_IDS = 50  # ids that a refusal names


def play_round(
    board: Board,
    calls: Sequence[Operation | str],
    rules: Rules,
    verdicts: Verdicts | None = None,
    rejected: Collection[int] = (),
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    """Apply the operations of one round in order; a string is a call that was refused before.

    Yields a `Question` for each item that is to be completed, and expects None (accepted) or the reason for
    refusing it. Returns the board after the round and one outcome per call.

    If a round is replayed, `verdicts` has the answers of the first time (new ones are added), and `rejected`
    the places of the calls that a person has rejected.
    """
    refused = _find_early_refusals(calls, rules, rejected)
    verdicts = {} if verdicts is None else verdicts
    # Only the list that a round leaves must keep the rule about items in progress: the call that starts an
    # item may come before the one that closes the last. So play first, then without the calls that broke it.
    limit: ProgressLimit | None = None
    while True:
        after, outcomes = yield from _play(board, calls, rules, refused, verdicts, limit)
        limit = find_progress_limit(board, outcomes, rules)
        if limit is None:
            return after, outcomes
        for place in limit.calls:
            refused[place] = limit.fault


def _find_early_refusals(
    calls: Sequence[Operation | str], rules: Rules, rejected: Collection[int]
) -> dict[int, str]:
    """Return the reasons of calls that are refused before the round is played, by place."""
    refused = dict.fromkeys(rejected, "rejected")
    writes: list[int] = []
    for place, call in enumerate(calls):
        if isinstance(call, str):
            refused[place] = call
        elif isinstance(call, Replace):
            writes.append(place)
            if call.refused is not None:
                refused[place] = call.refused
    if rules.one_write and len(writes) > 1:
        for place in writes:
            refused.setdefault(place, "the list was sent more than once in one reply; send it once, whole")
    return refused


def _play(
    board: Board,
    calls: Sequence[Operation | str],
    rules: Rules,
    refused: dict[int, str],
    verdicts: Verdicts,
    limit: ProgressLimit | None,
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    """Apply the calls in order, and add to `refused` what the limit refuses."""
    outcomes: list[Outcome] = []
    for i, call in enumerate(calls):
        operation, why = None if isinstance(call, str) else call, refused.get(i)
        outcome = Outcome(operation, board)
        if operation is not None and why is None:
            own = replace(board, refusals={**board.refusals})  # what a refused call counts is forgotten
            try:
                outcome = yield from _apply_operation(own, operation, rules, i, verdicts)
            except OperationRefused as refusal:
                why = str(refusal)
            if limit is not None and limit.refuses(i, board, outcome):
                why = refused[i] = limit.fault
        if why is not None:
            outcome = Outcome(operation, board, shorten(why, MAX_REFUSAL_LENGTH))
        board = outcome.board
        outcomes.append(outcome)
    return board, outcomes


def _apply_operation(
    board: Board, operation: Operation, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    changes: Sequence[Change]
    match operation:
        case Show():
            return Outcome(operation, board)
        case Reset(goal):
            return Outcome(operation, replace(board, todos=(), goal=goal, next_id=1, refusals={}))
        case Add(contents):
            return _add_items(board, operation, contents, rules)
        case Replace():
            return (yield from replace_list(board, operation, rules, call, verdicts))
        case Complete(contents):
            changes = [Change(todo["id"], "completed") for todo in _find_contents(board, contents)]
        case ChangeSeveral():
            changes = operation.changes
        case Change():
            changes = [operation]
    return (yield from _change_items(board, operation, changes, call, verdicts))


def _add_items(board: Board, operation: Add, contents: tuple[str, ...], rules: Rules) -> Outcome:
    if not contents:
        raise OperationRefused("items is empty; send at least one item")
    for place, content in enumerate(contents, 1):
        if is_blank(content):
            raise OperationRefused(f"item {place} is blank; every item needs text")
    repeated: dict[int | str, None] = {}
    texts: list[str] = []
    for text in map(str.strip, contents):
        twin = board.rows.find_open_duplicate(text) if rules.repeats == "name" else None
        if twin is None:
            texts.append(text)
        else:
            repeated[twin["id"]] = None
    after_adding = len(board.todos) - count_closed(board.todos) + len(texts)
    if rules.max_items is not None and texts and after_adding > rules.max_items:
        raise OperationRefused(
            f"{len(texts)} more would make {after_adding} items that are not closed; "
            f"at most {rules.max_items} are allowed, so close some or plan larger ones"
        )
    first = board.next_id
    new: list[Todo] = [
        {"id": number, "content": text, "status": "pending"} for number, text in enumerate(texts, first)
    ]
    next_id = first + len(new)
    after = replace(board, todos=board.rows.with_appended(new), next_id=next_id)
    return Outcome(operation, after, touched=tuple(range(first, next_id)), repeated=tuple(repeated))


def _change_items(
    board: Board, operation: Operation, changes: Sequence[Change], call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    if len(changes) > 1:
        # All changes or none: an impossible one must be found before the verifier is asked about another.
        for change in changes:
            _apply_change(board, change)
    touched: dict[int | str, None] = {}
    denied: dict[int | str, str] = {}
    for change in changes:
        old, new = _apply_change(board, change)
        if new["status"] == "completed" and old["status"] != "completed":
            new, why = yield from ask_verifier(board, new, call, verdicts, fallback=old)
            if why is not None:
                denied[old["id"]] = why
        board = board.with_item(new)
        touched[old["id"]] = None
    return Outcome(operation, board, touched=tuple(touched), denied=denied)


def _find_contents(board: Board, contents: Sequence[str]) -> list[Todo]:
    """Return the items with these contents, each once; of several equal ones the first that is open."""
    found: dict[int | str, Todo] = {}
    for content in contents:
        text = content.strip()
        same = [todo for todo in board.todos if text in (todo["content"], clip_text(todo["content"]))]
        if not same:
            raise OperationRefused(
                f"there is no item {shorten(repr(text))}; send the text of an item as it is in the list"
            )
        left = [todo for todo in same if is_open(todo) and todo["id"] not in found]
        meant = (left or same)[0]
        found[meant["id"]] = meant
    return [*found.values()]


def describe_ids(todos: Sequence[Todo]) -> str:
    """Say which ids exist, but not so many that they fill the context of a model that guessed."""
    if not todos:
        return "the list is empty, so add items first"
    keys = map(itemgetter("id"), islice(todos, MAX_LISTED_IDS))
    return f"the ids are: {', '.join(map(format_id, keys))}"


def _apply_change(board: Board, change: Change) -> tuple[Todo, Todo]:
    """Return an item before and after a change. Raises `OperationRefused`."""
    old = board.find(change.id)
    if old is None and change.as_shown:
        old = board.find(_strip_id_marks(change.id))
    if old is None:
        raise OperationRefused(f"there is no item {shorten(repr(change.id))}; {describe_ids(board.todos)}")
    reason = (change.reason or "").strip()
    if change.status == "blocked" and is_blank(reason):
        raise OperationRefused(f"item [{format_id(old['id'])}] can be blocked only with a reason; send one")
    if is_exhausted(board, old) and change.status not in ("blocked", "cancelled"):
        raise OperationRefused(
            f"item [{format_id(old['id'])}] was refused {MAX_REFUSALS} times and stays blocked: "
            f"{to_one_line(old.get('reason', ''))}"
        )
    return old, with_status(old, change.status, reason, change.evidence)


def _strip_id_marks(key: int | str) -> str:
    """Return an id without the marks that a list shows it with: `[1]`, `#1`, `1.`, and `1.0` for a number."""
    return re.sub(r"^[#\[]|\]$|\.0*$", "", str(key).strip())


def replace_list(
    board: Board, operation: Replace, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    """Replace the whole list, or change nothing. Raises `OperationRefused`."""
    drafts = operation.items
    _check_drafts(drafts, rules)
    new, next_id = _match_ids(board, drafts)
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
            new[i], why = yield from ask_verifier(board, todo, call, verdicts, fallback=fallback)
            running = running or new[i]["status"] == "in_progress"
            if why is not None:
                denied[todo["id"]] = why
    after = replace(board, todos=new, next_id=next_id)
    kept = {todo["id"] for todo in new}
    touched = tuple([todo["id"] for todo in new if old.get(todo["id"]) != todo])
    dropped = tuple(todo for todo in board.todos if is_open(todo) and todo["id"] not in kept)
    return Outcome(operation, after, touched=touched, dropped=dropped, denied=denied)


def _check_drafts(drafts: Sequence[Draft], rules: Rules) -> None:
    """Refuse a list that is too long or has blank items or equal ids. Raises `OperationRefused`."""
    if rules.max_items is not None and len(drafts) > rules.max_items:
        raise OperationRefused(f"the list has {len(drafts)} items; at most {rules.max_items} are allowed")
    keys = []
    for place, draft in enumerate(drafts, 1):
        if is_blank(draft.content):
            raise OperationRefused(f"item {place} is blank; every item needs text")
        if draft.id is not None:
            keys.append(str(draft.id))
    for key, count in Counter(keys).items():
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
    # above all ids, also those that a model chose: a number is never given twice
    next_id = next_free_number(board.todos, board.next_id)
    next_id = next_free_number([{"id": key} for key in sent], next_id)
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
