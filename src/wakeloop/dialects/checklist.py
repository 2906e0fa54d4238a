"""The dialect checklist: one tool, the whole list, rendered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from wakeloop.dialects.base import Dialect, JsonList
from wakeloop.dialects.schemas import item_list_schema
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, indent_lines, shorten, to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import Todo, clip_item_texts
from wakeloop.todos.operations import Board, Draft, Operation, Outcome, Replace

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]", "blocked": "[!]"}


def _to_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _to_lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


@describe("One item of the list.")
class Item(BaseModel):
    id: Annotated[str | None, BeforeValidator(_to_text), WithJsonSchema({"type": "string"})] = Field(
        None, description="A short id of your choice, kept from write to write."
    )
    text: str = Field(description="What to do.")
    status: Annotated[Literal["pending", "in_progress", "completed"], BeforeValidator(_to_lower)] = Field(
        "pending", description="Its status."
    )


@describe("Write the whole todo list: every item with its id, text and status. Returns the list as stored.")
class Write(BaseModel):
    model_config = ConfigDict(title="todo")
    items: Annotated[list[Item], JsonList, item_list_schema(Item)] = Field(
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

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect with the limit of items, which its messages name."""
        return replace(super().for_settings(settings), max_items=settings.max_items)

    def explain_misfit(self, name: str, error: ValidationError) -> str:
        """Return what is wrong with a call. If `items` is not a list, the lesson has its own words."""
        first = error.errors(include_url=False, include_context=False)[0]
        if first["loc"] == ("items",):
            return "items must be a list"
        return super().explain_misfit(name, error)

    def to_operation(self, call: Any) -> Operation:
        """Return the replacement of the list. An item without an id gets its position as its id."""
        drafts = []
        for place, item in enumerate(call.items, 1):
            key = (item.id or "").strip() or str(place)
            drafts.append(Draft(item.text.strip(), item.status, key))
        return Replace(tuple(drafts))

    def refusal(self, operation: Operation, board: Board) -> str | None:
        """Refuse a list that is too long, in the lesson's words."""
        most = self.max_items
        if most is not None and isinstance(operation, Replace) and len(operation.items) > most:
            return f"Max {most} items allowed, not {len(operation.items)}"
        return None

    def render_result(self, outcome: Outcome) -> str:
        """Render the stored list, and which items it left out or the verifier refused."""
        notes = []
        for key, why in outcome.denied.items():
            notes.append(f"#{format_id(key)} was not accepted as completed: {indent_lines(why)}")
        names = ", ".join(
            f"#{format_id(todo['id'])}: {shorten(to_one_line(todo['content']))}" for todo in outcome.dropped
        )
        if names:
            notes.append(f"dropped while open: {names}")
        todos = outcome.board.todos
        short = list(map(clip_item_texts, todos))
        notes += self.render_cut_note(todos, short)
        return "\n\n".join([render_checklist(todos, map(self.render_item, short)), *notes])

    def render_list(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the whole list as the tool does, or for a long list the next open items and the counts."""
        if len(todos) <= settings.nudge_items:
            return render_checklist(todos, self.render_items(todos, settings))
        return super().render_list(todos, goal, settings)

    def render_item(self, todo: Todo) -> str:
        """Render `[ ] #id: text`."""
        note = ""
        if todo["status"] == "blocked":
            note = f" (blocked: {to_one_line(todo.get('reason', ''))})"
        return f"{MARKS[todo['status']]} #{format_id(todo['id'])}: {to_one_line(todo['content'])}{note}"


def render_checklist(todos: Sequence[Todo], lines: Iterable[str]) -> str:
    """Render a list, and below it a blank line and `(1/3 completed)`."""
    if not todos:
        return "No todos."
    done = sum(todo["status"] == "completed" for todo in todos)
    return "\n".join([*lines, "", f"({done}/{len(todos)} completed)"])
