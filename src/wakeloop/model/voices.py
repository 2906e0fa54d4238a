"""The model as it is asked: with tools, or in a format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from wakeloop.dialects.base import Dialect
from wakeloop.errors import ModelError
from wakeloop.model.named import bound, in_format
from wakeloop.settings import LoopSettings


@dataclass(frozen=True, eq=False)
class Voices:
    """The model with all tools, without the todo tools, without any, in a format; `full` is None without."""

    full: Runnable[Any, Any] | None
    without_todos: Runnable[Any, Any]
    bare: Runnable[Any, Any]
    formatted: Runnable[Any, Any] | None = None

    @classmethod
    def of(
        cls, chat: BaseChatModel, tools: Sequence[Any], dialect: Dialect, base: LoopSettings, form: Any = None
    ) -> "Voices":
        """Bind the model; one that cannot call tools will do where the todo tools are off."""
        full: Runnable[Any, Any] | None = None
        try:
            full = bound(chat, [*tools, *dialect.schemas(base)])
        except ModelError:
            if dialect.active(base):
                raise
        formatted = None if form is None else in_format(chat, form)
        return cls(full, bound(chat, tools), chat, formatted)

    def voice(self, asking: str | None, *, todo_tools: bool) -> Runnable[Any, Any]:
        """Return the model as a request needs it; `asking` for a format, an explanation, or None."""
        if asking == "format" and self.formatted is not None:
            return self.formatted
        if asking == "explain":
            return self.bare
        return self.full if self.full is not None and todo_tools else self.without_todos
