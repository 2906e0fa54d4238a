"""Executes one tool call that is not a todo call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Self

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, ParentCommand
from langgraph.prebuilt import ToolNode
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send

from wakeloop.checks.run_inputs import find_unserializable
from wakeloop.errors import ToolError
from wakeloop.model.redaction import collect_secrets
from wakeloop.model.timing import TimedNode
from wakeloop.model.tool_results import (
    clean_tool_message,
    describe_tool_error,
    error_result,
    tool_result,
    unknown_tool_error,
)
from wakeloop.platform.direct_calls import DirectTool, has_no_listeners, takes_injection
from wakeloop.state import PRIVATE_CHANNELS
from wakeloop.text.secrets import redact_text
from wakeloop.thread.tool_reviews import ToolReviews
from wakeloop.todos.items import OperationRefused, read_list

NAMESPACE_SEPARATOR = "|"  # between a parent's and a child's part of a checkpoint namespace


@dataclass(frozen=True, eq=False)
class RunTools(TimedNode):
    """Run one call: with a fault it is answered, else the tool is called; what it raises is the result.

    `injected` are `ToolNode`s of one tool each, for tools that are given state, store or runtime by the
    graph; `direct` are those whose function is called as it is where nobody listens; the others are invoked.
    """

    tools: Mapping[str, BaseTool]
    injected: Mapping[str, ToolNode] = field(default_factory=dict)
    direct: Mapping[str, DirectTool] = field(default_factory=dict)
    model: object = None  # whose secrets no error may tell
    clock: Callable[[], float] = monotonic
    todo_tools: frozenset[str] = frozenset()  # which a call to a tool that is gone is told of, too
    reviews: ToolReviews = field(
        default_factory=ToolReviews
    )  # the tools whose calls are put to a person first
    saver: Any = None  # of the graph, where it has one of its own
    stored: frozenset[str] = frozenset()  # the channels of which it is given the values

    @classmethod
    def sort_tools(cls, tools: Mapping[str, BaseTool], model: object = None, **more: Any) -> Self:
        """Sort the tools by the way they are called."""
        injected = {name: ToolNode([tool]) for name, tool in tools.items() if takes_injection(tool)}
        direct = {
            name: way
            for name, tool in tools.items()
            if (way := DirectTool.from_tool(tool)) and name not in injected
        }
        return cls(tools, injected, direct, model, **more)

    def __call__(self, state: dict[str, Any], config: RunnableConfig) -> Any:
        """Run the call, as a person has it where one is asked, and return its result as an update."""
        call, answered = self.prepare_call(state)
        return answered or self.reviews.note_edited_args(state, call, self.call_tool(call, config))

    async def acall(self, state: dict[str, Any], config: RunnableConfig) -> Any:
        """Run the call and return its result as an update; the same, waiting."""
        call, answered = self.prepare_call(state)
        return answered or self.reviews.note_edited_args(state, call, await self.acall_tool(call, config))

    def prepare_call(self, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the call that is to run, or the update that answers it without."""
        if fault := self.find_fault(state):
            return state, {"messages": [error_result(state, fault)]}
        call = {key: state[key] for key in ("name", "args", "id", "type")}
        return self.reviews.review_call(call, self.tools[call["name"]], due=state.get("review", False))

    def call_tool(self, call: dict[str, Any], config: RunnableConfig) -> Any:
        """Call the tool; what it raises is its result."""
        tool = self.tools[call["name"]]
        if _is_async_only(tool):
            raise ToolError(
                f"The tool {tool.name!r} is asynchronous only: run this agent with ainvoke or astream."
            )
        try:
            if node := self.injected.get(tool.name):
                return self.check_update(call, node.invoke([call], config))
            if (function := self.direct.get(tool.name)) and has_no_listeners(config):
                return self.check_update(call, function(call))
            return self.check_update(call, tool.invoke(call, config))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            return _answer_error(call, error, self.model)

    async def acall_tool(self, call: dict[str, Any], config: RunnableConfig) -> Any:
        """Call the tool and wait for it."""
        tool = self.tools[call["name"]]
        try:
            if node := self.injected.get(tool.name):
                return self.check_update(call, await node.ainvoke([call], config))
            if (function := self.direct.get(tool.name)) and has_no_listeners(config):
                return self.check_update(call, await run_in_executor(None, function, call))  # it may block
            return self.check_update(call, await tool.ainvoke(call, config))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result
            return _answer_error(call, error, self.model)

    def check_update(self, call: dict[str, Any], result: Any) -> Any:
        """Turn what a tool returned into an update. Raises `ToolError` for one that no checkpoint takes."""
        update = _build_update(call, result)
        for part in (update if isinstance(update, list) else [update]) if self.saver else ():
            told: Any = part.update if isinstance(part, Command) else part
            more = told is not part or any(getattr(m, "artifact", None) is not None for m in told["messages"])
            kept = {key: told[key] for key in told.keys() & self.stored}
            if more and (why := find_unserializable(kept, self.saver.serde.dumps_typed)) is not None:
                raise ToolError(f"no checkpoint takes what the tool returned ({why})")
        return update

    def find_fault(self, call: Mapping[str, Any]) -> str | None:
        """Say why a call is not run: as its reply's reading found, or since an older build had its tool."""
        if call["name"] in self.tools:
            return call.get("fault")
        known = {*self.tools, *self.todo_tools} - {call["name"]}
        return call.get("fault") or unknown_tool_error(call["name"], known)


