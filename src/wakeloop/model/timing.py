"""How long a call took: its result tells."""

from collections.abc import Callable
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from wakeloop.model.redaction import RedactingNode
from wakeloop.text.marks import with_duration


class TimedNode(RedactingNode):
    """A node that runs one call. What is timed is the attempt that finishes, after an interrupt the last."""

    clock: Callable[[], float]
    model: object

    @property
    def models(self) -> tuple[object, ...]:
        """Whose secrets a tool's error may tell."""
        return (self.model,)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's own word
        """Run in a synchronous graph."""
        began = self.clock()
        return record_duration(super().invoke(input, config, **kwargs), input["id"], self.clock() - began)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        began = self.clock()
        return record_duration(
            await super().ainvoke(input, config, **kwargs), input["id"], self.clock() - began
        )


def record_duration(update: Any, call_id: str, seconds: float) -> Any:
    """Write on the results of a call, in whatever its node returns, how long it took."""
    return update_results(update, call_id, lambda result: with_duration(result, seconds))


def update_results(update: Any, call_id: str, change: Callable[[ToolMessage], ToolMessage]) -> Any:
    """Change the results of a call, in whatever its node returns."""
    for part in update if isinstance(update, list) else [update]:
        written = part.update if isinstance(part, Command) else part
        if isinstance(written, dict) and "messages" in written:
            written["messages"] = [
                change(message)
                if isinstance(message, ToolMessage) and message.tool_call_id == call_id
                else message
                for message in written["messages"]
            ]
    return update
