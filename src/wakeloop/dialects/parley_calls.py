"""Calls of the dialect parley."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from wakeloop.dialects.base import TextList, parse_json_list
from wakeloop.text.descriptions import describe
from wakeloop.todos.items import Status

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
