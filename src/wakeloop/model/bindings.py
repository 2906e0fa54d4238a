"""The model as it is asked: with tools, or in a format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.errors import ModelError
from wakeloop.model.chat_models import bind_format, bind_tools
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.model.tool_choice import is_openai, loses_plain_bodies, no_call_choice
from wakeloop.model.usage import model_name_of
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.format_with_tools import bind_tools_to_format, openai_tool_arguments
from wakeloop.settings import LoopSettings


@dataclass(frozen=True, slots=True)
class BoundModel:
    """One way to ask; where `may_call` is False, calls in the reply are dropped."""

    model: Runnable[Any, Any]
    may_call: bool = True


LAST_WORDS = ("explain", "report")


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """Which tools a request goes out with: the list's, the caller's own; and whether one may be called."""

    todos: bool
    own: bool
    may_call: bool = True


def select_tools(asking: str | None, *, called: bool, todo_tools: bool, own: bool) -> ToolSelection:
    """Return the tools of a request; `called` tells whether its history has calls, `own` of other tools.

    Many servers refuse a request without tools over a history with calls: for a last word they are there,
    and none may be called.
    """
    if asking in LAST_WORDS:
        return ToolSelection(called and (todo_tools or not own), called, may_call=False)
    if not todo_tools and called and not own:
        return ToolSelection(todos=True, own=True, may_call=False)
    return ToolSelection(todo_tools, own=True)


@dataclass(frozen=True, eq=False)
class ModelBindings:
    """The model with all tools, without the todo tools, without any, in a format; `full` is None without.

    Many servers refuse a request without tools over a history with calls. For one that wants no call there
    are the `quiet` ones: the tools are bound, and none may be called.
    """

    full: Runnable[Any, Any] | None
    without_todos: Runnable[Any, Any]
    bare: BaseChatModel
    formatted: Runnable[Any, Any] | None = None
    quiet: Runnable[Any, Any] | None = None
    quiet_without_todos: Runnable[Any, Any] | None = None
    formatted_with_tools: Runnable[Any, Any] | None = None

    @classmethod
    def create(
        cls, chat: BaseChatModel, tools: Sequence[Any], dialect: Dialect, base: LoopSettings, form: Any = None
    ) -> "ModelBindings":
        """Bind the model; one that cannot call tools will do where the todo tools are off."""
        full: Runnable[Any, Any] | None = None
        quiet: Runnable[Any, Any] | None = None
        choice, everything = no_call_choice(chat), [*tools, *dialect.tool_schemas(base)]
        try:
            full = bind_tools(chat, everything)
            quiet = full if choice is None else bind_tools(chat, everything, choice)
        except ModelError:
            if dialect.is_active(base):
                raise
        return cls(
            full,
            bind_tools(chat, tools),
            chat,
            formatted := None if form is None else bind_format(chat, form),
            quiet,
            bind_tools(chat, tools, choice) if tools else None,
            None if formatted is None else _bind_tools_to_format(chat, formatted, quiet),
        )

    @computed_once
    def may_stream(self) -> bool:
        """Whether the model has a say in it; a pydantic model takes 8 µs to say that it has none."""
        return hasattr(self.bare, "streaming")

    @computed_once
    def name(self) -> str:
        """The model's name as its client has it."""
        return model_name_of(self.bare)

    @property
    def streaming(self) -> bool:
        """Whether the model streams of its own accord."""
        return self.may_stream and bool(self.bare.streaming)  # type: ignore[attr-defined]

    @computed_once
    def retries_unstreamed(self) -> bool:
        """Whether a stream that never began is asked for again whole: the body may have been no stream."""
        return loses_plain_bodies(self.bare)

    def watch(self, config: RunnableConfig, asking: str | None, settings: LoopSettings) -> ReplyWatcher:
        """Return the ear for a request."""
        return ReplyWatcher(
            config,
            streaming=self.streaming,
            formats=asking == "format",
            retries_unstreamed=asking != "format" and self.retries_unstreamed,
            finishes=settings.finish_reason == "required",
        )

    def choose(self, asking: str | None, wire: Sequence[BaseMessage], *, todo_tools: bool) -> BoundModel:
        """Return the model as a request needs it; `asking` for a format, a last word, or None."""
        if asking == "format" and self.formatted is not None:
            beside = self.formatted_with_tools if has_calls(wire) else None
            return BoundModel(beside or self.formatted)
        own, todos = self.quiet_without_todos, todo_tools and self.full is not None
        tools = select_tools(asking, called=has_calls(wire), todo_tools=todos, own=own is not None)
        quiet = self.quiet if tools.todos else own if tools.own else None
        if tools.may_call or (quiet is None and asking not in LAST_WORDS):
            return BoundModel(self.full if tools.todos and self.full is not None else self.without_todos)
        return BoundModel(quiet or self.bare, may_call=False)


def has_calls(wire: Sequence[BaseMessage]) -> bool:
    """Tell whether a history has calls in it."""
    return any(isinstance(message, AIMessage) and message.tool_calls for message in wire)


def _bind_tools_to_format(
    chat: BaseChatModel, formatted: Runnable[Any, Any], quiet: Runnable[Any, Any] | None
) -> Runnable[Any, Any]:
    """Ask in a format with the tools bound; one that is itself a tool is asked for as it is."""
    if not isinstance(quiet, RunnableBinding):
        return formatted
    if is_openai(chat):
        return bind_tools_to_format(
            formatted, openai_tool_arguments(chat, quiet.kwargs["tools"], quiet.kwargs["tool_choice"])
        )
    return bind_tools_to_format(formatted, quiet.kwargs)
