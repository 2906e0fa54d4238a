"""The verifier's say: the third refusal blocks an item."""

from collections.abc import Generator
from dataclasses import replace

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.operations import Board, Question

REFUSALS = 3  # the verifier's third refusal of an item blocks it

Verdicts = dict[tuple[int, str], str | None]
"""What was answered of an item, by the place of its call and its id: a round may be played again."""


def with_status(todo: Todo, status: Status, reason: str = "", evidence: str | None = None) -> Todo:
    """Return an item with another status; a reason is of this status alone, evidence stays."""
    new: Todo = {"id": todo["id"], "content": todo["content"], "status": status}
    if reason:
        new["reason"] = reason
    if proof := evidence or todo.get("evidence"):
        new["evidence"] = proof
    return new


def is_exhausted(board: Board, todo: Todo) -> bool:
    """Tell whether the verifier has refused an item for good."""
    return todo["status"] == "blocked" and board.refusals.get(str(todo["id"]), 0) >= REFUSALS


def verify(
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
    return (with_status(todo, "blocked", why) if count >= REFUSALS else fallback), board, why
