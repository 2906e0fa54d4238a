"""The dialect parley: numbered items, appended and updated."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)

from wakeloop.dialects.base import Dialect, TextList, parse_json_list
from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import format_id, indent_lines, to_one_line
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import (
    Status,
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

StatusWord = Literal["in_progress", "done", "blocked", "cancelled", "open"]
WORD_TO_STATUS: dict[StatusWord, Status] = {
    "in_progress": "in_progress",
    "done": "completed",
    "blocked": "blocked",
    "cancelled": "cancelled",
    "open": "pending",
}
STATUS_TO_WORD = {status: word for word, status in WORD_TO_STATUS.items()}


def _reject_bool(value: Any) -> Any:
    """Refuse True and False, which Python would read as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be the number of an item")  # noqa: TRY004 - pydantic reads ValueError
    return value


@describe("Add items to the todo list, one text for each step. Returns the number of each new item.")
class Write(BaseModel):
    model_config = ConfigDict(title="todo_write")
    items: Annotated[TextList, WithJsonSchema({"type": "array", "items": {"type": "string"}})] = Field(
        description="The texts of the new items, in the order of work."
    )


@describe("Add items.")
class Plan(Write):
    items: Annotated[TextList, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


_NUMBER_ROW = re.compile(r"\s*(?:#?\d+|\[\d+\])(?:(?:\s*[,;]\s*|\s+)(?:#?\d+|\[\d+\]))*+\s*", re.ASCII)


def _read_numbers(value: Any) -> list[str]:
    """Return the numbers of a string that has nothing else, as `1, 2` or `[1] [2]`; else an empty list."""
    if isinstance(value, str) and _NUMBER_ROW.fullmatch(value):
        return re.findall(r"\d+", value)
    return []


def _read_ids(value: Any) -> Any:
    """Return a list of numbers, also from a single number or a string with several."""
    if isinstance(value, list):
        return value
    ids = _read_numbers(value) or parse_json_list(value)
    if isinstance(ids, int | float) and not isinstance(ids, bool):
        return [ids]
    return ids


ItemNumber = Annotated[int | str, BeforeValidator(_reject_bool), WithJsonSchema({"type": "integer"})]


@describe("Change the status of one item of the todo list.")
class Update(BaseModel):
    model_config = ConfigDict(title="todo_update")
    id: ItemNumber = Field(description="The number of the item.")
    status: StatusWord = Field(description="The new status.")
    reason: Annotated[str | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="Why; required for blocked."
    )


def _show_short_call(schema: dict[str, Any]) -> None:
    """Leave `id` out of the schema: it is accepted, but one form is enough."""
    del schema["properties"]["id"]
    schema["required"] = ["ids", *schema.get("required", ())]


@describe("Close items or set a status.")
class UpdateSeveral(BaseModel):
    model_config = ConfigDict(title="todo_update", json_schema_extra=_show_short_call)
    id: ItemNumber | None = None
    ids: Annotated[
        list[ItemNumber] | None,
        BeforeValidator(_read_ids),
        WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
    ] = None
    status: StatusWord = "done"
    reason: Annotated[str | None, WithJsonSchema({"type": "string"})] = None

    @model_validator(mode="before")
    @classmethod
    def _accept_list_as_id(cls, given: dict[str, Any]) -> dict[str, Any]:
        key = given.get("id")
        if key is None:
            return given
        has_several = isinstance(key, list) or len(_read_numbers(key)) > 1
        if has_several and given.get("ids") is None:
            return {**given, "id": None, "ids": key}
        return given

    @model_validator(mode="after")
    def _require_id(self) -> Self:
        if self.id is None and not self.ids:
            raise ValueError("send ids: the number of one item or several")
        if self.reason and "status" not in self.model_fields_set:
            raise ValueError("send the status that the reason is for")
        return self

    @property
    def numbers(self) -> tuple[int | str, ...]:
        """The numbers of all items, each once; 1 and "1" are the same."""
        keys = {} if self.id is None else {str(self.id): self.id}
        for key in self.ids or ():
            keys[str(key)] = key
        return tuple(keys.values())


@describe("Show the whole todo list with numbers, statuses and the reasons of blocked items.")
class List(BaseModel):
    model_config = ConfigDict(title="todo_list")


@describe("Show the list.")
class ShowAll(List):
    pass


# How far to look for the next open item: else the cost of a round of n calls would grow with its square.
SEARCH_SPAN = 64
# A result repeats the contents of up to so many new items; of more, it has the first and last number.
FULL_ECHO_LIMIT = 5
STORED_RANGE = re.compile(r"Stored \d+ items, \[(\d{1,15})\] to \[(\d{1,15})\]\.")
RESULT_FORM = (
    r"Stored \d+ items?(?:, \[\d+\] to \[\d+\]\.|:\n  \[\d+\] ).*"
    r"|\[\d+\](?:, \[\d+\])* \w+, \d+ open\..*"
)


@dataclass(frozen=True)
class Parley(Dialect):
    """agentparley's vocabulary: `todo_write(items)`, `todo_update(id, status, reason)`, `todo_list()`.

    If the model may set all statuses, `todo_update` takes several items at once, and prompts and results
    suggest one reply per item, in which the model closes the last item and starts the next. If one must be in
    progress at all times, that is not possible, and the prompts are the plain ones.
    """

    name: str = "parley"
    tools: tuple[type[BaseModel], ...] = (Plan, UpdateSeveral, ShowAll)
    writes: frozenset[str] = frozenset(("todo_write", "todo_update"))
    statuses: tuple[str, ...] | None = None
    next_items: int = 1
    result_form: str = RESULT_FORM

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect with the statuses that the settings allow the model to set."""
        own, known = super().for_settings(settings), settings.statuses
        if settings.in_progress == "exactly_one" or (known is not None and "in_progress" not in known):
            own = replace(own, variant="plain", next_items=0)
        if known is None:
            return own
        for word in known:
            if word not in WORD_TO_STATUS:
                raise SettingsError(
                    f"The dialect 'parley' has no status {word!r}; it has {', '.join(WORD_TO_STATUS)}."
                )
        words: Any = Literal[known]
        field = (words, Field(description="The new status."))
        write, base, show = self.tools if "in_progress" in known else (Write, Update, List)
        narrow = create_model(base.__name__, __base__=base, __doc__=base.__doc__, status=field)
        return replace(own, tools=(write, narrow, show), statuses=known)

    def to_operation(self, call: Any) -> Operation:
        """Return the operation of a call."""
        match call:
            case Write():
                return Add(tuple(call.items))
            case Update():
                return Change(call.id, WORD_TO_STATUS[call.status], call.reason)
            case UpdateSeveral():
                status = WORD_TO_STATUS[call.status]
                changes = [Change(key, status, call.reason, as_shown=True) for key in call.numbers]
                return changes[0] if len(changes) == 1 else ChangeSeveral(tuple(changes))
            case _:
                return Show()

    def render_result(self, outcome: Outcome) -> str:
        """Render the stored items: numbers, statuses, counts."""
        todos = outcome.board.todos
        match outcome.operation:
            case Add():
                return self.render_added(outcome)
            case Change() | ChangeSeveral():
                return self.render_changed(outcome)
            case _:
                return "\n".join([*map(self._render_any_item, todos), self.render_counts(todos)])

    def render_added(self, outcome: Outcome) -> str:
        """Render the added items. A long plan that was stored as sent is only given its numbers."""
        new = _find_touched(outcome)
        count = "1 item" if len(new) == 1 else f"{len(new)} items"
        sent = outcome.operation.contents if isinstance(outcome.operation, Add) else ()
        # If all items were stored as sent, the model can number them itself.
        is_known = len(new) > FULL_ECHO_LIMIT and [todo["content"] for todo in new] == list(sent)
        if is_known and not self.variant:
            lines = [f"Stored {count}, {_format_ids([new[0]['id']])} to {_format_ids([new[-1]['id']])}."]
        else:
            short = list(map(clip_item_texts, new))
            lines = [f"Stored {count}:" if new else "Stored nothing."]
            lines += [*map(self.render_item, short), *self.render_cut_note(new, short)]
        if outcome.repeated:
            lines.append(f"Already open: {_format_ids(outcome.repeated)}.")
        return "\n".join(lines)

    def numbers_in(self, result: str) -> range:
        """Return the numbers in the result of a long plan."""
        match = STORED_RANGE.match(result)
        return range(int(match[1]), int(match[2]) + 1) if match else range(0)

    def render_changed(self, outcome: Outcome) -> str:
        """Render the items after a change, and the next one if the model has not started it yet."""
        todos = outcome.board.todos
        stored: list[Todo] = []
        denied: list[str] = []
        for todo in _find_touched(outcome):
            if todo["id"] in outcome.denied:
                why = indent_lines(outcome.denied[todo["id"]])
                denied.append(f"[{format_id(todo['id'])}] was not accepted as done: {why}.")
                denied.append(f"It is stored as {STATUS_TO_WORD[todo['status']]}.")
            else:
                stored.append(todo)
        if not stored:
            return self.render_error(" ".join(denied))
        word = STATUS_TO_WORD[stored[0]["status"]]
        if self.variant:
            counts = self.render_counts(todos)
            return f"[{format_id(stored[0]['id'])}] {word}: {clip_text(stored[0]['content'])}. {counts}"
        names = _format_ids([todo["id"] for todo in stored])
        sentences = [f"{names} {word}, {count_open(todos)} open.", *denied]
        # Other calls in this reply are the work on the next item, so it need not be named.
        if not outcome.has_other_calls and not is_open(stored[0]):
            following = find_next_open(outcome.board, stored[-1]["id"])
            if following is not None:
                sentences.append(f"Next: {self.render_item(clip_item_texts(following)).strip()}")
        return " ".join(sentences)

    def render_counts(self, todos: Sequence[Todo]) -> str:
        """Render how many items are closed and open."""
        if not todos:
            # without the second sentence small models ask again instead of writing a list
            return "The list is empty." + ("" if self.variant else " Add the steps with `todo_write(items)`.")
        return f"{count_closed(todos)} of {len(todos)} closed, {count_open(todos)} open."

    def render_verified(self, todo: Todo) -> str:
        """Render `[id] done: verified`."""
        return f"[{format_id(todo['id'])}] done: verified"

    def render_item(self, todo: Todo) -> str:
        """Render `  [id] text`, with the reason of a blocked item and a note for one in progress."""
        note = ""
        if todo["status"] == "blocked":
            note = f" (blocked: {to_one_line(todo.get('reason', ''))})"
        elif todo["status"] == "in_progress":
            note = " (in progress)"
        return f"  [{format_id(todo['id'])}] {to_one_line(todo['content'])}{note}"

    def _render_any_item(self, todo: Todo) -> str:
        word = f" ({STATUS_TO_WORD[todo['status']]})" if is_closed(todo) else ""
        return self.render_item(todo) + word

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Return whether a result shows every open item: `todo_list` does, and so does the first plan."""
        adds_all = isinstance(outcome.operation, Add) and count_open(outcome.board.todos) == len(
            outcome.touched
        )
        return adds_all or isinstance(outcome.operation, Show)


def find_next_open(board: Board, key: int | str) -> Todo | None:
    """Return the first open item within `SEARCH_SPAN` after another, unless any item is in progress."""
    place = board.rows.locate(key)
    if place is None or count_running(board.todos):
        return None
    following = islice(board.todos, place + 1, place + SEARCH_SPAN)
    return next(filter(is_open, following), None)


def _find_touched(outcome: Outcome) -> list[Todo]:
    """Return the items that a call wrote, in order."""
    return list(filter(None, map(outcome.board.find, outcome.touched)))


def _format_ids(keys: Iterable[int | str]) -> str:
    return ", ".join([f"[{format_id(key)}]" for key in keys])
