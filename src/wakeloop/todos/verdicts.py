"""The verifier's say: the third refusal blocks an item."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.operations import Board, Question

KEPT = 64  # refused items that are gone: one may come back under its id
REFUSALS = 3  # the verifier's third refusal of an item blocks it

Verdicts = dict[tuple[int, str], str | None]
"""What was answered of an item, by the place of its call and its id: a round may be played again."""


SHARDS = 64


class Refusals(Mapping[str, int]):
    """Counts by id, in order, that never change: one more copies a shard, not all of them."""

    def __init__(self, shards: tuple[dict[str, tuple[int, int]], ...], size: int = 0) -> None:
        self.shards, self.size = shards, size  # by id: its place in the order, its count

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Refusals":
        """Return counts in this form."""
        if isinstance(counts, Refusals):
            return counts
        shards: tuple[dict[str, tuple[int, int]], ...] = tuple({} for _ in range(SHARDS))
        for place, (key, count) in enumerate(counts.items()):
            shards[hash(key) % SHARDS][key] = place, count
        return cls(shards, len(counts))

    def with_one(self, key: str, count: int) -> "Refusals":
        """Return counts with this one, which keeps its place or is the last."""
        at = hash(key) % SHARDS
        shards, old = list(self.shards), self.shards[at].get(key)
        shards[at] = {**shards[at], key: (self.size if old is None else old[0], count)}
        return Refusals(tuple(shards), self.size + (old is None))

    def __getitem__(self, key: str) -> int:
        return self.shards[hash(key) % SHARDS][key][1]

    def __iter__(self) -> Iterator[str]:
        placed = {key: place for shard in self.shards for key, (place, _) in shard.items()}
        return iter(sorted(placed, key=placed.__getitem__))

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
    board = replace(board, refusals=Refusals.of(board.refusals).with_one(key, count))
    return (with_status(todo, "blocked", why) if count >= REFUSALS else fallback), board, why


def remembered(board: Board) -> dict[str, int]:
    """Keep what the verifier has refused of the items in the list, and of the last ones that are gone."""
    listed = {str(todo["id"]) for todo in board.todos}
    gone = [key for key in board.refusals if key not in listed]
    forgotten = set(gone[:-KEPT])
    return {key: count for key, count in board.refusals.items() if key not in forgotten}
