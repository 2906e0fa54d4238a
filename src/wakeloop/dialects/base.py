"""What a dialect is: todo tools, their meaning, their words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ValidationError

from wakeloop.dialects.invalid_arguments import explain_validation_error
from wakeloop.dialects.schemas import tool_name, tool_schema
from wakeloop.platform.computed_once import computed_once
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import fix_surrogates
from wakeloop.todos.items import Todo, clip_item, count_open, select_for_nudge
from wakeloop.todos.operations import Board, Operation, Outcome


class InvalidArguments(Exception):  # noqa: N818 - a finding about a call, not an error of the program
    """The arguments of a todo call do not fit its schema; the text says what is expected."""


def parse_json_list(value: Any) -> Any:
    """Read a JSON text where a list is due; it is parsed, never evaluated."""
    if not isinstance(value, str):
        return value
    try:
        return fix_surrogates(json.loads(value))
    except (ValueError, RecursionError):
        raise ValueError("must be a list, and this string is not JSON") from None


JsonList = BeforeValidator(parse_json_list)
TextList = Annotated[list[str], JsonList]


@dataclass(frozen=True)
class Dialect:
    """A vocabulary of todo tools. Subclass it, give the values, and register it by name.

    `tools` are pydantic models, named by their title or else their class; `writes` the names that write;
    `replaces` whether a call replaces the whole list (then two in a round are refused);
    `next_items` is how many a nudge shows where the model has just seen them all, 0 for as many as ever;
    `manner` names a folder of texts that stand before the dialect's own;
    `needs_auto_continue` whether tools and instructions exist only while `auto_continue` is on; `renumbers`
    whether numbers begin at 1 again where the list is emptied.

    Example:
        >>> from wakeloop.dialects import get_dialect
        >>> sorted(get_dialect("write_todos").tool_names)
        ['write_todos']
    """

    name: str
    tools: tuple[type[BaseModel], ...]
    writes: frozenset[str]
    replaces: bool = False
    needs_auto_continue: bool = False
    renumbers: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict, hash=False)
    variant: str = ""
    next_items: int = 0

    @property
    def prompt_folder(self) -> str:
        """The folder of its texts below `prompts/`; what is not there is looked for in the one above."""
        return f"{self.name}/{self.variant}" if self.variant else self.name

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect as an agent's settings want it; here with their words for its results."""
        return replace(self, prompts=settings.prompts)

    @computed_once
    def tool_names(self) -> frozenset[str]:
        """The names of the todo tools."""
        return frozenset(tool_name(tool) for tool in self.tools)

    def tool_schemas(self, settings: LoopSettings) -> list[dict[str, Any]]:
        """Return the tools as the model is told of them, in OpenAI's format."""
        schemas = [tool_schema(tool) for tool in self.tools]
        if settings.tool_description is not None:
            schemas[0]["function"]["description"] = settings.tool_description
        return schemas

    def is_active(self, settings: LoopSettings) -> bool:
        """Tell whether the model has the todo tools under these settings."""
        return settings.auto_continue or not self.needs_auto_continue

    def instructions(self, settings: LoopSettings) -> str:
        """Return what goes into the system prompt; an empty text for nothing."""
        if not (settings.inject_todo_instructions and self.is_active(settings)):
            return ""
        return fill_prompt("instructions", self.prompt_folder, settings.prompts)

    def parse_call(self, name: str, args: Mapping[str, Any]) -> Operation:
        """Turn a call into an operation.

        Raises `InvalidArguments` if they do not fit the tool's schema (a malformed call), and
        `OperationRefused` if they break a rule of the dialect (a soft error).
        """
        tool = next(tool for tool in self.tools if tool_name(tool) == name)
        try:
            return self.to_operation(tool.model_validate(args))
        except ValidationError as error:
            raise InvalidArguments(self.explain_misfit(name, error)) from None

    def explain_misfit(self, name: str, error: ValidationError) -> str:
        """Say what is wrong with a call: the place, the value, and what is allowed.

        An item is named by its place, counted from 1, as in every other sentence about a list that is sent.
        """
        tool = next(tool for tool in self.tools if tool_name(tool) == name)
        return f"{name}: {explain_validation_error(tool, error)}"

    def to_operation(self, call: Any) -> Operation:
        """Turn a call that fits its schema into an operation."""
        raise NotImplementedError

    def refusal(self, operation: Operation, board: Board) -> str | None:
        """Refuse an operation by a rule of this dialect alone, with a sentence."""
        return None

    def render_result(self, outcome: Outcome) -> str:
        """Render the result of a call that was not refused."""
        raise NotImplementedError

    def numbers_in(self, result: str) -> range:
        """Return the numbers that a result gives to the texts of its call without repeating them."""
        return range(0)

    def render_error(self, text: str) -> str:
        """Render the result of a call that was refused."""
        return f"Error: {text}"

    def render_item(self, todo: Todo) -> str:
        """Render one item as one line."""
        raise NotImplementedError

    def render_list(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render what a nudge shows of the list: open and blocked items, bounded by `nudge_items`."""
        shown, hidden = select_for_nudge(todos, settings.nudge_items)
        return "\n".join(
            [*self.render_items(shown, settings), *self.render_hidden_count(todos, hidden, settings)]
        )

    def render_items(self, todos: Sequence[Todo], settings: LoopSettings) -> list[str]:
        """Render items, a line each, long texts cut; where one is, the last line says how to see all."""
        short = [clip_item(todo) for todo in todos]
        return [*map(self.render_item, short), *self.render_cut_note(todos, short, settings.prompts)]

    def render_cut_note(
        self, todos: Iterable[Todo], short: Iterable[Todo], words: Mapping[str, str] | None = None
    ) -> list[str]:
        """Render the line that says what becomes of texts that are cut, where one is."""
        cut = any(new is not old for new, old in zip(short, todos, strict=True))
        return (
            [fill_prompt("cut_text", self.prompt_folder, self.prompts if words is None else words)]
            if cut
            else []
        )

    def render_hidden_count(self, todos: Sequence[Todo], hidden: int, settings: LoopSettings) -> list[str]:
        """Render the line that counts what a listing leaves out, or none."""
        if not hidden:
            return []
        blocked = sum(todo["status"] == "blocked" for todo in todos)
        counts = {"hidden": hidden, "open": count_open(todos), "blocked": blocked}
        return [fill_prompt("more", self.prompt_folder, settings.prompts, **counts)]

    def render_nudge(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the message that re-enters the model: what to do, then the live list."""
        listing = self.render_list(todos, goal, settings)
        if settings.continuation_prompt is not None:
            return f"{settings.continuation_prompt}\n\n{listing}"
        counts = {"open": count_open(todos), "total": len(todos)}
        return fill_prompt("nudge", self.prompt_folder, settings.prompts, list=listing, **counts)

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Tell whether the result of a call shows every open item with its text."""
        return self.replaces
