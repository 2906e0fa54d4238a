"""The dialect parley: numbered items, appended and updated."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, create_model

from wakeloop.dialects.base import Dialect
from wakeloop.dialects.parley_calls import (
    STATUS_TO_WORD,
    WORD_TO_STATUS,
    List,
    Plan,
    ShowAll,
    Update,
    UpdateSeveral,
    Write,
)
from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, indent_lines, to_one_line
from wakeloop.todos.items import (
    Todo,
    clip_item_texts,
    clip_text,
    count_closed,
    count_open,
    count_running,
    is_closed,
    is_open,
)
from wakeloop.todos.operations import Add, Board, Change, ChangeSeveral, Operation, Outcome, Show

SEARCH_SPAN = (
    64  # items among which the next one is looked for: a round of n calls is not to cost their square
)
FULL_ECHO_LIMIT = (
    5  # new items that a result repeats with their texts; of more it names the first and the last
)
STORED_RANGE = re.compile(r"Stored \d+ items, \[(\d{1,15})\] to \[(\d{1,15})\]\.")
CLOSING_HINT = "Close each in the reply that starts the next."


@dataclass(frozen=True)
class Parley(Dialect):
    """agentparley's vocabulary: `todo_write(items)`, `todo_update(id, status, reason)`, `todo_list()`.

    Where the settings leave all statuses to the model, `todo_update` takes several items at once, and words
    and results lead to one reply an item: closed in the reply that starts the next. (Not where one has to be
    in progress all the time.)
    """

    name: str = "parley"
    tools: tuple[type[BaseModel], ...] = (Plan, UpdateSeveral, ShowAll)
    writes: frozenset[str] = frozenset(("todo_write", "todo_update"))
    statuses: tuple[str, ...] | None = None
    next_items: int = 1

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect with the statuses that the settings leave to the model."""
        own, known = super().for_settings(settings), settings.statuses
        if settings.in_progress == "exactly_one" or (known is not None and "in_progress" not in known):
            own = replace(own, variant="plain", next_items=0)
        if known is None:
            return own
        if wrong := [word for word in known if word not in WORD_TO_STATUS]:
            raise SettingsError(
                f"The dialect 'parley' has no status {wrong[0]!r}; it has {', '.join(WORD_TO_STATUS)}."
            )
        words: Any = Literal[known]
        field = (words, Field(description="The new status."))
        write, base, show = self.tools if "in_progress" in known else (Write, Update, List)
        narrow = create_model(base.__name__, __base__=base, __doc__=base.__doc__, status=field)
        return replace(own, tools=(write, narrow, show), statuses=known)

    def to_operation(self, call: Any) -> Operation:
        """Turn a call into an operation."""
        match call:
            case Write():
                return Add(tuple(call.items))
            case Update():
                return Change(call.id, WORD_TO_STATUS[call.status], call.reason)
            case UpdateSeveral():
                status = WORD_TO_STATUS[call.status]
                changes = tuple(Change(key, status, call.reason, as_shown=True) for key in call.numbers)
                return changes[0] if len(changes) == 1 else ChangeSeveral(changes)
            case _:
                return Show()

    def render_result(self, outcome: Outcome) -> str:
        """Say what is stored: numbers, statuses, counts."""
        todos = outcome.board.todos
        match outcome.operation:
            case Add():
                return self.render_added(outcome)
            case Change() | ChangeSeveral():
                return self.render_changed(outcome)
            case _:
                return "\n".join([*map(self.render_any_item, todos), self.render_counts(todos)])

    def render_added(self, outcome: Outcome) -> str:
        """Say what is stored: a long plan, where the call's texts stand as sent, by its numbers alone."""
        new = [todo for key in outcome.touched if (todo := outcome.board.find(key))]
        sent = isinstance(outcome.operation, Add) and outcome.operation.contents
        if not self.variant and len(new) > FULL_ECHO_LIMIT and tuple(todo["content"] for todo in new) == sent:
            first, last = _format_ids([new[0]["id"]]), _format_ids([new[-1]["id"]])
            lines = [f"Stored {_format_count(len(new))}, {first} to {last}."]
        else:
            short = [clip_item_texts(todo) for todo in new]
            told = f"Stored {_format_count(len(new))}:" if new else "Stored nothing."
            lines = [told, *map(self.render_item, short), *self.render_cut_note(new, short)]
        if outcome.repeated:
            lines.append(f"Already open: {_format_ids(outcome.repeated)}.")
        if not self.variant and len(new) == count_open(outcome.board.todos) > 1:
            lines.append(CLOSING_HINT)
        return "\n".join(lines)

    def numbers_in(self, result: str) -> range:
        """Read the numbers of a long plan in its result."""
        told = STORED_RANGE.match(result)
        return range(int(told[1]), int(told[2]) + 1) if told else range(0)

    def render_changed(self, outcome: Outcome) -> str:
        """Say how items stand after a change, and which is next where that is not begun beside it."""
        todos = outcome.board.todos
        found = [todo for key in outcome.touched if (todo := outcome.board.find(key))]
        denied = [
            self.render_denial(todo, outcome.denied[todo["id"]])
            for todo in found
            if todo["id"] in outcome.denied
        ]
        stored = [todo for todo in found if todo["id"] not in outcome.denied]
        if not stored:
            return self.render_error(" ".join(denied))
        word = STATUS_TO_WORD[stored[0]["status"]]
        if self.variant:
            counts = self.render_counts(todos)
            return f"[{format_id(stored[0]['id'])}] {word}: {clip_text(stored[0]['content'])}. {counts}"
        names = _format_ids(todo["id"] for todo in stored)
        led = []
        if not (outcome.has_other_calls or is_open(stored[0])) and (
            new := find_next_open(outcome.board, stored[-1]["id"])
        ):
            led = [f"Next: {self.render_item(clip_item_texts(new)).strip()}"]
        return " ".join([f"{names} {word}, {count_open(todos)} open.", *denied, *led])

    def render_denial(self, todo: Todo, why: str) -> str:
        """Say that the verifier did not accept an item, and how it is stored."""
        told = f"[{format_id(todo['id'])}] was not accepted as done: {indent_lines(why)}"
        return f"{told}. It is stored as {STATUS_TO_WORD[todo['status']]}."

    def render_counts(self, todos: Sequence[Todo]) -> str:
        """Count the list in a sentence."""
        closed = count_closed(todos)
        return (
            f"{closed} of {len(todos)} closed, {count_open(todos)} open." if todos else "The list is empty."
        )

    def render_item(self, todo: Todo) -> str:
        """Render `  [id] text`, with what holds an item or that it is being worked on."""
        note = ""
        if todo["status"] == "blocked":
            note = f" (blocked: {to_one_line(todo.get('reason', ''))})"
        elif todo["status"] == "in_progress":
            note = " (in progress)"
        return f"  [{format_id(todo['id'])}] {to_one_line(todo['content'])}{note}"

    def render_any_item(self, todo: Todo) -> str:
        """Render an item of the whole list, where closed ones stand too."""
        return (
            self.render_item(todo)
            if not is_closed(todo)
            else f"{self.render_item(todo)} ({STATUS_TO_WORD[todo['status']]})"
        )

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Tell whether a result shows every open item: the list does, and the write of a first plan."""
        match outcome.operation:
            case Show():
                return True
            case Add():
                return count_open(outcome.board.todos) == len(outcome.touched)
            case _:
                return False


def find_next_open(board: Board, key: int | str) -> Todo | None:
    """Return the open item that follows another closely, unless one is in progress somewhere."""
    rows, place = board.rows, board.rows.place_of(key)
    if place is None or count_running(rows):
        return None
    return next(
        (rows[at] for at in range(place + 1, min(place + SEARCH_SPAN, len(rows))) if is_open(rows[at])), None
    )


def _format_ids(keys: Iterable[int | str]) -> str:
    return ", ".join(f"[{format_id(key)}]" for key in keys)


def _format_count(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"
