"""The calls of the dialect parley: their schemas."""

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
    """Refuse what Python would take for 1 or 0."""
    if isinstance(value, bool):
        raise ValueError("must be the number of an item")  # noqa: TRY004 - pydantic reads ValueError
    return value


@describe("Add items to the todo list, one text for each step. Returns the number of each new item.")
class Write(BaseModel):
    model_config = ConfigDict(title="todo_write")
    items: Annotated[TextList, WithJsonSchema({"type": "array", "items": {"type": "string"}})] = Field(
        description="The texts of the new items, in the order of work."
    )


@describe("Add items to the todo list, in order.")
class Plan(Write):
    items: Annotated[TextList, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


_NUMBER_ROW = re.compile(r"\s*(?:#?\d+|\[\d+\])(?:(?:\s*[,;]\s*|\s+)(?:#?\d+|\[\d+\]))*+\s*", re.ASCII)


def _read_numbers(value: Any) -> list[str]:
    """Read the numbers of a text that holds nothing else, as `1, 2` or `[1] [2]`."""
    return re.findall(r"\d+", value) if isinstance(value, str) and _NUMBER_ROW.fullmatch(value) else []


def _read_ids(value: Any) -> Any:
    """Take numbers that come alone or in a row for the list that they mean."""
    read = _read_numbers(value) or parse_json_list(value)
    return [read] if isinstance(read, int | float) and not isinstance(read, bool) else read


ItemNumber = Annotated[int | str, BeforeValidator(_reject_bool), WithJsonSchema({"type": "integer"})]


@describe("Change the status of one item of the todo list.")
class Update(BaseModel):
    model_config = ConfigDict(title="todo_update")
    id: ItemNumber = Field(description="The number of the item.")
    status: StatusWord = Field(description="The new status.")
    reason: Annotated[str | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="Why; required for blocked."
    )


@describe("Update items, also with other calls.")
class UpdateSeveral(BaseModel):
    model_config = ConfigDict(title="todo_update")
    id: Annotated[ItemNumber | None, WithJsonSchema({"type": "integer"})] = None
    ids: Annotated[
        list[ItemNumber] | None,
        BeforeValidator(_read_ids),
        WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
    ] = Field(None, description="Several at once.")
    status: StatusWord
    reason: Annotated[str | None, WithJsonSchema({"type": "string"})] = Field(
        None, description="Needed if blocked."
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_list_as_id(cls, given: dict[str, Any]) -> dict[str, Any]:
        key = given.get("id")
        several = isinstance(key, list) or len(_read_numbers(key)) > 1
        return {**given, "id": None, "ids": key} if several and given.get("ids") is None else given

    @model_validator(mode="after")
    def _require_id(self) -> Self:
        if not self.numbers:
            raise ValueError("send id or ids: the number of one item or several")
        return self

    @property
    def numbers(self) -> tuple[int | str, ...]:
        """The numbers of all items that are meant, each once; 1 and "1" are the same."""
        meant = [*([] if self.id is None else [self.id]), *(self.ids or ())]
        return tuple({str(key): key for key in meant}.values())


@describe("Show the whole todo list with numbers, statuses and the reasons of blocked items.")
class List(BaseModel):
    model_config = ConfigDict(title="todo_list")


@describe("Show the whole list.")
class ShowAll(List):
    pass
