"""Captured requests: their roles, words and calls, and tokens."""

import json
import math
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
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call

Request: TypeAlias = Sequence[BaseMessage] | Sequence[dict[str, Any]]

_ROLES = {"human": "user", "HumanMessageChunk": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
_LONGEST_TEXT = 200


def number_requests(requests: Iterable[Request]) -> Iterable[tuple[int, list[BaseMessage]]]:
    """Return the requests as messages, with their indices from 0; dicts in OpenAI's format are converted."""
    return enumerate([_message_of(message) for message in request] for request in requests)


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
    """Return whether a message has no text. White space is not text, just as on strict servers."""
    return not str(message.text).strip()


def is_from_model(message: BaseMessage) -> bool:
    """Return whether a model wrote the message. Blank replies and marked lines of the graph don't count."""
    if not isinstance(message, AIMessage) or "wakeloop" in message.additional_kwargs:
        return False
    return bool(message.tool_calls or message.invalid_tool_calls or not is_blank(message))


def describe_message(message: BaseMessage) -> str:
    """Return one line for an error: the role, the text (cut at 200 characters), the calls."""
    text = str(message.text)
    line = f"{role_of(message)}: {text[:_LONGEST_TEXT]!r}"
    if len(text) > _LONGEST_TEXT:
        line += "…"
    names = [call["name"] or "?" for call in (*calls_of(message), *malformed_of(message))]
    if names:
        line += f", calls {', '.join(names)}"
    return line


def _message_of(raw: BaseMessage | dict[str, Any]) -> BaseMessage:
    """Convert a message of the wire. LangChain would raise for broken calls; here they are kept."""
    if isinstance(raw, BaseMessage):
        return raw
    if not raw.get("tool_calls"):
        if raw.get("role") == "tool":
            raw = {"tool_call_id": "", **raw}
        return convert_to_messages([raw])[0]
    whole, broken = [], []
    for wire_call in raw["tool_calls"]:
        call = {"id": None, **wire_call}
        if _is_well_formed(call):
            whole.append(call)
        else:
            broken.append(make_invalid_tool_call(call, None))
    message = convert_to_messages([{**raw, "tool_calls": whole}])[0]
    return message.model_copy(update={"invalid_tool_calls": broken})


def _is_well_formed(call: dict[str, Any]) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        return False


CHARACTERS_PER_TOKEN = 4


def render_message(message: BaseMessage) -> str:
    """Return a message as text, with its calls."""
    content = message.content
    if not isinstance(content, str):
        content = json.dumps(content, default=str)
    text = f"{message.type}:{content}"
    for call in calls_of(message):
        text += f"{call['name']}{json.dumps(call['args'], default=str)}"
    for broken in malformed_of(message):
        text += f"{broken['name']}{broken['args']}"
    return text + "\n"


def common_length(one: str, other: str) -> int:
    """Return how many characters two strings have in common at their start."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


class UsageMeter:
    """Counts tokens. The text that a request shares with the start of the one before it counts as cached."""

    def __init__(self) -> None:
        self.before: list[str] = []

    def usage(
        self, tools: Sequence[dict[str, Any]], request: Sequence[BaseMessage], reply: AIMessage
    ) -> UsageMetadata:
        """Return the usage of one request and its reply."""
        texts = [json.dumps(list(tools), default=str), *map(render_message, request)]
        same = 0
        for text, before in zip(texts, self.before, strict=False):
            if text != before:
                break
            same += 1
        cached = sum(map(len, texts[:same]))
        if same < min(len(texts), len(self.before)):
            cached += common_length(texts[same], self.before[same])
        self.before = texts
        sent = math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)
        out = math.ceil(len(render_message(reply)) / CHARACTERS_PER_TOKEN)
        return UsageMetadata(
            input_tokens=sent,
            output_tokens=out,
            total_tokens=sent + out,
            input_token_details=InputTokenDetails(cache_read=cached // CHARACTERS_PER_TOKEN),
        )
