"""The dialect loki: a goal and numbered items, JSON results."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from wakeloop.dialects.base import Dialect
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, is_blank, shorten, to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import OperationRefused, Todo, clip_text, count_closed, is_closed, select_for_nudge
from wakeloop.todos.operations import Add, Change, Operation, Outcome, Reset, Show

MAX_ID_DIGITS = 18  # no list gets this long, and Python refuses to read 4,300 digits
AnyId = Annotated[Any, WithJsonSchema({"type": "integer"})]


@describe("Begin a new todo list for a goal; the old list and goal are replaced.")
class Init(BaseModel):
    model_config = ConfigDict(title="todo__init")
    goal: str = Field(description="What the list is for, in a sentence.")


@describe("Add one task to the todo list. Returns its id.")
class AddTask(BaseModel):
    model_config = ConfigDict(title="todo__add")
    task: str = Field(description="The text of the task: one focused action.")


@describe("Mark a task of the todo list as done.")
class Done(BaseModel):
    model_config = ConfigDict(title="todo__done", json_schema_extra={"required": ["id"]})
    id: AnyId = Field(None, description="The id of the task.")


@describe("Show the goal, the progress and all tasks of the todo list.")
class List(BaseModel):
    model_config = ConfigDict(title="todo__list")


@describe("Empty the todo list and the goal.")
class Clear(BaseModel):
    model_config = ConfigDict(title="todo__clear")


@dataclass(frozen=True)
class Loki(Dialect):
    """loki's vocabulary, version 2. Its tools exist only while `auto_continue` is on."""

    name: str = "loki"
    tools: tuple[type[BaseModel], ...] = (Init, AddTask, Done, List, Clear)
    writes: frozenset[str] = frozenset(("todo__init", "todo__add", "todo__done", "todo__clear"))
    needs_auto_continue: bool = True
    renumbers: bool = True

    def to_operation(self, call: Any) -> Operation:
        """Return the operation of a call. An empty task or an id that is not a number is a soft error."""
        match call:
            case Init():
                return Reset(call.goal.strip())
            case AddTask():
                if is_blank(call.task):
                    raise OperationRefused("the task is empty; send its text")
                return Add((call.task,))
            case Done():
                return Change(_parse_id(call.id), "completed")
            case Clear():
                return Reset()
            case _:
                return Show()

    def render_error(self, text: str) -> str:
        """Render a soft error as a JSON object."""
        return _to_json({"error": text})

    def render_result(self, outcome: Outcome) -> str:
        """Render the stored items as a JSON object."""
        board = outcome.board
        match outcome.operation:
            case Reset(goal):
                return _to_json({"goal": goal, "items": []})
            case Add():
                return _to_json({"id": (outcome.touched or outcome.repeated)[0]})
            case Change(key):
                if outcome.denied:
                    why = next(iter(outcome.denied.values()))
                    return self.render_error(f"task {key} was not accepted as done: {why}")
                progress = format_progress(board.todos)
                return _to_json({"id": _parse_id(key), "status": "done", "progress": progress})
            case _:
                items = list(map(_format_item, board.todos))
                progress = format_progress(board.todos)
                return _to_json({"goal": board.goal, "progress": progress, "items": items})

    def render_list(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render goal, progress and items; of a long list, only the next open ones and the counts."""
        lines = [f"Progress: {format_progress(todos)} completed"]
        if goal:
            lines.insert(0, f"Goal: {clip_text(goal)}")
        shown = list(todos)
        if len(shown) > settings.nudge_items:
            shown, _ = select_for_nudge(todos, settings.nudge_items)
        hidden = self.render_hidden_count(todos, len(todos) - len(shown), settings)
        return "\n".join([*lines, *self.render_items(shown, settings), *hidden])

    def render_item(self, todo: Todo) -> str:
        """Render `  ○ 1. text`, with `✓` for a closed item."""
        note = ""
        if todo["status"] == "blocked":
            note = f" (blocked: {to_one_line(todo.get('reason', ''))})"
        mark = "✓" if is_closed(todo) else "○"
        return f"  {mark} {format_id(todo['id'])}. {to_one_line(todo['content'])}{note}"

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Return whether a result shows every open item: only `todo__list` does."""
        return isinstance(outcome.operation, Show)


def format_progress(todos: Sequence[Todo]) -> str:
    """Render how many items are closed of how many, as in `1/3`."""
    return f"{count_closed(todos)}/{len(todos)}"


def _parse_id(value: Any) -> int | str:
    """Return an id as a number, also from a string of digits. One with too many digits stays a string."""
    if value is None:
        raise OperationRefused("the id is missing; send the number of a task")
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    text = str(number).strip()
    if isinstance(value, bool) or not text.isdecimal():
        raise OperationRefused(f"the id {shorten(repr(value))} is not a number")
    return int(text) if len(text) <= MAX_ID_DIGITS else text


def _format_item(todo: Todo) -> Mapping[str, Any]:
    words = {"completed": "done", "in_progress": "pending"}  # loki knows only pending and done
    item = {"id": todo["id"], "text": todo["content"], "status": words.get(todo["status"], todo["status"])}
    return {**item, "reason": todo["reason"]} if "reason" in todo else item


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
