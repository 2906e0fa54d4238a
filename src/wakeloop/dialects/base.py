"""The base class of dialects: todo tools and their results."""

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import isfunction
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ValidationError

from wakeloop.dialects.schemas import explain_validation_error, tool_name, tool_schema
from wakeloop.errors import DialectError, WakeloopError
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import fix_surrogates, shorten, to_one_line
from wakeloop.text.marks import escape_automatic
from wakeloop.todos.items import OperationRefused, Todo, clip_item, count_open, select_for_nudge
from wakeloop.todos.operations import Board, Operation, Outcome

Method = TypeVar("Method", bound=Callable[..., Any])


class InvalidArguments(Exception):  # noqa: N818 - a finding about a call, not an error of the program
    """The arguments of a todo call do not fit its schema. The message says how they should look."""


def parse_json_list(value: Any) -> Any:
    """Return a list that a model has sent as JSON in a string. Other values are returned as they are."""
    if not isinstance(value, str):
        return value
    try:
        return fix_surrogates(json.loads(value))
    except (ValueError, RecursionError):
        raise ValueError("must be a list, and this string is not JSON") from None


def _raise_dialect_errors(method: Method) -> Method:
    """Return a method whose exceptions are raised as `DialectError`; findings about a call pass."""

    @wraps(method)
    def call(*args: Any, **values: Any) -> Any:
        try:
            return method(*args, **values)
        except (InvalidArguments, OperationRefused, WakeloopError):
            raise
        except BaseException as error:
            from wakeloop.platform.tool_boundary import passes_boundary  # noqa: PLC0415 - it imports the graph

            if passes_boundary(error):
                raise
            raise DialectError.from_error(method.__qualname__, f"{type(error).__name__}: {error}") from error

    return cast(Method, call)


def choose_second_nudge(settings: LoopSettings) -> str:
    """Return the prompt of a wake after one that no call answered.

    Whoever replaced only the nudge's words means them for each wake.
    """
    own_words = "nudge" in settings.prompts and "nudge_again" not in settings.prompts
    return "nudge" if own_words or settings.continuation_prompt is not None else "nudge_again"


LONGEST_WHY = 300  # characters of a refusal in a line

JsonList = BeforeValidator(parse_json_list)
TextList = Annotated[list[str], JsonList]


