"""Asking the verifier: the third refusal blocks an item."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.operations import Board, Question

# Refused items may leave the list and come back under the same id. So the counts of some that left are kept.
KEPT_REFUSALS = 64
MAX_REFUSALS = 3

Verdicts = dict[tuple[int, str], str | None]
"""The answers by place of the call and id of the item, so that a replayed round asks nothing twice."""


class _RefusalLog(dict[str, list[tuple[int, int]]]):
    """The history of each count: pairs of age and count, by id. Only the newest owner may add to it."""

    newest = 0


class Refusals(Mapping[str, int]):
    """Immutable counts by id. Those of one round share a log, and each reads it up to its own age.

    A copy for each refusal would make the cost of a round grow with its square.
    """

    def __init__(self, log: _RefusalLog, size: int, age: int = 0) -> None:
        self.log, self.size, self.age = log, size, age

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> "Refusals":
        """Return counts as `Refusals`."""
        if isinstance(counts, Refusals):
            return counts
        return cls(_RefusalLog({key: [(0, count)] for key, count in counts.items()}), len(counts))

    def with_one(self, key: str, count: int) -> "Refusals":
        """Return counts with this one set; a new id comes last."""
        if self.age != self.log.newest:  # another owner of the log has added to it
            return Refusals.from_counts(dict(self)).with_one(key, count)
        more = key not in self
        age = self.log.newest = self.age + 1
        self.log.setdefault(key, []).append((age, count))
        return Refusals(self.log, self.size + more, age)

    def __getitem__(self, key: str) -> int:
        if key in self:
            for age, count in reversed(self.log[key]):
                if age <= self.age:
                    return count
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.log and self.log[key][0][0] <= self.age  # type: ignore[index]

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self.log)

    def __len__(self) -> int:
        return self.size


def with_status(todo: Todo, status: Status, reason: str = "", evidence: str | None = None) -> Todo:
    """Return an item with another status. Evidence stays; a reason goes, since it explains the old status."""
    new: Todo = {"id": todo["id"], "content": todo["content"], "status": status}
    if reason:
        new["reason"] = reason
    evidence = evidence or todo.get("evidence")
    if evidence:
        new["evidence"] = evidence
    return new


def is_exhausted(board: Board, todo: Todo) -> bool:
    """Return whether the verifier has refused an item for good."""
    return todo["status"] == "blocked" and board.refusals.get(str(todo["id"]), 0) >= MAX_REFUSALS


def ask_verifier(
    board: Board, todo: Todo, call: int, verdicts: Verdicts, *, fallback: Todo
) -> Generator[Question, str | None, tuple[Todo, Board, str | None]]:
    """Ask once whether an item may be completed.

    Returns the item to store, the board with its refusals, and the reason if the verifier refused. A refused
    item is stored as `fallback`, and at its third refusal in a thread as blocked.
    """
    key = str(todo["id"])
    if (call, key) not in verdicts:
        verdicts[call, key] = yield Question(todo)
    why = verdicts[call, key]
    if why is None:
        return todo, board, None
    count = board.refusals.get(key, 0) + 1
    board = replace(board, refusals=Refusals.from_counts(board.refusals).with_one(key, count))
    if count >= MAX_REFUSALS:
        return with_status(todo, "blocked", why), board, why
    return fallback, board, why


def prune_refusals(board: Board) -> dict[str, int]:
    """Return the counts of the items in the list, and of the last ones that left it."""
    listed = {str(todo["id"]) for todo in board.todos}
    gone = [key for key in board.refusals if key not in listed]
    counts = dict(board.refusals)
    for key in gone[:-KEPT_REFUSALS]:
        del counts[key]
    return counts
