"""The dialect write_todos: one tool, the whole list, JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from wakeloop.dialects.base import Dialect, JsonList, TextList
from wakeloop.dialects.schemas import item_list_schema
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import Status, Todo, clip_item_texts, is_open, open_items
from wakeloop.todos.operations import Board, Complete, Draft, Operation, Outcome, Replace

LAST_CHECK_FROM = 3  # a finished list of at least so many items asks the model for a last check
# Where items can be completed alone, the result of a longer list has only a count if it was stored as sent.
FULL_ECHO_LIMIT = 5
Texts = Annotated[TextList, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


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


@describe("One item of the list.")
class NewItem(BaseModel):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


@describe("Send the whole todo list, or only the texts of completed items.")
class WriteOrComplete(BaseModel):
    model_config = ConfigDict(title="write_todos")
    todos: Annotated[list[NewItem] | None, JsonList, item_list_schema(NewItem, required=["content"])] = None
    completed: Texts = Field(default_factory=list)

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if self.todos is None and not self.completed:
            raise ValueError("send todos, or the texts of completed items")
        return self


@dataclass(frozen=True)
class WriteTodos(Dialect):
    """cubepi's vocabulary, and LangChain's: `write_todos(todos)` replaces the list.

    Unless one item must be in progress at all times, `write_todos(completed)` completes some by their texts.
    """

    name: str = "write_todos"
    tools: tuple[type[BaseModel], ...] = (Write,)
    writes: frozenset[str] = frozenset(("write_todos",))
    replaces: bool = True
    numbers_items: bool = False

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect with or without a way to complete items alone."""
        own = super().for_settings(settings)
        if settings.in_progress == "exactly_one":
            return own
        return replace(own, tools=(WriteOrComplete,), variant="by_text", next_items=1)

    def to_operation(self, call: Any) -> Operation:
        """Return the operation of a call. Items have no ids and are matched by their content."""
        completed = getattr(call, "completed", ())
        if call.todos is None:
            return Complete(tuple(completed))
        statuses: dict[str, Status] = dict.fromkeys(completed, "completed")
        drafts = [Draft(item.content, statuses.get(item.content, item.status)) for item in call.todos]
        return Replace(tuple(drafts))

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
        if self.variant and _is_known(outcome):
            left = open_items(todos)
            result = {"open": len(left)}
            # the next one, if the model has not started it
            if left and isinstance(outcome.operation, Complete) and not outcome.has_other_calls:
                result["next"] = clip_item_texts(left[0])["content"]
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

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Return whether the call or its result shows every open item."""
        return not isinstance(outcome.operation, Complete)

    def contents_in(self, args: Mapping[str, Any], result: str) -> list[str]:
        """Return the contents of a list that was sent whole, and stored."""
        if not result.startswith(('{"todos"', '{"open"')) or not isinstance(args.get("todos"), list):
            return []
        return [str(row.get("content")).strip() for row in args["todos"] if isinstance(row, dict)]

    def render_item(self, todo: Todo) -> str:
        """Render `  - [status] content`."""
        note = f": {to_one_line(todo['reason'])}" if "reason" in todo else ""
        return f"  - [{todo['status']}{note}] {to_one_line(todo['content'])}"


def _is_known(outcome: Outcome) -> bool:
    """Return whether the model knows the list from what it sent."""
    if isinstance(outcome.operation, Complete):
        return True
    if not isinstance(outcome.operation, Replace) or len(outcome.board.todos) <= FULL_ECHO_LIMIT:
        return False
    sent = [(draft.content.strip(), draft.status) for draft in outcome.operation.items]
    return [(todo["content"], todo["status"]) for todo in outcome.board.todos] == sent


def _format_item(todo: Todo) -> dict[str, Any]:
    return {key: todo[key] for key in ("content", "status", "reason") if key in todo}
