"""Records on its result how long a call took."""

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from wakeloop.model.redaction import RedactingNode
from wakeloop.text.marks import with_duration


class TimedNode(RedactingNode):
    """A node that runs one call. Only the attempt that finishes is timed, not one that an interrupt ended."""

    clock: Callable[[], float]
    model: object

    @property
    def models(self) -> tuple[object, ...]:
        """The models whose secrets a tool's error may contain."""
        return (self.model,)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Run in a synchronous graph."""
        began = self.clock()
        update = super().invoke(input, config, **kwargs)
        return record_duration(update, input["id"], self.clock() - began)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        began = self.clock()
        update = await super().ainvoke(input, config, **kwargs)
        return record_duration(update, input["id"], self.clock() - began)


def record_duration(update: Any, call_id: str, seconds: float) -> Any:
    """Write the duration of a call on its results, in whatever form its node returns them."""
    return update_results(update, call_id, partial(with_duration, seconds=seconds))


def update_results(update: Any, call_id: str, change: Callable[[ToolMessage], ToolMessage]) -> Any:
    """Change the results of a call in place, in an update, a `Command`, or a list of these."""
    for part in update if isinstance(update, list) else [update]:
        values = part.update if isinstance(part, Command) else part
        if not isinstance(values, dict) or "messages" not in values:
            continue
        messages = list(values["messages"])
        for place, message in enumerate(messages):
            if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
                messages[place] = change(message)
        values["messages"] = messages
    return update
