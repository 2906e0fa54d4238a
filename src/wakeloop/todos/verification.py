"""The verifier's say: the third refusal blocks an item."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.operations import Board, Question

KEPT_REFUSALS = 64  # refused items that are gone: one may come back under its id
MAX_REFUSALS = 3  # the verifier's third refusal of an item blocks it

Verdicts = dict[tuple[int, str], str | None]
"""What was answered of an item, by the place of its call and its id: a round may be played again."""


class _RefusalLog(dict[str, list[tuple[int, int]]]):
    """By id: since which age it has which count. The newest of those that share it may add."""

    newest = 0


class Refusals(Mapping[str, int]):
    """Counts by id, in order, that never change: those of a round share one log, each to its own age."""

    def __init__(self, log: _RefusalLog, size: int, age: int = 0) -> None:
        self.log, self.size, self.age = log, size, age

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> "Refusals":
        """Return counts in this form."""
        if isinstance(counts, Refusals):
            return counts
        return cls(_RefusalLog({key: [(0, count)] for key, count in counts.items()}), len(counts))

    def with_one(self, key: str, count: int) -> "Refusals":
        """Return counts with this one, which keeps its place or is the last."""
        if self.age != self.log.newest:  # another has more already
            return Refusals.from_counts(dict(self)).with_one(key, count)
        more = key not in self
        age = self.log.newest = self.age + 1
        self.log.setdefault(key, []).append((age, count))
        return Refusals(self.log, self.size + more, age)

    def __getitem__(self, key: str) -> int:
        if key not in self:
            raise KeyError(key)
        return next(count for age, count in reversed(self.log[key]) if age <= self.age)

    def __contains__(self, key: object) -> bool:
        return key in self.log and self.log[key][0][0] <= self.age  # type: ignore[index]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self.log if key in self)

    def __len__(self) -> int:
        return self.size


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
    return todo["status"] == "blocked" and board.refusals.get(str(todo["id"]), 0) >= MAX_REFUSALS


def ask_verifier(
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
    board = replace(board, refusals=Refusals.from_counts(board.refusals).with_one(key, count))
    return (with_status(todo, "blocked", why) if count >= MAX_REFUSALS else fallback), board, why


def prune_refusals(board: Board) -> dict[str, int]:
    """Keep what the verifier has refused of the items in the list, and of the last ones that are gone."""
    listed = {str(todo["id"]) for todo in board.todos}
    gone = [key for key in board.refusals if key not in listed]
    forgotten = set(gone[:-KEPT_REFUSALS])
    return {key: count for key, count in board.refusals.items() if key not in forgotten}
