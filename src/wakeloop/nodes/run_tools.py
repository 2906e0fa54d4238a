"""Runs one tool call that is not a todo call."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Self

from langchain_core.messages import BaseMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool
from langgraph.errors import ParentCommand
from langgraph.prebuilt import ToolNode
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send

from wakeloop.checks.run_inputs import find_unserializable
from wakeloop.errors import ToolError
from wakeloop.model.redaction import collect_secrets
from wakeloop.model.tool_results import (
    TimedNode,
    bind_to_call,
    clean_tool_message,
    describe_tool_error,
    error_result,
    tool_result,
    unknown_tool_error,
)
from wakeloop.platform.command_updates import read_update
from wakeloop.platform.direct_calls import DirectTool, has_no_listeners, takes_injection
from wakeloop.platform.runnables import read_step
from wakeloop.platform.tool_boundary import (
    arun_within,
    find_time_limit,
    passes_boundary,
    run_within,
    unwrap_group,
    wall_off,
)
from wakeloop.state import PRIVATE_CHANNELS
from wakeloop.text.secrets import redact_text
from wakeloop.thread.interrupts import run_approved
from wakeloop.thread.tool_reviews import ToolReviews, strip_notes
from wakeloop.todos.items import OperationRefused, read_list

NOTED = frozenset(("decision", "fault", "review"))  # keys of a call with notes of its own
NAMESPACE_SEPARATOR = "|"  # between a parent's and a child's part of a checkpoint namespace


@dataclass(frozen=True, eq=False)
class RunTools(TimedNode):
    """Run one call. A call with a fault is answered with it; what a tool raises becomes its result.

    `injected` holds a `ToolNode` for each tool that the graph gives state, store or runtime. `direct` holds
    tools whose function is called as it is, where no callback listens. All others are invoked.
    """

    tools: Mapping[str, BaseTool]
    injected: Mapping[str, ToolNode] = field(default_factory=dict)
    direct: Mapping[str, DirectTool] = field(default_factory=dict)
    model: object = None  # its secrets are redacted in errors
    clock: Callable[[], float] = monotonic
    todo_tools: frozenset[str] = frozenset()  # named, too, in the answer to an unknown tool
    reviews: ToolReviews = field(default_factory=ToolReviews)  # the tools whose calls a person decides
    saver: Any = None  # of the graph, if it has its own
    stored: frozenset[str] = frozenset()  # the channels whose values it gets

    @classmethod
    def sort_tools(cls, tools: Mapping[str, BaseTool], model: object = None, **more: Any) -> Self:
        """Sort the tools by the way they are called."""
        injected: dict[str, ToolNode] = {}
        direct: dict[str, DirectTool] = {}
        tools = {name: wall_off(tool) for name, tool in tools.items()}
        for name, tool in tools.items():
            if takes_injection(tool):
                injected[name] = ToolNode([tool])
            elif way := DirectTool.from_tool(tool):
                direct[name] = way
        return cls(tools, injected, direct, model, **more)

    def __call__(self, state: dict[str, Any], config: RunnableConfig) -> Any:
        """Run the call, as a person decided it if one is asked, and return its result as an update."""
        call, answered = self.prepare_call(state)
        if answered is not None:
            return {"messages": [answered]}
        with run_approved(call):
            result = note_base(self.call_tool(strip_notes(call), config), state)
        return self.reviews.note_edited_args(state, call, result)

    async def acall(self, state: dict[str, Any], config: RunnableConfig) -> Any:
        """Return the same; the tool is awaited."""
        call, answered = self.prepare_call(state)
        if answered is not None:
            return {"messages": [answered]}
        with run_approved(call):
            result = note_base(await self.acall_tool(strip_notes(call), config), state)
        return self.reviews.note_edited_args(state, call, result)

    def prepare_call(self, state: dict[str, Any]) -> tuple[dict[str, Any], ToolMessage | None]:
        """Return the call to run, and the result that answers it if it does not run.

        That is so if a person said so, for a fault in the reply, and without such a tool in this build.
        """
        name, tool = state["name"], self.tools.get(state["name"])
        if tool is None:
            known = {*self.tools, *self.todo_tools} - {name}
            return state, error_result(state, state.get("fault") or unknown_tool_error(name, known))
        if not state.keys() & NOTED:
            state = self.reviews.review_written(state, self.tools)
        call, answered = self.reviews.apply_decision(state, tool)
        if answered is None and "fault" in state:
            return state, error_result(state, state["fault"])
        return call, answered

    def call_tool(self, call: dict[str, Any], config: RunnableConfig) -> Any:
        """Call the tool; whatever it raises is its result."""
        tool = self.tools[call["name"]]
        if getattr(tool, "coroutine", None) is not None and getattr(tool, "func", True) is None:
            raise ToolError(
                f"The tool {tool.name!r} is asynchronous only: run this agent with ainvoke or astream."
            )
        if node := self.injected.get(tool.name):
            work = partial(node.invoke, [call], config)
        elif (function := self.direct.get(tool.name)) and has_no_listeners(config):
            work = partial(function, call)
        else:
            work = partial(tool.invoke, call, config)
        try:
            return self.check_update(call, run_within(find_time_limit(tool), work), config)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its result
            return _answer_error(call, error, self.model)

    async def acall_tool(self, call: dict[str, Any], config: RunnableConfig) -> Any:
        """Call the tool and wait for it."""
        tool = self.tools[call["name"]]
        work: Awaitable[Any]
        if node := self.injected.get(tool.name):
            work = node.ainvoke([call], config)
        elif (function := self.direct.get(tool.name)) and has_no_listeners(config):
            work = run_in_executor(None, function, call)  # it may block
        else:
            work = tool.ainvoke(call, config)
        try:
            return self.check_update(call, await arun_within(find_time_limit(tool), work), config)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its result
            return _answer_error(call, error, self.model)

    def check_update(self, call: dict[str, Any], result: Any, config: RunnableConfig) -> Any:
        """Turn what a tool returned into an update. Raises `ToolError` if no checkpoint can store it."""
        update = _build_update(call, result, read_step(config))
        if not self.saver:
            return update
        for part in _as_list(update):
            is_command = isinstance(part, Command)
            written: Any = part.update if is_command else part
            # plain text can always be stored, so only what a tool adds to it is tried
            if is_command or any(getattr(m, "artifact", None) is not None for m in written["messages"]):
                kept = {key: written[key] for key in written.keys() & self.stored}
                why = find_unserializable(kept, self.saver.serde.dumps_typed)
                if why is not None:
                    raise ToolError(f"no checkpoint takes what the tool returned ({why})")
        return update


def _build_update(call: dict[str, Any], result: Any, step: int) -> Any:
    """Turn what a tool returned into an update, or several: messages, or commands that pass through."""
    if isinstance(result, dict):
        result = result.get("messages", [])
    parts = _as_list(result)
    commands = [part for part in parts if isinstance(part, Command)]
    messages: list[BaseMessage] = []
    for part in parts:
        if not isinstance(part, Command):
            messages += part.get("messages", []) if isinstance(part, dict) else [part]
    to_parent = [command for command in commands if command.graph == Command.PARENT]
    if to_parent:
        return [_note_handover(call, command) for command in to_parent][-1]
    messages = bind_to_call(call, messages)
    if not commands:
        return {"messages": [clean_tool_message(message) for message in messages]}
    updates: list[Any] = []
    answers = list(messages)
    for command in commands:
        if command.goto:
            raise ToolError("a tool may go to a node of the parent graph only (graph=Command.PARENT)")
        update = read_tool_update(command.update, call["name"], step)
        if "messages" in update:
            given = bind_to_call(call, _read_messages(update))
            update["messages"] = [clean_tool_message(message) for message in given]
        answers += update.get("messages", [])
        updates.append(Command(update=update))
    if not _answers(call, answers):
        messages.append(tool_result(call, "Done."))
    return [*updates, {"messages": messages}] if messages else updates


def note_base(update: Any, sent: Mapping[str, Any]) -> Any:
    """Note in what a tool wrote from which list it is merged with the todo calls of its reply."""
    for part in _as_list(update) if "base" in sent else ():
        written = part.update if isinstance(part, Command) else None
        if isinstance(written, dict) and written.get("todos"):
            written["todos"]["base"] = sent["base"]
    return update


def _answers(call: dict[str, Any], messages: list[BaseMessage]) -> bool:
    """Tell whether one of the messages is the result of the call."""
    return any(getattr(message, "tool_call_id", None) == call["id"] for message in messages)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _read_messages(update: Mapping[str, Any]) -> list[BaseMessage]:
    return convert_to_messages(_as_list(update.get("messages", [])))


def read_tool_update(
    written: Any, by: str, step: int, private: frozenset[str] = PRIVATE_CHANNELS
) -> dict[str, Any]:
    """Return a tool's update; its list will be merged with what others write in the same superstep.

    Raises `ToolError` for private channels and invalid lists, before they are stored.
    """
    update = read_update(written)
    if refused := private & update.keys():
        raise ToolError(f"a tool may not write {min(refused)!r}, which the graph keeps for itself")
    if (todos := update.get("todos")) is not None:
        try:
            read_list(todos)
        except OperationRefused as refusal:
            raise ToolError(str(refusal)) from None
        update["todos"] = {"given": todos, "by": by, "step": step}
    return update


def _answer_error(call: dict[str, Any], error: BaseException, model: object) -> dict[str, Any]:
    """Answer with an error; keep a handover to the parent for the run's end; pass other signals through."""
    error = unwrap_group(error)
    if isinstance(error, ParentCommand):
        return _note_handover(call, error.args[0])
    if passes_boundary(error):
        raise error
    return {"messages": [error_result(call, redact_text(describe_tool_error(error), collect_secrets(model)))]}


def _note_handover(call: dict[str, Any], command: Command[Any]) -> dict[str, Any]:
    """Note where a tool hands over to. The guard sends it at the end, so that sibling calls finish first."""
    if (info := get_runtime().execution_info) is None or NAMESPACE_SEPARATOR not in info.checkpoint_ns:
        return {"messages": [error_result(call, "Error: this graph has no parent to hand over to.")]}
    sends: list[dict[str, Any]] = []
    for target in _as_list(command.goto):
        if isinstance(target, Send):
            sends.append({"node": target.node, "arg": target.arg})
        else:
            sends.append({"node": target})
    update = read_update(command.update)
    messages = [clean_tool_message(message) for message in _read_messages(update)]
    if not _answers(call, messages):
        messages.append(tool_result(call, "Handed over."))
    update.pop("messages", None)
    return {"messages": messages, "todo_handoff": [{"id": call["id"], "goto": sends, "update": update}]}
