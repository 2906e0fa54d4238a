"""Shows calls that a node answers itself as tool runs."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig

from wakeloop.platform.direct_calls import has_no_listeners
from wakeloop.platform.runnables import Node


class ToolAnsweringNode(Node):
    """A node that answers calls itself; callbacks hear each call as the run of a tool."""

    def calls_to_answer(self, state: Any) -> Sequence[ToolCall]:
        """Return the calls that the node answers."""
        raise NotImplementedError

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - LangChain's name
        """Run in a synchronous graph."""
        if config is None or has_no_listeners(config):
            return self(input, config or {})
        start: Any = config["callbacks"].on_tool_start  # type: ignore[union-attr]
        runs = [(call, start(**_start_options(call))) for call in self.calls_to_answer(input)]
        try:
            update = self(input, config)
        except BaseException as error:
            for call, run in runs:
                run.on_tool_error(error, tool_call_id=call["id"])
            raise
        for call, run in runs:
            run.on_tool_end(_find_result(update, call), name=call["name"])
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        if config is None or has_no_listeners(config):
            return await self.acall(input, config or {})
        start: Any = config["callbacks"].on_tool_start  # type: ignore[union-attr]
        runs = []
        for call in self.calls_to_answer(input):
            runs.append((call, await start(**_start_options(call))))
        try:
            update = await self.acall(input, config)
        except BaseException as error:
            for call, run in runs:
                await run.on_tool_error(error, tool_call_id=call["id"])
            raise
        for call, run in runs:
            await run.on_tool_end(_find_result(update, call), name=call["name"])
        return update


def _start_options(call: ToolCall) -> dict[str, Any]:
    """Return how a call is announced to callbacks."""
    named = {"serialized": {"name": call["name"]}, "input_str": str(call["args"])}
    return {**named, "inputs": call["args"], "tool_call_id": call["id"]}


def _find_result(update: Any, call: ToolCall) -> Any:
    """Return a call's result in the node's update, "" without one."""
    for message in update.get("messages", ()):
        if getattr(message, "tool_call_id", None) == call["id"]:
            return message
    return ""
