"""A captured request, read as roles and texts."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    InvalidToolCall,
    ToolCall,
    convert_to_messages,
)
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call

Request: TypeAlias = Sequence[BaseMessage] | Sequence[dict[str, Any]]

_ROLES = {"human": "user", "HumanMessageChunk": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_LONGEST_TEXT = 200


def messages_of(request: Request) -> list[BaseMessage]:
    """Return the request as messages; dicts in OpenAI's format are converted."""
    return [message if isinstance(message, BaseMessage) else _message_of(message) for message in request]


def number_requests(requests: Iterable[Request]) -> Iterable[tuple[int, list[BaseMessage]]]:
    """Return the requests with their indices, from 0."""
    return enumerate(messages_of(request) for request in requests)


def role_of(message: BaseMessage) -> str:
    """Return "system", "user", "assistant" or "tool"; for other messages their own role."""
    if isinstance(message, ChatMessage):
        return message.role
    return _ROLES.get(message.type, message.type)


def calls_of(message: BaseMessage) -> list[ToolCall]:
    """Return the tool calls of an assistant's message."""
    return message.tool_calls if isinstance(message, AIMessage) else []


def malformed_of(message: BaseMessage) -> list[InvalidToolCall]:
    """Return the calls of an assistant's message whose arguments are not JSON."""
    return message.invalid_tool_calls if isinstance(message, AIMessage) else []


def is_blank(message: BaseMessage) -> bool:
    """Return whether it has no text. White space alone counts as none, as it does on strict servers."""
    text = message.content if isinstance(message.content, str) else str(message.text)
    return not text.strip()


def is_from_model(message: BaseMessage) -> bool:
    """Return whether a model wrote it, and not nothing: lines and fillers of the graph are marked."""
    if not isinstance(message, AIMessage) or "wakeloop" in message.additional_kwargs:
        return False
    return bool(message.tool_calls or message.invalid_tool_calls or not is_blank(message))


def describe_message(message: BaseMessage) -> str:
    """Return one line for an error: the role, the text (cut at 200 characters), the calls."""
    made = [call["name"] or "?" for call in (*calls_of(message), *malformed_of(message))]
    tail = f", calls {', '.join(made)}" if made else ""
    text = str(message.text)
    return f"{role_of(message)}: {text[:_LONGEST_TEXT]!r}{'…' if len(text) > _LONGEST_TEXT else ''}{tail}"


def _message_of(raw: dict[str, Any]) -> BaseMessage:
    """A message as it stood on the wire, with its broken calls where langchain would raise."""
    if not raw.get("tool_calls"):
        missing = {"tool_call_id": ""} if raw.get("role") == "tool" else {}
        return convert_to_messages([{**missing, **raw}])[0]
    made = [{"id": None, **call} for call in raw["tool_calls"]]
    whole = [call for call in made if _is_well_formed(call)]
    broken = [make_invalid_tool_call(call, None) for call in made if not _is_well_formed(call)]
    message = convert_to_messages([{**raw, "tool_calls": whole}])[0]
    return message.model_copy(update={"invalid_tool_calls": broken})


def _is_well_formed(call: dict[str, Any]) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        return False
