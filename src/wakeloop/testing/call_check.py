"""What strict servers require of the calls in a history."""

import re
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of, is_blank

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_USER_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_LONGEST_ID = 40
_ID_KEYS = {  # where a block of this type has its call's id
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "tool_call_chunk": "id",
    "function_call": "call_id",
    "custom_tool_call": "call_id",
    **dict.fromkeys(("computer_call", "local_shell_call", "shell_call", "apply_patch_call"), "call_id"),
}
_SERVER_TOOL_CALLS = ("server_tool_use", "mcp_tool_use", "server_tool_call")


def user_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults of a user message: it is empty, or it contains tool results."""
    kinds = [block.get("type") for block in _blocks_of(message)]
    if "tool_result" in kinds or "function_call_output" in kinds:
        yield "a tool's result in a user's message"
    elif is_blank(message) and kinds.count("text") == len(kinds):
        yield "an empty user message"


def name_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults in the name of the speaker, or of the tool that answers."""
    allowed = _NAME if isinstance(message, ToolMessage | AIMessage) else _USER_NAME
    if message.name and not allowed.fullmatch(message.name):
        yield f"the message's name {message.name!r} is not one that every server takes"


def call_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults of an assistant's calls: names, ids, and calls left outside of `tool_calls`."""
    made = {call["id"]: call["name"] for call in calls_of(message)}
    for key, name in made.items():
        if not _NAME.fullmatch(name):
            yield f"the call {key!r} has the name {name!r}, which is not one that every server takes"
        if key and len(key) > _LONGEST_ID:
            yield f"the call id {key!r} has more than {_LONGEST_ID} characters"
    extra = message.additional_kwargs
    if "function_call" in extra or ("tool_calls" in extra and not made):
        yield "a call is left in additional_kwargs"
    if not isinstance(message, AIMessage):
        return
    if not made:
        yield from _server_tool_faults(message)
    for block in _blocks_of(message):
        if str(block.get("type")) in _ID_KEYS:
            yield from _block_faults(block, made)


def _blocks_of(message: BaseMessage) -> list[dict[str, Any]]:
    """Return the content blocks of a message; a plain string has none."""
    return [block for block in message.content if isinstance(block, dict)]


def _server_tool_faults(message: AIMessage) -> Iterator[str]:
    blocks = _blocks_of(message)
    ended = [block.get("tool_use_id") or block.get("tool_call_id") for block in blocks]
    for block in blocks:
        if block.get("type") in _SERVER_TOOL_CALLS and block.get("id") not in ended:
            yield f"the call {block.get('id')!r} of the provider's own tool has no result"


def _block_faults(block: dict[str, Any], made: dict[str | None, str]) -> Iterator[str]:
    key, name = block.get(_ID_KEYS[block["type"]]), block.get("name")
    if not isinstance(key, str | None) or key not in made:
        yield f"a block holds the call {key!r} of {name!r}, which is not among the message's calls"
    elif made.pop(key) != name:
        yield f"the block of the call {key!r} has another name: {name!r}"
