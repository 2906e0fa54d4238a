"""Results of calls: errors, whose call, how long it took."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langgraph.types import Command
from pydantic import ValidationError

from wakeloop.errors import ToolError
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.turn import find_written_reply
from wakeloop.model.redaction import RedactingNode
from wakeloop.model.storable_values import make_storable
from wakeloop.text.characters import fix_surrogates, shorten
from wakeloop.text.marks import find_last, new_id, remove_mark, with_duration
from wakeloop.todos.items import MAX_REFUSAL_LENGTH

_STORED_FIELDS = ("content", "artifact", "additional_kwargs", "response_metadata", "name")


def tool_result(call: Mapping[str, Any], text: str, status: Any = "success") -> ToolMessage:
    """Return the result of a call."""
    return ToolMessage(text, id=new_id(), name=call["name"], tool_call_id=call["id"], status=status)


def error_result(call: Mapping[str, Any], text: str) -> ToolMessage:
    """Return an error result for a call, cut to a bounded length.

    >>> error_result({"name": "look", "id": "c1"}, "no such place").content
    'Error: no such place'
    """
    if not text.startswith("Error: "):
        text = f"Error: {text}"
    return tool_result(call, shorten(fix_surrogates(text), MAX_REFUSAL_LENGTH), "error")


def clean_tool_message(message: BaseMessage) -> BaseMessage:
    """Return a tool's message ready for a checkpoint: storable, with an id, without the graph's mark."""
    update: dict[str, Any] = {}
    if not message.id:
        update["id"] = new_id()
    for name in _STORED_FIELDS:
        value = getattr(message, name, None)
        if value is None or (isinstance(value, str | dict) and not value):
            continue
        stored = make_storable(value)
        if stored is not value:
            update[name] = stored
    if update:
        message = message.model_copy(update=update)
    return remove_mark(message)


def bind_to_call(call: Mapping[str, Any], messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return a tool's messages with its one result bound to its own call.

    A result for another call would take the place of that call's own. Raises `ToolError` if it is not clear
    which one was meant. A message with an id may replace an older one.
    """
    others = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id != call["id"] and not m.id]
    if not others:
        return messages
    if len(others) > 1 or any(getattr(m, "tool_call_id", None) == call["id"] for m in messages):
        raise ToolError(
            f"the tool answered the call {shorten(others[0].tool_call_id)!r}, which is not its own"
        )
    own = others[0].model_copy(update={"tool_call_id": call["id"]})
    return [own if message is others[0] else message for message in messages]


def find_unanswered(calls: Sequence[Any], messages: Sequence[AnyMessage]) -> list[Any]:
    """Return those of the last reply's calls that have no result yet."""
    if not calls:
        return []
    answered = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return [call for call in calls if call["id"] not in answered]


def last_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls of the last reply."""
    reply = find_last(AIMessage, messages)
    return reply.tool_calls if reply else []


def find_calls_to_send(
    notes: Ledger, messages: Sequence[AnyMessage], todo_tools: Collection[str]
) -> list[Any]:
    """Return the calls of a round that are to run now; none of a reply that `call_model` has not read."""
    if "nag" not in notes or find_written_reply(notes, messages, todo_tools):
        return []
    # where the round was put to a person again, the input comes after the reply
    return find_unanswered(last_calls(messages), messages)


def unknown_tool_error(name: str, known: Collection[str]) -> str:
    """Return the error for a stored call whose tool is gone: an earlier build of the agent made the call."""
    available = ", ".join(sorted(known)) or "none"
    return f"tool {shorten(name)!r} no longer exists. Available: {available}."


def error_text(error: BaseException) -> str:
    """Return an error's text, or the name of its class if its `__str__` fails."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - other people's code
        return type(error).__name__


def describe_tool_error(error: BaseException) -> str:
    """Return what the model reads about an exception that a tool raised."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        return f"invalid arguments: {where}: {first['msg']}"
    text = error_text(error) or type(error).__name__
    if isinstance(error, ToolError | ToolException):  # raised for the model: its text says it all
        return text
    return f"{type(error).__name__}: {text}"


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
