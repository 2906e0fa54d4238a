"""The dialect checklist: one tool, the whole list, rendered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from wakeloop.dialects.base import Dialect, ListOrText
from wakeloop.dialects.schemas import schema_part
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, indent_lines, shorten, to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import Todo, in_brief
from wakeloop.todos.operations import Board, Draft, Operation, Outcome, Replace

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]", "blocked": "[!]"}


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


@describe("One item of the list.")
class Item(BaseModel):
    id: Annotated[str | None, BeforeValidator(_text), WithJsonSchema({"type": "string"})] = Field(
        None, description="A short id of your choice, kept from write to write."
    )
    text: str = Field(description="What is to be done.")
    status: Annotated[Literal["pending", "in_progress", "completed"], BeforeValidator(_lower)] = Field(
        "pending", description="How it stands."
    )


@describe("Write the whole todo list: every item with its id, text and status. Returns the list as stored.")
class Write(BaseModel):
    model_config = ConfigDict(title="todo")
    items: Annotated[list[Item], ListOrText, schema_part(Item)] = Field(
        description="The whole list, in order."
    )


@dataclass(frozen=True)
class Checklist(Dialect):
    """The lesson's vocabulary: `todo(items)` replaces the list and returns it rendered."""

    name: str = "checklist"
    tools: tuple[type[BaseModel], ...] = (Write,)
    writes: frozenset[str] = frozenset(("todo",))
    replaces: bool = True
    max_items: int | None = None

    def suited(self, settings: LoopSettings) -> Self:
        """Return the dialect that knows how long a list may be, for its own words."""
        return replace(super().suited(settings), max_items=settings.max_items)

    def misfit(self, name: str, error: ValidationError) -> str:
        """Say what is wrong with a call; a list that is none gets the lesson's words."""
        first = error.errors(include_url=False, include_context=False)[0]
        return "items must be a list" if first["loc"] == ("items",) else super().misfit(name, error)

    def operation(self, call: Any) -> Operation:
        """Turn a call into a replacement; a missing id is the position."""
        return Replace(
            tuple(
                Draft(item.text.strip(), item.status, (item.id or "").strip() or str(place))
                for place, item in enumerate(call.items, 1)
            )
        )

    def refusal(self, operation: Operation, board: Board) -> str | None:
        """Refuse a list that is too long in the lesson's words."""
        most = self.max_items
        if most is not None and isinstance(operation, Replace) and len(operation.items) > most:
            return f"Max {most} items allowed, not {len(operation.items)}"
        return None

    def result(self, outcome: Outcome) -> str:
        """Render the stored list, and what the write left out or the verifier refused."""
        notes = [
            f"#{format_id(key)} was not accepted as completed: {indent_lines(why)}"
            for key, why in outcome.denied.items()
        ]
        if outcome.dropped:
            names = ", ".join(
                f"#{format_id(todo['id'])}: {shorten(to_one_line(todo['content']))}"
                for todo in outcome.dropped
            )
            notes.append(f"dropped while open: {names}")
        todos = outcome.board.todos
        short = [in_brief(todo) for todo in todos]
        notes += self.cut_note(todos, short)
        return "\n\n".join([rendered(todos, map(self.line, short)), *notes])

    def listing(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the whole list as its tool does; a long one as the next open items and the counts."""
        if len(todos) <= settings.nudge_items:
            return rendered(todos, self.lines(todos, settings))
        return super().listing(todos, goal, settings)

    def line(self, todo: Todo) -> str:
        """Render `[ ] #id: text`."""
        note = f" (blocked: {to_one_line(todo.get('reason', ''))})" if todo["status"] == "blocked" else ""
        return f"{MARKS[todo['status']]} #{format_id(todo['id'])}: {to_one_line(todo['content'])}{note}"


def rendered(todos: Sequence[Todo], lines: Iterable[str]) -> str:
    """Render a list with a blank line and `(1/3 completed)` beneath."""
    if not todos:
        return "No todos."
    done = sum(todo["status"] == "completed" for todo in todos)
    return "\n".join([*lines, "", f"({done}/{len(todos)} completed)"])
