"""A round of operations on the list; knows no framework.

Operations come from a dialect, a round applies them in order, and the verifier is asked through a generator,
so that a synchronous and an asynchronous caller share one body.
"""

import re
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from itertools import islice

from wakeloop.text.characters import format_id, is_blank, shorten, to_one_line
from wakeloop.todos.in_progress import ProgressLimit, find_progress_limit
from wakeloop.todos.items import MAX_REFUSAL_LENGTH, OperationRefused, Todo, count_closed, next_free_number
from wakeloop.todos.operations import (
    Add,
    Board,
    Change,
    ChangeSeveral,
    Operation,
    Outcome,
    Question,
    Replace,
    Reset,
    Rules,
    Show,
)
from wakeloop.todos.verification import MAX_REFUSALS, Verdicts, ask_verifier, is_exhausted, with_status
from wakeloop.todos.whole_list import replace_list


def play_round(
    board: Board,
    calls: Sequence[Operation | str],
    rules: Rules,
    verdicts: Verdicts | None = None,
    rejected: Collection[int] = (),
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    """Apply the operations of one round in order; a string stands for a call that is refused already.

    Yields a `Question` for each item that is to be completed and is sent None (accepted) or the reason of
    the refusal. Returns the board that the round leaves and one outcome a call. Whether too many items are
    in progress is judged on that last board; then the calls that started items are refused, the last first.

    Of a round that is played once more, `verdicts` are what was answered before (what is answered now is
    added), and `rejected` the places of calls that a person has refused.
    """
    refused = dict.fromkeys(rejected, "rejected")
    refused |= {i: why for i, call in enumerate(calls) if (why := _early_refusal(call)) is not None}
    writes = [i for i, call in enumerate(calls) if isinstance(call, Replace)]
    if rules.one_write and len(writes) > 1:
        twice = "the list was sent more than once in one reply; send it once, whole"
        refused = dict.fromkeys(writes, twice) | refused
    verdicts = {} if verdicts is None else verdicts
    limit: ProgressLimit | None = None
    while True:
        after, outcomes = yield from _play(board, calls, rules, refused, verdicts, limit)
        limit = find_progress_limit(board, outcomes, rules)
        if limit is None:
            return after, outcomes
        refused |= dict.fromkeys(limit.calls, limit.fault)


def _early_refusal(call: Operation | str) -> str | None:
    return call if isinstance(call, str) else call.refused if isinstance(call, Replace) else None


def _play(
    board: Board,
    calls: Sequence[Operation | str],
    rules: Rules,
    refused: dict[int, str],
    verdicts: Verdicts,
    limit: ProgressLimit | None,
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    """Apply the calls in order; what the limit refuses is noted with the others."""
    outcomes: list[Outcome] = []
    for i, call in enumerate(calls):
        operation = None if isinstance(call, str) else call
        if operation is None or i in refused:
            outcomes.append(Outcome(operation, board, shorten(refused[i], MAX_REFUSAL_LENGTH)))
            continue
        try:
            outcome = yield from _apply_operation(board, operation, rules, i, verdicts)
            if limit is not None and limit.refuses(i, board, outcome):
                refused[i] = limit.fault
                outcome = Outcome(operation, board, shorten(limit.fault, MAX_REFUSAL_LENGTH))
        except OperationRefused as refusal:
            outcome = Outcome(operation, board, shorten(str(refusal), MAX_REFUSAL_LENGTH))
        board = outcome.board
        outcomes.append(outcome)
    return board, outcomes


def _apply_operation(
    board: Board, operation: Operation, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    match operation:
        case Show():
            return Outcome(operation, board)
        case Reset(goal):
            return Outcome(operation, replace(board, todos=(), goal=goal, next_id=1, refusals={}))
        case Add(contents):
            return _add_items(board, operation, contents, rules)
        case Change():
            return (yield from _change_item(board, operation, call, verdicts))
        case ChangeSeveral(changes):
            return (yield from _change_items(board, operation, changes, call, verdicts))
        case Replace():
            return (yield from replace_list(board, operation, rules, call, verdicts))


def _add_items(board: Board, operation: Add, contents: tuple[str, ...], rules: Rules) -> Outcome:
    if not contents:
        raise OperationRefused("items is empty; send at least one text")
    for place, content in enumerate(contents, 1):
        if is_blank(content):
            raise OperationRefused(f"item {place} is blank; every item needs a text")
    texts = [content.strip() for content in contents]
    named = dict[int | str, None]()
    if rules.repeats == "name":
        twins = [board.rows.find_open_duplicate(text) for text in texts]
        texts = [text for text, twin in zip(texts, twins, strict=True) if twin is None]
        named = dict.fromkeys(twin["id"] for twin in twins if twin is not None)
    held = len(board.todos) - count_closed(board.todos)
    if rules.max_items is not None and texts and held + len(texts) > rules.max_items:
        raise OperationRefused(
            f"{len(texts)} more would make {held + len(texts)} items that are not closed; "
            f"at most {rules.max_items} are allowed, so close some or plan larger ones"
        )
    next_id = board.next_id
    if any(board.find(next_id + n) is not None for n in range(len(texts))):  # a model chose such an id
        next_id = next_free_number(board.todos, next_id)
    new: list[Todo] = [
        {"id": next_id + n, "content": text, "status": "pending"} for n, text in enumerate(texts)
    ]
    after = replace(board, todos=board.rows.with_appended(new), next_id=next_id + len(new))
    return Outcome(operation, after, touched=tuple(todo["id"] for todo in new), repeated=tuple(named))


def _change_items(
    board: Board, operation: Operation, changes: Sequence[Change], call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    for change in changes:  # before the verifier is asked for any
        _apply_change(board, change)
    touched: list[int | str] = []
    denied: dict[int | str, str] = {}
    for change in changes:
        outcome = yield from _change_item(board, change, call, verdicts)
        board = outcome.board
        touched += outcome.touched
        denied |= outcome.denied
    return Outcome(operation, board, touched=tuple(dict.fromkeys(touched)), denied=denied)


def _change_item(
    board: Board, change: Change, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    old, new = _apply_change(board, change)
    denied: dict[int | str, str] = {}
    if new["status"] == "completed" and old["status"] != "completed":
        new, board, why = yield from ask_verifier(board, new, call, verdicts, fallback=old)
        if why is not None:
            denied[old["id"]] = why
    return Outcome(change, board.with_item(new), touched=(old["id"],), denied=denied)


def _apply_change(board: Board, change: Change) -> tuple[Todo, Todo]:
    """Return an item as it was and as a change wants it. Raises `OperationRefused`."""
    old = board.find(change.id) or (board.find(_strip_id_marks(change.id)) if change.as_shown else None)
    if old is None:
        known = (
            ", ".join(format_id(todo["id"]) for todo in islice(board.todos, 50)) or "none, the list is empty"
        )
        raise OperationRefused(f"there is no item {shorten(repr(change.id))}; the ids are: {known}")
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
    """Return an id without what stands around it in a list: `[1]`, `#1`, `1.`, and as a number `1.0`."""
    return re.sub(r"^[#\[]|\]$|\.0*$", "", str(key).strip())