@dataclass(frozen=True)
class Dialect:
    """A vocabulary of todo tools. Subclass it, set the fields, and register an instance.

    `tools` are pydantic models; a tool's name is the title of its model, or else the class name. `writes` are
    the names of the tools that write. `replaces` says that a call replaces the whole list; a second one in
    the same round is refused. `needs_auto_continue` says that tools and instructions exist only while
    `auto_continue` is on, `renumbers` that numbers start at 1 again when the list is emptied. `next_items` is
    how many items a nudge shows if the model has just seen all of them; 0 means all. `numbers_items` says
    that the model sees ids. `prompts` are the words
    of the agent's settings, and `variant` is a subfolder of prompts that come before the dialect's own.
    `result_form` is a regular expression for results that only a model which makes them up gives as answers.

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
    result_form: str = ""
    numbers_items: bool = True

    def __init_subclass__(cls, **more: Any) -> None:
        """Name the method in what a method of the user's own dialect raises."""
        super().__init_subclass__(**more)
        if not cls.__module__.startswith(__package__):
            for name, value in list(vars(cls).items()):
                if isfunction(value) and not name.startswith("_"):
                    setattr(cls, name, _raise_dialect_errors(value))

    @property
    def prompt_folder(self) -> str:
        """The folder of its prompts. A prompt that is missing there is taken from the parent folder."""
        return f"{self.name}/{self.variant}" if self.variant else self.name

    def for_settings(self, settings: LoopSettings) -> Self:
        """Return the dialect for an agent's settings; this one takes over their prompts."""
        return replace(self, prompts=settings.prompts)

    @computed_once
    def tool_names(self) -> frozenset[str]:
        """The names of the todo tools."""
        return frozenset(map(tool_name, self.tools))

    def tool_schemas(self, settings: LoopSettings) -> list[dict[str, Any]]:
        """Return the tool schemas for the model, in OpenAI's format."""
        schemas = list(map(tool_schema, self.tools))
        if settings.tool_description is not None:
            schemas[0]["function"]["description"] = settings.tool_description
        return schemas

    def is_active(self, settings: LoopSettings) -> bool:
        """Return whether the model has the todo tools with these settings."""
        return settings.auto_continue or not self.needs_auto_continue

    def instructions(self, settings: LoopSettings) -> str:
        """Return the instructions for the system prompt; may be empty."""
        if not (settings.inject_todo_instructions and self.is_active(settings)):
            return ""
        text = fill_prompt("instructions", self.prompt_folder, settings.prompts)
        if not settings.announces or "instructions" in settings.prompts:
            return text
        return f"{text}\n{fill_prompt('automatic', self.prompt_folder, settings.prompts)}"

    @computed_once
    def known_instructions(self) -> computed_per_object[str]:
        """The instructions, rendered once for each settings object."""
        return computed_per_object(self.instructions)

    @_raise_dialect_errors  # its tools are pydantic models, whose validators may be the user's own
    def parse_call(self, name: str, args: Mapping[str, Any]) -> Operation:
        """Return the operation of a call.

        Raises `InvalidArguments` if the arguments do not fit the tool's schema (a malformed call), and
        `OperationRefused` if they break a rule of the dialect (a soft error).
        """
        try:
            return self.to_operation(self._tools_by_name[name].model_validate(args))
        except ValidationError as error:
            raise InvalidArguments(self.explain_misfit(name, error)) from None

    def explain_misfit(self, name: str, error: ValidationError) -> str:
        """Return what is wrong with a call: the place, the value, and the allowed values."""
        return f"{name}: {explain_validation_error(self._tools_by_name[name], error)}"

    @computed_once
    def _tools_by_name(self) -> dict[str, type[BaseModel]]:
        return {tool_name(tool): tool for tool in self.tools}

    def to_operation(self, call: Any) -> Operation:
        """Return the operation of a call that fits its schema."""
        raise NotImplementedError

    def refusal(self, operation: Operation, board: Board) -> str | None:
        """Return why this dialect refuses an operation, or None."""
        return None

    def render_result(self, outcome: Outcome) -> str:
        """Render the result of a call that was not refused."""
        raise NotImplementedError

    def numbers_in(self, result: str) -> range:
        """Return the numbers of the new items if a result does not repeat their contents."""
        return range(0)

    def contents_in(self, args: Mapping[str, Any], result: str) -> Sequence[str]:
        """Return the contents of the items that a call shows, where no numbers say which they are."""
        return ()

    def render_error(self, text: str) -> str:
        """Render the result of a call that was refused."""
        return f"Error: {text}"

    def render_item(self, todo: Todo) -> str:
        """Render one item as one line."""
        raise NotImplementedError

    def render_verified(self, todo: Todo) -> str:
        """Render one line for an item that the verifier found done, without a claim of the model."""
        return f"{self.render_item(clip_item(todo)).strip()}: verified"

    def render_refused(self, todo: Todo, why: str) -> str:
        """Render one line for an item that passed the verifier before, and no longer does."""
        return f"{self.render_item(clip_item(todo)).strip()}: {shorten(to_one_line(why), LONGEST_WHY)}"

    def render_list(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the list for a nudge: at most `nudge_items` open and blocked items."""
        shown, hidden = select_for_nudge(todos, settings.nudge_items)
        lines = self.render_items(shown, settings) + self.render_hidden_count(todos, hidden, settings)
        return "\n".join(lines)

    def quote_list(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the list for an injected message, where no item may pass for the message's own words."""
        listing = self.render_list(todos, goal, settings)
        return escape_automatic(listing) if settings.announces else listing

    def quote_items(self, todos: Sequence[Todo], settings: LoopSettings) -> str:
        """Render some items of the list in the same way."""
        listing = "\n".join(self.render_items(todos, settings))
        return escape_automatic(listing) if settings.announces else listing

    def render_items(self, todos: Sequence[Todo], settings: LoopSettings) -> list[str]:
        """Render one line per item. If one was cut, another line says how to see it whole."""
        short = list(map(clip_item, todos))
        return [*map(self.render_item, short), *self.render_cut_note(todos, short, settings.prompts)]

    def render_cut_note(
        self, todos: Iterable[Todo], short: Iterable[Todo], words: Mapping[str, str] | None = None
    ) -> list[str]:
        """Render the line about shortened items. `words` are the prompts, by default the dialect's."""
        # clip_item and clip_item_texts return the same object unless they cut a text.
        if all(map(operator.is_, short, todos)):
            return []
        return [fill_prompt("cut_text", self.prompt_folder, self.prompts if words is None else words)]

    def render_hidden_count(self, todos: Sequence[Todo], hidden: int, settings: LoopSettings) -> list[str]:
        """Render the line that counts the items that were left out, if any were."""
        if not hidden:
            return []
        blocked = sum(todo["status"] == "blocked" for todo in todos)
        counts = {"hidden": hidden, "open": count_open(todos), "blocked": blocked}
        return [fill_prompt("more", self.prompt_folder, settings.prompts, **counts)]

    def render_nudge(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the message that wakes the model: what to do, and the current list."""
        return self._render_push("nudge", todos, goal, settings)

    def render_nudge_again(self, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        """Render the same in other words, with the ways out, for a model that answered without a call."""
        return self._render_push(choose_second_nudge(settings), todos, goal, settings)

    def _render_push(self, prompt: str, todos: Sequence[Todo], goal: str, settings: LoopSettings) -> str:
        listing = self.quote_list(todos, goal, settings)
        if settings.continuation_prompt is not None:
            return f"{settings.continuation_prompt}\n\n{listing}"
        counts = {"open": count_open(todos), "total": len(todos)}
        return fill_prompt(prompt, self.prompt_folder, settings.prompts, list=listing, **counts)

    def shows_open_items(self, outcome: Outcome) -> bool:
        """Return whether the result of a call shows every open item with its text."""
        return self.replaces