def _is_async_only(tool: BaseTool) -> bool:
    return getattr(tool, "coroutine", None) is not None and getattr(tool, "func", True) is None


def _build_update(call: dict[str, Any], result: Any) -> Any:
    """Turn what a tool returned into an update, or several: messages, or commands that pass through."""
    if isinstance(result, dict):
        result = result.get("messages", [])
    parts = result if isinstance(result, list) else [result]
    messages: list[BaseMessage] = []
    commands: list[Command[Any]] = []
    for part in parts:
        if isinstance(part, dict):
            messages += part.get("messages", [])
        elif isinstance(part, Command):
            commands.append(part)
        else:
            messages.append(part)
    handed = [_note_handover(call, command) for command in commands if command.graph == Command.PARENT]
    if handed:
        return handed[-1]
    for command in commands:
        _check_command(command)
    if commands:
        answers = [m for command in commands for m in _read_messages(command)] + messages
        if not any(getattr(m, "tool_call_id", None) == call["id"] for m in answers):
            messages.append(tool_result(call, "Done."))
        plain: list[Any] = [Command(update=_read_update(command)) for command in commands]
        return [*plain, *([{"messages": messages}] if messages else [])]
    return {"messages": [clean_tool_message(message) for message in messages]}


def _read_update(command: Command[Any]) -> dict[str, Any]:
    update = dict(command.update or ())
    if "messages" in update:
        update["messages"] = [clean_tool_message(message) for message in _read_messages(command)]
    return update


def _read_messages(command: Command[Any]) -> list[BaseMessage]:
    found = dict(command.update or ()).get("messages", [])
    return convert_to_messages(found if isinstance(found, list) else [found])


def _check_command(command: Command[Any]) -> None:
    """Refuse what a tool may not write, and a list that it writes badly, before it is stored."""
    if command.goto:
        raise ToolError("a tool may go to a node of the parent graph only (graph=Command.PARENT)")
    update = dict(command.update or ())
    if private := PRIVATE_CHANNELS & update.keys():
        raise ToolError(f"a tool may not write {min(private)!r}, which the graph keeps for itself")
    if (todos := update.get("todos")) is not None:
        try:
            read_list(todos)
        except OperationRefused as refusal:
            raise ToolError(str(refusal)) from None


def _answer_error(call: dict[str, Any], error: Exception, model: object) -> dict[str, Any]:
    """Answer with an error; a way to the parent is kept for the run's end, other signals pass through."""
    if isinstance(error, ParentCommand):
        return _note_handover(call, error.args[0])
    if isinstance(error, GraphBubbleUp):
        raise error
    return {"messages": [error_result(call, redact_text(describe_tool_error(error), collect_secrets(model)))]}


def _note_handover(call: dict[str, Any], command: Command[Any]) -> dict[str, Any]:
    """Note where a tool wants to go, so that siblings and history are kept; the guard sends it."""
    if (info := get_runtime().execution_info) is None or NAMESPACE_SEPARATOR not in info.checkpoint_ns:
        return {"messages": [error_result(call, "Error: there is no parent graph to hand over to.")]}
    goto = command.goto if isinstance(command.goto, list | tuple) else [command.goto]
    sends = [{"node": g.node, "arg": g.arg} if isinstance(g, Send) else {"node": g} for g in goto]
    update = dict(command.update or ())
    messages = [clean_tool_message(message) for message in _read_messages(command)]
    if not any(getattr(m, "tool_call_id", None) == call["id"] for m in messages):
        messages.append(tool_result(call, "Handed over."))
    update.pop("messages", None)
    return {"messages": messages, "todo_handoff": [{"id": call["id"], "goto": sends, "update": update}]}
