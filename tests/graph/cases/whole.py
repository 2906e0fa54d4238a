"""A dialect that replaces the whole list, registered from outside the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict

from wakeloop import LoopSettings
from wakeloop.dialects import Dialect
from wakeloop.dialects.base import JsonList
from wakeloop.testing import calls
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Draft, Operation, Outcome, Replace


class Item(BaseModel):
    """One item."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]


class Write(BaseModel):
    """Replace the list."""

    model_config = ConfigDict(title="write_all")
    todos: Annotated[list[Item], JsonList]


@dataclass(frozen=True)
class Whole(Dialect):
    """One tool that sends the whole list."""

    name: str = "whole"
    tools: tuple[type[BaseModel], ...] = (Write,)
    writes: frozenset[str] = frozenset(("write_all",))
    replaces: bool = True

    def to_operation(self, call: Any) -> Operation:
        return Replace(tuple(Draft(item.content, item.status) for item in call.todos))

    def render_result(self, outcome: Outcome) -> str:
        dropped = f" dropped: {[todo['content'] for todo in outcome.dropped]}" if outcome.dropped else ""
        return f"Stored {len(outcome.board.todos)} items.{dropped}"

    def render_item(self, todo: Todo) -> str:
        return f"  [{todo['id']}] {todo['content']}"


SETTINGS = LoopSettings(
    dialect="parley",
    prompts={
        "instructions": "Send the whole list.",
        "nudge": "$open of $total are open.\n$list",
        "correction": "$open are open.\n$list",
        "explain": "$open are open.\n$list",
        "nag": "[$rounds rounds, $open open]",
    },
)
WORDS = {"p": "pending", "i": "in_progress", "c": "completed", "x": "cancelled"}


def items(short: str) -> list[dict[str, str]]:
    """Return items by their short names: `a:p b:i`."""
    pairs = [part.split(":") for part in short.split()]
    return [{"content": content, "status": WORDS.get(status, status)} for content, status in pairs]


def whole(*lists: str, text: str = "", others: Sequence[Any] = ()) -> Any:
    """Return a reply that writes these lists, each with its own call."""
    return calls(*(("write_all", {"todos": items(short)}) for short in lists), *others, text=text)
