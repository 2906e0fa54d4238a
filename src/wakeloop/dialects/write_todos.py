"""The dialect write_todos: one tool, the whole list, JSON."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakeloop.dialects.base import Dialect, JsonList
from wakeloop.dialects.schemas import item_list_schema
from wakeloop.prompts import fill_prompt
from wakeloop.text.characters import to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import Todo, clip_item_texts, is_open
from wakeloop.todos.operations import Board, Draft, Operation, Outcome, Replace

LAST_CHECK_FROM = 3  # a finished list of at least so many items asks the model for a last check


@describe("One item of the list.")
class Item(BaseModel):
    content: str = Field(description="What to do.")
    status: Literal["pending", "in_progress", "completed"] = Field(description="Its status.")


@describe("Write the whole todo list: every item with content and status, once in a reply.")
class Write(BaseModel):
    model_config = ConfigDict(title="write_todos")
    todos: Annotated[list[Item], JsonList, item_list_schema(Item)] = Field(
        description="The whole list, in order."
    )


@dataclass(frozen=True)
class WriteTodos(Dialect):
    """cubepi's vocabulary, and LangChain's: `write_todos(todos)` replaces the list."""

    name: str = "write_todos"
    tools: tuple[type[BaseModel], ...] = (Write,)
    writes: frozenset[str] = frozenset(("write_todos",))
    replaces: bool = True
    numbers_items: bool = False

    def to_operation(self, call: Any) -> Operation:
        """Return the replacement of the list. Items have no ids and are matched by their content."""
        return Replace(tuple(Draft(item.content, item.status) for item in call.todos))

    def refusal(self, operation: Operation, board: Board) -> str | None:
        """Refuse an empty list while items are open."""
        if isinstance(operation, Replace) and not operation.items and any(map(is_open, board.todos)):
            return "the list cannot be emptied while items are unfinished; complete or keep them"
        return None

    def render_error(self, text: str) -> str:
        """Render a refusal as a JSON object."""
        return json.dumps({"error": text}, ensure_ascii=False)

    def render_result(self, outcome: Outcome) -> str:
        """Render the stored list as a JSON object. A finished list asks for a last check."""
        todos = outcome.board.todos
        short = list(map(clip_item_texts, todos))
        result: dict[str, Any] = {"todos": [_format_item(todo) for todo in short]}
        if outcome.dropped:
            result["dropped"] = [clip_item_texts(todo)["content"] for todo in outcome.dropped]
        if outcome.denied:
            contents = {todo["id"]: todo["content"] for todo in short}
            result["not_accepted"] = {contents[key]: why for key, why in outcome.denied.items()}
        cut_note = self.render_cut_note(todos, short)
        if cut_note:
            result["cut"] = cut_note[0]
        if len(todos) >= LAST_CHECK_FROM and all(todo["status"] == "completed" for todo in todos):
            result["note"] = fill_prompt("last_check", self.name, self.prompts)
        return json.dumps(result, ensure_ascii=False)

    def render_item(self, todo: Todo) -> str:
        """Render `  - [status] content`."""
        note = f": {to_one_line(todo['reason'])}" if "reason" in todo else ""
        return f"  - [{todo['status']}{note}] {to_one_line(todo['content'])}"


def _format_item(todo: Todo) -> dict[str, Any]:
    return {key: todo[key] for key in ("content", "status", "reason") if key in todo}
