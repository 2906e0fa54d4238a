"""The dialect parley: numbered items, appended and updated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from wakeloop.dialects.base import Dialect, Texts
from wakeloop.errors import SettingsError
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import indented, name_of, one_line
from wakeloop.text.told import told
from wakeloop.todos.items import Status, Todo, brief, count_closed, count_open, in_brief, is_closed
from wakeloop.todos.operations import Add, Change, Operation, Outcome, Show

Word = Literal["in_progress", "done", "blocked", "cancelled", "open"]
MEANING: dict[Word, Status] = {
    "in_progress": "in_progress",
    "done": "completed",
    "blocked": "blocked",
    "cancelled": "cancelled",
    "open": "pending",
}
WORDS = {status: word for word, status in MEANING.items()}


def _no_bool(value: Any) -> Any:
    """Refuse what Python would take for 1 or 0."""
    if isinstance(value, bool):
        raise ValueError("the number of an item is due here")  # noqa: TRY004 - pydantic reads ValueError
    return value


@told("Add items to the todo list, one text for each step. Returns the number of each new item.")
class Write(BaseModel):
    model_config = ConfigDict(title="todo_write")
    items: Annotated[Texts, WithJsonSchema({"type": "array", "items": {"type": "string"}})] = Field(
        description="The texts of the new items, in the order of work."
    )


@told("Change the status of one item of the todo list.")
class Update(BaseModel):
    model_config = ConfigDict(title="todo_update")
    id: Annotated[int | str, BeforeValidator(_no_bool), WithJsonSchema({"type": "integer"})] = Field(
        description="The number of the item."
    )
    status: Word = Field(description="The new status.")
    reason: Annotated[str | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="Why; required for blocked."
    )


@told("Show the whole todo list with numbers, statuses and the reasons of blocked items.")
class List(BaseModel):
    model_config = ConfigDict(title="todo_list")


@dataclass(frozen=True)
class Parley(Dialect):
    """agentparley's vocabulary: `todo_write(items)`, `todo_update(id, status, reason)`, `todo_list()`."""

    name: str = "parley"
    tools: tuple[type[BaseModel], ...] = (Write, Update, List)
    writes: frozenset[str] = frozenset(("todo_write", "todo_update"))
    statuses: tuple[str, ...] | None = None

    def suited(self, settings: LoopSettings) -> Self:
        """Return the dialect with the statuses that the settings leave to the model."""
        own = super().suited(settings)
        if settings.statuses is None:
            return own
        if wrong := [word for word in settings.statuses if word not in MEANING]:
            raise SettingsError(
                f"The dialect 'parley' has no status {wrong[0]!r}; it has {', '.join(MEANING)}."
            )
        words: Any = Literal[settings.statuses]
        field = (words, Field(description="The new status."))
        narrow = create_model("Update", __base__=Update, __doc__=Update.__doc__, status=field)
        return replace(own, tools=(Write, narrow, List), statuses=settings.statuses)

    def instructions(self, settings: LoopSettings) -> str:
        """Return the instructions; plain ones where the model only closes and blocks."""
        plain = self.statuses is not None and "in_progress" not in self.statuses
        if plain and settings.inject_todo_instructions and "instructions" not in settings.prompts:
            return fill("instructions_plain", self.name, {})
        return super().instructions(settings)

    def operation(self, call: Any) -> Operation:
        """Turn a call into an operation."""
        match call:
            case Write():
                return Add(tuple(call.items))
            case Update():
                return Change(call.id, MEANING[call.status], call.reason)
            case _:
                return Show()

    def result(self, outcome: Outcome) -> str:
        """Say what is stored: numbers, statuses, counts."""
        todos = outcome.board.todos
        match outcome.operation:
            case Add():
                new = [todo for key in outcome.touched if (todo := outcome.board.find(key))]
                short = [in_brief(todo) for todo in new]
                lines = [f"Stored {_items(len(new))}:", *map(self.line, short), *self.cut_note(new, short)]
                return "\n".join(lines)
            case Change() as change:
                todo = outcome.board.find(change.id)
                assert todo is not None  # noqa: S101 - the rules have found it
                if why := outcome.denied.get(todo["id"]):
                    kept = WORDS[todo["status"]]
                    told = f"[{name_of(todo['id'])}] was not accepted as done: {indented(why)}"
                    return self.error(f"{told}. It is stored as {kept}.")
                told = f"[{name_of(todo['id'])}] {WORDS[todo['status']]}: {brief(todo['content'])}"
                return f"{told}. {self.count(todos)}"
            case _:
                return "\n".join([*map(self.whole_line, todos), self.count(todos)])

    def count(self, todos: Sequence[Todo]) -> str:
        """Count the list in a sentence."""
        closed = count_closed(todos)
        return (
            f"{closed} of {len(todos)} closed, {count_open(todos)} open." if todos else "The list is empty."
        )

    def line(self, todo: Todo) -> str:
        """Render `  [id] text`, with what holds an item or that it is being worked on."""
        note = ""
        if todo["status"] == "blocked":
            note = f" (blocked: {one_line(todo.get('reason', ''))})"
        elif todo["status"] == "in_progress":
            note = " (in progress)"
        return f"  [{name_of(todo['id'])}] {one_line(todo['content'])}{note}"

    def whole_line(self, todo: Todo) -> str:
        """Render an item of the whole list, where closed ones stand too."""
        return self.line(todo) if not is_closed(todo) else f"{self.line(todo)} ({WORDS[todo['status']]})"

    def shows(self, outcome: Outcome) -> bool:
        """Tell whether a result shows every open item: the list does, and the write of a first plan."""
        match outcome.operation:
            case Show():
                return True
            case Add():
                return count_open(outcome.board.todos) == len(outcome.touched)
            case _:
                return False


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"
