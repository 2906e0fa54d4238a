"""A round of operations on the list; knows no framework.

Operations come from a dialect, a round applies them in order, and the verifier is asked through a generator,
so that a synchronous and an asynchronous caller share one body.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from wakeloop.text.characters import name_of, one_line, short_id
from wakeloop.todos.items import (
    ID_SHOWN,
    LONGEST,
    TEXT_SHOWN,
    Refused,
    Status,
    Todo,
    brief,
    is_closed,
    is_open,
    shorten,
)
from wakeloop.todos.operations import (
    Add,
    Board,
    Change,
    Draft,
    Operation,
    Outcome,
    Question,
    Replace,
    Reset,
    Rules,
    Show,
)

REFUSALS = 3  # the verifier's third refusal of an item blocks it


Verdicts = dict[tuple[int, str], str | None]


def play_round(
    board: Board, calls: Sequence[Operation | str], rules: Rules
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    """Apply the operations of one round in order; a string stands for a call that is refused already.

    Yields a `Question` for each item that is to be completed and is sent None (accepted) or the reason of
    the refusal. Returns the board that the round leaves and one outcome a call. Whether too many items are
    in progress is judged on that last board; then the calls that started items are refused, the last first.
    """
    refused = {i: why for i, call in enumerate(calls) if (why := _refused_already(call)) is not None}
    writes = [i for i, call in enumerate(calls) if isinstance(call, Replace)]
    if rules.one_write and len(writes) > 1:
        twice = "the list was sent more than once in one reply; send it once, whole"
        refused = dict.fromkeys(writes, twice) | refused
    verdicts: Verdicts = {}
    while True:
        after, outcomes = yield from _play(board, calls, rules, refused, verdicts)
        fault = progress_fault(after.todos, rules)
        if fault is None or (culprit := _last_starter(board, outcomes, rules)) is None:
            return after, outcomes
        refused[culprit] = fault


def _refused_already(call: Operation | str) -> str | None:
    return call if isinstance(call, str) else call.refused if isinstance(call, Replace) else None


def _play(
    board: Board,
    calls: Sequence[Operation | str],
    rules: Rules,
    refused: Mapping[int, str],
    verdicts: Verdicts,
) -> Generator[Question, str | None, tuple[Board, list[Outcome]]]:
    outcomes: list[Outcome] = []
    for i, call in enumerate(calls):
        operation = None if isinstance(call, str) else call
        if operation is None or i in refused:
            outcomes.append(Outcome(operation, board, shorten(refused[i], LONGEST)))
            continue
        try:
            outcome = yield from _apply(board, operation, rules, i, verdicts)
        except Refused as refusal:
            outcome = Outcome(operation, board, shorten(str(refusal), LONGEST))
        board = outcome.board
        outcomes.append(outcome)
    return board, outcomes


def progress_fault(todos: Sequence[Todo], rules: Rules) -> str | None:
    """Say how a list breaks the rule about items in progress, or return None."""
    running = [todo for todo in todos if todo["status"] == "in_progress"]
    if rules.in_progress == "any" or len(running) == 1:
        return None
    if running:
        names = " and ".join(
            f"[{name_of(todo['id'])}] {shorten(one_line(todo['content']))}" for todo in running
        )
        return f"only one item may be in progress, and these would be: {names}; close or reopen one first"
    if rules.in_progress == "at_most_one" or not any(map(is_open, todos)):  # also what a verifier has blocked
        return None
    return "exactly one item must be in progress unless all are completed, and none would be"


def _last_starter(before: Board, outcomes: Sequence[Outcome], rules: Rules) -> int | None:
    """Find the last accepted call that started an item or, where one must run, that wrote at all."""
    found, board = None, before
    for i, outcome in enumerate(outcomes):
        old = {todo["id"]: todo["status"] for todo in board.todos}
        board = outcome.board
        new = {todo["id"]: todo["status"] for todo in board.todos}
        starts = any(s == "in_progress" and old.get(key) != s for key, s in new.items())
        if outcome.error is None and old != new and (starts or rules.in_progress == "exactly_one"):
            found = i
    return found


def _apply(
    board: Board, operation: Operation, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    match operation:
        case Show():
            return Outcome(operation, board)
        case Reset(goal):
            return Outcome(operation, replace(board, todos=(), goal=goal, next_id=1, refusals={}))
        case Add(contents):
            return _add(board, operation, contents, rules)
        case Change():
            return (yield from _change(board, operation, call, verdicts))
        case Replace():
            return (yield from _replace(board, operation, rules, call, verdicts))


def _add(board: Board, operation: Add, contents: tuple[str, ...], rules: Rules) -> Outcome:
    if not contents:
        raise Refused("items is empty; send at least one text")
    for place, content in enumerate(contents, 1):
        if not content.strip():
            raise Refused(f"item {place} is blank; every item needs a text")
    held = sum(not is_closed(todo) for todo in board.todos)
    if rules.max_items is not None and held + len(contents) > rules.max_items:
        raise Refused(
            f"{len(contents)} more would make {held + len(contents)} items that are not closed; "
            f"at most {rules.max_items} are allowed, so close some or plan larger ones"
        )
    new: list[Todo] = [
        {"id": board.next_id + n, "content": content.strip(), "status": "pending"}
        for n, content in enumerate(contents)
    ]
    after = replace(board, todos=(*board.todos, *new), next_id=board.next_id + len(new))
    return Outcome(operation, after, touched=tuple(todo["id"] for todo in new))


def _change(
    board: Board, change: Change, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    old = board.find(change.id)
    if old is None:
        known = ", ".join(name_of(todo["id"]) for todo in board.todos[:50]) or "none, the list is empty"
        raise Refused(f"there is no item {shorten(repr(change.id))}; the ids are: {known}")
    reason = (change.reason or "").strip()
    if change.status == "blocked" and not reason:
        raise Refused(f"item [{name_of(old['id'])}] can be blocked only with a reason; send one")
    if _exhausted(board, old) and change.status not in ("blocked", "cancelled"):
        raise Refused(
            f"item [{name_of(old['id'])}] was refused {REFUSALS} times and stays blocked: "
            f"{one_line(old.get('reason', ''))}"
        )
    new = _with_status(old, change.status, reason, change.evidence)
    denied: dict[int | str, str] = {}
    if new["status"] == "completed" and old["status"] != "completed":
        new, board, why = yield from _verify(board, new, call, verdicts, fallback=old)
        if why is not None:
            denied[old["id"]] = why
    return Outcome(change, board.with_item(new), touched=(old["id"],), denied=denied)


def _replace(
    board: Board, operation: Replace, rules: Rules, call: int, verdicts: Verdicts
) -> Generator[Question, str | None, Outcome]:
    drafts = operation.items
    if rules.max_items is not None and len(drafts) > rules.max_items:
        raise Refused(f"the list has {len(drafts)} items; at most {rules.max_items} are allowed")
    for place, draft in enumerate(drafts, 1):
        if not draft.content.strip():
            raise Refused(f"item {place} is blank; every item needs a text")
    ids = [str(draft.id) for draft in drafts if draft.id is not None]
    if twice := next((key for key in ids if ids.count(key) > 1), None):
        raise Refused(f"the id {shorten(repr(twice))} stands twice; every id may stand once")
    new, next_id = _identify(board, drafts)
    after = replace(board, next_id=next_id)
    old = {todo["id"]: todo for todo in board.todos}
    running = any(todo["status"] == "in_progress" for todo in new)
    denied: dict[int | str, str] = {}
    for i, todo in enumerate(new):
        was = old.get(todo["id"])
        if was is not None and _exhausted(board, was) and todo["status"] != "cancelled":
            new[i] = was
        elif todo["status"] == "completed" and (was is None or was["status"] != "completed"):
            fallback = _with_status(todo, "pending" if running else "in_progress")
            new[i], after, why = yield from _verify(after, todo, call, verdicts, fallback=fallback)
            running = running or new[i]["status"] == "in_progress"
            if why is not None:
                denied[todo["id"]] = why
    after = replace(after, todos=tuple(new))
    left = {todo["id"] for todo in new}
    dropped = tuple(todo for todo in board.todos if is_open(todo) and todo["id"] not in left)
    touched = tuple(t["id"] for t in new if old.get(t["id"]) != t)
    return Outcome(operation, after, touched=touched, dropped=dropped, denied=denied)


def _identify(board: Board, drafts: Sequence[Draft]) -> tuple[list[Todo], int]:
    """Give each draft its id: its own, that of the first free old item of equal content, or a new number."""
    free: dict[str, list[int | str]] = {}
    cut: dict[str, list[Todo]] = {}
    ids, told = [todo["id"] for todo in board.todos], {draft.id for draft in drafts} - {None}
    unknown = told.difference(ids)  # an id may come back as a nudge shows it
    whole = {short_id(key, ID_SHOWN): key for key in ids if key not in told} if unknown else {}
    for todo in board.todos:
        free.setdefault(todo["content"], []).append(todo["id"])
        if len(todo["content"]) > TEXT_SHOWN:
            cut.setdefault(brief(todo["content"]), []).append(todo)
    next_id, new = board.next_id, []
    for draft in drafts:
        key, content = draft.id, draft.content.strip()
        if key is not None and key in unknown:
            key = whole.get(key, key)
        if meant := cut.get(content):  # as a nudge shows it: its whole text is kept
            at = next((i for i, todo in enumerate(meant) if str(todo["id"]) == str(key)), 0)
            content = meant.pop(at)["content"]
        if key is None and free.get(content):
            key = free[content].pop(0)
        elif key is None:
            key, next_id = next_id, next_id + 1
        item: Todo = {"id": key, "content": content, "status": draft.status}
        if draft.reason:
            item["reason"] = draft.reason
        new.append(item)
    return new, next_id


def _with_status(todo: Todo, status: Status, reason: str = "", evidence: str | None = None) -> Todo:
    new: Todo = {"id": todo["id"], "content": todo["content"], "status": status}
    if reason:
        new["reason"] = reason
    if proof := evidence or todo.get("evidence"):
        new["evidence"] = proof
    return new


def _exhausted(board: Board, todo: Todo) -> bool:
    """Tell whether the verifier has refused an item for good."""
    return todo["status"] == "blocked" and board.refusals.get(str(todo["id"]), 0) >= REFUSALS


def _verify(
    board: Board, todo: Todo, call: int, verdicts: Verdicts, *, fallback: Todo
) -> Generator[Question, str | None, tuple[Todo, Board, str | None]]:
    """Ask once whether an item may be completed; its third refusal in a thread stores it as blocked."""
    key = str(todo["id"])
    if (call, key) not in verdicts:
        verdicts[call, key] = yield Question(todo)
    why = verdicts[call, key]
    if why is None:
        return todo, board, None
    count = board.refusals.get(key, 0) + 1
    board = replace(board, refusals={**board.refusals, key: count})
    return (_with_status(todo, "blocked", why) if count >= REFUSALS else fallback), board, why
